package ecs

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/naming"
)

// CloneEntity returns a new entity with copies of the components of e, which share
// nothing with them. Entities inside the components stay as they are,
// also where they name e itself; [World.Copy] makes them follow. It returns false
// if e is not alive.
func (w *World) CloneEntity(e Entity) (Entity, bool) {
	if !w.Alive(e) {
		return 0, false
	}
	c := w.Create()
	for _, s := range w.storages {
		s.(copiedStorage).duplicate(e, c)
	}
	return c, true
}

func (s *Storage[T]) duplicate(from, to Entity) {
	if r := s.row(from); r >= 0 {
		s.Set(to, s.face.copy(s.data.Live[r]))
	}
}

// A copiedStorage is what copies and searches for references ask of a storage,
// whatever its type.
type copiedStorage interface {
	duplicate(from, to Entity)
	stage(c *copying, target AnyStorage) (apply func(), err error)
	stageRows(c *copying, entities []Entity, rows []byte) (apply func(), err error)
	referring(e Entity) (rows []int)
}

var _ copiedStorage = (*Storage[int])(nil)

// CopyOptions configure [World.Copy].
type CopyOptions struct {
	// KeepOutside leaves references to entities that are not copied as they are: they
	// mean something only if both worlds know the entity. Default: they become the
	// zero entity; in a key of a map, the entry is left out.
	KeepOutside bool

	// RefuseOutside makes such references an error.
	RefuseOutside bool

	// SkipMissing leaves out components that the target has no storage for.
	// Default: they are an error.
	SkipMissing bool

	// Keep says which components are copied. Default nil: all.
	Keep func(AnyStorage) bool

	// Times is how many copies are made of all entities, each with references among its
	// own. Default 0: one.
	Times int
}

// Copy copies entities of src, which may be w itself, with their components into
// w. It returns the copies in the order of entities; one that is named twice is
// copied once. Behind them come those of the second time, and so on.
//
// Components are matched by name. They must have the same Go type in both worlds,
// or the same layout. Copies share nothing with the originals, and are
// appended in the order of entities. References among the entities, as
// [World.References] finds them, name the copies afterwards; other references
// follow CopyOptions. Resources are not copied, nor are references from outside
// moved.
//
// So a template is an entity with all below it, in a world of its own, where no query of
// the program finds it. It is a world like any other: saved, loaded, changed.
//
//	carts, err := world.Copy(templates, children.Subtree(cart), ecs.CopyOptions{Times: 100})
//	for i := 0; i < len(carts); i += len(carts) / 100 {
//		positions.Set(carts[i], Position{X: float64(i)})
//	}
//
// An error names the entity or component; w is then as it was. Errors are: an entity that is not alive in src; a component that w does not
// have; a type in which not all references can be found, as an interface, a func
// or a recursive type hides them.
func (w *World) Copy(src *World, entities []Entity, o CopyOptions) ([]Entity, error) {
	c, err := newCopying(w, src, entities, o)
	if err != nil {
		return nil, fmt.Errorf("ecs: cannot copy: %w", err)
	}
	return c.finish(entities), nil
}

// Move is [World.Copy] followed by the end of the originals, which may be in no w but src.
// What relations of src do to others when their targets are destroyed, they do; if one of
// them keeps an entity alive, for the sake of a source that does not move, that is an error
// and nothing has changed in either world; but if only a hook of w attached that source, the
// copies are returned beside the error, and the originals stay.
func (w *World) Move(src *World, entities []Entity, o CopyOptions) ([]Entity, error) {
	if src == w {
		return nil, errors.New("ecs: cannot move: both worlds are the same")
	}
	c, err := newCopying(w, src, entities, o)
	if err == nil && !src.mayEnd(c.entities) {
		err = errHeld
	}
	if err != nil {
		return nil, fmt.Errorf("ecs: cannot move: %w", err)
	}
	copies := c.finish(entities) // First: hooks of src may create entities in w.
	if !src.destroyTogether(c.entities) {
		return copies, fmt.Errorf("ecs: moved, and the originals stay: since hooks were called, %w", errHeld)
	}
	return copies, nil
}

var errHeld = errors.New("a relation keeps one of the entities alive, as it is the target of one that does not move")

// A copying makes everything ready before the target is changed: it knows which
// entities the target will create.
type copying struct {
	from, to *World
	options  CopyOptions
	times    int
	entities []Entity       // No two the same.
	copies   []Entity       // What they become, at the same positions; behind that the second time.
	round    []Entity       // The copies of the time whose references are being renamed.
	position map[Entity]int // Of an entity among them.
	refused  Entity         // The smallest reference to the outside that is an error.
	apply    []func()       // Each gives one component to the copies.
}

