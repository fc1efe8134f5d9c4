// Package parallel calls a function for many numbers at the same time.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f for 0 to n-1, several at the same time, until one returns an
// error or ctx ends. Of several errors it returns that of the lowest number, so that
// what is told does not depend on the machine.
func Do(ctx context.Context, n int, f func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		mu    sync.Mutex
		end   atomic.Int64 // The lowest number that failed, or n. All below it are called.
		first error        // What it failed with.
	)
	end.Store(int64(n))
	work := func() {
		for {
			i := next.Add(1) - 1
			if i >= end.Load() {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = f(int(i))
			}
			if err == nil {
				continue
			}
			mu.Lock()
			if i < end.Load() {
				end.Store(i)
				first = err
			}
			mu.Unlock()
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return first
}
