package pagefile

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/disk"
)

// Verify reads the whole file and returns nil if the file is valid. Otherwise it returns every
// damaged range as a [*disk.DamageError], joined, in ascending order. Adjacent damaged blocks form
// one range. If all checksums match, Verify also checks the tree of pages and returns its first
// error.
//
// Verify uses one goroutine with 256 KiB per processor. It returns the error of ctx when ctx ends.
func (f *File) Verify(ctx context.Context) error {
	// Verify the checksums. Without places, readBlocks visits no pages.
	if err := f.readBlocks(ctx, nil, nil); err != nil {
		return err
	}
	b, err := f.findBucket(f.readAt)
	if err != nil {
		return err
	}
	return f.walk(b, f.raw, func(Key, int64, int64) error { return ctx.Err() })
}

// Check opens a file and verifies it. In contrast to [Open] followed by [File.Verify], it reports
// all damaged blocks even if one of them hides the root of the tree. Info is zero if the trailer is
// damaged.
func Check(ctx context.Context, dir disk.FS, name string) (Info, error) {
	f, err := open(dir, name)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	return f.Info(), f.Verify(ctx)
}

// join merges adjacent ranges with the same cause in a sorted list, and joins the errors.
func join(damaged []*disk.DamageError) error {
	var errs []error
	var last *disk.DamageError
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
