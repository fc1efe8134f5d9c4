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
	stagedStorage
	referring(e Entity) (rows []int)
}

// A stagedStorage is what a [copying] asks of a storage or resource, whatever its type.
type stagedStorage interface {
	stage(c *copying, target AnyStorage) (apply func(), err error)
	stageRows(c *copying, entities []Entity, rows []byte) (apply func(), err error)
}

var (
	_ copiedStorage = (*Storage[int])(nil)
	_ stagedStorage = (*Resource[int])(nil)
)

// CopyOptions configure [World.Copy].
type CopyOptions struct {
	// Outside says what becomes of a reference to an entity that is not copied:
	// Reference.Keep leaves it as it is, which means something only if both worlds know
	// the entity, Reference.Refuse makes it an error, a function of the program may look
	// for another one. It is asked once for each component, place in it and entity, in the
	// order of storages, entities and fields, and must not change the worlds. Default nil:
	// the reference becomes the zero entity; in the key of a map, the entry is left out.
	Outside func(Reference) (Entity, error)

	// SkipMissing leaves out components that the target has no storage for.
	// Default: they are an error.
	SkipMissing bool

	// Keep says which components are copied. Default nil: all.
	Keep func(AnyStorage) bool

	// Resources names resources whose values are copied as well, over those that the
	// target has; references inside follow, as those of components do. What src or the
	// target does not have is an error. Default: none.
	Resources []string

	// Times is how many copies are made of all entities, each with references among its
	// own. Default 0: one.
	Times int
}

// A Reference is an [Entity] inside of a component or resource. [CopyOptions.Outside] is
// asked what it becomes.
type Reference struct {
	From    Entity     // The entity that has the component; 0: it is a resource.
	Storage AnyStorage // The component or resource.
	Field   string     // Where in it: "Target", "Friends[]", "Debts[key]", "Heirs[value][]"; "" if it is an Entity itself.
	To      Entity     // The entity that is referred to, which is not zero.
}

// Keep leaves the reference as it is.
func (r Reference) Keep() (Entity, error) { return r.To, nil }

// Refuse makes the reference an error.
func (r Reference) Refuse() (Entity, error) { return 0, errNotCopied }

var errNotCopied = errors.New("it is not copied")

// in returns err as one of r.
func (r Reference) in(err error) error {
	where := r.Field
	if r.From != 0 {
		where = strings.TrimPrefix(fmt.Sprintf("%s of %v", r.Field, r.From), " of ")
	}
	return fmt.Errorf("%s refers to %v: %w", where, r.To, err)
}

// Copy copies entities of src, which may be w itself, with their components into
// w. It returns the copies in the order of entities; one that is named twice is
// copied once. Behind them come those of the second time, and so on.
//
// Components are matched by name. They must have the same Go type in both worlds,
// or the same layout. Copies share nothing with the originals, and are
// appended in the order of entities. References among the entities, as
// [World.References] finds them, name the copies afterwards, in resources the first ones;
// other references follow CopyOptions. References from outside are not moved.
//
// So a template is an entity with all below it, in a world of its own, where no query of
// the program finds it. It is a world like any other: saved, loaded, changed.
//
//	carts, err := world.Copy(templates, children.Subtree(cart), ecs.CopyOptions{Times: 100})
//	for i := 0; i < len(carts); i += len(carts) / 100 {
//		positions.Set(carts[i], Position{X: float64(i)})
//	}
//
// An error names the entity or component; w is then as it was. Errors are: an entity
// that is not alive in src; a component that w does not have; a type in which not all
// references can be found, as an interface, a func or a recursive type hides them; what
// CopyOptions.Outside returns.
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
	position map[Entity]int // Of an entity among them.
	apply    []func()       // Each gives one component to the copies.

	// What is being staged, and of it the value whose references are being renamed.
	source  AnyStorage
	holders []Entity            // Those of entities that have the component; 0: it is a resource.
	holder  Entity              // Who has the value,
	round   []Entity            // and the copies of its time.
	decided map[outsider]Entity // What Outside said.
}

// An outsider is a reference to an entity that is not copied, in the component of holder.
type outsider struct {
	holder Entity
	*place
	to Entity
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
	if !slices.Equal(c.to.CreateN(nil, len(c.copies)), c.copies) {
		panic("ecs: the world was changed while a copy was made ready; CopyOptions.Outside and Keep must not do that")
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

// add copies a component or resource, which becomes target.
func (c *copying) add(s, target AnyStorage) error {
	c.source, c.holders = s, c.holders[:0]
	f, err := s.(stagedStorage).stage(c, target)
	c.apply = append(c.apply, f)
	return err
}

func (c *copying) addResource(name string) error {
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
func (c *copying) name(p *place, e Entity) Entity {
	if i, copied := c.position[e]; copied {
		return c.round[i]
	}
	return c.decided[outsider{c.holder, p, e}]
}

// decide asks what references to entities that are not copied become. values are those of
// holders.
func decide[T any](c *copying, refs *references, values []T) error {
	c.decided = map[outsider]Entity{}
	var list []outsider
	for i, holder := range c.holders {
		list = list[:0]
		refs.find(unsafe.Pointer(&values[i]), func(p *place, e Entity) bool {
			if _, copied := c.position[e]; !copied && e != 0 {
				list = append(list, outsider{holder, p, e})
			}
			return false
		})
		slices.SortFunc(list, func(a, b outsider) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.to, b.to)) })
		for _, o := range slices.Compact(list) {
			r := Reference{holder, c.source, o.path, o.to}
			to, err := c.options.Outside(r)
			if err != nil {
				return r.in(err)
			}
			c.decided[o] = to
		}
	}
	return nil
}

