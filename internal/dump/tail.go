package dump

import (
	"errors"
	"fmt"
	"time"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// Tail prints the newest ticks and, with --follow, those that programs commit from then on.
//
//	newest ──▶ follows: prints them
//	             │  ▲
//	        wait │  │ news: what the journal has that it had not; rewinds, openings and closings
//	             ▼  │
//	          Refresh: reads what is new in the journal
//
// Nothing tells that a store changed, so it is looked at again and again. Each look reads only what
// is new. Between two looks a program may have committed, gone back and committed again: what
// counts is how the journal stands.

// tailDoc is what tail --json prints.
type tailDoc struct {
	Earlier int           `json:"earlier"` // Records before the first.
	Ticks   []tailTickDoc `json:"records"` // With --follow: until it is interrupted.
}

// A tailTickDoc is a tick as it was when it was read.
type tailTickDoc struct {
	recordDoc
	Undone int `json:"undone,omitempty"` // With --follow: how many of the records before it were rewound for it.
}

var tailCommand = command{
	use: "tail STORE",
	doc: `Print the newest ticks, and new ones as they are committed

Print the newest ticks as log does; with --follow, go on with new ones as a
program commits them, until it is interrupted.

It follows the store, not the program: when that ends, tail says so and waits for
the next that opens the store. It sees by the lock that a program was killed, within a
second. Rewinds are told. Ticks that were removed before tail read
them are left out.`,
	example: `  ecsdump tail D -n 3
  ecsdump tail D --follow
  ecsdump tail D -f --new --component Health -p
  ecsdump tail D -f --ndjson`,
	run: func(f flags) action {
		t := new(tailer)
		t.flags(f)
		f.limit(&t.limit, "records, the newest")
		f.BoolVar(&t.only, "new", false, "with --follow: only new ticks")
		f.BoolVarP(&t.follow, "follow", "f", false, "print new ticks as they are committed")
		f.interval(&t.interval, 200*time.Millisecond, "with --follow: how long to wait before looking again")
		return func(c *call) error {
			err := c.read(c.args[0], t.run)
			if t.interrupted(c, err) {
				return nil
			}
			return err
		}
	},
}

// A tailer prints the newest ticks and, with --follow, those that come. It knows the store by
// what its journal says, and compares that with what it said when it was last looked at:
//
//	a higher epoch              a program opened the store
//	a record, parent ≠ head     the program had rewound before it
//	another head, no record     it rewound, and has not committed since
//	clean                       it closed the store
//
// The journal does not say that a program was killed. The lock of the store does: look looks at it.
//
// seen and head are two: after a rewind the head is an older record, and what was seen stays seen.
type tailer struct {
	logger
	only     bool // None of those that are there.
	follow   bool
	interval time.Duration

	seen  journal.ID // The last record that it came to.
	head  uint64
	clean bool
	epoch uint64
	grid  *term.Grid
	look  func() // With --follow: looks at the lock, and calls writer.
}

// interrupted reports whether a tail that ended with err followed the store until it was
// interrupted: that is how it ends. Damage is an error all the same: it was met before the
// interrupt.
func (t *tailer) interrupted(c *call, err error) bool {
	return t.follow && c.ctx.Err() != nil && !errors.Is(err, persist.ErrCorrupt)
}

// run prints the newest ticks and follows the store from there. A pager would hold what
// comes slowly, so with --follow there is none. What the journal says is noted before the first
// tick is printed, so that whatever comes meanwhile is news.
func (t *tailer) run(s *source) error {
	t.source = s
	if s.IsSave() {
		return s.noJournal(try("info", s.path), "there are no ticks to print")
	}
	if t.follow {
		if err := s.Unpaged(); err != nil {
			return err
		}
		t.look = s.WatchWriter(t.writer)
		t.look()
	}
	entries, earlier, err := t.newest()
	if err != nil {
		return err
	}
	log := s.Log()
	t.head, t.clean, t.epoch = log.Head, log.Clean, log.Epoch
	if n := len(log.Entries); n > 0 {
		t.seen = log.Entries[n-1].ID
	}
	switch {
	case s.json || t.follow: // An empty list, or one that may still grow.
	case len(log.Entries) == 0:
		s.Line("the journal has no records")
		return nil
	case len(entries) == 0:
		return t.nothing()
	}
	t.grid = t.table(entries, nil)
	ticks := func(visit func(*tailTickDoc) error) error { return t.follows(entries, visit) }
	err = list(s.app, tailDoc{Earlier: earlier}, ticks, t.grid, func(d *tailTickDoc) { t.row(t.grid, &d.recordDoc, nil) })
	if t.interrupted(s.call, err) {
		err = nil
	}
	if err == nil && !s.json {
		t.grid.Flush()
	}
	if damage := s.damage(); err == nil && damage != nil { // Some may have been found since.
		return damage
	}
	return err
}

// newest returns the newest records that the filter lets through, and how many come
// before them. With --new there are none, and so all are earlier.
func (t *tailer) newest() (entries []journal.Entry, earlier int, err error) {
	all := t.Log().Entries
	if t.only {
		return nil, len(all), nil
	}
	return t.cut(all)
}

// say prints something that happened to the store and is no tick, which only people are told.
func (t *tailer) say(text string) {
	if !t.json {
		t.grid.StyledText(term.Faint, "        %s", text)
	}
}

// follows visits the ticks of entries, and with --follow those that come then, until the call
// ends. Records that were pruned before they were read are left out, not an error.
func (t *tailer) follows(entries []journal.Entry, visit func(*tailTickDoc) error) error {
	err := t.forward(entries, func(d *recordDoc) error { return visit(&tailTickDoc{*d, 0}) })
	if err != nil && !t.removed(err) {
		return err
	}
	for t.follow {
		if err := t.wait(); err != nil {
			return err
		}
		changed, err := t.Refresh(t.ctx)
		if err == nil && changed {
			err = t.news(visit)
		}
		if err != nil {
			return err
		}
		t.look()
	}
	return nil
}

// writer says so if the program that wrote the store has ended without closing it. That another one opens the
// store, or that it was closed, shows in the journal.
func (t *tailer) writer(program string, running, closed bool) {
	if !running && !closed {
		t.say(fmt.Sprintf("the program that wrote the store has ended without closing it, seen at %s: %s", timeText(time.Now()), program))
	}
}

// wait prints what there is, and waits until it is time to look again. The grid is flushed first,
// then the writer: somebody who waits for a tick sees it before the next look.
func (t *tailer) wait() error {
	if !t.json {
		t.grid.Flush()
	}
	if err := t.Flush(); err != nil {
		return err
	}
	select {
	case <-t.ctx.Done():
		return t.ctx.Err()
	case <-time.After(t.interval):
		return nil
	}
}

// news visits the ticks that the journal has and had not when it was last looked at, and says
// what else happened.
//
// Each new record says by its parent whether the program went back before it; after the last, the
// head of the journal says whether it went back since.
func (t *tailer) news(visit func(*tailTickDoc) error) error {
	log := t.Log()
	if log.Epoch > t.epoch { // It may have been opened and closed more than once since.
		t.epoch, t.clean = log.Epoch, false
		t.say("opened by a program")
	}
	// Made anew each time: what is known to be rewound changes as the journal grows.
	r := logReader{logger: &t.logger, in: t.standing()}
	for _, e := range t.fresh() {
		undone := t.goTo(e.Parent)
		t.seen, t.head = e.ID, e.ID.Seq
		d, err := r.read(e)
		if err == nil && d != nil {
			err = visit(&tailTickDoc{*d, undone})
		}
		if err != nil && !t.removed(err) {
			return err
		}
	}
	if !t.json { // The next record tells a program, and from the last one that it was told.
		t.goTo(log.Head)
	}
	if log.Clean && !t.clean {
		t.say("closed by the program")
	}
	t.clean = log.Clean
	return nil
}

// goTo makes record seq the head, and says so if it was not. It returns how many records do
// not lead to the head any more. People are told on a line of its own; what it returns is for
// programs.
func (t *tailer) goTo(seq uint64) (undone int) {
	if seq != t.head {
		undone = t.undone(seq)
		t.say(t.moved(seq, undone))
	}
	t.head = seq
	return undone
}

// fresh returns the records that come after the one that was seen last. A later
// opening of the journal may give seqs again that were lost. So they are ordered by epoch, then
// seq, and the search goes back from the end: what is new is short.
func (t *tailer) fresh() []journal.Entry {
	entries := t.Log().Entries
	first := len(entries)
	for first > 0 {
		id := entries[first-1].ID
		if id.Epoch < t.seen.Epoch || id.Epoch == t.seen.Epoch && id.Seq <= t.seen.Seq {
			break
		}
		first--
	}
	return entries[first:]
}

// removed reports whether err says that a record, or what leads to it, was pruned
// before it was read.
func (t *tailer) removed(err error) bool { return t.follow && errors.Is(err, persist.ErrNotFound) }

// undone returns how many records led to the head that do not lead to record seq, as
// far as the journal goes back. It follows both ways back, always from the later record, until
// they meet.
//
//	head 9 ── 8 ── 7 ──┐
//	                   5 ── 4     undone(6) is 3: records 9, 8 and 7
//	   new 6 ──────────┘
//
// Parents have lower seqs, so the later of the two cannot be an ancestor of the other. A record
// that was pruned ends it.
func (t *tailer) undone(seq uint64) (n int) {
	for old := t.head; old != seq; {
		later := max(old, seq)
		e, ok := t.Log().Find(later)
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
func (t *tailer) moved(seq uint64, undone int) string {
	to := fmt.Sprintf("record %d", seq)
	if e, ok := t.Log().Find(seq); ok {
		to += fmt.Sprintf(", tick %d", e.Tick)
	} else if seq == 0 {
		to = "the beginning"
	}
	if undone == 0 {
		return "went on to " + to
	}
	return fmt.Sprintf("rewound %s, to %s", term.Count(undone, "record", "records"), to)
}
