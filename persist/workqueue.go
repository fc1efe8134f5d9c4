package persist

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/ecs"
)

var errNoReturn = errors.New("persist: the function given to Do did not return: it panicked, or ended the goroutine of the world")

// Other goroutines must not touch a world. They queue functions here, and the goroutine of the
// world calls them in Commit or Poll. Each function is called at most once: only the goroutine that
// removes it from the queue calls it or cancels it.

// workQueue is the queue of functions that wait for Commit or Poll, oldest first. The lock is not
// held during a call, so the function may queue another one.
type workQueue struct {
	mu      sync.Mutex
	waiting []*workItem
	closed  bool
}

type workItem struct {
	f func(*ecs.World)
	// Buffered for the result, so that the goroutine of the world never waits for the caller.
	done chan error
}

// do queues f and waits until it was called.
func (s *workQueue) do(ctx context.Context, f func(*ecs.World)) error {
	d := &workItem{f, make(chan error, 1)}
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
		return <-d.done // f is being called.
	}
}

func (s *workQueue) add(d *workItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.waiting = append(s.waiting, d)
	return nil
}

// remove removes d from the queue and reports whether d was still in it.
func (s *workQueue) remove(d *workItem) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, d)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// next removes and returns the oldest function; nil means that the queue is empty.
func (s *workQueue) next() (d *workItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		d = s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
	}
	return d
}

// count returns the length of the queue.
func (s *workQueue) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// run calls the functions that are in the queue now. These functions may add further functions to
// the queue, which wait for the next tick. So the present tick ends.
func (s *workQueue) run(w *ecs.World) {
	for range s.count() {
		if d := s.next(); d != nil {
			d.run(w)
		}
	}
}

func (d *workItem) run(w *ecs.World) {
	err := errNoReturn // Do returns this error if f panics or calls runtime.Goexit.
	defer func() { d.done <- err }()
	d.f(w)
	err = nil
}

// close completes all queued and future functions with ErrClosed.
func (s *workQueue) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, d := range s.waiting {
		d.done <- ErrClosed
	}
	s.waiting = nil
}
