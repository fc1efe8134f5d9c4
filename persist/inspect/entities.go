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
// world.
//
// Peek returns no error if e never existed. The result then has Row -1 if the index was never used.
// Otherwise its Holder is another entity, with a lower generation.
//
// Unlike [View.At], Peek does not load the state. From the nearest snapshot, it reads only the
// pages that it needs to find e. From the ticks after the snapshot, it uses only the changes of e.
// This takes a few hundred KiB of memory for a world of any size. Peek verifies the checksums of
// the pages that it reads, and ignores damage in other pages.
//
// The registry of a snapshot is not sorted by entity, so Peek searches for the row of e. It begins
// at the row that e has if no entity was ever destroyed, and continues outward from there. In the
// worst case it reads the whole registry, 8 bytes per entity.
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

// TraceBack passes the history of e up to record seq to f, in parts that begin at snapshots. The
// newest [Stretch] comes first. Within a Stretch, the oldest event comes first. TraceBack ends at
// the oldest state or when f returns false. It reads the ticks of a Stretch just before it calls f.
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

// Referrers finds the values that refer to e in the state after record seq. A value also refers to
// e if e is in the key of a map. The result has the first limit values, ordered by component and
// row, and the number of all such values.
//
// Referrers reads, page by page, the components that can contain entities. It then applies the
// ticks after the nearest snapshot. It loads a whole component in two cases: the component does not
// rewind, or these ticks change it. If there are such ticks, Referrers also loads the registry,
// which takes 12 bytes per index.
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
// The arguments component and field name a field that refers to an entity, such as ChildOf.Parent:
// see [EntityComponent.EntityFields]. An entity with the component is a source. The entity in the
// field is its target, and is above the source. A root is a source or a target that refers to no
// live entity, so no entity is above it. If the field does not exist, the error wraps
// [persist.ErrNotFound].
//
// Each node comes before its sources, which are ordered by index. References may form cycles. The
// path up from e ends at a root, or before it would visit an entity twice. If e is 0, the result
// rootless has the entities in cycles or below cycles.
//
// Tree reads the rows of the component and the registry, and the ticks after the nearest snapshot.
// Memory grows with the rows of the component and with the indices. Tree does not recurse, so a
// tree may have any depth.
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

// Living returns which of the given entities are alive after record seq. It reads the registry page
// by page, 8 bytes per live entity, and the ticks after the nearest snapshot. If there are such
// ticks, it loads the registry, which takes 12 bytes per index. It reads no values of components,
// so it ignores damaged values.
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
