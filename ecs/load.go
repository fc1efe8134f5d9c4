package ecs

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs/internal/sound"
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// A storageState is a [raw.StorageState] while it is loaded into a world.
type storageState raw.StorageState

// A loadedStorage is a [Storage] or a [Resource] of any type.
type loadedStorage interface {
	prepare(s *storageState, pages []*track.Page, owned, regap bool) (put func(), err error)
}

// gap reports whether the given row is a gap.
func (s *storageState) gap(row int) bool {
	return s.Indexed && Entity(s.Entities[row]) == Vacant
}

// entities returns the entities of the rows.
func (s *storageState) entities() []Entity { return raw.As[Entity](s.Entities) }

// Load replaces the content of w by state. An error leaves w unchanged. Load panics in a system.
func (w rawWorld) Load(state *raw.State) error {
	w.mustBeBetween("a load")
	if k := len(w.recorders); k > 1 || k == 1 && w.recorders[0] != state.Recorder {
		return raw.ErrAttached
	}
	if w.anyCheckpoint() {
		return raw.ErrCheckpointHeld
	}
	var rows []uint32
	plans, err := w.plan(state.Storages)
	if state.Lossy && errors.Is(err, raw.ErrDropped) {
		err = nil
	}
	if err == nil {
		rows, err = decode(state, plans)
	}
	if err != nil {
		return stateError(err)
	}
	w.verify()
	w.noteCreated()
	w.forgetFrames()
	w.ops = nil // Drop the operations from before the load.
	kept := func(s AnyStorage) bool { return state.KeepNoRewind && s.about().noRewind }
	for _, s := range w.sets {
		if !kept(s.storage) {
			s.storage.discardAll()
		}
	}
	w.entities.take(ownedEntities(state.Registry, state.Owned), rows, track.Lengths{N: state.Alive, Extra: state.Free, Total: len(state.Registry)})
	for _, p := range plans {
		if p.unknown {
			w.adoptUnknown(p.target)
		} else if kept(p.target) {
			continue
		}
		p.put()
	}
	if state.KeepNoRewind {
		w.dropDead()
	}
	w.regroup()
	w.tick, w.converted = state.Tick, w.conversions(plans)
	w.restart(seqs{first: state.Seq})
	if !state.KeepNoRewind {
		w.exemptSpan = w.clock.Span
	}
	w.drains.wentBack(0)
	w.afterRestore()
	return nil
}

// stateError wraps err in [raw.ErrState]: the state to load is wrong. An error about the size of an
// int is an exception, because another platform can load the state.
func stateError(err error) error {
	if errors.Is(err, layout.ErrIntSize) {
		return fmt.Errorf("ecs: %w", err)
	}
	return fmt.Errorf("%w: %w", raw.ErrState, err)
}

// wrapError adds to err the component name and, if known, the entity. A nil err stays nil.
func (s *storageState) wrapError(err error) error {
	if err == nil {
		return nil
	}
	if d, ok := errors.AsType[*layout.DataError](err); ok && d.Row >= 0 && d.Row < len(s.Entities) {
		err = fmt.Errorf("entity %v: %w", Entity(s.Entities[d.Row]), err)
	}
	return fmt.Errorf("component %s: %w", naming.Shown(s.Name), err)
}

// check returns an error if the metadata of s is invalid. It does not check rows.
func (s *storageState) check() error {
	if s.Name == "" {
		return errors.New("it has no name")
	}
	if s.Resource && len(s.Entities) > 0 {
		return errors.New("a resource has no entities")
	}
	if err := s.Layout.Validate(); err != nil || s.Default == nil {
		return err
	}
	return s.Layout.Check(s.Default, 1)
}

func (w *World) newUnknown(s *storageState) AnyStorage {
	spec := typedSpec[rawRow]{codec: rawRows{s.Layout}}
	spec.name, spec.layout, spec.noRewind, spec.unknown, spec.pointers = s.Name, s.Layout, s.NoRewind, true, true
	if s.Version > 0 {
		spec.evolution = &evolution{version: s.Version}
	}
	if s.Resource {
		return newResource(w, spec, "")
	}
	if spec.tag = s.Layout.Width() == 0; spec.tag {
		spec.kind = Tag
	}
	if s.Indexed {
		spec.kind = Indexed
		spec.gap = s.emptyRow()
	}
	return newStorage(w, spec)
}

