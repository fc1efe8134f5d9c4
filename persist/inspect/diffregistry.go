package inspect

import (
	"cmp"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A RegistryDiff says which entities differ between two states.
type RegistryDiff struct {
	Created   []ecs.Entity // Entities that are alive only in the new state, ordered by index.
	Destroyed []ecs.Entity // Entities that are alive only in the old state, ordered by index.
	Moved     []RowDiff    // Alive in both states, in another registry row; ordered by index.

	// Free counts the indices that have changed, but are alive in neither state. For example, the
	// index was retired, or its place in the list of free indices changed.
	Free int
}

func (d *RegistryDiff) same() bool {
	return len(d.Created)+len(d.Destroyed)+len(d.Moved)+d.Free == 0
}

// diffRegistries compares two registries in ranges of their rows. Rows outside of ranges are equal.
// The function collects the rows that differ, sorts them by index, and joins the old and the new
// row of each index.
func diffRegistries(a, b registryRows, ranges []raw.Range) (d RegistryDiff) {
	var older, newer []indexState
	everyRowOf(ranges, max(a.total, b.total), func(row int) {
		// The same row may belong to different indices in the two states.
		o, n := a.state(row), b.state(row)
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

// add adds the change of one index to the diff. An index is alive in a state if a living entity has
// the index. There are five cases:
//
//   - The same entity is alive in both states: its registry row has changed.
//   - Different entities are alive in the two states: one was destroyed, and one was created.
//   - The index is alive only in the old state: the entity was destroyed.
//   - The index is alive only in the new state: the entity was created.
//   - The index is alive in neither state: it counts as free. Its generation, its row or its
//     retirement has changed.
func (d *RegistryDiff) add(o, n indexState) {
	wasAlive, isAlive := o.status == aliveIndex, n.status == aliveIndex
	switch {
	case wasAlive && isAlive && o.entity == n.entity:
		d.Moved = append(d.Moved, RowDiff{Entity: o.entity, OldRow: o.row, NewRow: n.row})
		return
	case !wasAlive && !isAlive:
		d.Free++
	}
	// If one entity with this index died and another was created, the index is in both lists.
	if wasAlive {
		d.Destroyed = append(d.Destroyed, o.entity)
	}
	if isAlive {
		d.Created = append(d.Created, n.entity)
	}
}

// registryRows is the registry of a state. Rows [0, alive) are the live entities. Rows [alive,
// free) are free indices in the order of reuse. Rows [free, total) are retired indices, which are
// never reused.
type registryRows struct {
	entity             func(row int) ecs.Entity
	alive, free, total int
}

// registry returns the registry of im without copying it.
func registry(im *image.Image) registryRows {
	rows := im.Registry
	return registryRows{func(row int) ecs.Entity { return rows[row] }, im.Alive, im.Free, len(rows)}
}

// state returns the state of the index in a row. It returns the zero value for a row past the
// end.
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

// An indexState is the state of one index of the registry.
type indexState struct {
	entity ecs.Entity
	row    int
	status indexStatus
}

// An indexStatus is the status of an index.
type indexStatus uint8

const (
	unusedIndex indexStatus = iota // The index was never in use.
	aliveIndex
	freeIndex
	retiredIndex
)