// newCopying copies what the target is to get.
func newCopying(to, from *World, entities []Entity, o CopyOptions) (*copying, error) {
	c := &copying{from: from, to: to, options: o, times: max(o.Times, 1), position: make(map[Entity]int, len(entities))}
	if o.Times < 0 {
		return nil, fmt.Errorf("CopyOptions.Times is %d", o.Times)
	}
	for _, e := range entities {
		if !from.Alive(e) {
			return nil, fmt.Errorf("entity %v is not alive", e)
		}
		if _, there := c.position[e]; !there {
			c.position[e] = len(c.entities)
			c.entities = append(c.entities, e)
		}
	}
	c.copies = to.entities.ahead(c.times * len(c.entities))
	return c, c.stage()
}

// finish gives the target its copies, and returns those of entities.
func (c *copying) finish(entities []Entity) []Entity {
	c.to.CreateN(nil, len(c.copies))
	for _, f := range c.apply {
		f()
	}
	copies := make([]Entity, 0, c.times*len(entities))
	for round := range slices.Chunk(c.copies, max(len(c.entities), 1)) {
		for _, e := range entities {
			copies = append(copies, round[c.position[e]])
		}
	}
	return copies
}

// stage copies the components.
func (c *copying) stage() error {
	var missing []string
	for _, s := range c.from.storages {
		if c.options.Keep != nil && !c.options.Keep(s) || !c.touches(s.sparseSet()) {
			continue
		}
		target, there := c.to.names[s.Name()]
		if !there {
			missing = append(missing, naming.Shown(s.Name()))
			continue
		}
		f, err := s.(copiedStorage).stage(c, target)
		if err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(s.Name()), err)
		}
		c.apply = append(c.apply, f)
	}
	if len(missing) > 0 && !c.options.SkipMissing {
		return fmt.Errorf("the target does not have %s; register it there, or skip what is missing", strings.Join(missing, ", "))
	}
	return nil
}

// touches reports whether one of the entities is a member of s.
func (c *copying) touches(s *set) bool {
	for _, e := range c.entities {
		if s.row(e) >= 0 {
			return true
		}
	}
	return false
}

// name returns what a reference to e becomes.
func (c *copying) name(e Entity) Entity {
	if i, copied := c.position[e]; copied {
		return c.round[i]
	}
	switch {
	case c.options.RefuseOutside:
		if c.refused == 0 || e < c.refused {
			c.refused = e
		}
		return e
	case c.options.KeepOutside:
		return e
	}
	return 0
}

// stage copies the rows of the entities for target.
func (s *Storage[T]) stage(c *copying, target AnyStorage) (apply func(), err error) {
	var entities []Entity
	var values []T
	for i, copied := range c.copies {
		if r := s.row(c.entities[i%len(c.entities)]); r >= 0 {
			entities, values = append(entities, copied), append(values, s.face.copy(s.data.Live[r]))
		}
	}
	if t, same := target.(*Storage[T]); same && !s.unknown {
		return t.stageValues(c, entities, values)
	}
	if s.layout == nil {
		return nil, errors.New("its type is another one in the target, and cannot be encoded")
	}
	if err := fits(&storageState{Version: s.past().version, Layout: s.layout}, target); err != nil {
		return nil, err
	}
	return target.(copiedStorage).stageRows(c, entities, s.face.codec.append(nil, values))
}

// fits returns why stored rows are not rows of target as they are.
func fits(s *storageState, target AnyStorage) error {
	if err := sameSort(s, target); err != nil {
		return err
	}
	if d := layout.Diff(s.Layout, target.about().layout); d != "" {
		return errors.New(d)
	}
	if v := target.about().past().version; s.Version != v {
		return fmt.Errorf("stored version %d, here %d", s.Version, v)
	}
	return nil
}

// stageRows is stageValues for values encoded by a type of the same layout.
func (s *Storage[T]) stageRows(c *copying, entities []Entity, rows []byte) (apply func(), err error) {
	values := make([]T, len(entities))
	if err := s.face.codec.decode(rows, values); err != nil {
		return nil, err
	}
	return s.stageValues(c, entities, values)
}

