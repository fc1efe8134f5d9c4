package persist_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// flips returns the offsets of the bytes of a file to damage, from a random offset on.
func flips(rng *rand.Rand, name string, size int) (offsets []int) {
	step := *storetest.Stride
	if strings.HasPrefix(name, catalog.JournalDir) {
		step = max(1, step/10)
	}
	for at := rng.IntN(step); at < size; at += step {
		offsets = append(offsets, at)
	}
	return offsets
}

func TestVerify_EveryFlippedBit(t *testing.T) {
	s := storetest.NewSample(t)
	// LOCK, two directories, three snapshots, two segments, the ledger.
	require.Len(t, s.Tree, 9)
	for name, data := range s.Tree {
		if data == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Log("seed", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			d := s.Damaged(t)
			for i, at := range flips(rng, name, len(data)) {
				changed := storetest.Flip(data, at, rng.IntN(8))
				d.With(name, changed, func() { d.Reported(name, at) })
				if i%8 == 0 {
					tree := maps.Clone(s.Tree)
					tree[name] = changed
					d.CheckOpen(tree, name, at)
				}
			}
			require.Equal(t, s.Tree, storetest.ReadTree(t, d.Dir), "reading changed the directory")
		})
	}
}

func TestOpen_LastTickDamaged(t *testing.T) {
	const segment = "journal/00000002.seg"
	refused := func(dir, says string) {
		v := storetest.Verified(t, dir)
		last := v.Log().Entries[len(v.Log().Entries)-1]
		path := filepath.Join(dir, segment)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(storetest.Flip(string(data), int(last.Offset)+60, 0)), 0o600))
		_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
		require.ErrorIs(t, err, persist.ErrCorrupt)
		require.ErrorContains(t, err, segment)
		require.ErrorContains(t, err, says)
	}
	s := storetest.NewSample(t)
	// The seal at the end of the journal names this tick as the head, so it must be readable.
	refused(s.Dir, "payload checksum does not match")

	// After a crash the journal has no seal. Only a durable mark after the tick shows that the tick
	// was durable.
	dir := filepath.Join(t.TempDir(), "store")
	storetest.CloseStore(t, storetest.Open(t, dir, storetest.New(0), persist.Options{}))
	w := storetest.New(0)
	store := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever})
	for range 2 {
		w.Fill(1)
		require.NoError(t, store.Commit())
	}
	require.NoError(t, store.Sync(storetest.Background))
	require.Eventually(t, func() bool {
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err)
		defer v.Close()
		last := v.Log().Entries[len(v.Log().Entries)-1]
		size := v.Log().Segments[1].Size
		return size >= last.Offset+48+int64(last.Length)+48
	}, 30*time.Second, time.Millisecond)
	crashed := storetest.CopyDir(t, dir)
	storetest.CloseStore(t, store)
	refused(crashed, "ticks that were durable cannot be read")
}

func TestLoad_EveryFlippedBit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "save")
	w := storetest.New(0)
	w.Fill(4)
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	into := storetest.New(0)
	into.Fill(2)
	before := into.Digest()
	seed := rand.Uint64()
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, at := range flips(rng, "save", len(data)) {
		changed := storetest.Flip(string(data), at, rng.IntN(8))
		require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
		err := persist.Load(storetest.Background, file, into.World)
		require.Error(t, err, "byte %d", at)
		require.ErrorContains(t, err, "save")
		require.Equal(t, before, into.Digest(), "byte %d: a failed Load changed the world", at)
	}
	for range 40 {
		require.NoError(t, os.WriteFile(file, data[:rng.IntN(len(data))], 0o600))
		require.Error(t, persist.Load(storetest.Background, file, into.World))
		require.Equal(t, before, into.Digest())
	}
	require.NoError(t, os.WriteFile(file, data, 0o600))
	require.NoError(t, persist.Load(storetest.Background, file, into.World))
	require.Equal(t, w.Digest(), into.Digest())
}

