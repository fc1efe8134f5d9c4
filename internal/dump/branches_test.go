package dump

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
)

// A randomHistory is the history of a program that committed, rewound and set marks. Its records
// start at 1.
type randomHistory struct {
	records []historyRecord
	marks   []markDoc // In record order.
}

type historyRecord struct{ parent, tick uint64 }

// buildRandomHistory creates a store by random steps. The last step is a commit, and its record is
// the head.
func buildRandomHistory(t *testing.T, dir string, rng *rand.Rand) *randomHistory {
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{History: 30})
	numbers := ecs.MustRegister(w, ecs.Component[int64]{Name: "number"})
	store, err := persist.Open(ctx, dir, w, persist.Options{Now: clock(), SnapshotBytes: -1})
	require.NoError(t, err)
	x := &randomHistory{}
	at := []uint64{0} // By tick: the record on the current branch.
	for range 2 + rng.IntN(40) {
		if back := 1 + rng.IntN(5); rng.IntN(4) == 0 && back < len(at) {
			require.NoError(t, w.History().Rewind(back))
			at = at[:len(at)-back]
		}
		record, tick := uint64(len(x.records)+1), uint64(len(at))
		var names []string
		for rng.IntN(3) == 0 {
			name := fmt.Sprint("mark", rng.IntN(6))
			if !slices.Contains(names, name) {
				require.NoError(t, store.Mark(name))
				names = append(names, name)
				x.marks = append(x.marks, markDoc{Name: name, Tick: tick, Seq: record})
			}
		}
		numbers.Set(w.Create(), int64(record))
		require.NoError(t, store.Commit())
		x.records = append(x.records, historyRecord{at[len(at)-1], tick})
		at = append(at, record)
	}
	require.NoError(t, store.Close(ctx))
	return x
}

// end returns the last record of the branch to which the given record belongs. This is the newest
// record without children that descends from the given record. The head is the newest record.
func (x *randomHistory) end(record uint64) uint64 {
	head := uint64(len(x.records))
	for end := head; end >= record; end-- {
		if slices.ContainsFunc(x.records, func(r historyRecord) bool { return r.parent == end }) {
			continue // The record has a child.
		}
		for at := end; at > 0; at = x.records[at-1].parent {
			if at == record {
				return end
			}
		}
	}
	panic("no tip descends from the record")
}

// branches returns the expected document of each branch, by its tip.
func (x *randomHistory) branches() map[uint64]branchDoc {
	all, head := map[uint64]branchDoc{}, uint64(len(x.records))
	for i, r := range x.records {
		end := x.end(uint64(i) + 1)
		b, known := all[end]
		if !known {
			b = branchDoc{Tick: x.records[end-1].tick, Seq: end, Parent: r.parent, FirstTick: r.tick, FirstRecord: uint64(i) + 1, standingDoc: standingDoc{Head: end == head, Rewound: end != head}}
		}
		b.Records++
		all[end] = b
	}
	return all
}

// The printed branches and marks equal those of the model.
func TestBranches_SameAsModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	many := 0
	for round := range uint64(deep.Or(20, 200)) {
		rng := rand.New(rand.NewPCG(seed, round))
		dir := t.TempDir()
		x := buildRandomHistory(t, dir, rng)
		var branches branchesDoc
		readDoc(t, &branches, "branches", dir)
		want := x.branches()
		require.Equal(t, len(want), branches.Total)
		require.Len(t, branches.Branches, len(want))
		require.True(t, slices.IsSortedFunc(branches.Branches, func(a, b branchDoc) int { return int(a.Seq) - int(b.Seq) }))
		names := map[uint64]string{}
		for _, b := range branches.Branches {
			names[b.Seq] = b.Branch
			var at struct{ Record uint64 }
			readDoc(t, &at, "ls", dir, "--at", b.Branch)
			require.Equal(t, b.Seq, at.Record, "round %d: %s", round, b.Branch)
			require.NotNil(t, b.Time)
			require.NotNil(t, b.Begun)
			b.Branch, b.Time, b.Begun = "", nil, nil
			require.Equal(t, want[b.Seq], b, "round %d", round)
		}
		if len(want) > 3 {
			many++
		}
		var marks marksDoc
		readDoc(t, &marks, "marks", dir)
		require.Equal(t, len(x.marks), marks.Total)
		require.Len(t, marks.Marks, len(x.marks))
		for i, m := range marks.Marks {
			want := x.marks[i]
			end := x.end(want.Seq)
			want.Branch, want.Rewound, want.Time = names[end], end != uint64(len(x.records)), m.Time
			require.Equal(t, want, m, "round %d", round)
		}
	}
	require.NotZero(t, many, "no program rewound several times")
}

// readDoc runs a command with --json and decodes the printed document into doc.
func readDoc(t *testing.T, doc any, args ...string) {
	t.Helper()
	code, stdout, stderr := ecsdump(append(args, "--json")...)
	require.Equal(t, exitOK, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), doc))
}
