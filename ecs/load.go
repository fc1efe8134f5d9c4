package ecs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
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

	// Owned lets the world keep the slices of the state instead of copies: whoever
	// made them has no more use for them, whether Load succeeds or not.
	Owned bool
}

// A StorageState is a storage or resource of a [State].
type StorageState struct {
	Name     string
	Version  uint32 // See [Version].
	Layout   *layout.Type
	Resource bool     // One row, no entity.
	NoRewind bool     // See [NoRewind]. It counts if the program did not register the component.
	Indexed  bool     // The row of an entity is its index; gaps are Vacant
	Default  []byte   // and hold this row; nil: the zero value.
	Entities []Entity // In dense order.
	Rows     []byte   // The canonical bytes of the rows, as [AnyStorage.AppendRows] writes them.

	// Pages holds the bytes of PageRows rows each, the last one those of the rest;
	// nil: they are in Rows.
	Pages    [][]byte
	PageRows int
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
// is not used after Load has returned, unless it is Owned. Load works with as many
// goroutines as the program has processors.
func (w *World) Load(state *State) error {
	if w.recorder != nil {
		return ErrAttached
	}
	if w.anyCheckpoint() {
		return ErrCheckpointHeld
	}
	rows, apply, converted, err := w.prepare(state)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	w.verify()
	w.forgetFrames()
	for _, s := range w.storages {
		s.discardAll()
	}
	w.entities.take(state.entities(), rows, track.Lengths{N: state.Alive, Extra: state.Free, Total: len(state.Registry)})
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
		w.pushTick(mark)
	}
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

// isAs reports whether target, which is unknown, was made for a storage like s.
func (s *StorageState) isAs(target AnyStorage) bool {
	if fits(s, target) != nil || s.Indexed != (target.Kind() == Indexed) || s.NoRewind == target.Rewinds() {
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
		return newResource(w, spec, "", s.NoRewind)
	}
	if spec.tag = s.Layout.Width() == 0; spec.tag {
		spec.kind = Tag
	}
	if s.Indexed {
		spec.kind = Indexed
		spec.gap = s.emptyRow()
	}
	return newStorage(w, spec, s.NoRewind)
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
	w.exempt = slices.DeleteFunc(w.exempt, func(x exemptStorage) bool { return any(x) == any(s) })
	if k := slices.Index(w.resources, s); k >= 0 {
		w.resources = slices.Delete(w.resources, k, k+1)
	}
}

// prepare decodes rows. Kinds that place rows otherwise than the saved one did
// get them in the order of the saved rows.
func (s *Storage[T]) prepare(st *StorageState, owned bool) (func(), error) {
	values, err := decodeRows(s.codec, st, len(st.Entities), owned)
	if err != nil {
		return nil, err
	}
	entities := st.Entities
	if st.Indexed != (s.set.kind == Indexed) {
		return func() { s.convert(entities, values) }, nil
	}
	if !owned {
		entities = slices.Clone(entities)
	}
	if s.special {
		return func() { s.replace(entities, values, nil) }, nil
	}
	pages := sparsePages(entities)
	return func() { s.replace(entities, values, pages) }, nil
}

// convert makes rows of an Indexed storage those of another one, or the other way
// round.
func (s *Storage[T]) convert(entities []Entity, values []T) {
	if s.set.kind == Indexed {
		entities, values = s.withGaps(entities, values)
	} else {
		entities, values = withoutGaps(entities, values)
	}
	s.replace(entities, values, nil)
}

// replace makes entities and values the rows of s, which is empty, and keeps them.
// pages is the sparse array that follows from entities, or nil. No frame may be
// held.
func (s *Storage[T]) replace(entities []Entity, values []T, pages []*track.Page) {
	s.rows.Open()
	s.fill(entities, pages)
	s.data.Live = values
}

func (r *Resource[T]) prepare(st *StorageState, owned bool) (func(), error) {
	values, err := decodeRows(r.codec, st, 1, owned)
	if err != nil {
		return nil, err
	}
	return func() {
		r.rows.Open()
		r.data.Live[0] = values[0]
	}, nil
}

// load makes a copy of rows the registry. No frame may be held.
func (r *registry) load(rows []Entity, l track.Lengths) {
	sparse := make([]uint32, len(rows))
	for row, e := range rows {
		sparse[e.Index()] = uint32(row)
	}
	r.take(slices.Clone(rows), sparse, l)
}

// take makes rows, to which sparse points, the registry. It keeps both.
func (r *registry) take(rows []Entity, sparse []uint32, l track.Lengths) {
	r.rows.Open()
	r.dense.Live, r.sparse, r.rows.Lengths = rows, sparse, l
}
