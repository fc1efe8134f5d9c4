package ecs

import "unsafe"

// Commands record changes of a world, and [World.Apply] makes these changes later. Use Commands in
// a hook, in another goroutine, or in a loop that must not change the world. The zero value is
// ready to use. Do not copy Commands.
//
// A goroutine may record while another goroutine uses the world, because recording does not use the
// world. Give each goroutine its own Commands. Send them to the applying goroutine through a
// channel, or wait for the recording goroutine. Apply empties the Commands, which keep their
// memory.
type Commands struct {
	_ noCopy

	log    []command
	queues []commandQueue // One queue per storage.
	funcs  []func(*World)

	applying bool
	next     int // First command that is not applied yet.
	nextFunc int // First function that is not called yet.
	skipped  int
	issued   uint32 // Number of placeholders ever created.
	applied  uint32 // Number of placeholders that all finished Applies resolved.
	// Number of placeholders that were resolved before the last Apply began. For example, if base
	// is 10, created[0] is the entity of placeholder 11.
	base      uint32
	created   []Entity // Entities of the placeholders that the last Apply resolved.
	following renaming // Replaces placeholders inside components by their entities.
}

// A command takes 16 bytes. The value of a set command is in the queue of its storage.
type command struct {
	entity Entity
	queue  uint32
	kind   commandKind
}

type commandKind uint8

const (
	commandCreate commandKind = iota
	commandDestroy
	commandSet
	commandRemove
	commandDo
)

// A commandQueue is a Deferred of any type. Its methods set and remove report whether the entity
// was alive.
type commandQueue interface {
	set(w *World, e Entity) bool
	remove(w *World, e Entity) bool
	reset()
	mustBeIn(w *World)
}

// Create records the creation of an entity. It returns a placeholder, which later commands of c
// can use as the entity, also inside components, until the next Apply of c. A placeholder never
// equals an entity of a world.
func (c *Commands) Create() Entity {
	if len(c.log) == 0 && c.issued > 1<<31 { // Restart the numbers before they overflow.
		c.issued, c.applied, c.base, c.created = 0, 0, 0, c.created[:0]
	}
	c.issued++
	c.log = append(c.log, command{kind: commandCreate})
	return NewEntity(c.issued, 0)
}

// Destroy records the destruction of e.
func (c *Commands) Destroy(e Entity) {
	c.log = append(c.log, command{entity: e, kind: commandDestroy})
}

// Do records a call of f with the world. f may do anything except apply c.
func (c *Commands) Do(f func(*World)) {
	c.funcs = append(c.funcs, f)
	c.log = append(c.log, command{kind: commandDo})
}

// Len returns the number of commands that are not applied yet.
func (c *Commands) Len() int { return len(c.log) - c.next }

// Resolve returns the entity that Apply created for a placeholder. The result is valid from the
// entity's creation until the next Apply. Before and after that, Resolve returns 0 for the
// placeholder. Resolve returns other entities unchanged.
func (c *Commands) Resolve(e Entity) Entity {
	if e == 0 || e.Generation() != 0 {
		return e
	}
	if k := e.Index() - c.base - 1; k < uint32(len(c.created)) {
		return c.created[k]
	}
	return 0
}

// follow returns the replacement of a reference to e inside a component. A placeholder becomes its
// entity; other references stay unchanged.
func (c *Commands) follow(_ *place, e Entity) Entity {
	if r := c.Resolve(e); r != 0 {
		return r
	}
	return e
}

// A Deferred records commands for one storage. [Storage.Later] creates it. It is valid as long as
// its Commands value.
type Deferred[T any] struct {
	_ noCopy

	c      *Commands
	s      *Storage[T]
	number uint32 // Position of this Deferred in c.queues.
	values []T
	next   int // First value that is not used yet.
}

// Later returns a recorder that adds commands for s to c.
func (s *Storage[T]) Later(c *Commands) *Deferred[T] {
	for _, q := range c.queues {
		if d, ok := q.(*Deferred[T]); ok && d.s == s {
			return d
		}
	}
	d := &Deferred[T]{c: c, s: s, number: uint32(len(c.queues))}
	c.queues = append(c.queues, d)
	return d
}