func TestOpen_ErrorNamesMissingFile(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	d := s.Damaged(t)
	for _, c := range []struct {
		missing []string
		skipped string // Text in the report if the state is recovered.
		refused string // Text of the error if Open refuses the store.
	}{
		// The newest snapshot does not need this segment.
		{missing: []string{"journal/00000001.seg"}, skipped: "journal/00000001.seg"},
		{missing: []string{"journal/00000001.seg", "snapshots/00000003.snap"}, refused: "no such record: 5"},
		{missing: []string{"journal/00000001.seg", "journal/00000002.seg"}, refused: "journal"},
		{missing: []string{"journal/00000002.seg"}, refused: "journal/00000002.seg: 0 bytes at offset 0: missing"},
		{missing: []string{"journal/00000002.ledger"}, refused: "journal/00000002.ledger: 0 bytes at offset 0: missing"},
		{missing: []string{"journal/00000001.seg", "journal/00000002.seg", "journal/00000002.ledger"}, refused: "journal"},
		{missing: []string{"journal/00000001.seg", "journal/00000002.seg", "journal/00000002.ledger", "journal/"}, refused: "journal"},
		{missing: []string{"snapshots/00000001.snap"}, refused: "corrupt: snapshots/00000001.snap"},
		{missing: []string{"snapshots/00000002.snap"}, skipped: "snapshots/00000002.snap"},
		{missing: []string{"snapshots/00000003.snap"}, skipped: "snapshots/00000003.snap: missing"},
		{missing: []string{"snapshots/00000002.snap", "snapshots/00000003.snap"}, skipped: "snapshots/00000002.snap: missing"},
		{missing: []string{"snapshots/00000001.snap", "snapshots/00000002.snap", "snapshots/00000003.snap"}, refused: "no snapshot"},
		{missing: []string{"LOCK"}},
	} {
		t.Run(strings.Join(c.missing, ","), func(t *testing.T) {
			tree := maps.Clone(s.Tree)
			for _, name := range c.missing {
				delete(tree, name)
			}
			r, err := d.Opened(tree)
			switch {
			case c.refused != "":
				require.ErrorContains(t, err, c.refused)
			case c.skipped != "":
				require.NoError(t, err)
				require.ErrorContains(t, r.Skipped[0], c.skipped)
			default:
				require.NoError(t, err)
			}
		})
	}
}

// The last segment of the journal is missing. A snapshot of a record in that segment proves it. In
// format 1, and in format 2 without a ledger, nothing else does. Without the snapshot, such a store
// looks as before its last opening.
func TestOpen_LastSegmentMissing(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	w := storetest.New(0)
	store := storetest.Open(t, s.Dir, w, persist.Options{})
	w.Create()
	require.NoError(t, store.Commit())
	_, err := store.Snapshot(storetest.Background)
	require.NoError(t, err)
	storetest.CloseStore(t, store)
	tree := storetest.ReadTree(t, s.Dir)
	delete(tree, "journal/00000003.seg")
	_, err = s.Damaged(t).Opened(tree)
	require.ErrorIs(t, err, persist.ErrCorrupt)
	require.ErrorContains(t, err, "ends at record 6")
}

func TestOpen_FilesOfOtherStore(t *testing.T) {
	t.Parallel()
	s, other := storetest.NewSample(t), storetest.NewSample(t)
	d := s.Damaged(t)
	for _, name := range []string{"journal/00000001.seg", "journal/00000002.seg"} {
		tree := maps.Clone(s.Tree)
		tree[name] = other.Tree[name]
		_, err := d.Opened(tree)
		require.ErrorIs(t, err, persist.ErrForeign)
		require.ErrorContains(t, err, "journal/")
	}
	for _, name := range []string{"snapshots/00000001.snap", "snapshots/00000002.snap", "snapshots/00000003.snap"} {
		tree := maps.Clone(s.Tree)
		tree[name] = other.Tree[name]
		r, err := d.Opened(tree)
		switch name {
		case "snapshots/00000001.snap": // The other snapshots refer to it.
			require.ErrorIs(t, err, persist.ErrCorrupt)
			require.ErrorContains(t, err, name)
		case "snapshots/00000003.snap":
			require.NoError(t, err)
			require.ErrorIs(t, r.Skipped[0], persist.ErrForeign)
			require.ErrorContains(t, r.Skipped[0], name)
		default: // Recovery does not read this file.
			require.NoError(t, err)
		}
		d.With(name, other.Tree[name], func() { d.Reported(name, 0) })
	}
}

