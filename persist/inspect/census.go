package inspect

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A census tells who is alive in a state. It belongs to the digest of the state, so that whoever asks
// for the same one again need not count again.
type census struct {
	digest      ecs.Digest
	generations []uint32 // By index, of who is alive; 0: nobody.
}

// of reports whether c is that of s.
func (c *census) of(s *State) bool {
	return c != nil && c.digest == s.digest && s.digest != 0 && len(c.generations) == s.indices
}

// Count reads who is alive, if that is not known yet: 8 bytes an index, of which 4 are kept, by the
// view for the next time too. Then [State.IsAlive] may be asked.
func (s *State) Count(ctx context.Context) error {
	if s.Whole() || s.census != nil {
		return nil
	}
	if known := s.view.census.Load(); known.of(s) {
		s.census = known
		return nil
	}
	// Goroutines fill it page by page of the registry, which is in no order of indices: that
	// two rows of a damaged one name the same index is seen by whoever comes second.
	generations, registry := make([]uint32, s.indices), s.reader.Manifest.Registry()
	registry.Rows = min(registry.Rows, s.outline.Alive)                                                 // The first are alive.
	buffers := sync.Pool{New: func() any { return new([8*format.PageRows + format.MaxReference]byte) }} // No page is kept.
	err := parallel.Do(ctx, registry.Pages(), func(page int) error {
		buf := buffers.Get().(*[8*format.PageRows + format.MaxReference]byte)
		defer buffers.Put(buf)
		content, err := s.reader.PageInto(buf[:], s.reader.Manifest.Registry(), page)
		if err != nil {
			return err
		}
		lo, hi := registry.Span(page)
		for i := range hi - lo {
			e := format.EntityAt(content, i)
			if int64(e.Index()) >= int64(len(generations)) || e.Generation() == 0 || !atomic.CompareAndSwapUint32(&generations[e.Index()], 0, e.Generation()) {
				return fmt.Errorf("row %d holds %v of %d", lo+i, e, s.indices)
			}
		}
		return nil
	})
	if err != nil {
		return s.fault(fmt.Errorf("entities: %w", err))
	}
	s.census = &census{s.digest, generations}
	s.view.census.Store(s.census)
	return nil
}

// IsAlive reports whether e is alive, see [State.Count].
func (s *State) IsAlive(e ecs.Entity) bool {
	if s.Whole() {
		return s.outline.IsAlive(e)
	}
	if s.census == nil || int64(e.Index()) >= int64(len(s.census.generations)) {
		return false
	}
	return s.census.generations[e.Index()] == e.Generation() && e.Generation() > 0
}

// living appends the entities alive with indices [lo, hi).
func (s *State) living(dst []ecs.Entity, lo, hi int) []ecs.Entity {
	im := s.outline
	for i := lo; i < hi; i++ {
		if !s.Whole() {
			if g := s.census.generations[i]; g > 0 {
				dst = append(dst, ecs.NewEntity(uint32(i), g))
			}
		} else if row := int(im.Index[i]); row < im.Alive {
			dst = append(dst, im.Registry[row])
		}
	}
	return dst
}

// Skip returns where a [State.Sweep] may begin that leaves out the first n entities alive, by index, and
// how many of them it passes by then: all but some of one span.
func (s *State) Skip(ctx context.Context, n int) (from, skipped int, err error) {
	if err := s.Count(ctx); err != nil {
		return 0, 0, err
	}
	for from < s.indices {
		next := min(from+format.PageRows, s.indices)
		living := s.countLiving(from, next)
		if skipped+living > n {
			break
		}
		from, skipped = next, skipped+living
	}
	return from, skipped, nil
}

// countLiving counts the entities alive with indices [lo, hi).
func (s *State) countLiving(lo, hi int) (n int) {
	im := s.outline
	for i := lo; i < hi; i++ {
		if !s.Whole() && s.census.generations[i] > 0 || s.Whole() && int(im.Index[i]) < im.Alive {
			n++
		}
	}
	return n
}
