package inspect

import (
	"context"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Peek returns the values of e in the state after record seq, whether e is alive or not.
// [ecs.Vacant] stands for the world and its resources, also in [View.Trace] and [View.TraceBack].
//
// Unlike [View.At], Peek does not load the state. It reads the pages of the nearest snapshot that
// lead to e. That takes a few hundred KiB of memory for a world of any size. In the ticks after
// the snapshot it follows only e. Peek compares the checksums of what it reads, and ignores
// damage in other pages.
//
// The registry has no index by entity. Peek first looks at the row that e has if no entity was
// ever destroyed, and searches outward from there. At worst it reads the whole registry, 8 bytes
// per entity.
func (v *View) Peek(ctx context.Context, e ecs.Entity, seq uint64) (*EntityState, error) {
	var f *follower
	err := v.cat.RetryOnChange(ctx, func() (err error) {
		if f, err = nearestFollower(ctx, v.cat, e, seq); err == nil {
			err = f.follow(ctx, seq)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.state()
}

// Trace calls f with the events of e between the states after the records from and to, in order,
// until f returns an error. from must be an ancestor of to; 0 means the oldest state on the path
// to it. The values of e in the first state come first, as [TraceAlive] and [TracePresent].
//
// Trace reads the ticks between the two records, and follows only e. It has no events for ticks
// that damage hides. After damage it continues with the next snapshot, as with a first state. It
// then returns the first such error, which wraps [persist.ErrCorrupt]. Where a program with other
// types opened the store, the trace continues with the new types.
func (v *View) Trace(ctx context.Context, e ecs.Entity, from, to uint64, f func(*TraceEvent) error) error {
	t, err := newTrace(ctx, v.cat, e, from, to)
	if err != nil {
		return err
	}
	t.found = f
	return t.parts(ctx, to)
}

// TraceBack calls f with the events of e up to the state after record seq, one [Stretch] at a
// time, the newest first. It ends when f returns false or the oldest state is reached. Stretches
// end at snapshots. So TraceBack reads the ticks after a snapshot once, and reads older ticks
// only if f returns true. The events in a stretch are in order.
//
// The Last of the first stretch is the result of [View.Peek].
func (v *View) TraceBack(ctx context.Context, e ecs.Entity, seq uint64, f func(*Stretch) (more bool)) error {
	for older := uint32(math.MaxUint32); ; {
		var s *Stretch
		var base SnapshotInfo
		err := v.cat.RetryOnChange(ctx, func() (err error) {
			s, base, err = stretch(ctx, v.cat, e, seq, older)
			return err
		})
		if err != nil || s == nil || !f(s) {
			return err
		}
		seq, older = base.ID.Seq, base.Number
	}
}

// Referrers returns the first limit values that refer to e in the state after record seq, by
// component and row. It also returns the number of all such values. Keys of maps count too.
//
// It reads the components whose layout contains entities, page by page, and the ticks after the
// nearest snapshot. If one of these components does not rewind, it loads the whole state.
func (v *View) Referrers(ctx context.Context, e ecs.Entity, seq uint64, limit int) (first []Referrer, total int, err error) {
	var list *referrers
	err = v.cat.RetryOnChange(ctx, func() (err error) {
		return firstReadable(ctx, v.cat, leadingBases(v.cat, seq), seq, func(s SnapshotInfo) error {
			list = &referrers{entity: e, limit: limit}
			return referrersFrom(ctx, v.cat, s, list, seq)
		})
	})
	if err != nil {
		return nil, 0, err
	}
	return list.first, list.total, nil
}

// Tree returns the entities above and below e, and e itself, in the state after record seq. The
// relation is a field of a component, one of [EntityComponent.EntityFields]. If e is 0, Tree
// returns all roots with the entities below them. A root is referred to, or has the component,
// and refers to no live entity. Each node comes before its sources, which are in the order of
// their indices. If there is no such field, the error wraps [persist.ErrNotFound].
//
// A source has one target, so the path up from e leads to a root or into a cycle. In a cycle, the
// first node refers to a live entity that comes later in nodes, or to e. The path down to e ends
// there. The tree below a root has no cycle. Entities in a cycle or below one are rootless, and
// are returned if e is 0.
//
// Tree reads the rows of the component and the registry page by page, and the ticks after the
// nearest snapshot. Memory grows with the rows of the component. Tree does not recurse, however
// deep the tree is.
func (v *View) Tree(ctx context.Context, e ecs.Entity, component, field string, seq uint64) (nodes []TreeNode, rootless []ecs.Entity, err error) {
	var r *relation
	err = v.cat.RetryOnChange(ctx, func() error {
		return firstReadable(ctx, v.cat, leadingBases(v.cat, seq), seq, func(s SnapshotInfo) (err error) {
			r, err = relationFrom(ctx, v.cat, s, component, field, seq)
			return err
		})
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

// Living returns for each of entities whether it is alive after record seq. It reads the registry
// page by page, 8 bytes per live entity, and the ticks after the nearest snapshot. It reads no
// values, so damage in them does not matter.
func (v *View) Living(ctx context.Context, entities []ecs.Entity, seq uint64) (alive map[ecs.Entity]bool, err error) {
	err = v.cat.RetryOnChange(ctx, func() error {
		return firstReadable(ctx, v.cat, leadingBases(v.cat, seq), seq, func(s SnapshotInfo) error {
			alive = make(map[ecs.Entity]bool, len(entities))
			for _, e := range entities {
				alive[e] = false
			}
			return readLiveRegistry(v.cat, s, seq, func(_ *snap.Reader, path []journal.Entry, l *liveRegistry) error {
				if err := l.follow(ctx, v.cat, path); err != nil {
					return err
				}
				return l.each(ctx, func(e ecs.Entity) {
					if _, asked := alive[e]; asked {
						alive[e] = true
					}
				})
			})
		})
	})
	return alive, err
}