func TestOpen_MisnamedSnapshot(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	d := s.Damaged(t)
	file := filepath.Join(t.TempDir(), "save")
	w := storetest.New(0)
	w.Fill(9)
	require.NoError(t, persist.Save(storetest.Background, file, w.World))
	save, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, data := range map[string]string{
		"snapshots/00000003.snap": string(save),
		"snapshots/00000009.snap": s.Tree["snapshots/00000002.snap"],
		"snapshots/00000007.snap": "",
		"snapshots/00000008.snap": strings.Repeat("no snapshot ", 1000),
	} {
		tree := maps.Clone(s.Tree)
		tree[name] = data
		r, err := d.Opened(tree)
		require.NoError(t, err)
		require.ErrorContains(t, r.Skipped[0], name)
		require.NoError(t, os.WriteFile(filepath.Join(d.Dir, name), []byte(data), 0o600))
		d.Reported(name, 0)
		require.NoError(t, os.Remove(filepath.Join(d.Dir, name)))
		storetest.WriteTree(t, d.Dir, s.Tree)
	}
	for _, name := range []string{"snapshots/3.snap", "snapshots/00000000.snap", "snapshots/x.snap", "notes.txt"} {
		tree := maps.Clone(s.Tree) // Use file names that no snapshot has.
		tree[name] = "x"
		r, err := d.Opened(tree)
		require.NoError(t, err, name)
		require.Empty(t, r.Skipped)
	}
}

