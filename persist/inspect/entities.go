package inspect

import (
	"context"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Peek returns what the state after record seq has of e, alive or not. [ecs.Vacant] stands for the
// world, which has the resources, here and in [View.Trace] and [View.TraceBack].
//
// Unlike [View.At] it does not load the state. Of the nearest snapshot it reads
// the pages on the way to e, which takes a few hundred KiB of memory however
// large the world is, and of the ticks behind it follows e only. Their checksums
// are compared; pages that are not needed may be damaged.
//
// The rows of the entities alive have no index. Peek looks for e where it would be
// if none had ever been destroyed, and from there outward: at worst it reads all of
// them, 8 bytes each.
func (v *View) Peek(ctx context.Context, e ecs.Entity, seq uint64) (*EntityState, error) {
	var f *follower
	err := v.cat.Persevere(ctx, func() (err error) {
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

// Trace calls f with what happened to e between the states after the records from
// and to, in order, until f returns an error. from must be an ancestor of to; 0
// means the oldest state that leads to it. What e has in the first state comes
// first, as [TraceAlive] and [TracePresent].
//
// The cost is that of reading the ticks between; e alone is followed through them.
// Of what damage hides nothing is told: the trace goes on with the next snapshot, as with a
// first state, and ends with the first such error, which wraps [persist.ErrCorrupt]. After a
// store was opened by a program with other types, the trace goes on with these.
func (v *View) Trace(ctx context.Context, e ecs.Entity, from, to uint64, f func(*TraceEvent) error) error {
	t, err := newTrace(ctx, v.cat, e, from, to)
	if err != nil {
		return err
	}
	t.found = f
	return t.parts(ctx, to)
}

// TraceBack calls f with the life of e up to the state after record seq, the newest
// stretch first, until f returns false or the oldest state is reached. Stretches
// end at snapshots, so that the ticks behind the nearest are read only once and
// older ones only if f asks for more. The events of one stretch are in order.
//
// The Last of the first stretch is what [View.Peek] returns.
func (v *View) TraceBack(ctx context.Context, e ecs.Entity, seq uint64, f func(*Stretch) (more bool)) error {
	for older := uint32(math.MaxUint32); ; {
		var s *Stretch
		var base SnapshotInfo
		err := v.cat.Persevere(ctx, func() (err error) {
			s, base, err = stretch(ctx, v.cat, e, seq, older)
			return err
		})
		if err != nil || s == nil || !f(s) {
			return err
		}
		seq, older = base.ID.Seq, base.Number
	}
}

// Referrers returns the values that hold e in the state after record seq: how many
// there are, and the first limit of them by component and row. Keys of maps count
// as well.
//
// It reads the rows of components whose layout has entities in it, a page at a time,
// and what the ticks behind the nearest snapshot did to them. If one of those
// components does not rewind, the whole state is loaded.
func (v *View) Referrers(ctx context.Context, e ecs.Entity, seq uint64, limit int) (first []Referrer, total int, err error) {
	var list *referrers
	err = v.cat.Persevere(ctx, func() (err error) {
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

// Tree returns who is above e in the state after record seq, e itself and who is below, by the
// field of that component, one of [EntityComponent.EntityFields]; if e is 0, all roots with who
// is below them. A root is named, or has the component, and names nobody alive. Each node comes
// before its sources, and these in the order of their indices. If there is no such field, the
// error wraps [persist.ErrNotFound].
//
// A source has one target, so a way up leads to a root or into a cycle: then the first of nodes
// names one that is alive, behind it or e, and the way down to e ends there. Below a root there
// is no cycle; who is in one or below one is rootless, which is told if e is 0.
//
// It reads the rows of the component and of the entities alive, page by page, and the ticks
// behind the nearest snapshot. It keeps what is proportional to the rows of the component,
// and however deep a tree is, it does not recurse.
func (v *View) Tree(ctx context.Context, e ecs.Entity, component, field string, seq uint64) (nodes []TreeNode, rootless []ecs.Entity, err error) {
	var r *relation
	err = v.cat.Persevere(ctx, func() error {
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

// Living returns of each of entities whether it is alive after record seq. It reads the rows of the entities
// alive, 8 bytes each, page by page, and the ticks behind the nearest snapshot; of the values
// nothing, so that damage there does not matter.
func (v *View) Living(ctx context.Context, entities []ecs.Entity, seq uint64) (alive map[ecs.Entity]bool, err error) {
	err = v.cat.Persevere(ctx, func() error {
		return firstReadable(ctx, v.cat, leadingBases(v.cat, seq), seq, func(s SnapshotInfo) error {
			alive = make(map[ecs.Entity]bool, len(entities))
			for _, e := range entities {
				alive[e] = false
			}
			return livingFrom(v.cat, s, seq, func(_ *snap.Reader, path []journal.Entry, l *living) error {
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
