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

// chain returns one snapshot for each text. For example, "12!boss" is a snapshot that refers to
// files 1 and 2, is on an abandoned branch, and has the name "boss".
func chain(texts ...string) (list []storedSnapshot) {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, text := range texts {
		s := storedSnapshot{lineage: lineage{onHead: true}, SnapshotInfo: catalog.SnapshotInfo{Number: uint32(i + 1), Size: 10, Tick: uint64(10 * i), ID: journal.ID{Seq: uint64(10 * i)}, Time: start.Add(time.Duration(i) * time.Minute)}}
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

func TestRetentionPlan_RemovedFiles(t *testing.T) {
	const young = 1000 // A record after all snapshots. The history begins there.
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
		{"the base of the oldest tick of the history", Retention{Last: 1}, chain("", "", "", "", ""), 15, []uint32{3, 1}, 11},
		{"nothing if nothing leads to it", Retention{Last: 1}, chain("!", "", "", ""), 5, nil, 0},
		{"files that those refer to stay as well", Retention{Last: 1}, chain("", "", "", "2", "", "4"), young, []uint32{3, 1}, 41},
		{"names stay", Retention{Last: 1}, chain("", "boss", "", "", ""), young, []uint32{3, 1}, 31},
		{"abandoned branches go", Retention{Last: 2}, chain("", "", "!", "!", ""), young, []uint32{4, 3, 1}, 11},
		{"the first of each period", Retention{Last: 1, Every: 2 * time.Minute}, chain("", "", "", "", "", "", ""), young, []uint32{4, 2}, 51},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := c.r.plan(past{list: c.list, newest: young, oldest: c.oldest}, 0)
			require.Equal(t, c.files, p.files)
			require.Equal(t, c.journal, p.journal)
		})
	}
}

// The planned store has ten segments of ten records and ten bytes. Before each segment is a
// snapshot of ten bytes.
func TestRetentionPlan_RequestAndBound(t *testing.T) {
	const young = 1000
	plain := chain("", "", "", "", "", "", "", "", "", "")
	boss := chain("", "", "boss", "", "", "", "", "", "", "")
	all := func(n uint32) (files []uint32) { // Returns the numbers n-1, n-2, …, 1.
		for n--; n > 0; n-- {
			files = append(files, n)
		}
		return files
	}
	for _, c := range []struct {
		about   string
		r       Retention
		list    []storedSnapshot
		oldest  uint64
		bound   int64
		files   []uint32
		journal uint64
		tick    uint64
		reason  string
	}{
		{"all data within the bound", Retention{}, plain, young, 267, nil, 0, 0, "all data that exists"},
		{"slightly more data than the bound", Retention{}, plain, young, 265, all(2), 11, 10, "as much old data as the bound allows"},
		{"half of the data within the bound", Retention{}, plain, young, 134, all(6), 51, 50, "as much old data as the bound allows"},
		{"as many ticks as requested", Retention{Ticks: 25}, plain, young, 0, all(7), 61, 60, "the data that Retain requests"},
		{"more ticks requested than exist", Retention{Ticks: 95}, plain, young, 0, nil, 1, 0, "all data that exists, because Retain requests more"},
		{"the requested age", Retention{Age: 4 * time.Minute}, plain, young, 0, all(6), 51, 50, "the data that Retain requests"},
		{"several requests", Retention{Age: 4 * time.Minute, Last: 2, Ticks: 10}, plain, young, 0, all(6), 51, 50, "the data that Retain requests"},
		{"less than requested, because of the bound", Retention{Ticks: 55, Bytes: 1}, plain, young, 107, all(7), 61, 60, "as much old data as the bound allows"},
		{"periods stay longer than data without a request", Retention{Every: 5 * time.Minute, Bytes: 1}, plain, young, 107, []uint32{7, 5, 4, 3, 2}, 71, 70, "as much old data as the bound allows"},
		{"periods go before requested data", Retention{Every: 5 * time.Minute, Ticks: 25, Bytes: 1}, plain, young, 120, all(6), 61, 60, "as much old data as the bound allows"},
		{"required data", Retention{Bytes: 1}, plain, young, 1, all(9), 81, 80, "two snapshots that share no file stay, with the journal after them, whatever the bound"},
		{"a named snapshot above the bound", Retention{Bytes: 1}, boss, young, 45, []uint32{8, 7, 6, 5, 4, 2, 1}, 81, 80, "slots stay, whatever the bound"},
		{"a named snapshot within the bound", Retention{Bytes: 1}, boss, young, 60, []uint32{8, 7, 6, 5, 4, 2, 1}, 81, 80, "as much old data as the bound allows"},
		{"the base of the world's history", Retention{Bytes: 1}, plain, 35, 60, []uint32{8, 7, 6, 5, 3, 2, 1}, 31, 30, "the data for the oldest tick of the world's history stays, whatever the bound"},
		{"KeepAll", Retention{Bytes: 1, Last: 1, KeepAll: true}, plain, young, 1, nil, 0, 0, "all data, because Retain.KeepAll is set"},
		{"an abandoned branch, without a request", Retention{}, chain("", "", "", "", "", "", "!", "", "", ""), young, 134, all(6), 51, 50, "as much old data as the bound allows"},
	} {
		t.Run(c.about, func(t *testing.T) {
			p := past{list: c.list, newest: young, oldest: c.oldest}
			for i := range c.list {
				p.journal = append(p.journal, segmentSize{uint64(10*i + 1), 10})
			}
			got := c.r.plan(p, c.bound)
			require.Equal(t, c.files, got.files)
			require.Equal(t, c.journal, got.journal)
			require.Equal(t, c.tick, got.keeping.Tick)
			require.Equal(t, c.tick, got.keeping.Record, "records and ticks have the same numbers here")
			require.Equal(t, c.reason, got.keeping.Reason)
			stays := int64(10*(len(c.list)-len(got.files))) + bytesOf(p.since(got.journal))
			require.Equal(t, stays, got.keeping.Bytes)
		})
	}
}

// The world went back to record 15. A snapshot of it was taken, but no tick continues record 15
// yet. So the newest state is still that of record 30, and its snapshot stays.
func TestRetentionPlan_NewestStateStays(t *testing.T) {
	p := past{list: chain("", "", "", "", ""), newest: 15, oldest: 1000}
	// The fourth snapshot is on the path that the next tick abandons.
	for i, seq := range []uint64{0, 5, 10, 30, 15} {
		p.list[i].ID.Seq = seq
	}
	got := Retention{Last: 1}.plan(p, 0)
	require.Equal(t, []uint32{2, 1}, got.files)
	require.EqualValues(t, 11, got.journal)
}

func TestRetentionPlan_NeedsTwoOfNewSchema(t *testing.T) {
	before, after := ecs.NewWorld(ecs.Options{}), ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(before, ecs.Component[int32]{Name: "number"})
	ecs.MustRegister(after, ecs.Component[int64]{Name: "number"})
	was, is := format.SchemaOf(before), format.SchemaOf(after)
	require.Error(t, was.Differs(is))
	list := chain("", "", "", "")
	list[0].Schema, list[1].Schema, list[2].Schema, list[3].Schema = was, was, is, is
	require.Empty(t, Retention{Last: 1}.plan(past{list: list[:3], newest: 1000, oldest: 1000}, 0).files)
	require.Equal(t, []uint32{2, 1}, Retention{Last: 1}.plan(past{list: list, newest: 1000, oldest: 1000}, 0).files)
}