func TestOpen_ForeignDirectory(t *testing.T) {
	for name, tree := range map[string]map[string]string{
		"other files":             {"CURRENT": "x", "LOCK": "", "000003.log": "y"},
		"a diary":                 {"journal/monday.txt": "dear diary"},
		"a directory with a name": {"src/main.go": "package main"},
		"photographs":             {"snapshots/holiday.jpg": "x", "LOCK": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "foreign")
			storetest.WriteTree(t, dir, tree)
			before := storetest.ReadTree(t, dir)
			_, err := persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{})
			require.ErrorIs(t, err, persist.ErrForeign)
			_, err = inspect.OpenReadOnly(storetest.Background, dir)
			require.ErrorIs(t, err, persist.ErrForeign)
			require.Equal(t, before, storetest.ReadTree(t, dir))
		})
	}
	file := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("just text\n", 1000)), 0o600))
	_, err := inspect.OpenReadOnly(storetest.Background, file)
	require.ErrorIs(t, err, persist.ErrForeign)
	require.ErrorIs(t, persist.Load(storetest.Background, file, storetest.New(0).World), persist.ErrForeign)
	_, err = persist.Open(storetest.Background, file, storetest.New(0).World, persist.Options{})
	require.Error(t, err)
	_, err = inspect.OpenReadOnly(storetest.Background, filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A damaged record affects only the states that need it. All other states are read unchanged. The
// new head is the newest readable state on the path to the old head.
func TestDamagedRecord_OtherStatesReadable(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	whole := storetest.Verified(t, s.Dir)
	states := map[uint64]ecs.Digest{}
	for _, e := range whole.Log().Entries {
		im, err := whole.At(storetest.Background, e.ID.Seq)
		require.NoError(t, err)
		states[e.ID.Seq] = im.Digest()
	}
	stored := map[uint64]bool{}
	for _, sn := range whole.Snapshots() {
		stored[sn.ID.Seq] = true
	}
	// way returns the path from seq back to a snapshot, excluding the snapshot.
	way := func(seq uint64) (way []uint64) {
		for !stored[seq] {
			way = append(way, seq)
			e, ok := whole.Log().Find(seq)
			require.True(t, ok)
			seq = e.Parent
		}
		return way
	}
	for _, damaged := range whole.Log().Entries {
		for _, offset := range []int{60, 20} { // Offsets in the payload and in the header.
			dir := storetest.CopyDir(t, s.Dir)
			name := whole.Log().Segments[damaged.Segment].Name
			require.NoError(t, flipAt(filepath.Join(dir, "journal", name), int(damaged.Offset)+offset))
			v := view(t, dir)
			require.NotEmpty(t, v.Damage())
			reaches := func(seq uint64) bool { return !slices.Contains(way(seq), damaged.ID.Seq) }
			newest, lost := v.Head(), error(nil)
			for ; !reaches(newest); lost = persist.ErrCorrupt {
				e, _ := whole.Log().Find(newest)
				newest = e.Parent
			}
			got, err := v.Newest()
			if offset == 60 {
				require.Equal(t, newest, got, "record %d", damaged.ID.Seq)
				require.ErrorIs(t, err, lost)
			}
			_, err = v.At(storetest.Background, got)
			require.NoError(t, err, "record %d, offset %d", damaged.ID.Seq, offset)
			for seq, want := range states {
				im, err := v.At(storetest.Background, seq)
				if err != nil {
					if offset == 60 {
						require.ErrorIs(t, err, persist.ErrCorrupt, "record %d without record %d", seq, damaged.ID.Seq)
					}
					require.False(t, reaches(seq), "record %d without record %d: %v", seq, damaged.ID.Seq, err)
					continue
				}
				require.True(t, reaches(seq))
				require.Equal(t, want, im.Digest())
			}
		}
	}
}

// A preamble is a record that describes components. If a component is registered late, a preamble
// in the middle of a segment describes it. If that preamble is damaged, ticks with the component
// cannot be read. All other ticks are read unchanged, with the schema of the previous preamble.
func TestPreamble_DamagedOnlyItsTicksFail(t *testing.T) {
	ctx := storetest.Background
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(2)
	store := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	w.Fill(3)
	commit := func() ecs.Digest { require.NoError(t, store.Commit()); return w.Digest() }
	digests := []ecs.Digest{0, commit()}
	type Late struct{ N int32 }
	late := ecs.MustRegister[Late](w.World)
	late.Set(w.Entities()[0], Late{7})
	digests = append(digests, commit()) // Record 2 names the new component.
	require.NoError(t, w.History().Rewind(1))
	w.Position.Set(w.Entities()[1], storetest.Position{})
	// Record 3 continues record 1, and does not name the new component.
	digests = append(digests, commit())
	late.Set(w.Entities()[1], Late{8})
	digests = append(digests, commit())
	storetest.CloseStore(t, store)
	log := storetest.Verified(t, dir).Log()
	require.Len(t, log.Preambles, 2)
	name := filepath.Join("journal", log.Segments[0].Name)
	for _, at := range []int64{log.Preambles[1].Offset + 20, log.Preambles[1].Offset + 60} {
		damaged := storetest.CopyDir(t, dir)
		require.NoError(t, flipAt(filepath.Join(damaged, name), int(at)))
		v := view(t, damaged)
		for seq, readable := range []bool{1: true, 2: false, 3: true, 4: false} {
			if seq == 0 {
				continue
			}
			im, err := v.At(ctx, uint64(seq))
			if !readable {
				var damage *persist.DamageError
				require.ErrorAs(t, err, &damage, "record %d", seq)
				require.Equal(t, log.Preambles[1].Offset, damage.Offset, "of the preamble, not of the record")
				continue
			}
			require.NoError(t, err, "record %d", seq)
			require.Equal(t, digests[seq], im.Digest())
		}
		commits, err := v.Commits(1, 4)
		require.ErrorIs(t, err, persist.ErrCorrupt)
		require.Len(t, commits, 1)
		require.Error(t, v.Refusal(ctx))
		_, err = persist.Open(ctx, damaged, storetest.New(0).World, persist.Options{})
		require.ErrorIs(t, err, persist.ErrCorrupt)
	}
}
