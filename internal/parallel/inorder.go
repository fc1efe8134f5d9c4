package parallel

import (
	"context"
	"runtime"
	"sync"
)

// Workers returns the maximum number of goroutines of [InOrder].
func Workers() int { return runtime.GOMAXPROCS(0) }

// InOrder calls work() for the numbers 0 to n-1 in parallel. It passes the results to take(), one
// at a time and in the order of the numbers. It returns the error of the lowest number, or the
// error of ctx.
//
// The argument worker identifies the calling goroutine, by a number below [Workers]. At most a few
// results of each worker wait for a call of take().
func InOrder[T any](ctx context.Context, n int, work func(worker, i int) (T, error), take func(T) error) error {
	type made struct {
		v   T
		err error
	}
	type job struct {
		i  int
		to chan<- made
	}
	workers := min(n, Workers())
	ctx, cancel := context.WithCancel(ctx)
	jobs, queue := make(chan job), make(chan chan made, 2*workers)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		defer close(jobs)
		defer close(queue)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			to := make(chan made, 1)
			select {
			case queue <- to:
				jobs <- job{i, to}
			case <-ctx.Done():
			}
		}
	})
	for worker := range workers {
		group.Go(func() {
			for j := range jobs {
				var m made
				if m.err = ctx.Err(); m.err == nil {
					m.v, m.err = work(worker, j.i)
				}
				j.to <- m
			}
		})
	}
	for to := range queue {
		m := <-to
		if m.err != nil {
			return m.err
		}
		if err := take(m.v); err != nil {
			return err
		}
	}
	return ctx.Err()
}
