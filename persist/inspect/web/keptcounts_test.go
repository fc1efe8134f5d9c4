package web

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// countedBar serves path with a cache. It returns the first time bar, the bar after all ticks are
// counted, and the number of ticks that the cache file contained.
func countedBar(t *testing.T, path, cache string) (first, bar map[string]any, recalled int) {
	t.Helper()
	h, err := New(context.Background(), func(ctx context.Context) (*inspect.View, error) { return inspect.OpenReadOnly(ctx, path) },
		Options{Token: "secret", Cache: cache})
	require.NoError(t, err)
	h.bar.mu.Lock()
	recalled = h.bar.saved
	h.bar.mu.Unlock()
	c := served(t, h)
	first = c.ask("bar?width=40")
	require.Eventually(t, func() bool {
		bar = c.ask("bar?width=40")
		return bar["counted"] == 1.
	}, time.Minute, 5*time.Millisecond)
	c.Close()
	require.NoError(t, h.Close())
	return first, bar, recalled
}

func TestKeptCounts_LoadedAfterRestart(t *testing.T) {
	dir, cache := filepath.Join(t.TempDir(), "D"), filepath.Join(t.TempDir(), "not", "there")
	s := begin(t, dir)
	const ticks = 1200
	for tick := range ticks {
		s.positions.Mut(s.entities[tick%len(s.entities)]).X++
		if tick%7 == 0 {
			require.NoError(t, s.store.Input("key", nil))
		}
		s.commit(t)
	}
	require.NoError(t, s.store.Close(context.Background()))
	_, bar, recalled := countedBar(t, dir, "")
	assert.Equal(t, "rows", bar["measure"])
	assert.Zero(t, recalled)

	_, kept, recalled := countedBar(t, dir, cache)
	assert.Equal(t, bar, kept)
	assert.Zero(t, recalled)
	again, _, recalled := countedBar(t, dir, cache)
	assert.Equal(t, bar, again, "at once")
	assert.Equal(t, ticks, recalled)

	files, err := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(files[0], text, 0o600))
	_, counted, recalled := countedBar(t, dir, cache)
	assert.Equal(t, bar, counted)
	assert.Zero(t, recalled, "the file is damaged")
	_, _, recalled = countedBar(t, dir, cache)
	assert.Equal(t, ticks, recalled, "the file was written again")

	_, _, recalled = countedBar(t, dir, os.DevNull)
	assert.Zero(t, recalled, "there is no cache directory")
}

// sampleCounts returns the counts of n ticks from seq 5 on. The checksum of each tick is its seq.
func sampleCounts(n int) counts {
	c := counts{world: [16]byte{1, 2, 3}, begin: 5, ticks: make([]counted, n)}
	for i := range c.ticks {
		c.ticks[i] = counted{uint32(5 + i), uint32(i * i), uint32(i % 3)}
	}
	return c
}

func TestKeptCounts_JournalChanged(t *testing.T) {
	entries := func(first, last uint64, other uint64) (list []journal.Entry) {
		for seq := first; seq <= last; seq++ {
			e := journal.Entry{ID: journal.ID{Epoch: 1, Seq: seq, CRC: uint32(seq)}}
			if seq >= other {
				e.ID.CRC = 99
			}
			list = append(list, e)
		}
		return list
	}
	same, hole := [16]byte{1, 2, 3}, entries(5, 14, 100)
	for name, test := range map[string]struct {
		world      [16]byte
		entries    []journal.Entry
		begin      uint64
		want, from int
	}{
		"the same":               {same, entries(5, 14, 100), 5, 10, 0},
		"more":                   {same, entries(5, 40, 100), 5, 10, 0},
		"a lost tail":            {same, entries(5, 9, 100), 5, 5, 0},
		"another tail":           {same, entries(5, 14, 9), 5, 4, 0},
		"another one at all":     {same, entries(5, 14, 5), 5, 0, 0},
		"pruned":                 {same, entries(8, 14, 100), 8, 7, 3},
		"pruned to the end":      {same, entries(15, 20, 100), 15, 0, 0},
		"pruned further":         {same, entries(16, 20, 100), 16, 0, 0},
		"more before":            {same, entries(4, 14, 100), 4, 0, 0},
		"another world":          {[16]byte{3}, entries(5, 14, 100), 5, 0, 0},
		"nothing":                {same, nil, 0, 0, 0},
		"some that are not read": {same, slices.Delete(hole, 2, 6), 5, 10, 0},
	} {
		c, all := sampleCounts(10), sampleCounts(10).ticks
		c.matchLog(&journal.Log{World: test.world, Entries: test.entries})
		assert.Equal(t, test.begin, c.begin, name)
		assert.Equal(t, test.world, c.world, name)
		assert.ElementsMatch(t, all[test.from:][:test.want], c.ticks, name)
	}
}

