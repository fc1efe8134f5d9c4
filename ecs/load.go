package ecs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/layout"
)

// ErrState reports a [State] that no world can be in, or that does not fit the
// types the program registered.
var ErrState = errors.New("ecs: bad state")

// ErrAttached reports a Load into a world with a recorder, which would not be
// told: detach it before.
var ErrAttached = errors.New("ecs: a recorder is attached")

// A State is the whole of a world without Go types, as a snapshot or a save
// holds it.
type State struct {
	Tick        uint64
	Registry    []Entity // As [World.Registry] returns it.
	Alive, Free int
	Storages    []StorageState
}

// A StorageState is a storage or resource of a [State].
type StorageState struct {
	Name     string
	Version  uint32 // See [Version].
	Layout   *layout.Type
	Resource bool     // One row, no entity.
	Indexed  bool     // The row of an entity is its index; gaps are Vacant
	Default  []byte   // and hold this row; nil: the zero value.
	Entities []Entity // In dense order.
	Rows     []byte   // The canonical bytes of the rows, as [AnyStorage.AppendRows] writes them.
}

// Load replaces all that w holds by state. Storages that state does not name are
// emptied, resources keep their values. Components that the program did not
// register are kept as they are, and saved again. History and checkpoints are
// gone.
//
// Components whose layout, name, version or kind is not what the program
// registered are converted, see [layout.NewConversion], [FormerName] and
// [Migrate]; [World.Converted] tells which.
//
// An error wraps [ErrState] and names the component; w is then as it was. state
// is not used after Load has returned.
func (w *World) Load(state *State) error {
	if w.recorder != nil {
		return ErrAttached
	}
	if w.anyCheckpoint() {
		return ErrCheckpointHeld
	}
	if err := state.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	apply, converted, err := w.prepare(state)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	w.verify()
	w.forgetFrames()
	for _, s := range w.storages {
		s.discardAll()
	}
	w.entities.load(state.Registry, lengths{state.Alive, state.Free, len(state.Registry)})
	for _, f := range apply {
		f()
	}
	w.regroup()
	w.tick, w.converted = state.Tick, converted
	w.restart(0)
	return nil
}

// restart begins the history anew at the present state.
func (w *World) restart(mark uint64) {
	w.forgetFrames()
	if w.keepsTicks() {
		w.push(frame{tick: true, mark: mark, bare: w.bareTicks()})
	}
}

// check returns what is wrong with the registry and the entities of state.
func (state *State) check() error {
	total := len(state.Registry)
	if state.Alive < 0 || state.Alive > state.Free || state.Free > total {
		return fmt.Errorf("entities: %d alive, %d with free ones, %d in all", state.Alive, state.Free, total)
	}
	row := make([]uint32, total) // Entity index to row + 1.
	for r, e := range state.Registry {
		if int(e.Index()) >= total || row[e.Index()] != 0 || e.Generation() == 0 {
			return fmt.Errorf("entities: row %d holds %v, which is out of range or there twice", r, e)
		}
		row[e.Index()] = uint32(r) + 1
	}
	names := make(map[string]bool, len(state.Storages))
	member := make([]int32, total) // Entity index to the last storage that had it, + 1.
	for i := range state.Storages {
		s := &state.Storages[i]
		if names[s.Name] {
			return fmt.Errorf("component %s is there twice", s.Name)
		}
		names[s.Name] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("component %s: %w", s.Name, err)
		}
		for r, e := range s.Entities {
			if e == Vacant && s.Indexed {
				continue
			}
			if int(e.Index()) >= total || int(row[e.Index()]) > state.Alive || state.Registry[row[e.Index()]-1] != e {
				return fmt.Errorf("component %s: row %d belongs to %v, which is not alive", s.Name, r, e)
			}
			if member[e.Index()] == int32(i)+1 {
				return fmt.Errorf("component %s: %v has two rows", s.Name, e)
			}
			if s.Indexed && int(e.Index()) != r {
				return fmt.Errorf("component %s: row %d belongs to %v, which has another index", s.Name, r, e)
			}
			member[e.Index()] = int32(i) + 1
		}
	}
	return nil
}

