package dump

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// tailDoc is what tail --json prints.
type tailDoc struct {
	Earlier int           `json:"earlier"` // Records before the first.
	Ticks   []tailTickDoc `json:"ticks"`   // With --follow: until it is interrupted.
}

// A tailTickDoc is a tick as it was when it was read.
type tailTickDoc struct {
	commitDoc
	Undone int `json:"undone,omitempty"` // With --follow: how many of the records before it were rewound for it.
}

var tailCommand = command{
	use: "tail STORE",
	doc: `Print the newest ticks, and new ones as they are committed

Print the newest ticks as log does; with --follow, go on with new ones as a
program commits them, until it is interrupted.

It follows the store, not the program: when that ends, tail waits for the next
that opens the store. Rewinds are told. Ticks that were removed before tail read
them are left out.`,
	example: `  ecsdump tail D -n 3
  ecsdump tail D --follow
  ecsdump tail D -f -n 0 --component Health -p
  ecsdump tail D -f --ndjson`,
	run: func(f flags) action {
		t := tailer{logger: logger{limit: 10}}
		t.flags(f)
		f.number(&t.many, "lines", "n", 10, "print so many of the newest ticks")
		f.BoolVarP(&t.follow, "follow", "f", false, "print new ticks as they are committed")
		f.interval(&t.interval, 200*time.Millisecond, "with --follow: how long to wait before looking again")
		return func(c *call) error {
			ctx := c.ctx
			err := c.read(ctx, c.args[0], func(s *source) error { return t.run(ctx, c.app, s) })
			if t.follow && ctx.Err() != nil && !errors.Is(err, persist.ErrCorrupt) {
				return nil // That is how it ends.
			}
			return err
		}
	},
}

// A tailer prints the newest ticks.
type tailer struct {
	logger
	many     uint
	follow   bool
	interval time.Duration
}

// run prints the newest ticks and follows the store from there. A pager would hold what
// comes slowly, so with --follow there is none.
func (t *tailer) run(ctx context.Context, a *app, s *source) error {
	if s.IsSave() {
		return s.noJournal(try("info", s.path), "there are no ticks to print")
	}
	if t.follow {
		if err := a.Unpaged(); err != nil {
			return err
		}
	}
	entries, earlier, err := t.newest(ctx, s)
	if err != nil {
		return err
	}
	f := &follower{tailer: t, app: a, source: s, head: s.Head(), clean: s.Log().Clean, epoch: s.Log().Epoch}
	if n := len(s.Log().Entries); n > 0 {
		f.seen = s.Log().Entries[n-1].ID
	}
	if a.json {
		err = stream(a, tailDoc{Earlier: earlier}, f.docs(ctx, entries))
	} else {
		err = f.print(ctx, entries)
	}
	if damage := s.damage(); err == nil && damage != nil { // Some may have been found since.
		return damage
	}
	return err
}

// newest returns the newest records that the filter lets through, and how many come
// before them.
func (t *tailer) newest(ctx context.Context, s *source) (entries []journal.Entry, earlier int, err error) {
	all := s.Log().Entries
	if t.many == 0 {
		return nil, len(all), nil
	}
	t.limit = limit(t.many)
	return t.cut(ctx, s, all)
}

// A follower prints ticks as they come. It knows the store by what its journal says, and
// compares that with what it said when it was last looked at:
//
//	a higher epoch              a program opened the store
//	a record, parent ≠ head     the program had rewound before it
//	another head, no record     it rewound, and has not committed since
//	clean                       it closed the store
type follower struct {
	*tailer
	*app
	*source
	seen  journal.ID // The last record that it came to.
	head  uint64
	clean bool
	epoch uint64
}

// An event is a tick, or something else that happened to the store: then there is no
// tick.
type event struct {
	tick   *logTick
	undone int
	text   string
}

// print prints what happens for people.
func (f *follower) print(ctx context.Context, entries []journal.Entry) error {
	switch {
	case !f.follow && len(f.Log().Entries) == 0:
		f.Line("the journal has no records")
		return nil
	case !f.follow && len(entries) == 0 && f.many > 0:
		return f.nothing(ctx, f.app, f.source)
	}
	g := f.table(f.app, entries, nil)
	for e, err := range f.events(ctx, entries) {
		switch {
		case err != nil:
			g.Flush()
			return err
		case e == nil:
			g.Flush()
		case e.tick == nil:
			g.StyledText(term.Faint, "        %s", e.text)
		default:
			f.row(g, e.tick, nil)
		}
		if err := f.Broken(); err != nil {
			return err
		}
	}
	g.Flush()
	return nil
}

