package dump

import (
	"context"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// notAlive says what is known of an entity that is not alive in p.
func (s *source) notAlive(ctx context.Context, p *inspect.EntityState) error {
	e, at := p.Entity, placeOf(p)
	if p.Row < 0 || e.Generation() == 0 {
		return fail(exitNotFound, try("ls", s.path), "%s: %v never existed: at %s, %s in use", s.path, e, at, indices(p.Indices))
	}
	last := p.Holder // Of a free index: who had it last.
	now, next := "is free", try("ls", s.path)
	switch {
	case p.Row < p.Living:
		now, next = fmt.Sprintf("is alive as %v", last), try("show", s.path, last.String())
	case p.Row >= p.Free:
		now = "is retired: its generations are spent"
	}
	text := "does not exist yet"
	if e.Generation() <= last.Generation() {
		text = "is not alive any more"
		d, err := s.deathOf(ctx, p.Seq, e)
		if err != nil {
			return err
		}
		if d.found {
			text = fmt.Sprintf("was destroyed in tick %d (record %d)", d.tick, d.seq)
			next = try("show", s.path, e.String(), "--at", fmt.Sprintf("seq:%d", d.before)) + "\n" + try("history", s.path, e.String())
		}
	}
	return fail(exitNotFound, next, "%s: %v %s; at %s, index %d %s", s.path, e, text, at, e.Index(), now)
}

func indices(n int) string {
	if n == 0 {
		return "no index is"
	}
	return fmt.Sprintf("indices 0 to %d are", n-1)
}

// A death is the tick that destroyed an entity.
type death struct {
	found             bool
	tick, seq, before uint64 // before is the record of the state before it.
}

// deathOf looks for the tick that destroyed e, back from record seq. It reads
// that part of the journal.
func (s *source) deathOf(ctx context.Context, seq uint64, e ecs.Entity) (d death, err error) {
	for entry := range s.Log().Ancestors(seq) {
		if err := ctx.Err(); err != nil {
			return d, err
		}
		commits, err := s.Commits(entry.ID.Seq, entry.ID.Seq)
		if err != nil {
			return d, err
		}
		for i := range commits {
			done, err := d.look(&commits[i], e)
			if done || err != nil {
				return d, err
			}
		}
	}
	return d, nil
}

// look looks for the end of e in c. It is done if nothing older can matter: a
// clear kills e only if nothing before it did.
func (d *death) look(c *inspect.Commit, e ecs.Entity) (done bool, err error) {
	ops, err := c.Ops()
	if err != nil {
		return false, err
	}
	here := death{true, c.Tick, c.Seq, c.Parent}
	for _, op := range slices.Backward(ops) {
		switch {
		case op.Kind == ecs.OpDestroy && op.Entity == e:
			*d = here
			return true, nil
		case op.Kind == ecs.OpCreate && op.Entity == e:
			return true, nil
		case op.Kind == ecs.OpClear && op.Component < 0:
			*d = here
		}
	}
	return false, nil
}

// placeOf returns the place of s in time.
func placeOf(s *inspect.EntityState) string { return fmt.Sprintf("tick %d, record %d", s.Tick, s.Seq) }
