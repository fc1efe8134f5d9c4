package dump

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
)

// treeOfRecords returns a log with the records 1, 2, … and these parents.
func treeOfRecords(parents ...uint64) *journal.Log {
	l := new(journal.Log)
	for i, p := range parents {
		l.Entries = append(l.Entries, journal.Entry{ID: journal.ID{Seq: uint64(i + 1)}, Parent: p})
	}
	return l
}

// graphText returns the graph of entries, with record numbers.
func graphText(entries []journal.Entry, log *journal.Log) string {
	var b strings.Builder
	lines := branchesOf(entries, log)
	for _, e := range entries {
		l := lines[e.ID.Seq]
		if l.apart {
			fmt.Fprintf(&b, "\t%s\n", l.fork)
		}
		fmt.Fprintf(&b, "%d\t%s\n", e.ID.Seq, l.row)
	}
	return b.String()
}

func TestGraph_ForksToTheRight(t *testing.T) {
	log := treeOfRecords(0, 1, 1, 2, 3, 1, 2, 7)
	assert.Equal(t, `1	*
	|\
2	| *
	|_|\
3	| | *
	| |_|\
4	| | | *
5	| | *
6	* |
7	  *
8	  *
`, graphText(log.Entries, log))
}

func TestGraph_ParentNotListed(t *testing.T) {
	log := treeOfRecords(0, 1, 2, 3, 2, 5)
	assert.Equal(t, `1	*
	|\
4	| *
6	*
`, graphText([]journal.Entry{log.Entries[0], log.Entries[3], log.Entries[5]}, log))
}

// readBranches returns the parent of every record in a drawing.
func readBranches(t *testing.T, drawing string) map[string]string {
	parents := map[string]string{}
	columns := map[int]string{}
	for line := range strings.Lines(drawing) {
		seq, picture, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if seq == "" {
			to := strings.IndexByte(picture, '\\')
			if to < 0 {
				dropEnded(columns, picture)
				continue
			}
			from := to - 1
			for from > 0 && picture[from-1] == '_' || picture[from] == '_' {
				from--
			}
			require.EqualValues(t, '|', picture[from], drawing)
			columns[(to+1)/2] = columns[from/2]
			continue
		}
		column := strings.IndexByte(picture, '*') / 2
		parents[seq] = columns[column]
		columns[column] = seq
		dropEnded(columns, picture)
		require.Equal(t, 1, strings.Count(picture, "*"), drawing)
	}
	return parents
}

// dropEnded deletes the columns that are blank in the given line.
func dropEnded(columns map[int]string, line string) {
	for c := range columns {
		if 2*c >= len(line) || line[2*c] == ' ' {
			delete(columns, c)
		}
	}
}

func TestGraph_ShowsParentOfEachRecord(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		var parents []uint64
		for i := range 1 + r.IntN(20) {
			parents = append(parents, uint64(r.IntN(i+1)))
			if r.IntN(3) > 0 {
				parents[i] = uint64(i)
			}
		}
		log := treeOfRecords(parents...)
		got := readBranches(t, graphText(log.Entries, log))
		for i, p := range parents {
			want := fmt.Sprint(p)
			if p == 0 {
				want = ""
			}
			require.Equal(t, want, got[fmt.Sprint(i+1)], "seed %d, record %d:\n%s", seed, i+1, graphText(log.Entries, log))
		}
	}
}

func TestGraph_LinesBeforeAndAfterRecord(t *testing.T) {
	log := treeOfRecords(0, 1, 1, 2)
	lines := branchesOf(log.Entries, log)
	var got []string
	for _, e := range log.Entries {
		l := lines[e.ID.Seq]
		got = append(got, l.before+"/"+l.after)
	}
	assert.Equal(t, []string{"/|", "| |/| |", "| |/  |", "  |/"}, got)
}
