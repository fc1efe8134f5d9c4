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

// What was lost in a segment is covered by a snapshot if the next one begins behind that, and by a head that was
// chosen in a later one: also where numbers have nine digits, and a name with eight would come behind them.
func TestDamageIsCoveredByWhatComesLater(t *testing.T) {
	for _, first := range []uint64{1, 99_999_998, 99_999_999, 100_000_000} {
		log := &journal.Log{Head: 80, Last: 95, LastID: journal.ID{Seq: 95}}
		for i := range uint64(3) { // Each has ten records, 70 to 79 and so on.
			log.Segments = append(log.Segments, journal.Segment{Name: fmt.Sprintf("%08d.seg", first+i), Number: first + i, First: 70 + 10*i})
		}
		for i, seq := range []uint64{70, 80, 90} {
			log.Entries = append(log.Entries, journal.Entry{ID: journal.ID{Seq: seq}, Segment: i, Offset: 100})
		}
		c := catalog.New(disk.Memory())
		c.Log = log
		for damaged := range uint64(3) {
			for _, offset := range []int64{50, 150} {
				log.Problems = []*journal.DamageError{{File: fmt.Sprintf("%08d.seg", first+damaged), Offset: offset, Length: 10, Err: format.ErrCorrupt}}
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
