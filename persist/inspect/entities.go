package inspect

import (
	"context"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// Peek returns the values of e in the state after record seq, whether e is alive or not. If e is
// [ecs.None] or ecs.Vacant, Peek, [View.Trace] and [View.TraceBack] read the resources of the
// world. Peek returns no error if e never existed. Then field Row of the state is -1, or Holder has
// a lower generation.
//
// Unlike [View.At], Peek does not load the state. It reads only the pages of the nearest snapshot
// that are needed to find e. That takes a few hundred KiB of memory for a world of any size. In
// the ticks after the snapshot Peek follows only e. It verifies the checksums of the pages that
// it reads, and ignores damage in other pages.
//
// The registry has no index by entity. Peek first looks at the row that e has if no entity was
// ever destroyed, and searches outward from there. At worst it reads the whole registry, 8 bytes
// per entity.
func (v *View) Peek(ctx context.Context, e ecs.Entity, seq uint64) (*EntityState, error) {
	var f *follower
	err := v.cat.RetryOnChange(ctx, func() (err error) {
		if f, err = nearestFollower(ctx, v, e, seq); err == nil {
			err = f.follow(ctx, seq)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.state()
}

// Trace calls f with the events of e, in order, until f returns an error. The events are those
// between the states after two records. The first record (from) must be an ancestor of the second
// record (to). If from is 0, the trace begins at the oldest state. The values of e in the first
// state come first, as [TraceAlive] and [TracePresent].
//
// Trace reads the ticks between the two records, and follows only e. Damaged ticks have no events.
// After damage, Trace continues at the next snapshot and begins again with the values of e. At the
// end, it returns the error of the first damage, which wraps [persist.ErrCorrupt]. If a program
// with other types continued the store, the trace continues with the new types.
//
// If from is 0 and e never existed, the error wraps [persist.ErrNotFound]. If from is not 0, Trace
// succeeds even if e has no events.
func (v *View) Trace(ctx context.Context, e ecs.Entity, from, to uint64, f func(*TraceEvent) error) error {
	t, err := newTrace(ctx, v, e, from, to)
	if err != nil {
		return err
	}
	events := 0
	t.found = func(e *TraceEvent) error {
		events++
		return f(e)
	}
	if err = t.parts(ctx, to); err == nil && events == 0 && from == 0 {
		err = t.checkExisted()
	}
	return err
}

// TraceBack calls f with the events of e up to the state after record seq, one [Stretch] at a time,
// newest first. It ends when f returns false or the oldest state is reached. Each Stretch begins at
// a snapshot. Its events are in the order of time. TraceBack reads the ticks of an older Stretch
// only if f returns true.
//
// The field Last of the first Stretch is the result of [View.Peek], which shows whether e ever
// existed. If e never existed, the stretches have no events, and TraceBack returns no error.
func (v *View) TraceBack(ctx context.Context, e ecs.Entity, seq uint64, f func(*Stretch) (more bool)) error {
	for older := uint32(math.MaxUint32); ; {
		var s *Stretch
		var base catalog.SnapshotInfo
		err := v.cat.RetryOnChange(ctx, func() (err error) {
			s, base, err = stretch(ctx, v, e, seq, older)
			return err
		})
		if err != nil || s == nil || !f(s) {
			return err
		}
		seq, older = base.ID.Seq, base.Number
	}
}

// Referrers finds the values that refer to e in the state after record seq, by component and row.
// It returns at most limit values, in this order, and the number of all such values. Keys of maps
// count too.
//
// Referrers reads page by page the components that can contain entities, and the ticks after the
// nearest snapshot. It loads a component completely if the component does not rewind, or if these
// ticks change it. If there are such ticks, Referrers also loads the registry: 12 bytes per index.
func (v *View) Referrers(ctx context.Context, e ecs.Entity, seq uint64, limit int) (first []Referrer, total int, err error) {
	var list *referrers
	wanted := func(c *image.Component) bool { return holdsEntities(c.Layout) }
	err = v.readAt(ctx, seq, wanted, func(s *State) error {
		list = &referrers{state: s, entity: e, limit: limit}
		for _, c := range s.outline.Components {
			if wanted(c) {
				if err := list.search(ctx, c); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return list.first, list.total, nil
}

// Tree returns the entities above and below e, and e itself, in the state after record seq. If e is
// 0, it returns all roots with the entities below them.
//
// The relation is a field of a component, listed in [EntityComponent.EntityFields]. An entity with
// the component is a source, and the entity in the field is its target. The target is above the
// source. A root is a source or target that refers to no live entity. Each node comes before its
// sources, which are ordered by index. If the field does not exist, the error wraps
// [persist.ErrNotFound].
//
// The path up from e leads to a root or into a cycle. The path ends before it would visit an entity
// twice. If e is 0, Tree returns the entities in cycles or below cycles as rootless.
//
// Tree reads the rows of the component and the registry, and the ticks after the nearest snapshot.
// Memory grows with the rows of the component and with the indices. Tree does not recurse, however
// deep the tree is.
func (v *View) Tree(ctx context.Context, e ecs.Entity, component, field string, seq uint64) (nodes []TreeNode, rootless []ecs.Entity, err error) {
	var r *relation
	wanted := func(c *image.Component) bool { return c.Name == component }
	err = v.readAt(ctx, seq, wanted, func(s *State) (err error) {
		r, err = relationFrom(ctx, s, component, field)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if e == 0 {
		nodes, rootless = r.all()
		return nodes, rootless, nil
	}
	return r.of(e), nil, nil
}

// Living returns which of the given entities are alive after record seq. It reads the registry
// page by page, 8 bytes per live entity, and the ticks after the nearest snapshot. If there are
// such ticks, it loads the registry: 12 bytes per index. It reads no values of components, so
// damaged values do not matter.
func (v *View) Living(ctx context.Context, entities []ecs.Entity, seq uint64) (alive map[ecs.Entity]bool, err error) {
	err = v.readAt(ctx, seq, noComponent, func(s *State) error {
		if err := s.Count(ctx); err != nil {
			return err
		}
		alive = make(map[ecs.Entity]bool, len(entities))
		for _, e := range entities {
			alive[e] = s.IsAlive(e)
		}
		return nil
	})
	return alive, err
}
