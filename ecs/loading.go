package ecs

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// loadRows is how many rows are checked or decoded at once: enough that starting
// costs nothing.
const loadRows = 1 << 16

// inParallel calls f for 0 to n-1, several at the same time, and returns the error
// of the lowest number that has one.
func inParallel(n int, f func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		errs  = make([]error, n)
	)
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			errs[i] = f(i)
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// loadParts returns how many times loadRows n rows are.
func loadParts(n int) int { return (n + loadRows - 1) / loadRows }

// prepare checks, converts and decodes everything before anything is changed. It
// returns the sparse array of the registry, what puts the rows in place, and what
// was converted.
func (w *World) prepare(state *State) (rows []uint32, apply []func(), converted []Conversion, err error) {
	targets := make([]AnyStorage, len(state.Storages))
	plans := make([]*plan, len(state.Storages))
	names := make(map[string]bool, len(state.Storages))
	heirs := w.heirs(state.Storages)
	for i := range state.Storages {
		s := &state.Storages[i]
		if names[s.Name] {
			return nil, nil, nil, fmt.Errorf("component %s is there twice", s.Name)
		}
		names[s.Name] = true
		err := s.check()
		if err == nil {
			targets[i] = w.target(s, heirs[s.Name], &apply)
			plans[i], err = newPlan(s, targets[i])
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("component %s: %w", s.Name, err)
		}
		converted = plans[i].appendTo(converted, s, targets[i])
	}
	ready := make([]func(), len(targets))
	err = inParallel(1+len(targets), func(i int) (err error) {
		if i == 0 {
			rows, err = state.index()
			return err
		}
		s := &state.Storages[i-1]
		if err = s.checkEntities(len(state.Registry)); err == nil {
			ready[i-1], err = plans[i-1].prepare(s, targets[i-1], state.Owned)
		}
		if err != nil {
			return fmt.Errorf("component %s: %w", s.Name, err)
		}
		return nil
	})
	if err == nil {
		err = state.checkAlive(rows)
	}
	return rows, append(apply, ready...), converted, err
}

// target returns where the rows of s go: to heir, or if there is none, to what
// makes room for a component that is not registered, which is added to apply.
func (w *World) target(s *StorageState, heir AnyStorage, apply *[]func()) AnyStorage {
	if heir != nil && (!heir.Unknown() || s.isAs(heir)) { // Else it was loaded before as something else; nothing of it is left.
		return heir
	}
	heir = w.newUnknown(s)
	*apply = append(*apply, func() { w.adoptUnknown(heir) })
	return heir
}

// entities returns the registry for a world to keep.
func (state *State) entities() []Entity {
	if state.Owned {
		return state.Registry
	}
	return append([]Entity(nil), state.Registry...)
}

// index returns the row of each entity index, or what is wrong with the registry.
func (state *State) index() ([]uint32, error) {
	total := len(state.Registry)
	if state.Alive < 0 || state.Alive > state.Free || state.Free > total {
		return nil, fmt.Errorf("entities: %d alive, %d with free ones, %d in all", state.Alive, state.Free, total)
	}
	rows := make([]uint32, total) // Plus 1, so that 0 is none.
	for r, e := range state.Registry {
		i := int(e.Index())
		if i >= total || rows[i] != 0 || e.Generation() == 0 {
			return nil, fmt.Errorf("entities: row %d holds %v, which is out of range or there twice", r, e)
		}
		rows[i] = uint32(r) + 1
	}
	for i := range rows {
		rows[i]--
	}
	return rows, nil
}

// checkEntities returns what is wrong with the entities of s by themselves: their
// indices must be below total and differ.
func (s *StorageState) checkEntities(total int) error {
	seen := make([]uint64, (total+63)/64)
	for r, e := range s.Entities {
		if e == Vacant && s.Indexed {
			continue
		}
		i := int(e.Index())
		switch {
		case i >= total || e.Generation() == 0:
			return notAlive(r, e)
		case seen[i/64]>>(i%64)&1 != 0:
			return fmt.Errorf("%v has two rows", e)
		case s.Indexed && i != r:
			return fmt.Errorf("row %d belongs to %v, which has another index", r, e)
		}
		seen[i/64] |= 1 << (i % 64)
	}
	return nil
}

func notAlive(row int, e Entity) error {
	return fmt.Errorf("row %d belongs to %v, which is not alive", row, e)
}

// checkAlive returns an error unless all entities that have a component are alive.
// rows is the row of each index.
func (state *State) checkAlive(rows []uint32) error {
	type part struct {
		s      *StorageState
		lo, hi int
	}
	var parts []part
	for i := range state.Storages {
		s := &state.Storages[i]
		for lo := 0; lo < len(s.Entities); lo += loadRows {
			parts = append(parts, part{s, lo, min(lo+loadRows, len(s.Entities))})
		}
	}
	alive := state.Registry[:state.Alive]
	return inParallel(len(parts), func(i int) error {
		p := parts[i]
		for r, e := range p.s.Entities[p.lo:p.hi] {
			if e == Vacant && p.s.Indexed {
				continue
			}
			if row := int(rows[e.Index()]); row >= len(alive) || alive[row] != e {
				return fmt.Errorf("component %s: %w", p.s.Name, notAlive(p.lo+r, e))
			}
		}
		return nil
	})
}

// sparsePages returns the sparse array that follows from entities.
func sparsePages(entities []Entity) []*track.Page {
	a := track.Sparse{Pages: []*track.Page{}}
	for row, e := range entities {
		p := a.Page(e.Index())
		if p == nil {
			p = a.Grow(e.Index())
		}
		p.Rows[e&pageMask] = uint32(row)
	}
	return a.Pages
}

// decodeRows returns the n rows of s. If it owns their bytes, it keeps them where
// they are the same in memory.
func decodeRows[T any](c rowCodec[T], s *StorageState, n int, owned bool) ([]T, error) {
	if s.Pages != nil {
		return decodePages(c, s, n)
	}
	if owned {
		if rows, ok := c.adopt(s.Rows, n); ok {
			return rows, nil
		}
	}
	rows := make([]T, n)
	width := s.Layout.Width()
	if width <= 0 || n <= loadRows || len(s.Rows) != n*width {
		return rows, c.decode(s.Rows, rows)
	}
	return rows, inParallel(loadParts(n), func(i int) error {
		lo, hi := i*loadRows, min((i+1)*loadRows, n)
		return c.decode(s.Rows[lo*width:hi*width], rows[lo:hi])
	})
}

// decodePages is decodeRows for rows in pages.
func decodePages[T any](c rowCodec[T], s *StorageState, n int) ([]T, error) {
	if s.PageRows <= 0 || len(s.Pages) != (n+s.PageRows-1)/s.PageRows {
		return nil, fmt.Errorf("%d pages of %d rows for %d rows", len(s.Pages), s.PageRows, n)
	}
	rows := make([]T, n)
	return rows, inParallel(len(s.Pages), func(i int) error {
		err := c.decode(s.Pages[i], rows[i*s.PageRows:min((i+1)*s.PageRows, n)])
		if err != nil {
			return fmt.Errorf("rows from %d: %w", i*s.PageRows, err)
		}
		return nil
	})
}
