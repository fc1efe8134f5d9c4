package ecs

import (
	"cmp"
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

// CloneEntity creates an entity with deep copies of the components of e. References to entities
// inside the components stay unchanged, even references to e. [World.Copy] replaces such
// references. CloneEntity returns false if e is not alive.
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
		s.Set(to, s.adapter.copy(s.data.Live[r]))
	}
}

// A copiedStorage can copy a component to another entity, and find references.
type copiedStorage interface {
	duplicate(from, to Entity)
	stagedStorage
	referring(e Entity) (rows []int)
}

// A stagedStorage can prepare the writes of a [copyJob].
type stagedStorage interface {
	stage(c *copyJob, target AnyStorage) (apply func(), err error)
	stageRows(c *copyJob, entities []Entity, rows []byte) (apply func(), err error)
}

var (
	_ copiedStorage = (*Storage[int])(nil)
	_ stagedStorage = (*Resource[int])(nil)
)

// CopyOptions configure [World.Copy].
type CopyOptions struct {
	// Outside returns the replacement for a reference to an entity that is not copied. It may
	// return a result of [Reference.Keep] or [Reference.Refuse], or any other entity. By default,
	// the reference becomes [None], and a map entry with such a key is removed.
	//
	// Copy calls Outside once for each component, field and target entity, even if it makes several
	// copies. Outside must not change the worlds.
	Outside func(Reference) (Entity, error)

	// SkipMissing skips components for which the target has no storage. By default they are an
	// error.
	SkipMissing bool

	// Keep selects the components to copy. The default nil means all.
	Keep func(AnyStorage) bool

	// Resources has the names of resources to copy. Their values overwrite the target's values.
	// References inside the values are replaced as in components. A resource that src or the target
	// lacks is an error. By default, no resource is copied.
	Resources []string

	// Times is the number of copies of the whole list of entities. A reference between the entities
	// becomes a reference within one copy of the list. For example, in the second copy of a car,
	// the wheels refer to the second copy. The default 0 means one copy.
	Times int
}

// A Reference is an [Entity] inside a component or resource. [CopyOptions.Outside] returns its
// replacement.
type Reference struct {
	From    Entity     // The entity that has the component, or 0 for a resource.
	Storage AnyStorage // The component or resource.
	// The path of the field, such as "Target", "Friends[]", "Debts[key]" or "Heirs[value][]". It is
	// empty for a component that is an Entity itself.
	Field string
	To    Entity // The entity that the reference names; never zero.
}

// Keep leaves the reference unchanged. Use it only if the entity exists in both worlds.
func (r Reference) Keep() (Entity, error) { return r.To, nil }

// Refuse makes the copy fail with an error.
func (r Reference) Refuse() (Entity, error) { return 0, errNotCopied }

var errNotCopied = errors.New("it is not copied")

// in adds the field, the entity and the target of the reference to err.
func (r Reference) in(err error) error {
	where := r.Field
	if r.From != 0 {
		where = strings.TrimPrefix(fmt.Sprintf("%s of %v", r.Field, r.From), " of ")
	}
	return fmt.Errorf("%s refers to %v: %w", where, r.To, err)
}

// Copy copies entities of src, with their components, into w. src may be w itself. An entity that
// occurs twice is copied once. The result has the copies in the order of entities. With
// [CopyOptions].Times, all second copies follow the first copies, and so on.
//
// Copy matches components by name. A component must have the same Go type in both worlds, or the
// same layout. Copies share no memory with the originals.
//
// References between the entities, as [World.References] finds them, are replaced by references to
// the copies. In resources they become references to the first copies. [CopyOptions] says what
// happens to references to other entities. References from entities that are not copied stay
// unchanged.
//
// For example, templates are entities in a separate world, which the queries of the program do not
// search:
//
//	carts, err := world.Copy(templates, children.Subtree(cart), ecs.CopyOptions{Times: 100})
//	for i := 0; i < len(carts); i += len(carts) / 100 {
//		positions.Set(carts[i], Position{X: float64(i)})
//	}
//
// An error names the entity or component; w is then unchanged. Copy returns an error in these
// cases:
//
//   - An entity is not alive in src.
//   - w does not have a component.
//   - A component type hides references: it has an interface, a func or a recursive type.
//   - CopyOptions.Outside returns an error.
func (w *World) Copy(src *World, entities []Entity, o CopyOptions) ([]Entity, error) {
	c, err := newCopyJob(w, src, entities, o)
	if err != nil {
		return nil, fmt.Errorf("ecs: cannot copy: %w", err)
	}
	return c.finish(entities), nil
}

