package ecs

import "unsafe"

// Commands are changes of a world that are recorded now and made later, by
// [World.Apply]: from a loop in which the world must not change, from a hook, or
// from another goroutine. The zero Commands are empty and ready; they must not be
// copied.
//
// Recording touches nothing but the Commands, so that any goroutine may record
// while another one uses the world. One value is for one goroutine at a time,
// like a buffer: give each producer its own, and hand it over, for example through
// a channel, or by waiting for the producer. Applied Commands are empty again
// and keep their memory.
type Commands struct {
	log    []command
	queues []commandQueue // By storage.
	funcs  []func(*World)

	applying  bool
	next      int // The first command not applied,
	nextFunc  int // and the first function not called.
	skipped   int
	issued    uint32   // Placeholders ever given out,
	applied   uint32   // how many of them are done with,
	base      uint32   // and how many were, before those of created.
	created   []Entity // What the placeholders of the last Apply stand for.
	following renaming // Of placeholders inside components.
}

// A command is 16 bytes; the value of a set is in the queue of its storage.
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

// A commandQueue is a Deferred of any type. Its methods report whether the entity
// was alive.
type commandQueue interface {
	set(w *World, e Entity) bool
	remove(w *World, e Entity) bool
	reset()
	mustBeIn(w *World)
}

// Create records that an entity is created. It returns a placeholder, which later
// commands of c can use as the entity, also inside components, up to the next
// Apply of c. No world ever has such an entity.
func (c *Commands) Create() Entity {
	if len(c.log) == 0 && c.issued > 1<<31 { // Numbers begin anew before they run out.
		c.issued, c.applied, c.base, c.created = 0, 0, 0, c.created[:0]
	}
	c.issued++
	c.log = append(c.log, command{kind: commandCreate})
	return NewEntity(c.issued, 0)
}

// Destroy records that e is destroyed.
func (c *Commands) Destroy(e Entity) {
	c.log = append(c.log, command{entity: e, kind: commandDestroy})
}

// Do records that f is called with the world. It may do anything but apply c.
func (c *Commands) Do(f func(*World)) {
	c.funcs = append(c.funcs, f)
	c.log = append(c.log, command{kind: commandDo})
}

// Len returns the number of commands that wait for Apply.
func (c *Commands) Len() int { return len(c.log) - c.next }

// Resolve returns the entity that a placeholder stands for: from its creation in
// Apply up to the next Apply. Before and after that it is 0. Other entities are
// returned as they are.
func (c *Commands) Resolve(e Entity) Entity {
	if e == 0 || e.Generation() != 0 {
		return e
	}
	if k := e.Index() - c.base - 1; k < uint32(len(c.created)) {
		return c.created[k]
	}
	return 0
}

// follow returns what an entity inside a component becomes.
func (c *Commands) follow(_ *place, e Entity) Entity {
	if r := c.Resolve(e); r != 0 {
		return r
	}
	return e
}

// A Deferred records commands for one storage. [Storage.Later] makes it; it can be
// kept as long as its Commands.
type Deferred[T any] struct {
	c      *Commands
	s      *Storage[T]
	number uint32 // Among the queues.
	values []T
	next   int // The first value not used.
}

// Later returns what records commands of c for s.
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

// Set records that e gets the component v. Memory that v shares belongs to the
// world from then on.
func (d *Deferred[T]) Set(e Entity, v T) {
	d.values = append(d.values, v)
	d.c.log = append(d.c.log, command{e, d.number, commandSet})
}

// Remove records that e loses the component.
func (d *Deferred[T]) Remove(e Entity) {
	d.c.log = append(d.c.log, command{e, d.number, commandRemove})
}

// Apply makes the changes that were recorded: those of the first Commands in the
// order in which they were recorded, then those of the next. What hooks and
// functions record meanwhile is applied by the same Apply, behind all that. The
// order in which producers came to record does not matter, only that of the
// arguments.
//
// Commands for an entity that is not alive by then change nothing; Apply returns
// how many these were. A Destroy that a [Relation] refuses is none of them. The changes are ordinary ones: they can be taken back by a
// checkpoint and follow the rules of changing the world while iterating. The
// Commands are empty afterwards, whatever becomes of the changes; if a function or
// hook panics, what follows it is forgotten.
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
		panic("ecs: Apply of commands that are being applied; what is recorded meanwhile is applied without it")
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

// drain applies the commands that wait, and reports whether there were any.
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

// apply reports whether the command found its entity alive.
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

// end empties c.
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
