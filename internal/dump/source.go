package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file opens the store or save on the command line as a source. A command then resolves a
// point in time, such as --at, to a record. It reads the state after this record in one of three
// ways:
//
//   - At loads the whole state into memory.
//   - readState reads parts of a snapshot, page by page.
//   - Peek reads one entity, from a snapshot and the ticks after it.

// A source is the store or save that a command reads.
type source struct {
	*call
	*inspect.View
	path string
}

type stateDoc = describe.StateDoc

// A state is a world at a point in time.
type state struct {
	*inspect.Image
	seq uint64
}

func (s state) doc() stateDoc { return describe.State(s.Tick, s.seq) }

// String returns the point in time of s.
func (s state) String() string { return s.doc().Place() }

// state returns the world at a point.
func (s *source) state(at string) (state, error) {
	seq, err := s.Resolve(at)
	if err != nil {
		return state{}, err
	}
	im, err := s.At(s.ctx, seq)
	return state{im, seq}, err
}

// readState calls do() with the state at a point. It reads only the pages that do() needs. If a
// page cannot be read, readState calls do() again, with the whole state in memory. So do() must
// read everything before it prints.
func (s *source) readState(at string, do func(st *inspect.State) error) error {
	seq, err := s.Resolve(at)
	if err != nil {
		return err
	}
	return s.Read(s.ctx, seq, do)
}

// outline returns st without its rows: tick, counts, layouts and numbers of rows.
func outline(st *inspect.State) state { return state{st.Outline(), st.Seq} }

// withSource returns an action that calls f with the store or save of the first argument.
func withSource(f func(s *source) error) action {
	return func(c *call) error { return c.read(c.args[0], f) }
}

// withState declares --at, and returns an action that calls do() with the state of that point.
func (f flags) withState(do func(s *source, st *inspect.State) error) action {
	var at string
	f.point(&at)
	return withSource(func(s *source) error {
		return s.readState(at, func(st *inspect.State) error { return do(s, st) })
	})
}

// read calls f with the store or save at path. Damage may be found before f runs, when the store is
// opened. Each row has a result of f and the error that read returns:
//
//	success             the damage of opening, or nil
//	an object missing   the failure of f, and the damage, which may hide the object
//	another failure     the failure of f
//
// If f fails because of damage, read adds the newest readable state to the message.
func (c *call) read(path string, f func(*source) error) error {
	v, back, err := c.view(c.ctx, path)
	if err != nil {
		return classifyOpen(path, err)
	}
	defer back()
	s := &source{c, v, path}
	// Get the damage before f finds more, because f returns the damage that it finds.
	damage := s.firstDamage()
	if err := f(s); err != nil {
		return notFoundIn(damage, s.withNewest(classify(path, err)))
	}
	// Return a plain nil: a nil *failure in the interface error is not nil.
	if damage != nil {
		return damage
	}
	return nil
}

// notFoundIn returns f. If f has the status exitNotFound or exitProblem, it adds the damage to f.
// The damaged part may contain what was not found.
func notFoundIn(damage, f *failure) *failure {
	if damage == nil || f.code != exitNotFound && f.code != exitProblem {
		return f
	}
	return &failure{code: damage.code, err: errors.Join(damage, f), next: damage.next}
}

// firstDamage returns the first damage that was found while opening s, with the number of other
// problems. It returns nil without damage.
func (s *source) firstDamage() *failure {
	found := s.Damage()
	if len(found) == 0 {
		return nil
	}
	f := classify(s.path, found[0])
	if len(found) > 1 {
		f.text += fmt.Sprintf(" (and %d more)", len(found)-1)
	}
	return s.withNewest(f)
}

// withNewest returns f. If f is damage that hides the newest state, withNewest adds to the message
// which state is the newest readable one.
func (s *source) withNewest(f *failure) *failure {
	_, err := s.Newest()
	if err == nil || f.code != exitCorrupt {
		return f
	}
	line := fmt.Sprintf("%s: %s", s.path, describe.Unprefixed(err))
	if strings.Contains(f.Error(), line) {
		return f
	}
	longer := *f
	longer.text = f.Error() + "\n" + line
	return &longer
}

// latest returns the record of the newest state, which @latest names.
func (s *source) latest() uint64 {
	// If the newest state is lost, Newest also returns an error. The method read reports this
	// damage.
	seq, _ := s.Newest()
	return seq
}

// rewoundFrom returns the oldest record for which the journal shows whether it was rewound. The
// newest state descends from some records. These were not rewound, and all other records were. To
// find them, rewoundFrom follows the parents, from the head back to the oldest known record.
//
// For example, the path back from head 9 leads over the records 8, 5 and 4. The parent of record 4
// is lost, so rewoundFrom returns 4. Records 6 and 7 were rewound, because they are after record 4
// and outside of the path. For records 1, 2 and 3 this is unknown.
//
// The result is 0 if the status of all records is known. It is the highest number if the status of
// all records is unknown.
func (s *source) rewoundFrom() uint64 {
	log := s.Log()
	head := log.Head
	// The journal has lost the record of the newest state, but a snapshot has the state.
	if newest := s.latest(); newest > log.Last {
		head = newest
	}
	if head == 0 {
		return 0
	}
	last := journal.Entry{ID: journal.ID{Seq: math.MaxUint64}, Parent: head}
	for e := range log.Ancestors(head) {
		last = e
	}
	if last.Parent == 0 {
		return 0
	}
	return last.ID.Seq
}

// component returns the component or resource with this name.
func (s *source) component(im state, name string) (*inspect.Component, error) {
	if c := im.Find(name); c != nil {
		return c, nil
	}
	return nil, s.noComponent(name, describe.Listed(im.Components, func(c *inspect.Component) string { return c.Name }))
}

// noComponent returns the error for an unknown name. It suggests the most similar known name.
func (s *source) noComponent(name string, known []string) error {
	return s.missing(describe.Command("schema", s.path), "no component %q%s", name, near.Hint(name, known))
}

// missing returns the not-found error for an object that s lacks.
func (s *source) missing(next, format string, args ...any) error {
	return fail(exitNotFound, next, "%s: "+format, append([]any{s.path}, args...)...)
}

// noJournal returns the error of a command that needs ticks but was called with a save.
func (s *source) noJournal(next, why string) error {
	return s.missing(next, "a save has no journal: %s", why)
}

// components returns the components with these names. If the argument resources is true, it accepts
// the names of resources too.
func (s *source) components(im state, names []string, resources bool) ([]*inspect.Component, error) {
	return describe.TryListed(names, func(name string) (*inspect.Component, error) {
		c, err := s.component(im, name)
		if err == nil && c.Resource && !resources {
			err = s.isResource(name)
		}
		return c, err
	})
}

// requireComponents returns an error if a named component or resource does not exist at a point. An
// empty point means the newest state.
func (s *source) requireComponents(at string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return s.readState(at, func(st *inspect.State) error {
		_, err := s.components(outline(st), names, true)
		return err
	})
}

// isResource returns the error of a command that was called with a resource instead of a component.
func (s *source) isResource(name string) error {
	return s.missing(describe.Command("show", s.path, name), "%s is a resource, which no entity has", name)
}

// byIndex returns the living entities in index order.
func byIndex(im state) []ecs.Entity {
	entities := slices.Clone(im.Entities())
	slices.SortFunc(entities, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	return entities
}
