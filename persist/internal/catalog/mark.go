package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Mark is a name that the program gave a tick.
type Mark struct {
	Name   string
	Seq    uint64
	Tick   uint64
	Time   time.Time // When the tick was committed.
	OnHead bool      // The tick is the head or an ancestor of it.
}

// Marks lists the names in the journal, in the order in which they were committed.
// Beside an error it returns what it has read. It reads the ticks that have marks, and
// no others; those that the program that has the store open removes meanwhile are left
// out.
func (v *Catalog) Marks(ctx context.Context) ([]Mark, error) {
	var marks []Mark
	for _, e := range v.Log.Entries {
		if e.Flags&format.FlagMarks == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return marks, err
		}
		t, _, err := v.Tick(e)
		if errors.Is(err, format.ErrNotFound) {
			continue
		}
		if err != nil {
			return marks, err
		}
		for _, name := range t.Marks {
			marks = append(marks, Mark{name, e.ID.Seq, t.Tick, t.Time, v.IsOnHead(e.ID.Seq)})
		}
	}
	return marks, nil
}

// hasMark reports whether the tick of e has that name.
func (v *Catalog) hasMark(e journal.Entry, name string) (bool, error) {
	if e.Flags&format.FlagMarks == 0 {
		return false, nil
	}
	t, _, err := v.Tick(e)
	return err == nil && slices.Contains(t.Marks, name), err
}

// markPoint returns the newest record of that name on the way to the head, or else
// on any other.
func (v *Catalog) markPoint(name string) (uint64, error) {
	if format.CheckName("a mark's name", name) != nil {
		return 0, badPoint("mark:" + name)
	}
	for e := range v.Log.Ancestors(v.Head()) {
		if found, err := v.hasMark(e, name); found || err != nil {
			return e.ID.Seq, err
		}
	}
	for _, e := range slices.Backward(v.Log.Entries) {
		if found, err := v.hasMark(e, name); found || err != nil {
			return e.ID.Seq, err
		}
	}
	return 0, v.noMark(name)
}

// noMark says that there is no mark of that name, and which there are.
func (v *Catalog) noMark(name string) error {
	marks, err := v.Marks(context.Background())
	if err != nil {
		return err
	}
	names := make([]string, len(marks))
	for i, m := range marks {
		names[i] = m.Name
	}
	return fmt.Errorf("%w: mark %q; %s", format.ErrNotFound, name, insteadOf(name, names))
}

// insteadOf says which names there are for one that there is not.
func insteadOf(name string, names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	if like := near.Names(name, names); len(like) > 0 {
		for i := range like {
			like[i] = strconv.Quote(like[i])
		}
		return "did you mean " + strings.Join(like, " or ") + "?"
	}
	const few = 5
	switch n := len(names); {
	case n == 0:
		return "there are none"
	case n > few:
		return fmt.Sprintf("there are %q and %d more", names[:few], n-few)
	default:
		return fmt.Sprintf("there are %q", names)
	}
}

// Tips returns the ends of the branches, oldest first: the records that no readable
// one continues. The newest state of the store need not be one of them, as a
// program may have gone back before it closed the store.
func (v *Catalog) Tips() []journal.Entry {
	continued := make(map[uint64]bool, len(v.Log.Entries))
	for _, e := range v.Log.Entries {
		continued[e.Parent] = true
	}
	var tips []journal.Entry
	for _, e := range v.Log.Entries {
		if !continued[e.ID.Seq] {
			tips = append(tips, e)
		}
	}
	return tips
}
