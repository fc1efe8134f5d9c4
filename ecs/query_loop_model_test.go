package ecs

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

// A walker computes which entity a loop must visit next, even if the world has changed since the
// last visit. The walker checks the rows of the driver one by one. If the loop is in the order of
// indices, the walker checks the indices instead.
type walker struct {
	queryCase
	drives  intStore
	byIndex bool
	row     int             // The first row that the loop has not reached.
	passed  map[Entity]bool // The members of the driver that the loop has visited or skipped.
	// Unvisited members in rows that the loop has passed, in the order in which they moved there.
	late  []Entity
	index int
}

func (q queryCase) walk() *walker {
	d, byIndex := q.driver()
	return &walker{queryCase: q, drives: d, byIndex: byIndex, passed: map[Entity]bool{}}
}

func (k *walker) next() (Entity, bool) {
	if k.byIndex {
		return k.nextByIndex()
	}
	for list := k.drives.any().Entities(); k.row < len(list); k.row++ {
		if e := list[k.row]; k.finds(e) {
			return e, true
		}
		k.passed[list[k.row]] = true
	}
	for ; len(k.late) > 0; k.late = k.late[1:] {
		if e := k.late[0]; k.finds(e) {
			return e, true
		}
		k.passed[k.late[0]] = true
	}
	return 0, false
}

func (k *walker) nextByIndex() (Entity, bool) {
	var next Entity
	for _, e := range k.drives.any().Entities() {
		if int(e.Index()) >= k.index && k.finds(e) && (next == 0 || e.Index() < next.Index()) {
			next = e
		}
	}
	return next, next != 0
}

// visited marks e as visited. It runs before the world changes.
func (k *walker) visited(e Entity) {
	k.index, k.passed[e] = int(e.Index())+1, true
	if list := k.drives.any().Entities(); k.row < len(list) && list[k.row] == e {
		k.row++
	} else if len(k.late) > 0 {
		k.late = k.late[1:]
	}
}

// changed runs after a change that moved at most one row of the driver.
func (k *walker) changed() {
	list := k.drives.any().Entities()
	maps.DeleteFunc(k.passed, func(e Entity, _ bool) bool { return !k.drives.has(e) })
	k.late = slices.DeleteFunc(k.late, func(e Entity) bool { return !k.drives.has(e) })
	known := func(e Entity) bool { return k.passed[e] || slices.Contains(k.late, e) }
	if k.row = min(k.row, len(list)); k.row > 0 && !known(list[k.row-1]) {
		k.row--
	}
	for _, e := range list[:k.row] {
		if !known(e) {
			k.late = append(k.late, e)
		}
	}
}

// change makes a change that is allowed while q visits e.
func (l *randomModel) change(q queryCase, e Entity) {
	switch l.rng.IntN(15) {
	case 0:
		l.create()
	case 1, 2:
		l.setNext(l.pickStore(), l.pickEntity())
	case 3:
		l.w.Destroy(e)
	case 4:
		l.pickStore().remove(e)
	case 5:
		l.w.Release(l.w.Checkpoint())
	case 6:
		if len(q.without) > 0 {
			q.without[0].remove(l.pickEntity())
		}
	case 7:
		if f := l.pickStore(); !slices.ContainsFunc(q.required(), func(r intStore) bool { return r.name == f.name }) {
			f.remove(l.pickEntity())
		}
	case 8:
		q.check(nil) // Runs loops over q inside the loop over q.
	case 9, 10, 11:
		l.w.Destroy(l.pickEntity())
	case 12, 13:
		l.pickStore().remove(l.pickEntity())
	case 14:
		// This often removes an entity that the loop has passed. The last row then moves there.
		d, _ := q.driver()
		d.remove(l.handles[l.rng.IntN(1+len(l.handles)/8)])
	}
}

func TestQueryModel_ChangesInLoop(t *testing.T) {
	t.Parallel()
	eachRandomModel(t, func(l *randomModel) {
		for _, rare := range []int{2, 10, 60} {
			for _, q := range l.queries {
				k, j := q.walk(), q.query.(AnyQuery).base()
				n, before := 0, j.visited
				q.iterate(func(e Entity, row reflect.Value) bool {
					if want, ok := k.next(); !ok || want != e {
						failf("query %s: visited %v, want %v (%v)", q.name, e, want, ok)
					}
					q.same("a row", []answer{{e, valuesOf(row)}}, []answer{q.answer(e)})
					k.visited(e)
					if l.rng.IntN(rare) == 0 {
						outer := j.visited
						l.change(q, e)
						// Do not count the rows that loops in the change have visited.
						before += j.visited - outer
						k.changed()
					}
					n++
					return n < 800
				})
				if want, ok := k.next(); ok && n < 800 {
					failf("query %s: the loop ended before %v", q.name, want)
				}
				if rows := int(j.visited - before); rows < n || rows > n && n < 800 {
					failf("query %s: %d rows counted, but the loop visited %d", q.name, rows, n)
				}
			}
		}
	})
}