func TestKeptCounts_AppendWhileBarReads(t *testing.T) {
	c := sampleCounts(100)
	c.ticks = append(make([]counted, 0, 200), c.ticks...)
	of := (&counter{counts: c}).measure(&journal.Log{}, new(barDoc))
	c.matchLog(&journal.Log{World: c.world, Entries: []journal.Entry{{ID: journal.ID{Seq: 5, CRC: 5}}, {ID: journal.ID{Seq: 6, CRC: 99}}}})
	require.Len(t, c.ticks, 1)
	c.ticks = append(c.ticks, counted{written: 77})
	written, _ := of(journal.Entry{ID: journal.ID{Seq: 6}})
	assert.EqualValues(t, 1, written)
}

func TestKeptCounts_LargeGapBetweenSeqs(t *testing.T) {
	log := &journal.Log{Entries: []journal.Entry{{ID: journal.ID{Seq: 5}}, {ID: journal.ID{Seq: 1 << 62}}}}
	assert.False(t, countable(log.Entries))
	assert.True(t, countable(log.Entries[:1]))
	doc := new(barDoc)
	new(counter).measure(log, doc)
	assert.EqualValues(t, 1, doc.Counted, "the page does not wait for counts")
}

func TestKeptCounts_DamagedFile(t *testing.T) {
	c := sampleCounts(20)
	text := c.append(nil)
	read, ok := decodeCounts(text)
	require.True(t, ok)
	assert.Equal(t, c, read)
	for i := range text {
		damaged := bytes.Clone(text)
		damaged[i] ^= 0x10
		_, ok := decodeCounts(damaged)
		assert.False(t, ok, "byte %d", i)
		_, ok = decodeCounts(text[:i])
		assert.False(t, ok, "%d bytes", i)
	}
	newer := bytes.Clone(text)
	newer[len(countsMagic)-1]++
	binary.LittleEndian.PutUint32(newer[len(newer)-4:], crc32.Checksum(newer[:len(newer)-4], castagnoli))
	_, ok = decodeCounts(newer)
	assert.False(t, ok, "another version")

	k := keptCounts(t.TempDir())
	k.write(&c)
	assert.Equal(t, c, k.read(c.world))
	require.NoError(t, os.Rename(k.file(c.world), k.file([16]byte{7})))
	assert.Empty(t, k.read([16]byte{7}), "the file of another world")
}

func TestKeptCounts_SizeLimit(t *testing.T) {
	k := keptCounts(t.TempDir())
	size := int64(0)
	for i := range byte(5) {
		c := sampleCounts(20)
		c.world[0] = i
		k.write(&c)
		size = int64(len(c.append(nil)))
		at := time.Now().Add(time.Duration(int(i)-5) * time.Hour)
		require.NoError(t, os.Chtimes(k.file(c.world), at, at))
	}
	other := filepath.Join(string(k), "other")
	require.NoError(t, os.WriteFile(other, make([]byte, 4*size), 0o600))
	used := [16]byte{0, 2, 3}
	assert.NotEmpty(t, k.read(used))
	k.prune(3*size + 1)
	left, err := os.ReadDir(string(k))
	require.NoError(t, err)
	names := []string{}
	for _, e := range left {
		names = append(names, filepath.Join(string(k), e.Name()))
	}
	assert.ElementsMatch(t, []string{other, k.file(used), k.file([16]byte{3, 2, 3}), k.file([16]byte{4, 2, 3})}, names)
}

// FuzzDecodeCounts decodes arbitrary cache files.
func FuzzDecodeCounts(f *testing.F) {
	for n := range 3 {
		c := sampleCounts(n)
		text := c.append(nil)
		f.Add(text[:len(text)-4])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// Add a valid checksum, since without one nearly all inputs would be rejected early.
		text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
		if c, ok := decodeCounts(text); ok {
			assert.Equal(t, text, c.append(nil))
		}
	})
}
