package inspect

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A census tells who is alive in a state. It belongs to the digest of the state, so that whoever asks
// for the same one again need not count again. What lies in snapshots only is counted; an image knows.
//
// Most generations are small, so they lie in two parts, of which the second is only there for pages of
// indices that have a larger one:
//
//	alive   a bit an index
//	low     a byte an index
//	high    | page | nil | nil | page | …    4 bytes an index, or none
type census struct {
	digest ecs.Digest
	alive  []uint32
	low    []uint8
	high   []atomic.Pointer[[format.PageRows]uint32]
}

// newCensus returns one of so many indices, of which none is alive.
func newCensus(digest ecs.Digest, indices int) *census {
	return &census{
		digest, make([]uint32, (indices+31)/32), make([]uint8, indices),
		make([]atomic.Pointer[[format.PageRows]uint32], (indices+format.PageRows-1)/format.PageRows),
	}
}

// add notes that e is alive, and reports whether its index can be: it is one of them, and nobody has
// it. Several goroutines may add.
func (c *census) add(e ecs.Entity) bool {
	i := int64(e.Index())
	if i >= int64(len(c.low)) || e.Generation() == 0 || atomic.OrUint32(&c.alive[i/32], 1<<(i%32))&(1<<(i%32)) != 0 {
		return false
	}
	c.low[i] = uint8(e.Generation())
	if high := e.Generation() >> 8; high > 0 {
		page := &c.high[i/format.PageRows]
		if page.Load() == nil {
			page.CompareAndSwap(nil, new([format.PageRows]uint32))
		}
		page.Load()[i%format.PageRows] = high
	}
	return true
}

// generation returns that of who has index i, which is one of them, or 0.
func (c *census) generation(i int) uint32 {
	g := uint32(c.low[i])
	if high := c.high[i/format.PageRows].Load(); high != nil {
		g |= high[i%format.PageRows] << 8
	}
	return g
}

// of reports whether c is that of s.
func (c *census) of(s *State) bool {
	return c != nil && c.digest == s.digest && s.digest != 0 && len(c.low) == s.indices
}

// Count reads who is alive, if that is not known yet: 8 bytes an index, of which little more than 1 is kept, by the
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
	counted, registry := newCensus(s.digest, s.indices), s.reader.Manifest.Registry()
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
			if e := format.EntityAt(content, i); !counted.add(e) {
				return fmt.Errorf("row %d holds %v of %d", lo+i, e, s.indices)
			}
		}
		return nil
	})
	if err != nil {
		return s.fault(fmt.Errorf("entities: %w", err))
	}
	s.census = counted
	s.view.census.Store(counted)
	return nil
}

// IsAlive reports whether e is alive, see [State.Count]: without it, nobody is. Several goroutines may
// ask.
func (s *State) IsAlive(e ecs.Entity) bool {
	if s.Whole() {
		return s.outline.IsAlive(e)
	}
	if s.census == nil || int64(e.Index()) >= int64(len(s.census.low)) {
		return false
	}
	return s.census.generation(int(e.Index())) == e.Generation() && e.Generation() > 0
}

// living appends the entities alive with indices [lo, hi), in their order.
func (s *State) living(dst []ecs.Entity, lo, hi int) []ecs.Entity {
	im := s.outline
	for i := lo; i < hi; i++ {
		if !s.Whole() {
			if g := s.census.generation(i); g > 0 {
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
	for from < s.indices { // Span by span, as a sweep goes: it begins where one does.
		next := min(from+format.PageRows, s.indices)
		living := s.countLiving(from, next)
		if skipped+living > n {
			break
		}
		from, skipped = next, skipped+living
	}
	return from, skipped, nil
}

// countLiving counts the entities alive with indices [lo, hi), without a list of them; lo is that of a
// page.
func (s *State) countLiving(lo, hi int) (n int) {
	if !s.Whole() {
		for _, word := range s.census.alive[lo/32 : (hi+31)/32] { // Behind the last index no bit is set.
			n += bits.OnesCount32(word)
		}
		return n
	}
	for _, row := range s.outline.Index[lo:hi] {
		if int(row) < s.outline.Alive {
			n++
		}
	}
	return n
}