// stageValues makes references in values follow, and returns what gives them to
// entities.
func (s *Storage[T]) stageValues(c *copying, entities []Entity, values []T) (apply func(), err error) {
	refs, n := s.references(), renaming{name: c.name}
	if refs.unseen != "" {
		return nil, errors.New(refs.unseen)
	}
	for i := range values {
		c.round = c.copies[i/(len(values)/c.times)*len(c.entities):]
		refs.rename(unsafe.Pointer(&values[i]), &n)
	}
	switch {
	case c.refused != 0:
		return nil, fmt.Errorf("it refers to %v, which is not copied", c.refused)
	case n.collided:
		return nil, errors.New("two keys of a map become the same, as a kept entity has the name of a copy")
	}
	return func() { s.SetEach(entities, values) }, nil
}

// ahead returns the entities that the next n calls of create will return.
func (r *registry) ahead(n int) []Entity {
	next := make([]Entity, 0, n)
	lo, hi := r.rows.N, r.rows.Extra
	for ; len(next) < n && lo < hi; lo++ {
		e := r.dense.Live[lo]
		for e.Generation() == r.maxGeneration { // Spent: the last free one takes its place.
			if hi--; lo == hi {
				break
			}
			e = r.dense.Live[hi]
		}
		if lo < hi {
			next = append(next, e+1<<32)
		}
	}
	for i := r.rows.Total; len(next) < n; i++ {
		next = append(next, NewEntity(uint32(i), 1))
	}
	return next
}

// References iterates over the components that refer to e, as the entity that
// has the component and the storage. A component refers to e if an [Entity] of
// that value is anywhere inside: in nested structs, arrays, slices, maps and
// behind pointers. What an interface, func or channel holds is not seen, nor are
// resources and components that the program did not register.
//
// Nothing keeps a list of references: it costs O(rows) of the storages whose type
// holds entities. The world must not change meanwhile.
func (w *World) References(e Entity) iter.Seq2[Entity, AnyStorage] {
	return func(yield func(Entity, AnyStorage) bool) {
		if e == 0 {
			return
		}
		for _, s := range w.storages {
			for _, row := range s.(copiedStorage).referring(e) {
				if !yield(s.sparseSet().dense.Live[row], s) {
					return
				}
			}
		}
	}
}

// referring returns the rows that refer to e.
func (s *Storage[T]) referring(e Entity) (rows []int) {
	refs := s.references()
	if len(refs.places) == 0 {
		return nil
	}
	for row := range s.rows.N {
		if refs.hold(unsafe.Pointer(&s.data.Live[row]), e) {
			rows = append(rows, row)
		}
	}
	return rows
}

// references returns where components of s hold entities. Only the world's
// goroutine may ask.
func (s *Storage[T]) references() *references {
	if s.refs == nil {
		s.refs = referencesOf(reflect.TypeFor[T]())
		if s.unknown && holdsEntity(s.layout) {
			s.refs.unseen = "it is not registered, so the entities inside are not known"
		}
	}
	return s.refs
}

// Clone returns an independent world with the same entities, components,
// resources and tick, and with the same options. History, checkpoints, recorder
// and OnRestore functions stay behind. Use [Storage.In] to find a storage again.
//
// It costs O(rows).
func (w *World) Clone() *World {
	c := NewWorld(w.options)
	r := &w.entities
	c.entities.take(slices.Clone(r.dense.Live[:r.rows.Total]), slices.Clone(r.sparse[:r.rows.Total]), r.rows.Lengths)
	c.entities.maxGeneration = r.maxGeneration
	for _, s := range w.storages {
		s.cloneInto(c)
	}
	for _, s := range w.resources {
		s.cloneInto(c)
	}
	w.cloneGroups(c)
	c.tick = w.tick
	c.restart(0)
	return c
}

func (s *Storage[T]) cloneInto(w *World) {
	c := newStorage(w, typedSpec[T]{s.spec, s.face.codec, s.data.Clone, s.face.gap})
	w.adopt(c)
	c.replace(slices.Clone(s.members()), cloneAll(s.Values(), s.data.Clone), nil)
}

func (r *Resource[T]) cloneInto(w *World) {
	c := newResource(w, typedSpec[T]{r.spec, r.face.codec, r.data.Clone, nil}, cloneAll(r.data.Live, r.data.Clone)[0])
	w.adopt(c)
}

// cloneAll returns copies of rows that share nothing with them, never nil.
func cloneAll[T any](rows []T, clone func(T) T) []T {
	c := append(make([]T, 0, len(rows)), rows...)
	if clone != nil {
		for i := range c {
			c[i] = clone(c[i])
		}
	}
	return c
}