// Set records that e gets the component v. From then on, the world owns the memory that v refers
// to.
func (d *Deferred[T]) Set(e Entity, v T) {
	d.values = append(d.values, v)
	d.c.log = append(d.c.log, command{e, d.number, commandSet})
}

// Remove records the removal of the component from e.
func (d *Deferred[T]) Remove(e Entity) {
	d.c.log = append(d.c.log, command{e, d.number, commandRemove})
}

// Apply makes the recorded changes, in the order of the arguments. The changes of an argument are
// made in the order of recording. Hooks and functions may record more commands during Apply, which
// are applied last.
//
// Apply skips commands for entities that are no longer alive, and returns their number. A Destroy
// that a [Relation] refuses does not count as skipped. A checkpoint can undo the changes. A loop
// over [Query1.Runs] panics if Apply adds, removes or moves its rows.
//
// The Commands are empty afterwards. If a function or hook panics, the commands after it are
// dropped.
func (w *World) Apply(commands ...*Commands) (skipped int) {
	begun := 0
	defer func() {
		for _, c := range commands[:begun] {
			c.end()
		}
	}()
	for _, c := range commands {
		c.begin(w)
		begun++
	}
	for more := true; more; {
		more = false
		for _, c := range commands {
			more = c.drain(w) || more
		}
	}
	for _, c := range commands {
		skipped += c.skipped
	}
	return skipped
}

func (c *Commands) begin(w *World) {
	if c.applying {
		panic("ecs: Apply of Commands that are being applied; the running Apply also applies commands that are recorded meanwhile")
	}
	for _, q := range c.queues {
		q.mustBeIn(w)
	}
	if c.following.name == nil {
		c.following.name = c.follow
	}
	c.applying, c.skipped = true, 0
	c.base, c.created = c.applied, c.created[:0]
}

// drain applies the commands that are not applied yet. It returns false if all commands are
// applied.
func (c *Commands) drain(w *World) bool {
	if c.next == len(c.log) {
		return false
	}
	for last := len(c.log); c.next < last; {
		command := c.log[c.next]
		c.next++
		if !c.apply(w, command) {
			c.skipped++
		}
	}
	return true
}

// apply applies one command. It reports whether the command's entity was alive.
func (c *Commands) apply(w *World, command command) bool {
	e := c.Resolve(command.entity)
	switch command.kind {
	case commandCreate:
		c.created = append(c.created, w.Create())
	case commandDestroy:
		return w.Destroy(e) || w.entities.alive(e)
	case commandSet:
		return c.queues[command.queue].set(w, e)
	case commandRemove:
		return c.queues[command.queue].remove(w, e)
	case commandDo:
		c.nextFunc++
		c.funcs[c.nextFunc-1](w)
	}
	return true
}

// end empties c after an Apply.
func (c *Commands) end() {
	c.applied = c.issued
	clear(c.funcs)
	c.log, c.funcs = c.log[:0], c.funcs[:0]
	c.next, c.nextFunc, c.applying = 0, 0, false
	for _, q := range c.queues {
		q.reset()
	}
}

func (d *Deferred[T]) set(w *World, e Entity) bool {
	d.mustBeIn(w)
	v := &d.values[d.next]
	d.next++
	if refs := d.s.references(); len(refs.places) > 0 && len(d.c.created) > 0 && w.Alive(e) {
		refs.rename(unsafe.Pointer(v), &d.c.following)
	}
	return d.s.Set(e, *v)
}

func (d *Deferred[T]) remove(w *World, e Entity) bool {
	d.mustBeIn(w)
	return d.s.Remove(e) || w.Alive(e)
}

func (d *Deferred[T]) reset() {
	if d.s.pointers {
		clear(d.values)
	}
	d.values, d.next = d.values[:0], 0
}

func (d *Deferred[T]) mustBeIn(w *World) {
	if d.s.w != w {
		panic("ecs: Apply of commands for a storage of another world; apply them there, or record them with a storage of this one")
	}
}