// Move copies entities of src into w like [World.Copy], and then destroys the originals. src must
// not be w. The relations of src apply their policies, as in Destroy.
//
// Move returns an error if a relation keeps an original alive, because an entity that does not move
// refers to the original. Both worlds are then unchanged. A hook may add such a reference during
// Move. Then the originals stay alive, and Move returns the copies and an error.
func (w *World) Move(src *World, entities []Entity, o CopyOptions) ([]Entity, error) {
	if src == w {
		return nil, errors.New("ecs: cannot move: both worlds are the same")
	}
	c, err := newCopyJob(w, src, entities, o)
	if err == nil && !src.mayDestroy(c.entities) {
		err = errHeld
	}
	if err != nil {
		return nil, fmt.Errorf("ecs: cannot move: %w", err)
	}
	// Hooks of src may create entities in w, so copy before the destruction.
	copies := c.finish(entities)
	if !src.destroyTogether(c.entities) {
		return copies, fmt.Errorf("ecs: copied, but the originals stay: after the hooks ran, %w", errHeld)
	}
	return copies, nil
}

var errHeld = errors.New("a relation keeps one of the entities alive: it is the target of an entity that does not move")

// A copyJob prepares all copies before it changes the target. It computes in advance the entities
// that the target will create.
type copyJob struct {
	from, to *World
	options  CopyOptions
	times    int
	entities []Entity // The originals, each once.
	// The first copies in the order of entities, then the second copies, and so on.
	copies   []Entity
	position map[Entity]int // Position of each entity in entities.
	apply    []func()       // Each function writes one component of all copies.

	// The component or resource that is being copied.
	source  AnyStorage
	holders []Entity // The entities that have the component, or 0 for a resource.
	// The original whose value is being processed.
	holder Entity
	// With CopyOptions.Times, the list of entities is copied several times. round has the copies of
	// the list to which the value of holder belongs.
	round    []Entity
	resolved map[externalRef]Entity // Results of CopyOptions.Outside.
}

// An externalRef is a reference from the component of holder to an entity that is not copied.
type externalRef struct {
	holder Entity
	*place
	to Entity
}

// newCopyJob prepares the copies. It does not change the target yet.
func newCopyJob(to, from *World, entities []Entity, o CopyOptions) (*copyJob, error) {
	c := &copyJob{from: from, to: to, options: o, times: max(o.Times, 1), position: make(map[Entity]int, len(entities))}
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
	c.copies = to.entities.nextEntities(c.times * len(c.entities))
	return c, c.stage()
}

// finish creates the copies in the target. It returns the copies in the order of entities.
func (c *copyJob) finish(entities []Entity) []Entity {
	if !slices.Equal(c.to.CreateN(nil, len(c.copies)), c.copies) {
		panic("ecs: the world was changed while Copy prepared the copies; CopyOptions.Outside and Keep must not change it")
	}
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

// stage prepares the copies of all components and resources.
func (c *copyJob) stage() error {
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
		if err := c.add(s, target); err != nil {
			return fmt.Errorf("component %s: %w", naming.Shown(s.Name()), err)
		}
	}
	if len(missing) > 0 && !c.options.SkipMissing {
		return fmt.Errorf("the target does not have %s; register it there, or skip what is missing", strings.Join(missing, ", "))
	}
	for _, name := range c.options.Resources {
		if err := c.addResource(name); err != nil {
			return fmt.Errorf("resource %s: %w", naming.Shown(name), err)
		}
	}
	return nil
}

// add prepares the copy of the component or resource s to target.
func (c *copyJob) add(s, target AnyStorage) error {
	c.source, c.holders = s, c.holders[:0]
	f, err := s.(stagedStorage).stage(c, target)
	c.apply = append(c.apply, f)
	return err
}

func (c *copyJob) addResource(name string) error {
	var both [2]AnyStorage
	for i, w := range [2]*World{c.from, c.to} {
		s := w.names[name]
		if s == nil || s.sparseSet() != nil {
			return fmt.Errorf("the %s has no such resource", [2]string{"source", "target"}[i])
		}
		both[i] = s
	}
	return c.add(both[0], both[1])
}