// emptyRow returns the row of a gap.
func (s *storageState) emptyRow() *rawRow {
	if s.Default == nil {
		return new(rawRow(s.Layout.AppendZero(nil)))
	}
	return new(rawRow(s.Default))
}

// adoptUnknown adds an unknown storage or resource to w. It replaces an older storage or resource
// of the same name.
func (w *World) adoptUnknown(s AnyStorage) {
	if old, ok := w.names[s.Name()]; ok {
		w.forget(old)
	}
	w.adopt(s)
}

// forget removes s from w. s must have no former names.
func (w *World) forget(s AnyStorage) {
	if k := slices.Index(w.storages, s); k >= 0 {
		w.storages, w.sets = slices.Delete(w.storages, k, k+1), slices.Delete(w.sets, k, k+1)
		w.paged++
	}
	w.noRewind = slices.DeleteFunc(w.noRewind, func(x componentRows) bool { return AnyStorage(x) == s })
	if k := slices.Index(w.resources, s); k >= 0 {
		w.resources = slices.Delete(w.resources, k, k+1)
	}
}

// prepare decodes the stored rows. The returned function puts them into s, which must then be
// empty. If pages is nil, prepare builds the sparse array.
//
// If only s is Indexed, prepare adds gaps to the rows. If only the stored data is Indexed, it
// removes the gaps. If regap is true, it sets the gaps to the default of s.
func (s *Storage[T]) prepare(st *storageState, pages []*track.Page, owned, regap bool) (put func(), err error) {
	values, err := decodeRows(s.adapter.codec, st, len(st.Entities), owned)
	if err != nil {
		return nil, err
	}
	entities := ownedEntities(st.Entities, owned)
	switch indexed := s.set.kind == Indexed; {
	case indexed && !st.Indexed:
		entities, values = s.withGaps(entities, values)
	case st.Indexed && !indexed:
		entities, values = withoutGaps(entities, values)
	case regap:
		for row, e := range entities {
			if e == Vacant {
				s.fillGaps(values[row : row+1])
			}
		}
	}
	switch {
	case s.special:
		pages = nil
	case pages == nil:
		pages = sparsePages(entities)
	}
	return func() { s.replace(entities, values, pages) }, nil
}

// replace sets the rows of s, which must be empty, to entities and values. pages is the sparse
// array, or nil for a kind without pages. s takes ownership of the slices. The world must have no
// frames.
func (s *Storage[T]) replace(entities []Entity, values []T, pages []*track.Page) {
	s.rows.Replaced()
	s.rows.Reopen()
	s.setMembers(entities, pages)
	s.data.Take(values)
}

func (r *Resource[T]) prepare(st *storageState, _ []*track.Page, owned, _ bool) (put func(), err error) {
	values, err := decodeRows(r.adapter.codec, st, 1, owned)
	if err != nil {
		return nil, err
	}
	return func() {
		r.rows.Reopen()
		r.data.Live[0] = values[0]
	}, nil
}

// take replaces the content of the registry, and takes ownership of both slices. The world must
// have no frames.
func (r *registry) take(rows []Entity, sparse []uint32, l track.Lengths) {
	r.rows.Reopen()
	r.dense.Take(rows)
	r.sparse, r.rows.Lengths = sparse, l
}

// taskRows is the number of rows that one task checks or decodes.
const taskRows = 1 << 16

// inParallel calls f for 0 to n-1 on several goroutines. If several calls fail, it returns the
// error of the lowest number.
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

// taskCount returns the number of tasks for n rows.
func taskCount(n int) int { return (n + taskRows - 1) / taskRows }

// decode checks and decodes the registry and the rows of plans. It skips checks that were made
// before Load. It returns the row of each entity index.
func decode(state *raw.State, plans []*plan) (rows []uint32, err error) {
	known := false
	if state.Owned {
		if rows, known = sound.RowsOf((*sound.Registry)(state.Checked), state.Registry, state.Alive, state.Free); known {
			soundPages(state, plans)
		}
	}
	err = inParallel(1+len(plans), func(i int) (err error) {
		if i == 0 {
			if !known {
				rows, err = indexOf(state)
			}
			return err
		}
		p := plans[i-1]
		if p.pages == nil {
			err = p.stored.checkEntities(len(state.Registry))
		}
		if err == nil {
			err = p.decode(state.Owned)
		}
		return p.stored.wrapError(err)
	})
	if err == nil {
		err = checkAlive(state, plans, rows)
	}
	return rows, err
}

