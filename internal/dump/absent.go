package dump

import (
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// notAlive says what is known of an entity that is not alive in p.
func (s *source) notAlive(p *inspect.EntityState) error {
	e, at := p.Entity, stateDoc{p.Tick, p.Seq}.place()
	if p.Row < 0 || e.Generation() == 0 {
		return s.missing(try("ls", s.path), "%v never existed: at %s, %s in use", e, at, indices(p.Indices))
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
		d, err := s.deathOf(p.Seq, e)
		if err != nil {
			return err
		}
		if d != nil {
			text = fmt.Sprintf("was destroyed in tick %d (record %d)", d.Tick, d.Seq)
			next = try("show", s.path, e.String(), "--at", fmt.Sprintf("seq:%d", d.Parent)) + "\n" + try("history", s.path, e.String())
		}
	}
	return s.missing(next, "%v %s; at %s, index %d %s", e, text, at, e.Index(), now)
}

// indices says which indices a state has, of n.
func indices(n int) string {
	if n == 0 {
		return "no index is"
	}
	return fmt.Sprintf("indices 0 to %d are", n-1)
}

// deathOf looks for the tick that destroyed e, back from record seq; nil if it finds none.
// It reads that part of the journal.
func (s *source) deathOf(seq uint64, e ecs.Entity) (death *inspect.Commit, err error) {
	for entry := range s.Log().Ancestors(seq) {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		c, ops, _, err := s.commit(entry.ID.Seq, 0)
		if err != nil {
			return nil, err
		}
		for _, op := range slices.Backward(ops) {
			switch {
			case op.Kind == raw.OpDestroy && op.Entity == e:
				return c, nil
			case op.Kind == raw.OpCreate && op.Entity == e:
				return death, nil
			case op.Kind == raw.OpClear && op.Component < 0:
				death = c // Unless something older did it.
			}
		}
	}
	return death, nil
}