// docs iterates over the documents of the ticks.
func (f *follower) docs(ctx context.Context, entries []journal.Entry) iter.Seq2[tailTickDoc, error] {
	return visited(func(visit func(tailTickDoc) error) error {
		for e, err := range f.events(ctx, entries) {
			if err == nil && e != nil && e.tick != nil {
				err = visit(tailTickDoc{e.tick.commitDoc, e.undone})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// events iterates over what entries are, and with --follow over what happens then,
// until ctx ends. Before it waits it yields nil, and prints what was put out.
func (f *follower) events(ctx context.Context, entries []journal.Entry) iter.Seq2[*event, error] {
	return func(yield func(*event, error) bool) {
		for t, err := range f.forward(ctx, f.source, entries) {
			if err != nil && !f.removed(err) {
				yield(nil, err)
				return
			}
			if err == nil && !yield(&event{tick: t}, nil) {
				return
			}
		}
		for f.follow && f.wait(ctx, yield) {
			changed, err := f.Refresh(ctx)
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			if changed && !f.news(ctx, yield) {
				return
			}
		}
	}
}

// wait waits until it is time to look again; false: it is not to be done.
func (f *follower) wait(ctx context.Context, yield func(*event, error) bool) bool {
	if !yield(nil, nil) || f.Flush() != nil { // The writer keeps its error.
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(f.interval):
		return true
	}
}

// news yields what the journal has that it had not when it was last looked at; false:
// the rest is not wanted.
func (f *follower) news(ctx context.Context, yield func(*event, error) bool) bool {
	log := f.Log()
	if log.Epoch > f.epoch {
		f.epoch, f.clean = log.Epoch, false
		if !yield(&event{text: "opened by a program"}, nil) {
			return false
		}
	}
	if !f.ticks(ctx, yield) {
		return false
	}
	if log.Head != f.head && !yield(&event{text: f.moved(log.Head, f.undone(log.Head))}, nil) {
		return false
	}
	f.head = log.Head
	closed := log.Clean && !f.clean
	f.clean = log.Clean
	return !closed || yield(&event{text: "closed by the program"}, nil)
}

// ticks yields the new ticks.
func (f *follower) ticks(ctx context.Context, yield func(*event, error) bool) bool {
	r := logReader{logger: &f.logger, source: f.source, known: f.rewoundFrom()}
	for _, e := range f.fresh() {
		undone := 0
		if e.Parent != f.head {
			undone = f.undone(e.Parent)
			if !yield(&event{text: f.moved(e.Parent, undone)}, nil) {
				return false
			}
		}
		f.seen, f.head = e.ID, e.ID.Seq
		t, err := r.read(ctx, e)
		switch {
		case err != nil && ctx.Err() != nil:
			return false
		case err != nil && !f.removed(err):
			yield(nil, err)
			return false
		case err == nil && t != nil && !yield(&event{tick: t, undone: undone}, nil):
			return false
		}
	}
	return true
}

// fresh returns the records that come after the one that was seen last. A later
// opening of the journal may give seqs again that were lost.
func (f *follower) fresh() []journal.Entry {
	entries := f.Log().Entries
	first := len(entries)
	for first > 0 {
		id := entries[first-1].ID
		if id.Epoch < f.seen.Epoch || id.Epoch == f.seen.Epoch && id.Seq <= f.seen.Seq {
			break
		}
		first--
	}
	return entries[first:]
}

// removed reports whether err says that a record, or what leads to it, was pruned
// before it was read.
func (f *follower) removed(err error) bool { return f.follow && errors.Is(err, persist.ErrNotFound) }

// undone returns how many records led to the head that do not lead to record seq, as
// far as the journal goes back.
func (f *follower) undone(seq uint64) (n int) {
	for old := f.head; old != seq; {
		later := max(old, seq)
		e, ok := f.Log().Find(later)
		if later == old {
			n, old = n+1, e.Parent
		} else {
			seq = e.Parent
		}
		if !ok {
			break
		}
	}
	return n
}

// moved returns the line that is printed when the newest state has become that of record
// seq, and so many records do not lead to it any more.
func (f *follower) moved(seq uint64, undone int) string {
	to := fmt.Sprintf("record %d", seq)
	if e, ok := f.Log().Find(seq); ok {
		to += fmt.Sprintf(", tick %d", e.Tick)
	} else if seq == 0 {
		to = "the beginning"
	}
	if undone == 0 {
		return "went on to " + to
	}
	return fmt.Sprintf("rewound %s, to %s", term.Count(undone, "record", "records"), to)
}
