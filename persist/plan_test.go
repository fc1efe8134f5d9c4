package persist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// chain returns snapshots, one for each string: the numbers of the files that it
// refers to, then "!" if it is on an abandoned branch, then its name.
func chain(texts ...string) (list []storedSnapshot) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range texts {
		s := storedSnapshot{catalog.SnapshotInfo{Number: uint32(i + 1), ID: journal.ID{Seq: uint64(10 * i)}, Time: start.Add(time.Duration(i) * time.Minute)}, true}
		for _, c := range text {
			switch {
			case c >= '1' && c <= '9':
				s.Refs = append(s.Refs, format.FileRef{Number: uint32(c - '0')})
			case c == '!':
				s.onHead = false
			default:
				s.Label += string(c)
			}
		}
		list = append(list, s)
	}
	return list
}

func TestWhatRetentionRemoves(t *testing.T) {
	const young = 1000 // All snapshots are older than the history.
	for _, c := range []struct {
		about   string
		r       Retention
		list    []storedSnapshot
		oldest  uint64
		files   []uint32
		journal uint64
	}{
		{"nothing by default", Retention{}, chain("", "", ""), young, nil, 0},
		{"a second one that shares nothing stays", Retention{Last: 1}, chain("", "", "", ""), young, []uint32{2, 1}, 21},
		{"the second one may be far back", Retention{Last: 1}, chain("", "", "2", "23", "2"), young, []uint32{4, 3}, 1},
		{"nothing without a second one", Retention{Last: 1}, chain("", "1", "12"), young, nil, 0},
		{"files that are referred to stay", Retention{Last: 1}, chain("", "", "", "2", "", "5"), young, []uint32{3, 1}, 31},
		{"as many as asked for", Retention{Last: 3}, chain("", "", "", "", ""), young, []uint32{2, 1}, 21},
		{"what leads to the oldest tick held", Retention{Last: 1}, chain("", "", "", "", ""), 15, []uint32{3, 1}, 11},
		{"nothing if nothing leads to it", Retention{Last: 1}, chain("!", "", "", ""), 5, nil, 0},
		{"files that those refer to stay as well", Retention{Last: 1}, chain("", "", "", "2", "", "4"), young, []uint32{3, 1}, 41},
		{"names stay", Retention{Last: 1}, chain("", "boss", "", "", ""), young, []uint32{3, 1}, 31},
		{"abandoned branches go", Retention{Last: 2}, chain("", "", "!", "!", ""), young, []uint32{4, 3, 1}, 11},
		{"the first of each period", Retention{Last: 1, Every: 2 * time.Minute}, chain("", "", "", "", "", "", ""), young, []uint32{4, 2}, 51},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := c.r.plan(c.list, c.oldest)
			require.Equal(t, c.files, p.files)
			require.Equal(t, c.journal, p.journal)
		})
	}
}

func TestStatesFromBeforeAConversionAreNoSecondBase(t *testing.T) {
	before, after := ecs.NewWorld(ecs.Options{}), ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(before, ecs.Component[int32]{Name: "number"})
	ecs.MustRegister(after, ecs.Component[int64]{Name: "number"})
	was, is := format.SchemaOf(before), format.SchemaOf(after)
	require.Error(t, was.Differs(is))
	list := chain("", "", "", "")
	list[0].Schema, list[1].Schema, list[2].Schema, list[3].Schema = was, was, is, is
	require.Empty(t, Retention{Last: 1}.plan(list[:3], 1000).files)
	require.Equal(t, []uint32{2, 1}, Retention{Last: 1}.plan(list, 1000).files)
}
