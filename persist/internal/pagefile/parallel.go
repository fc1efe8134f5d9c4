package pagefile

import (
	"sync"
	"sync/atomic"
)

// parallel calls functions for the numbers 0 to n-1 from several goroutines. The function start
// makes a function for each goroutine. parallel returns the first error. After an error, it starts
// no further calls.
func parallel(n int64, workers int, start func() func(int64) error) error {
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		failed atomic.Bool
		once   sync.Once
		first  error
	)
	for range min(int64(workers), n) {
		wg.Go(func() {
			work := start()
			for !failed.Load() {
				i := next.Add(1) - 1
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					once.Do(func() { first = err })
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return first
}
