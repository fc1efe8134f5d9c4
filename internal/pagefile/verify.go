package pagefile

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/disk"
)

// Verify reads the whole file and returns nil if nothing is wrong with it.
// Otherwise it returns every damaged range as a [*DamageError], joined, in
// ascending order; blocks side by side make one range. Only if all checksums
// fit, the tree of pages is checked, up to the first thing wrong.
//
// It reads with as many goroutines as the program has processors, 64 KiB each,
// and stops with the context's error when ctx ends.
func (f *File) Verify(ctx context.Context) error {
	damaged, err := f.verifyBlocks(ctx)
	if err != nil {
		return err
	}
	if len(damaged) > 0 {
		return join(damaged)
	}
	b, err := f.findBucket(f.readAt)
	if err != nil {
		return err
	}
	return f.walk(b, f.raw, func(Key, int64, int64) error { return ctx.Err() })
}

// Check opens a file and verifies it. Unlike [Open] followed by [File.Verify],
// it names all damaged blocks even if one of them hides where the tree of pages
// begins. Info is zero if the trailer is bad.
func Check(ctx context.Context, dir disk.FS, name string) (Info, error) {
	f, err := open(dir, name)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	return f.Info(), f.Verify(ctx)
}

// verifyBlocks compares the checksum of every block. It returns the damaged
// ranges, or the error of ctx.
func (f *File) verifyBlocks(ctx context.Context) ([]*DamageError, error) {
	var mu sync.Mutex
	var damaged []*DamageError
	err := parallel(int64(len(f.table)), runtime.GOMAXPROCS(0), func() func(int64) error {
		buf := make([]byte, blockSize)
		return func(i int64) error {
			start, size := f.bounds(i)
			var damage *DamageError
			if errors.As(f.readWhole(buf[:size], start), &damage) {
				mu.Lock()
				defer mu.Unlock()
				damaged = append(damaged, damage)
			}
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(damaged, func(a, b *DamageError) int { return cmp.Compare(a.Offset, b.Offset) })
	return damaged, nil
}

// join merges neighbours with the same cause in a sorted list and joins what
// is left.
func join(damaged []*DamageError) error {
	var errs []error
	var last *DamageError
	for _, d := range damaged {
		if last != nil && last.Offset+last.Length == d.Offset && last.Reason == d.Reason && errors.Is(last.Err, d.Err) {
			last.Length += d.Length
			continue
		}
		last = d
		errs = append(errs, d)
	}
	return errors.Join(errs...)
}