// touches reports whether any of the copied entities is a member of s.
func (c *copyJob) touches(s *set) bool {
	for _, e := range c.entities {
		if s.row(e) >= 0 {
			return true
		}
	}
	return false
}

// replacement returns the entity that replaces a reference to e.
func (c *copyJob) replacement(p *place, e Entity) Entity {
	if i, copied := c.position[e]; copied {
		return c.round[i]
	}
	return c.resolved[externalRef{c.holder, p, e}]
}

// resolveExternal calls Outside for each reference to an entity that is not copied. The values
// belong to the entities c.holders.
func resolveExternal[T any](c *copyJob, refs *references, values []T) error {
	c.resolved = map[externalRef]Entity{}
	var list []externalRef
	for i, holder := range c.holders {
		list = list[:0]
		refs.find(unsafe.Pointer(&values[i]), func(p *place, e Entity) bool {
			if _, copied := c.position[e]; !copied && e != 0 {
				list = append(list, externalRef{holder, p, e})
			}
			return false
		})
		slices.SortFunc(list, func(a, b externalRef) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.to, b.to)) })
		for _, o := range slices.Compact(list) {
			r := Reference{holder, c.source, o.path, o.to}
			to, err := c.options.Outside(r)
			if err != nil {
				return r.in(err)
			}
			c.resolved[o] = to
		}
	}
	return nil
}

// replaceReferences replaces the references in the values of all copies. The values of all first
// copies come first, then those of all second copies, and so on.
func replaceReferences[T any](c *copyJob, refs *references, values []T) error {
	if refs.unseen != "" {
		return errors.New(refs.unseen)
	}
	if len(refs.places) == 0 {
		return nil
	}
	if c.options.Outside != nil {
		if err := resolveExternal(c, refs, values); err != nil {
			return err
		}
	}
	n := renaming{name: c.replacement}
	for i := range values {
		c.holder, c.round = c.holders[i%len(c.holders)], c.copies[i/len(c.holders)*len(c.entities):]
		refs.rename(unsafe.Pointer(&values[i]), &n)
	}
	if n.collided {
		return errors.New("two keys of a map become equal: the replacement of a reference is a key already")
	}
	return nil
}

// stage copies the rows of the entities. The returned function writes the copies to the target.
func (s *Storage[T]) stage(c *copyJob, target AnyStorage) (apply func(), err error) {
	var entities []Entity
	var values []T
	for i, copied := range c.copies {
		e := c.entities[i%len(c.entities)]
		r := s.row(e)
		if r < 0 {
			continue
		}
		if i < len(c.entities) {
			c.holders = append(c.holders, e)
		}
		entities, values = append(entities, copied), append(values, s.adapter.copy(s.data.Live[r]))
	}
	if t, same := target.(*Storage[T]); same && !s.unknown {
		return t.stageValues(c, entities, values)
	}
	return stageOther(c, &s.adapter, target, entities, values)
}

// stageOther prepares values for a target whose Go type differs.
func stageOther[T any](c *copyJob, face *rowAdapter[T], target AnyStorage, entities []Entity, values []T) (apply func(), err error) {
	about := c.source.about()
	if about.layout == nil {
		return nil, errors.New("its type differs from the one in the target, and cannot be encoded")
	}
	st := &storageState{Version: about.past().version, Layout: about.layout, Resource: c.source.sparseSet() == nil}
	if err := fits(st, target); err != nil {
		return nil, err
	}
	return target.(stagedStorage).stageRows(c, entities, face.codec.append(nil, values))
}

// fits returns an error if target cannot take the rows of s without a conversion.
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

// stageRows decodes rows and calls stageValues.
func (s *Storage[T]) stageRows(c *copyJob, entities []Entity, rows []byte) (apply func(), err error) {
	values := make([]T, len(entities))
	if err := s.adapter.codec.decode(rows, values); err != nil {
		return nil, err
	}
	return s.stageValues(c, entities, values)
}

// stageValues replaces the references in values. The returned function sets the values of the
// entities.
func (s *Storage[T]) stageValues(c *copyJob, entities []Entity, values []T) (apply func(), err error) {
	if err := replaceReferences(c, s.references(), values); err != nil {
		return nil, err
	}
	return func() { s.SetEach(entities, values) }, nil
}

// stage copies the value of the resource. The returned function writes the copy to the target.
func (r *Resource[T]) stage(c *copyJob, target AnyStorage) (apply func(), err error) {
	c.holders = append(c.holders, 0)
	values := []T{r.adapter.copy(r.data.Live[0])}
	if t, same := target.(*Resource[T]); same && !r.unknown {
		return t.stageValue(c, values)
	}
	return stageOther(c, &r.adapter, target, nil, values)
}