// follow makes references in values follow: those of holders, once for each time.
func follow[T any](c *copying, refs *references, values []T) error {
	if refs.unseen != "" {
		return errors.New(refs.unseen)
	}
	if len(refs.places) == 0 {
		return nil
	}
	if c.options.Outside != nil {
		if err := decide(c, refs, values); err != nil {
			return err
		}
	}
	n := renaming{name: c.name}
	for i := range values {
		c.holder, c.round = c.holders[i%len(c.holders)], c.copies[i/len(c.holders)*len(c.entities):]
		refs.rename(unsafe.Pointer(&values[i]), &n)
	}
	if n.collided {
		return errors.New("two keys of a map become the same, as a reference to the outside becomes one that is there already")
	}
	return nil
}

// stage copies the rows of the entities for target.
func (s *Storage[T]) stage(c *copying, target AnyStorage) (apply func(), err error) {
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
		entities, values = append(entities, copied), append(values, s.face.copy(s.data.Live[r]))
	}
	if t, same := target.(*Storage[T]); same && !s.unknown {
		return t.stageValues(c, entities, values)
	}
	return stageOther(c, &s.face, target, entities, values)
}

// stageOther stages values for a target of another type.
func stageOther[T any](c *copying, face *rowFace[T], target AnyStorage, entities []Entity, values []T) (apply func(), err error) {
	about := c.source.about()
	if about.layout == nil {
		return nil, errors.New("its type is another one in the target, and cannot be encoded")
	}
	st := &storageState{Version: about.past().version, Layout: about.layout, Resource: c.source.sparseSet() == nil}
	if err := fits(st, target); err != nil {
		return nil, err
	}
	return target.(stagedStorage).stageRows(c, entities, face.codec.append(nil, values))
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
	if err := follow(c, s.references(), values); err != nil {
		return nil, err
	}
	return func() { s.SetEach(entities, values) }, nil
}

// stage copies the value for target.
func (r *Resource[T]) stage(c *copying, target AnyStorage) (apply func(), err error) {
	c.holders = append(c.holders, 0)
	values := []T{r.face.copy(r.data.Live[0])}
	if t, same := target.(*Resource[T]); same && !r.unknown {
		return t.stageValue(c, values)
	}
	return stageOther(c, &r.face, target, nil, values)
}

func (r *Resource[T]) stageRows(c *copying, _ []Entity, rows []byte) (apply func(), err error) {
	values := make([]T, 1)
	if err := r.face.codec.decode(rows, values); err != nil {
		return nil, err
	}
	return r.stageValue(c, values)
}

// stageValue makes references in the value follow, and returns what puts it in place.
func (r *Resource[T]) stageValue(c *copying, values []T) (apply func(), err error) {
	if err := follow(c, referencesIn[T](&r.spec), values); err != nil {
		return nil, err
	}
	return func() { r.Set(values[0]) }, nil
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

func (s *Storage[T]) references() *references { return referencesIn[T](&s.spec) }

// referencesIn returns where values of s, which are of type T, hold entities. Only the world's
// goroutine may ask.
func referencesIn[T any](s *spec) *references {
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
	c.restart(seqs{})
	return c
}

// Blank returns a world without entities, at the same tick, that has the storages and
// resources of w for which keep, if it is not nil, returns true. Resources have the zero
// value of their type, or the one of w if the program has not registered them; the options
// are the zero ones. It is a world for a part of what w holds, for templates, for looking at what was saved.
//
// It costs O(storages).
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
	w.adopt(newStorage(w, typedSpec[T]{s.spec, s.face.codec, s.data.Clone, s.face.gap}))
}

func (r *Resource[T]) blankInto(w *World) {
	if r.unknown { // Its zero value is no row.
		r.cloneInto(w)
		return
	}
	var zero T
	if value, ok := any(&zero).(ticking); ok {
		value.clear()
	}
	r.putInto(w, zero)
}

// putInto gives w the resource with a value.
func (r *Resource[T]) putInto(w *World, value T) {
	w.adopt(newResource(w, typedSpec[T]{r.spec, r.face.codec, r.data.Clone, nil}, value))
}

func (s *Storage[T]) cloneInto(w *World) {
	s.blankInto(w)
	s.In(w).replace(slices.Clone(s.members()), cloneAll(s.Values(), s.data.Clone), nil)
}

func (r *Resource[T]) cloneInto(w *World) {
	r.putInto(w, cloneAll(r.data.Live, r.data.Clone)[0])
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
