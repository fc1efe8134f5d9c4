package persist_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// oddNames are component names that a program without name checks, or another program, may have
// written.
var oddNames = []string{"\x1b[31m", "two\nlines", "nul\x00", "\xff", " ", "\u202e", strings.Repeat("x", 4000)}

// writeOdd writes a save and a store. Each has one component per name of oddNames, and one entity.
func writeOdd(t *testing.T) (save, dir string) {
	t.Helper()
	s := format.NewSchema()
	for _, name := range oddNames {
		s.Add(format.Entry{Name: name, Layout: &layout.Type{Kind: layout.Uint8}, Rewinds: true})
	}
	im := image.New(s)
	im.Registry, im.Alive, im.Free = []ecs.Entity{1 << 32}, 1, 1
	for n, c := range im.Components {
		c.Resize(1)
		c.Entities[0] = 1 << 32
		c.Packed[0] = byte(n)
	}
	require.NoError(t, im.Link(storetest.Background))
	save, dir = filepath.Join(t.TempDir(), "save"), filepath.Join(t.TempDir(), "store")
	require.NoError(t, repair.SaveImage(storetest.Background, inspect.NewImage(im), save))
	require.NoError(t, repair.SaveStore(storetest.Background, inspect.NewImage(im), dir))
	return save, dir
}

func TestComponentNames_InvalidNamesRead(t *testing.T) {
	t.Parallel()
	save, dir := writeOdd(t)
	w := ecs.NewWorld(ecs.Options{})
	require.NoError(t, persist.Load(storetest.Background, save, w))
	require.Len(t, w.Storages(), len(oddNames))

	w = ecs.NewWorld(ecs.Options{})
	named := ecs.MustRegister(w, ecs.Component[uint8]{Name: "named", FormerNames: []string{oddNames[1]}})
	s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
	require.NoError(t, err)
	require.Equal(t, []uint8{1}, named.Values())
	requireSeen(t, s.Report().String())
	named.Set(named.Entities()[0], 9)
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
	for _, doc := range readByReader(t, save, dir) {
		require.Empty(t, doc.Problems)
	}
}

// requireSeen requires that a terminal shows text unchanged.
func requireSeen(t *testing.T, text string) {
	t.Helper()
	require.False(t, strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) || r == '\ufffd' }), "%q", text)
}

func TestErrors_OddNamesAreQuoted(t *testing.T) {
	t.Parallel()
	for _, name := range oddNames {
		shown := func(err error) {
			t.Helper()
			require.Error(t, err)
			requireSeen(t, err.Error())
			require.NotContains(t, err.Error(), "\n")
			require.Less(t, len(err.Error()), 2000)
			require.Contains(t, err.Error(), `"`)
		}
		entry := format.Entry{Name: name, Layout: &layout.Type{Kind: layout.Bool}, Rewinds: true}
		s := format.NewSchema()
		s.Add(entry)
		im := image.New(s)
		shown(im.Patch(&format.Tick{Storages: []format.StoragePatch{{Before: 3}}}))

		other := format.NewSchema()
		other.Add(format.Entry{Name: name, Layout: &layout.Type{Kind: layout.Int8}, Rewinds: true})
		shown(s.Differs(other))
		shown(im.Adopt(other))

		bad := entry
		bad.Default = []byte{1}
		indexed := format.Entry{Name: "armor", Layout: &layout.Type{Kind: layout.Bool}, Indexed: true}
		s = format.NewSchema()
		s.Add(bad)
		s.Add(indexed)
		_, err := format.DecodeSchema(s.Encode())
		shown(err)

		save, _ := writeOdd(t)
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister(w, ecs.Component[bool]{Name: "now", FormerNames: []string{name}, NoPersist: true})
		shown(persist.Load(storetest.Background, save, w))
	}
}

func TestCommit_TimeOutOfRange(t *testing.T) {
	t.Parallel()
	for _, year := range []int{1, 1600, 2263, 3000, 100000} {
		now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		dir := filepath.Join(t.TempDir(), "store")
		w := storetest.New(0)
		s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, Now: func() time.Time { return now }})
		w.Fill(1)
		require.NoError(t, s.Commit())
		now = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		w.Fill(1)
		require.ErrorContains(t, s.Commit(), "Options.Now: a tick at ")
		w.Commit()
		require.ErrorContains(t, s.Err(), "the clock of a store shows times from 1678 to 2261")
		require.ErrorContains(t, s.Resume(storetest.Background), "Options.Now: a tick at ")
		now = time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)
		require.NoError(t, s.Resume(storetest.Background))
		w.Fill(1)
		require.NoError(t, s.Commit())
		storetest.CloseStore(t, s)
		commits, err := storetest.Verified(t, dir).Commits(0, ^uint64(0))
		require.NoError(t, err)
		for _, c := range commits {
			require.Equal(t, 2024, c.Time.Year())
		}
		again := storetest.New(0)
		s = storetest.Open(t, dir, again, persist.Options{})
		require.Equal(t, storetest.Persistent(w.World), storetest.Persistent(again.World))
		storetest.CloseStore(t, s)
	}
}
