package dump

import (
	"context"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/persist"
)

// firstDoc says where two histories part.
type firstDoc struct {
	Compared int            `json:"compared"`   // Ticks that both have.
	Equal    *commonTickDoc `json:"last_equal"` // null: the states differ after all of them.
	First    *commonTickDoc `json:"first"`      // null: they differ after none.
}

// A commonTickDoc is a tick that both histories have.
type commonTickDoc struct {
	Tick uint64 `json:"tick"`
	Old  uint64 `json:"old_seq"`
	New  uint64 `json:"new_seq"`
}

// diverge compares the histories of two states.
func (d *differ) diverge(ctx context.Context, s *source, older uint64, t *source, newer uint64) (*firstDoc, error) {
	for _, x := range []*source{s, t} {
		if x.IsSave() {
			err := fmt.Errorf("%s: a save has no history; --first compares stores", x.path)
			return nil, &failure{exitUsage, err, command("diff", s.path, t.path)}
		}
	}
	div, err := persist.Part(ctx, s.View, older, t.View, newer)
	if errors.Is(err, persist.ErrNotFound) {
		return nil, &failure{exitNotFound, fmt.Errorf("%s and %s have no tick in common: %w", s.path, t.path, err), command("log", t.path)}
	}
	if err != nil {
		return nil, err
	}
	return &firstDoc{div.Compared, commonTickDocOf(div.Equal), commonTickDocOf(div.First)}, nil
}

func commonTickDocOf(c *persist.CommonTick) *commonTickDoc {
	if c == nil {
		return nil
	}
	return &commonTickDoc{c.Tick, c.Old, c.New}
}

// print prints d, if there is one.
func (d *firstDoc) print(a *app) error {
	switch {
	case d == nil:
	case a.json:
		return a.document(d)
	case d.First == nil:
		a.Line("no differences up to tick %d, the last that both have", d.Equal.Tick)
	case d.Equal == nil:
		a.Line("no tick is the same; tick %d is the first that both have", d.First.Tick)
	default:
		a.Line("the same up to tick %d (records %d and %d); tick %d differs", d.Equal.Tick, d.Equal.Old, d.Equal.New, d.First.Tick)
	}
	return nil
}
