package catalog_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Missing returns nil in two cases: the snapshot has all lost records, or the head is after the
// damage. Missing must compare segments by number: as text, "100000000" comes before "99999999".
func TestMissing_DamageBeforeSnapshotOrHead(t *testing.T) {
	for _, first := range []uint64{1, 99_999_998, 99_999_999, 100_000_000} {
		log := &journal.Log{Head: 80, Last: 95, LastID: journal.ID{Seq: 95}}
		for i := range uint64(3) { // Each segment has ten records, 70 to 79 and so on.
			log.Segments = append(log.Segments, journal.Segment{Name: fmt.Sprintf("%08d.seg", first+i), Number: first + i, First: 70 + 10*i})
		}
		for i, seq := range []uint64{70, 80, 90} {
			log.Entries = append(log.Entries, journal.Entry{ID: journal.ID{Seq: seq}, Segment: i, Offset: 100})
		}
		c := catalog.New(disk.Memory())
		c.Log = log
		for damaged := range uint64(3) {
			for _, offset := range []int64{50, 150} {
				log.Problems = []*disk.DamageError{{File: fmt.Sprintf("%08d.seg", first+damaged), Offset: offset, Length: 10, Err: format.ErrCorrupt}}
				for seq := uint64(70); seq < 100; seq++ {
					s := catalog.SnapshotInfo{ID: journal.ID{Seq: seq}}
					behind := 80 + 10*damaged // The first record of the next segment.
					covered := damaged < 2 && behind <= seq+1 || damaged == 0 || damaged == 1 && offset == 50
					err := c.Missing(s)
					require.Equal(t, covered, err == nil, "segments from %d: damage in %v, snapshot of %d: %v", first, log.Problems[0], seq, err)
				}
			}
		}
	}
}

// A follower retries while files change, but at most MaxListings times. It does not retry if no
// file has changed.
func TestRefreshAndRetry_FilesChanged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes int // Files change before this many calls of f.
		err     error
		found   int // Number of the first call of f that returns no error.
		calls   int
	}{
		{"nothing is missing", 100, format.ErrNotFound, 1, 1},
		{"the missing file was not removed", 0, format.ErrNotFound, 100, 1},
		{"a file is removed once", 1, format.ErrNotFound, 100, 2},
		{"the state is found in the end", 100, format.ErrNotFound, 4, 4},
		{"files change before every call", 100, format.ErrNotFound, 100, 1 + catalog.MaxListings},
		{"a file is damaged", 100, format.ErrCorrupt, 100, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := disk.Memory()
			require.NoError(t, files.Mkdir(catalog.SnapshotDir))
			c, calls := catalog.New(files), 0
			err := c.RefreshAndRetry(t.Context(), func() error {
				if calls++; calls <= tt.changes {
					f, err := files.Create(catalog.SnapshotName(uint32(calls)))
					require.NoError(t, err)
					require.NoError(t, f.Close())
				}
				if calls >= tt.found {
					return nil
				}
				return tt.err
			})
			require.Equal(t, tt.calls, calls)
			if tt.found > calls {
				require.Equal(t, tt.err, err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// Record 3 is unknown, so an older record must be tried. The tick of this record must be before the
// tick of record 3. If record 4 has tick 14, record 3 has tick 13. If record 4 only adds a mark,
// both have the same tick.
func TestLastReachableBefore_HoleInPath(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tick  uint64 // The tick of record 4.
		flags uint32 // The flags of record 4.
		want  uint64
	}{
		{"next tick", 14, 0, 2},
		{"the same tick", 13, format.FlagRepeats, 2},
		{"record 2 belongs to another branch", 13, 0, 1},
	} {
		c := catalog.New(disk.Memory())
		c.Log = &journal.Log{Head: 5, Last: 5, LastID: journal.ID{Seq: 5}, Entries: []journal.Entry{
			{ID: journal.ID{Seq: 1}, Tick: 11},
			{ID: journal.ID{Seq: 2}, Parent: 1, Tick: 12},
			{ID: journal.ID{Seq: 4}, Parent: 3, Tick: tt.tick, Flags: tt.flags},
			{ID: journal.ID{Seq: 5}, Parent: 4, Tick: tt.tick + 1},
		}}
		got, ok := c.LastReachableBefore(5, nil, nil)
		require.True(t, ok, tt.name)
		require.Equal(t, tt.want, got, tt.name)
	}
}
