package persist

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/ecs"
)

var errNoReturn = errors.New("persist: the function given to Do did not return: it panicked, or ended the goroutine of the world")

// Other goroutines must not touch a world. What they want done they leave here, and the goroutine
// of the world does it between two ticks, where the state is committed. An errand is called once or
// not at all: whoever takes it out of the list, to call it or to give it up, is the only one.

// errands are the functions that wait for the end of the tick, oldest first. The lock is not held
// while one is called, so that it may leave another.
type errands struct {
	mu      sync.Mutex
	waiting []*errand
	closed  bool
}

type errand struct {
	f    func(*ecs.World)
	done chan error // Has room for what became of it: the goroutine of the world never waits for who asked.
}

// do makes f wait, and waits until it was called.
func (s *errands) do(ctx context.Context, f func(*ecs.World)) error {
	d := &errand{f, make(chan error, 1)}
	if err := s.add(d); err != nil {
		return err
	}
	select {
	case err := <-d.done:
		return err
	case <-ctx.Done():
		if s.remove(d) {
			return ctx.Err()
		}
		return <-d.done // It is being called.
	}
}

func (s *errands) add(d *errand) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.waiting = append(s.waiting, d)
	return nil
}

// remove takes d away, and reports whether it still waited.
func (s *errands) remove(d *errand) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, d)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// next takes away the one that waited longest; nil: none does.
func (s *errands) next() (d *errand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		d = s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	return d
}

// count returns how many wait.
func (s *errands) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// run calls those that wait now, and not those that they leave: a tick shall end.
func (s *errands) run(w *ecs.World) {
	for range s.count() {
		if d := s.next(); d != nil {
			d.run(w)
		}
	}
}

func (d *errand) run(w *ecs.World) {
	err := errNoReturn // It stays so if f panics, or calls runtime.Goexit.
	defer func() { d.done <- err }()
	d.f(w)
	err = nil
}

// close tells all that wait, and will, that the store is closed.
func (s *errands) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.waiting {
		d.done <- ErrClosed
	}
	s.waiting = nil
}
