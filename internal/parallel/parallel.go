// Package parallel calls a function for a range of numbers in parallel.
package parallel

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls f for 0 to n-1 in parallel until a call returns an error or ctx ends. If several calls
// fail, it returns the error of the lowest number. So the result is the same on every machine.
func Do(ctx context.Context, n int, f func(i int) error) error {
	var (
		group sync.WaitGroup
		next  atomic.Int64
		mu    sync.Mutex
		// The lowest number whose call failed, or n.
		end atomic.Int64
		// The error of the lowest number that failed.
		first error
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
