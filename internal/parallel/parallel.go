package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f for 0 to n-1, several at the same time, until one returns an
// error, which it returns, or ctx ends.
func Do(ctx context.Context, n int, f func(i int) error) error {
	var (
		group  sync.WaitGroup
		next   atomic.Int64
		failed atomic.Bool
		once   sync.Once
		first  error
	)
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(i)
			}
			if err != nil {
				once.Do(func() { first = err })
				failed.Store(true)
			}
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return first
}
