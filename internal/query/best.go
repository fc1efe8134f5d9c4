package query

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
)

// A Ranked is an entity with the keys that it is sorted by.
type Ranked struct {
	Entity ecs.Entity
	Keys   []Answer
}

// A Best keeps the first few of many entities, in the order of their keys, and by index where these are
// equal. Memory is that of twice as many as it keeps, whatever is added.
type Best struct {
	Order func(a, b Answer) int // Of two keys.
	Limit int                   // How many are kept; 0: all.
	After *Ranked               // Only those behind this one; nil: all.

	Total int // How many were added, kept or not.

	found []Ranked
	worst atomic.Pointer[Ranked] // Limit others come before it or are it; nil: there are not so many yet.
}

// Part returns a Best that is to be joined to b later. It leaves out what b would not keep by now. Several
// goroutines may call it, also while others are joined.
func (b *Best) Part() *Best {
	part := &Best{Order: b.Order, Limit: b.Limit, After: b.After}
	part.worst.Store(b.worst.Load())
	return part
}

// compare compares the places of two entities.
func (b *Best) compare(x, y *Ranked) int {
	return cmp.Or(slices.CompareFunc(x.Keys, y.Keys, b.Order), cmp.Compare(x.Entity.Index(), y.Entity.Index()))
}

// Add adds an entity.
func (b *Best) Add(r Ranked) {
	b.Total++
	b.keep(r)
}

// keep is Add without counting.
func (b *Best) keep(r Ranked) {
	if worst := b.worst.Load(); worst != nil && b.compare(&r, worst) > 0 || b.After != nil && b.compare(&r, b.After) <= 0 {
		return
	}
	if b.found = append(b.found, r); b.Limit > 0 && len(b.found) >= 2*b.Limit {
		b.trim()
	}
}

// Join adds what was added to another one, which keeps as many in the same order.
func (b *Best) Join(of *Best) {
	b.Total += of.Total
	for _, r := range of.found {
		b.keep(r)
	}
}

// trim sorts what was found, and drops what is too much.
func (b *Best) trim() {
	slices.SortFunc(b.found, func(x, y Ranked) int { return b.compare(&x, &y) })
	if b.Limit == 0 || len(b.found) < b.Limit {
		return
	}
	clear(b.found[b.Limit:]) // Keys are memory.
	b.found = b.found[:b.Limit]
	worst := b.found[b.Limit-1]
	b.worst.Store(&worst)
}

// Sorted returns those that are kept, in order. They belong to b.
func (b *Best) Sorted() []Ranked {
	b.trim()
	return b.found
}
