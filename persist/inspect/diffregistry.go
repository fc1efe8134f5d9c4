package inspect

import (
	"cmp"
	"slices"

	"github.com/stet-ecs/stet/ecs"
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

// diffRegistries compares two registries.
func diffRegistries(a, b registryRows) RegistryDiff {
	var older, newer []indexState
	at := func(r registryRows, row int) indexState {
		if row >= r.total {
			return indexState{}
		}
		return r.state(row, r.rows[row])
	}
	for row := range max(a.total, b.total) {
		older, newer = noteIndices(older, newer, at(a, row), at(b, row))
	}
	return diffIndices(older, newer)
}

// noteIndices keeps what a row says in two states, if that is not the same.
func noteIndices(older, newer []indexState, o, n indexState) (before, after []indexState) {
	if o == n {
		return older, newer
	}
	if o.status != unusedIndex {
		older = append(older, o)
	}
	if n.status != unusedIndex {
		newer = append(newer, n)
	}
	return older, newer
}

// diffIndices compares what rows that are not the same say.
func diffIndices(older, newer []indexState) (d RegistryDiff) {
	byIndex := func(a, b indexState) int { return cmp.Compare(a.entity.Index(), b.entity.Index()) }
	slices.SortFunc(older, byIndex)
	slices.SortFunc(newer, byIndex)
	nothing := new(indexState)
	for o, n := range matched(older, newer, byIndex) {
		d.add(*cmp.Or(o, nothing), *cmp.Or(n, nothing))
	}
	return d
}

// add adds what became of an index.
func (d *RegistryDiff) add(o, n indexState) {
	wasAlive, isAlive := o.status == aliveIndex, n.status == aliveIndex
	switch {
	case wasAlive && isAlive && o.entity == n.entity:
		d.Moved = append(d.Moved, RowDiff{Entity: o.entity, OldRow: o.row, NewRow: n.row})
		return
	case !wasAlive && !isAlive:
		d.Free++
	}
	if wasAlive {
		d.Destroyed = append(d.Destroyed, o.entity)
	}
	if isAlive {
		d.Created = append(d.Created, n.entity)
	}
}

// registryRows is the registry of a state.
type registryRows struct {
	rows               []ecs.Entity
	alive, free, total int
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

// state returns what row, which holds e, says; nothing if it is past the end.
func (r registryRows) state(row int, e ecs.Entity) indexState {
	switch {
	case row >= r.total:
		return indexState{}
	case row < r.alive:
		return indexState{e, row, aliveIndex}
	case row < r.free:
		return indexState{e, row, freeIndex}
	}
	return indexState{e, row, retiredIndex}
}

func registry(im *Image) registryRows {
	return registryRows{im.Registry, im.Alive, im.Free, len(im.Registry)}
}
