package pagefile

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/disk"
)

// Verify reads the whole file and returns nil if nothing is wrong with it.
// Otherwise it returns every damaged range as a [*DamageError], joined, in
// ascending order; blocks side by side make one range. Only if all checksums
// fit, the tree of pages is checked, up to the first thing wrong.
//
// It reads with as many goroutines as the program has processors, 256 KiB each,
// and stops with the context's error when ctx ends.
func (f *File) Verify(ctx context.Context) error {
	if err := f.readBlocks(ctx, nil, nil); err != nil { // No places: blocks are compared only.
		return err
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
