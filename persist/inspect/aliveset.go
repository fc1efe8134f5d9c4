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

// An aliveSet is the set of live entities of a state. It is cached under the digest of the state,
// so a second query for the same state does not read the registry again. Only states in snapshot
// files need an aliveSet: a registry in memory has an index.
//
// A generation has 4 bytes, but most generations fit into one byte. So an aliveSet stores the
// lowest byte of each generation in the array low. The array high holds the other bytes, at 4 bytes
// per index, in pages of 4096 indices. It has a page only where a generation needs more than one
// byte. The array alive has a bit per index.
type aliveSet struct {
	digest ecs.Digest
	alive  []uint32
	low    []uint8
	high   []atomic.Pointer[[format.PageRows]uint32]
}

// newAliveSet returns an empty set with room for the given number of indices.
func newAliveSet(digest ecs.Digest, indices int) *aliveSet {
	return &aliveSet{
		digest, make([]uint32, (indices+31)/32), make([]uint8, indices),
		make([]atomic.Pointer[[format.PageRows]uint32], (indices+format.PageRows-1)/format.PageRows),
	}
}

// add adds the live entity e. It returns false if the index of e is out of range or already in
// the set. Several goroutines may call add.
func (c *aliveSet) add(e ecs.Entity) bool {
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

// generation returns the generation of the live entity with index i, or 0 if no live entity has
// index i. i must be in range.
func (c *aliveSet) generation(i int) uint32 {
	g := uint32(c.low[i])
	if high := c.high[i/format.PageRows].Load(); high != nil {
		g |= high[i%format.PageRows] << 8
	}
	return g
}

// of reports whether c is the set of live entities of s.
func (c *aliveSet) of(s *State) bool {
	return c != nil && c.digest == s.digest && s.digest != 0 && len(c.low) == s.indices
}

// Count loads the set of live entities, which [State.IsAlive] needs. It does nothing if the set
// is already loaded. It reads 8 bytes per index. The view caches the set, a little more than 1
// byte per index, for the next call.
func (s *State) Count(ctx context.Context) error {
	if s.registryLoaded || s.aliveSet != nil {
		return nil
	}
	if known := s.view.aliveSet.Load(); known.of(s) {
		s.aliveSet = known
		return nil
	}
	if err := s.reader.CheckRegistry(); err != nil {
		return s.fault(fmt.Errorf("entities: %w", err))
	}
	// Goroutines read the registry page by page. Its rows are not ordered by index. If two rows of
	// a damaged registry have the same index, the second call of add() fails.
	counted, registry := newAliveSet(s.digest, s.indices), s.reader.Manifest.Registry()
	// The first rows of the registry are the live entities.
	registry.Rows = min(registry.Rows, s.outline.Alive)
	// Goroutines share the page buffers, since a page is not needed after its entities are
	// counted.
	buffers := sync.Pool{New: func() any { return new([8*format.PageRows + format.MaxReference]byte) }}
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
				return fmt.Errorf("row %d has entity %v, whose index has another row or is not below %d", lo+i, e, s.indices)
			}
		}
		return nil
	})
	if err != nil {
		return s.fault(fmt.Errorf("entities: %w", err))
	}
	s.aliveSet = counted
	s.view.aliveSet.Store(counted)
	return nil
}

// IsAlive reports whether e is alive. Call [State.Count] first, or IsAlive returns false for
// every entity. Several goroutines may call it.
func (s *State) IsAlive(e ecs.Entity) bool {
	if s.registryLoaded {
		return s.outline.IsAlive(e)
	}
	if s.aliveSet == nil || int64(e.Index()) >= int64(len(s.aliveSet.low)) {
		return false
	}
	return s.aliveSet.generation(int(e.Index())) == e.Generation() && e.Generation() > 0
}

// appendAlive appends the live entities with indices [lo, hi), in the order of their indices.
func (s *State) appendAlive(dst []ecs.Entity, lo, hi int) []ecs.Entity {
	im := s.outline
	for i := lo; i < hi; i++ {
		if !s.registryLoaded {
			if g := s.aliveSet.generation(i); g > 0 {
				dst = append(dst, ecs.NewEntity(uint32(i), g))
			}
		} else if row := int(im.Index[i]); row < im.Alive {
			dst = append(dst, im.Registry[row])
		}
	}
	return dst
}

// Skip returns the index at which a [State.Sweep] must begin to skip the first n live entities. A
// sweep begins at the start of a [Span], so it may skip fewer than n. The second result is the
// number that it skips.
func (s *State) Skip(ctx context.Context, n int) (from, skipped int, err error) {
	if err := s.Count(ctx); err != nil {
		return 0, 0, err
	}
	// Each span has PageRows indices.
	for from < s.indices {
		next := min(from+format.PageRows, s.indices)
		living := s.countAlive(from, next)
		if skipped+living > n {
			break
		}
		from, skipped = next, skipped+living
	}
	return from, skipped, nil
}

// countAlive counts the live entities with indices [lo, hi). lo must be the first index of a
// page.
func (s *State) countAlive(lo, hi int) (n int) {
	if !s.registryLoaded {
		// Bits after the last index of the state are zero.
		for _, word := range s.aliveSet.alive[lo/32 : (hi+31)/32] {
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