func (r *Resource[T]) stageRows(c *copyJob, _ []Entity, rows []byte) (apply func(), err error) {
	values := make([]T, 1)
	if err := r.adapter.codec.decode(rows, values); err != nil {
		return nil, err
	}
	return r.stageValue(c, values)
}

// stageValue replaces the references in the value. The returned function sets the value.
func (r *Resource[T]) stageValue(c *copyJob, values []T) (apply func(), err error) {
	if err := replaceReferences(c, referencesIn[T](&r.spec), values); err != nil {
		return nil, err
	}
	return func() { r.Set(values[0]) }, nil
}

// nextEntities returns the entities that the next n calls of create will return.
func (r *registry) nextEntities(n int) []Entity {
	next := make([]Entity, 0, n)
	lo, hi := r.rows.N, r.rows.Extra
	for ; len(next) < n && lo < hi; lo++ {
		e := r.dense.Live[lo]
		// An index whose generation is at its maximum is not used again. The last free index takes
		// its place, as in create.
		for e.Generation() == r.maxGeneration {
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

// References iterates over the components that refer to e. It yields the entity that has the
// component, and the storage. A component refers to e if its value contains the [Entity] e, also in
// nested structs, arrays, slices and maps, or behind pointers. References does not search
// interfaces, funcs, channels, resources, or components that the program did not register.
//
// The world keeps no list of references, so the cost is O(rows) of the storages whose type contains
// entities. The world must not change during the loop.
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

func (s *Storage[T]) references() *references { return referencesIn[T](&s.spec) }

// referencesIn returns the fields in which values of type T contain entities. Only the world's
// goroutine may call it.
func referencesIn[T any](s *spec) *references {
	if s.refs == nil {
		s.refs = referencesOf(reflect.TypeFor[T]())
		if s.unknown && holdsEntity(s.layout) {
			s.refs.unseen = "it is not registered, so the entities inside are not known"
		}
	}
	return s.refs
}

// Clone returns an independent world with the same entities, components, resources, tick and
// options. It copies no history, checkpoints, recorders or hooks. Use [Storage.In] to find a
// storage in the clone.
//
// The cost is O(rows).
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
	c.restart(seqs{})
	return c
}

// Blank returns a world without entities, at the same tick. It has the storages and resources of w
// for which keep returns true, or all of them if keep is nil. The options are the zero options.
// Each resource has the zero value of its type. A resource that the program has not registered
// keeps its value.
//
// A blank world is useful for a part of w, for templates, and to inspect saved data. The cost is
// O(storages).
func (w *World) Blank(keep func(AnyStorage) bool) *World {
	c := NewWorld(Options{})
	for _, s := range w.Storages() {
		if keep == nil || keep(s) {
			s.blankInto(c)
		}
	}
	c.tick = w.tick
	return c
}

func (s *Storage[T]) blankInto(w *World) {
	w.adopt(newStorage(w, typedSpec[T]{s.spec, s.adapter.codec, s.data.Clone, s.adapter.gap}))
}

func (r *Resource[T]) blankInto(w *World) {
	// An unknown resource has no Go type, and so no zero value.
	if r.unknown {
		r.cloneInto(w)
		return
	}
	var zero T
	if value, ok := any(&zero).(ticking); ok {
		value.clear()
	}
	r.putInto(w, zero)
}

// putInto adds a copy of the resource to w, with the given value.
func (r *Resource[T]) putInto(w *World, value T) {
	w.adopt(newResource(w, typedSpec[T]{r.spec, r.adapter.codec, r.data.Clone, nil}, value))
}

func (s *Storage[T]) cloneInto(w *World) {
	s.blankInto(w)
	s.In(w).replace(slices.Clone(s.members()), cloneAll(s.Values(), s.data.Clone), nil)
}

func (r *Resource[T]) cloneInto(w *World) {
	r.putInto(w, cloneAll(r.data.Live, r.data.Clone)[0])
}

// cloneAll returns deep copies of rows. The result is never nil.
func cloneAll[T any](rows []T, clone func(T) T) []T {
	c := append(make([]T, 0, len(rows)), rows...)
	if clone != nil {
		for i := range c {
			c[i] = clone(c[i])
		}
	}
	return c
}