// check returns what is wrong with s by itself.
func (s *StorageState) check() error {
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

// prepare converts and decodes everything before anything is changed.
func (w *World) prepare(state *State) (apply []func(), converted []Conversion, err error) {
	heirs := w.heirs(state.Storages)
	for i := range state.Storages {
		s := &state.Storages[i]
		target, known := heirs[s.Name]
		if known && target.Unknown() && !s.isAs(target) {
			known = false // Loaded before as something else; nothing of it is left.
		}
		if !known {
			target = w.newUnknown(s)
			apply = append(apply, func() { w.adoptUnknown(target) })
		}
		p, err := newPlan(s, target)
		if err != nil {
			return nil, nil, fmt.Errorf("component %s: %w", s.Name, err)
		}
		rows, err := p.run(s)
		if err != nil {
			return nil, nil, fmt.Errorf("component %s: %w", s.Name, err)
		}
		f, err := target.prepare(s.Entities, rows, s.Indexed)
		if err != nil {
			return nil, nil, fmt.Errorf("component %s: %w", s.Name, err)
		}
		apply, converted = append(apply, f), p.appendTo(converted, s, target)
	}
	return apply, converted, nil
}

// isAs reports whether target, which is unknown, was made for a storage like s.
func (s *StorageState) isAs(target AnyStorage) bool {
	if fits(s, target) != nil || s.Indexed != (target.Kind() == Indexed) {
		return false
	}
	return !s.Indexed || string(*s.emptyRow()) == string(emptyOf(target))
}

// fits returns why stored rows are not rows of target as they are.
func fits(s *StorageState, target AnyStorage) error {
	if err := sameSort(s, target); err != nil {
		return err
	}
	if d := layout.Diff(s.Layout, target.Layout()); d != "" {
		return errors.New(d)
	}
	if s.Version != target.Version() {
		return fmt.Errorf("stored version %d, here %d", s.Version, target.Version())
	}
	return nil
}

func (w *World) newUnknown(s *StorageState) AnyStorage {
	spec := spec[rawRow]{name: s.Name, layout: s.Layout, codec: rawRows{s.Layout}, unknown: true, pointers: true}
	if s.Version > 0 {
		spec.evolution = &evolution{version: s.Version}
	}
	if s.Resource {
		return newResource(w, spec, "", false)
	}
	if spec.tag = s.Layout.Width() == 0; spec.tag {
		spec.kind = Tag
	}
	if s.Indexed {
		spec.kind = Indexed
		spec.gap = s.emptyRow()
	}
	return newStorage(w, spec, false)
}

// emptyRow returns the row of gaps.
func (s *StorageState) emptyRow() *rawRow {
	if s.Default == nil {
		return new(rawRow(s.Layout.AppendZero(nil)))
	}
	return new(rawRow(s.Default))
}

// adoptUnknown adds an unknown storage or resource to w, in place of one of the
// same name.
func (w *World) adoptUnknown(s AnyStorage) {
	if old, ok := w.names[s.Name()]; ok {
		w.forget(old)
	}
	if s.sparseSet() != nil {
		w.adopt(s)
		return
	}
	w.names[s.Name()] = s
	w.resources = append(w.resources, s)
}

// forget takes s out of w.
func (w *World) forget(s AnyStorage) {
	if k := slices.Index(w.storages, s); k >= 0 {
		w.storages, w.sets = slices.Delete(w.storages, k, k+1), slices.Delete(w.sets, k, k+1)
	}
	if k := slices.Index(w.resources, s); k >= 0 {
		w.resources = slices.Delete(w.resources, k, k+1)
	}
}

// prepare decodes rows. Kinds that place rows otherwise than the saved one did
// get them in the order of the saved rows.
func (s *Storage[T]) prepare(entities []Entity, rows []byte, indexed bool) (func(), error) {
	values := make([]T, len(entities))
	if err := s.codec.decode(rows, values); err != nil {
		return nil, err
	}
	switch {
	case indexed && s.set.kind != Indexed:
		entities, values = withoutGaps(entities, values)
	case !indexed && s.set.kind == Indexed:
		entities, values = s.withGaps(entities, values)
	}
	return func() { s.replace(entities, values) }, nil
}

// replace makes entities and values the rows of s, which is empty. It keeps
// values. No frame may be held.
func (s *Storage[T]) replace(entities []Entity, values []T) {
	s.open()
	s.fill(entities)
	s.data.live = values
}

func (r *Resource[T]) prepare(_ []Entity, row []byte, _ bool) (func(), error) {
	values := make([]T, 1)
	if err := r.codec.decode(row, values); err != nil {
		return nil, err
	}
	return func() {
		r.open()
		r.data.live[0] = values[0]
	}, nil
}

// load makes rows the registry. No frame may be held.
func (r *registry) load(rows []Entity, l lengths) {
	r.open()
	r.dense.live = append(r.dense.live[:0], rows...)
	r.sparse = make([]uint32, len(rows))
	r.lengths = l
	r.point(0, l.total)
}