// ownedEntities returns entities if owned is true, and a copy otherwise.
func ownedEntities(entities []uint64, owned bool) []Entity {
	if owned {
		return raw.As[Entity](entities)
	}
	return slices.Clone(raw.As[Entity](entities))
}

// indexOf returns the row of each entity index, or an error if the registry is invalid.
func indexOf(state *raw.State) ([]uint32, error) {
	r, err := sound.CheckRegistry(state.Registry, state.Alive, state.Free)
	if err != nil {
		return nil, err
	}
	rows, _ := sound.RowsOf(r, state.Registry, state.Alive, state.Free)
	return rows, nil
}

// soundPages sets p.pages of each plan whose rows were checked before Load. The functions decode
// and checkAlive skip their checks for such plans.
func soundPages(state *raw.State, plans []*plan) {
	for _, p := range plans {
		if s := p.stored; !s.Indexed {
			p.pages, _ = sound.PagesOf((*sound.Sparse)(s.Checked), (*sound.Registry)(state.Checked), s.Entities)
		}
	}
}

// checkEntities returns an error unless the entity indices of s are distinct and below total.
func (s *storageState) checkEntities(total int) error {
	seen := make([]uint64, (total+63)/64)
	for r, e := range s.entities() {
		if s.gap(r) {
			continue
		}
		i := int(e.Index())
		switch {
		case uint(i) >= uint(total) || e.Generation() == 0:
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

// checkAlive returns an error unless every entity that has a component is alive. It skips plans
// that were checked before Load: see soundPages. rows has the row of each entity index.
func checkAlive(state *raw.State, plans []*plan, rows []uint32) error {
	type part struct {
		s      *storageState
		lo, hi int
	}
	var parts []part
	for _, p := range plans {
		if p.pages != nil {
			continue
		}
		s := p.stored
		for lo := 0; lo < len(s.Entities); lo += taskRows {
			parts = append(parts, part{s, lo, min(lo+taskRows, len(s.Entities))})
		}
	}
	alive := raw.As[Entity](state.Registry)[:state.Alive]
	return inParallel(len(parts), func(i int) error {
		p := parts[i]
		for r, e := range p.s.entities()[p.lo:p.hi] {
			if p.s.gap(p.lo + r) {
				continue
			}
			if row := int(rows[e.Index()]); row >= len(alive) || alive[row] != e {
				return p.s.wrapError(notAlive(p.lo+r, e))
			}
		}
		return nil
	})
}

// decodeRows returns the n rows of s. If owned is true, the result may share the memory of s.Rows.
func decodeRows[T any](c rowCodec[T], s *storageState, n int, owned bool) ([]T, error) {
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
	if width <= 0 || n <= taskRows || len(s.Rows) != n*width {
		return rows, c.decode(s.Rows, rows)
	}
	return rows, inParallel(taskCount(n), func(i int) error {
		lo, hi := i*taskRows, min((i+1)*taskRows, n)
		return shiftRow(lo, c.decode(s.Rows[lo*width:hi*width], rows[lo:hi]))
	})
}

// decodePages is decodeRows for rows that are stored in pages.
func decodePages[T any](c rowCodec[T], s *storageState, n int) ([]T, error) {
	if s.PageRows <= 0 || len(s.Pages) != (n+s.PageRows-1)/s.PageRows {
		return nil, fmt.Errorf("%d pages of %d rows for %d rows", len(s.Pages), s.PageRows, n)
	}
	rows := make([]T, n)
	return rows, inParallel(len(s.Pages), func(i int) error {
		return shiftRow(i*s.PageRows, c.decode(s.Pages[i], rows[i*s.PageRows:min((i+1)*s.PageRows, n)]))
	})
}

// shiftRow adds first to the row number in err. first is the row at which the decoding began.
func shiftRow(first int, err error) error {
	if d, ok := errors.AsType[*layout.DataError](err); ok && d.Row >= 0 {
		moved := *d
		moved.Row += first
		return &moved
	}
	return err
}
