package inspect

import (
	"cmp"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A RegistryDiff says which entities differ between two states.
type RegistryDiff struct {
	Created   []ecs.Entity // Alive in the new state only, by index.
	Destroyed []ecs.Entity // Alive in the old state only, by index.
	Moved     []RowDiff    // Alive in both, at another row among all entities, by index.

	// Free is how many indices that no entity has in either state differ: in when
	// they are given out again, in their generation, or in whether they are.
	Free int
}

func (d *RegistryDiff) same() bool {
	return len(d.Created)+len(d.Destroyed)+len(d.Moved)+d.Free == 0
}

// diffRegistries compares two registries in ranges of their rows: outside of them they
// are known to say the same. So an index that has a row in ranges in one state has none outside
// of them in the other, and what became of it is found by sorting what the ranges hold.
func diffRegistries(a, b registryRows, ranges []raw.Range) (d RegistryDiff) {
	var older, newer []indexState
	everyRowOf(ranges, max(a.total, b.total), func(row int) {
		o, n := a.state(row), b.state(row) // The same row, perhaps of two indices.
		if o != n && o.status != unusedIndex {
			older = append(older, o)
		}
		if o != n && n.status != unusedIndex {
			newer = append(newer, n)
		}
	})
	byIndex := func(a, b indexState) int { return cmp.Compare(a.entity.Index(), b.entity.Index()) }
	slices.SortFunc(older, byIndex)
	slices.SortFunc(newer, byIndex)
	nothing := new(indexState)
	for o, n := range matched(older, newer, byIndex) {
		d.add(*cmp.Or(o, nothing), *cmp.Or(n, nothing))
	}
	return d
}

// add adds what became of an index:
//
//	alive, the same entity   at another row: moved
//	alive, another entity    one destroyed, one created
//	alive, then not          destroyed; the other way round created
//	neither                  counted as free: its generation, its row, or whether it is retired
func (d *RegistryDiff) add(o, n indexState) {
	wasAlive, isAlive := o.status == aliveIndex, n.status == aliveIndex
	switch {
	case wasAlive && isAlive && o.entity == n.entity:
		d.Moved = append(d.Moved, RowDiff{Entity: o.entity, OldRow: o.row, NewRow: n.row})
		return
	case !wasAlive && !isAlive:
		d.Free++
	} // The index may have gone from one entity to another: that is both of these.
	if wasAlive {
		d.Destroyed = append(d.Destroyed, o.entity)
	}
	if isAlive {
		d.Created = append(d.Created, n.entity)
	}
}

// registryRows is the registry of a state: rows [0, alive) are those alive, [alive, free) the indices
// to give out again, [free, total) those that are never given out again.
type registryRows struct {
	entity             func(row int) ecs.Entity
	alive, free, total int
}

// registry returns that of im, whose rows are read when they are asked for.
func registry(im *Image) registryRows {
	rows := im.Registry
	return registryRows{func(row int) ecs.Entity { return rows[row] }, im.Alive, im.Free, len(rows)}
}

// state returns what row says, which is of the index that it holds; nothing if it is past the end.
func (r registryRows) state(row int) indexState {
	if row >= r.total {
		return indexState{}
	}
	status := retiredIndex
	switch {
	case row < r.alive:
		status = aliveIndex
	case row < r.free:
		status = freeIndex
	}
	return indexState{r.entity(row), row, status}
}

// An indexState is what an index is in one state.
type indexState struct {
	entity ecs.Entity
	row    int
	status indexStatus
}

// An indexStatus says what has become of an index.
type indexStatus uint8

const (
	unusedIndex indexStatus = iota // It was never given out.
	aliveIndex
	freeIndex
	retiredIndex
)
