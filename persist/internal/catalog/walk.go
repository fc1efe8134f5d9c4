package catalog

import (
	"context"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Walk advances a state tick by tick. A program may have converted the store between two ticks.
// The step for the second tick then loads the converted state first, and applies the tick to it.
//
// The image is changed in place, so a step costs only as much as its tick wrote. Callers that need
// an older state must clone it.
type Walk struct {
	Catalog *Catalog
	// Before, if not nil, is called before a tick is applied to im. Usually was and im are the
	// same. If the store was converted before the tick, was is the state before the conversion, and
	// im is the converted state.
	Before func(ctx context.Context, was, im *image.Image, r *Record) error
	// After, if not nil, is called with the state after a tick.
	After func(ctx context.Context, im *image.Image, r *Record) error
}

// Step returns the state after r. r must continue im. After an error im is unusable.
func (w *Walk) Step(ctx context.Context, im *image.Image, r *Record) (*image.Image, error) {
	// next is im, or its converted state.
	next, err := w.Catalog.ConvertedImage(ctx, im, r.Entry)
	if err != nil {
		return nil, err
	}
	if err := w.Catalog.Describe(r, next.ID, next.Stored); err != nil {
		return nil, err
	}
	if w.Before != nil {
		if err := w.Before(ctx, im, next, r); err != nil {
			return nil, err
		}
	}
	if err := w.Catalog.Advance(next, r); err != nil {
		return nil, err
	}
	if w.After != nil {
		if err := w.After(ctx, next, r); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// Along applies the records of path to im. It returns the last state and the number of applied
// records.
func (w *Walk) Along(ctx context.Context, im *image.Image, path []journal.Entry) (_ *image.Image, n int, err error) {
	err = w.Catalog.Records(ctx, path, func(ctx context.Context, r *Record) error {
		if im, err = w.Step(ctx, im, r); err == nil {
			n++
		}
		return err
	})
	if err != nil {
		return nil, n, err
	}
	return im, n, nil
}

// Between walks from the state after record from to the state after record to.
func (w *Walk) Between(ctx context.Context, from, to uint64) error {
	path, err := w.Catalog.Path(from, to)
	if err != nil || len(path) == 0 {
		return err
	}
	im, err := w.Catalog.Base(ctx, from)
	if err != nil {
		return err
	}
	_, _, err = w.Along(ctx, im, path)
	return err
}
