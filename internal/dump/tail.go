package dump

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// The command tail prints the newest ticks and, with --follow, the ticks that programs commit
// later. newest() finds the newest records, and visitTicks prints them. With --follow, visitTicks
// then repeats two steps until the call ends:
//
//   - It waits, and Refresh reads the new part of the journal.
//   - visitNew visits new records. It also reports rewinds, openings and closings.
//
// Tail polls the store. If a program commits, rewinds and commits again between two polls, tail
// reports only the last result.

// tailDoc is what tail --json prints.
type tailDoc struct {
	Earlier int           `json:"earlier"` // Number of records before the first one.
	Ticks   []tailTickDoc `json:"records"` // With --follow, an interrupt ends the list.
}

// A tailTickDoc is a tick, as it was when tail read it.
type tailTickDoc struct {
	recordDoc
	// With --follow: number of records that the program rewound before it committed this record.
	Undone int `json:"undone,omitempty"`
}

var tailCommand = command{
	use: "tail STORE",
	doc: `Print the newest ticks, and new ones as they are committed

Print the newest ticks as log does. With --follow, also print new ticks as a program
commits them, until tail is interrupted.

When the program closes the store, tail says so and waits until a program opens the
store again. If the program is killed, tail notices it by the lock of the store within a
second. Tail also prints rewinds. It skips ticks that were removed before it read
them.`,
	example: `  ecsdump tail D -n 3
  ecsdump tail D --follow
  ecsdump tail D -f --new --component Health -p
  ecsdump tail D -f --ndjson`,
	run: func(f flags) action {
		t := new(tailCmd)
		t.flags(f)
		f.limit(&t.limit, "records, the newest")
		f.BoolVar(&t.only, "new", false, "with --follow: skip the existing ticks")
		f.BoolVarP(&t.follow, "follow", "f", false, "print new ticks as they are committed")
		f.interval(&t.interval, 200*time.Millisecond, "with --follow: time between two checks for new ticks")
		return func(c *call) error {
			err := c.read(c.args[0], t.run)
			if t.interrupted(c, err) {
				return nil
			}
			return err
		}
	},
}

// A tailCmd prints the newest ticks and, with --follow, new ticks. At each poll, it compares the
// journal with that of the previous poll. Each row has a difference and its meaning:
//
//	a higher epoch                         a program opened the store
//	a record whose parent is not the head  the program rewound before this record
//	another head and no new record         the program rewound and has not committed since
//	a journal that ends clean              the program closed the store
//
// The lock of the store shows whether a program was killed.
type tailCmd struct {
	logCmd
	only     bool // True with --new: ticks that exist at the start are skipped.
	follow   bool
	interval time.Duration

	// The last visited record. After a rewind, it has a higher number than head.
	seen  journal.ID
	head  uint64
	clean bool
	epoch uint64
	grid  *term.Grid
	// Used with --follow. Checks the lock of the store, and calls reportEnded.
	checkLock func()
}

// interrupted reports whether an interrupt ended a tail with --follow, which is the normal end.
// Damage found before the interrupt still counts as an error.
func (t *tailCmd) interrupted(c *call, err error) bool {
	return t.follow && c.ctx.Err() != nil && !errors.Is(err, persist.ErrCorrupt)
}

// run prints the newest ticks and follows the store. It records the state of the journal before it
// prints, so later changes count as new.
func (t *tailCmd) run(s *source) error {
	t.source = s
	if s.IsSave() {
		return s.noJournal(describe.Command("info", s.path), "there are no ticks to print")
	}
	if t.follow {
		if err := s.Unpaged(); err != nil {
			return err
		}
		t.checkLock = s.WatchWriter(t.reportEnded)
		t.checkLock()
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
	// JSON needs a list even without ticks, and with --follow, ticks may come later.
	case s.json || t.follow:
	case len(log.Entries) == 0:
		s.Line("the journal has no records")
		return nil
	case len(entries) == 0:
		return t.printNoMatch()
	}
	t.grid = t.table(entries, nil)
	ticks := func(visit func(*tailTickDoc) error) error { return t.visitTicks(entries, visit) }
	err = list(s.app, tailDoc{Earlier: earlier}, ticks, t.grid, func(d *tailTickDoc) { t.row(t.grid, &d.recordDoc, nil) })
	if t.interrupted(s.call, err) {
		err = nil
	}
	if err == nil && !s.json {
		t.grid.Flush()
	}
	// Report damage that Refresh has found while tail was following.
	if damage := s.firstDamage(); err == nil && damage != nil {
		return damage
	}
	return err
}

// newest returns the newest records that pass the filter, and the number of earlier records. With
// --new, it returns no records.
func (t *tailCmd) newest() (entries []journal.Entry, earlier int, err error) {
	all := t.Log().Entries
	if t.only {
		return nil, len(all), nil
	}
	return t.applyLimit(all)
}

// printEvent prints an event of the store, such as its opening. With --json, it prints nothing.
func (t *tailCmd) printEvent(text string) {
	if !t.json {
		t.grid.StyledText(term.Faint, "        %s", text)
	}
}

// visitTicks visits the ticks of entries and, with --follow, new ticks until the call ends. It
// skips records that were pruned before tail read them.
func (t *tailCmd) visitTicks(entries []journal.Entry, visit func(*tailTickDoc) error) error {
	err := t.forward(entries, func(d *recordDoc) error { return visit(&tailTickDoc{*d, 0}) })
	if err != nil && !t.isPruned(err) {
		return err
	}
	for t.follow {
		if err := t.wait(); err != nil {
			return err
		}
		changed, err := t.Refresh(t.ctx)
		if err == nil && changed {
			err = t.visitNew(visit)
		}
		if err != nil {
			return err
		}
		t.checkLock()
	}
	return nil
}

// reportEnded prints a message if the program that wrote the store ended without closing the store.
func (t *tailCmd) reportEnded(program string, running, closed bool) {
	if !running && !closed {
		t.printEvent(fmt.Sprintf("the program that wrote the store has ended without closing it, seen at %s: %s", timeText(time.Now()), program))
	}
}

// wait flushes the output and waits for the next poll.
func (t *tailCmd) wait() error {
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

// visitNew visits the new ticks of the journal and prints other events. There are two signs of a
// rewind. The parent of a new record is not the head, or the journal has another head but no new
// record.
func (t *tailCmd) visitNew(visit func(*tailTickDoc) error) error {
	log := t.Log()
	// The store may have been opened and closed several times since the last poll.
	if log.Epoch > t.epoch {
		t.epoch, t.clean = log.Epoch, false
		t.printEvent("opened by a program")
	}
	// A logReader knows the newest state. Create a reader for each poll, because this state
	// changes.
	r := logReader{logCmd: &t.logCmd, in: t.standing()}
	for _, e := range t.newRecords() {
		undone := t.setHead(e.Parent)
		t.seen, t.head = e.ID, e.ID.Seq
		d, err := r.read(e)
		if err == nil && d != nil {
			err = visit(&tailTickDoc{*d, undone})
		}
		if err != nil && !t.isPruned(err) {
			return err
		}
	}
	// JSON has no rewind events. The next record will have the number of rewound records instead.
	if !t.json {
		t.setHead(log.Head)
	}
	if log.Clean && !t.clean {
		t.printEvent("closed by the program")
	}
	t.clean = log.Clean
	return nil
}

// setHead makes record seq the head, and prints a message if the head changed. It returns the
// number of rewound records, for JSON.
func (t *tailCmd) setHead(seq uint64) (undone int) {
	if seq != t.head {
		undone = t.undone(seq)
		t.printEvent(t.rewindText(seq, undone))
	}
	t.head = seq
	return undone
}

// newRecords returns the records after the last visited record, by epoch and then by seq. The seq
// alone is not enough: a program that opens the store may use the seqs of lost records again, in a
// new epoch.
func (t *tailCmd) newRecords() []journal.Entry {
	entries := t.Log().Entries
	for i, e := range slices.Backward(entries) {
		if e.ID.Epoch < t.seen.Epoch || e.ID.Epoch == t.seen.Epoch && e.ID.Seq <= t.seen.Seq {
			return entries[i+1:]
		}
	}
	return entries
}

// isPruned reports whether err says that a record was pruned before tail read it.
func (t *tailCmd) isPruned(err error) bool { return t.follow && errors.Is(err, persist.ErrNotFound) }

// undone returns the number of records that are undone if the head moves to record seq. These are
// the ancestors of the head that are not ancestors of record seq. In this example, lines lead from
// parents to children. The head is record 9, and undone(6) is 3, for the records 7, 8 and 9:
//
//	4 ── 5 ── 7 ── 8 ── 9
//	     └─── 6
//
// A parent has a lower seq than its child. So undone replaces the higher of the two numbers by its
// parent, until they are equal. A pruned record ends the search.
func (t *tailCmd) undone(seq uint64) (n int) {
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

// rewindText returns the message for a head that moved to record seq. The argument undone is the
// number of rewound records.
func (t *tailCmd) rewindText(seq uint64, undone int) string {
	to := fmt.Sprintf("record %d", seq)
	if e, ok := t.Log().Find(seq); ok {
		to += fmt.Sprintf(", tick %d", e.Tick)
	} else if seq == 0 {
		to = "the beginning"
	}
	if undone == 0 {
		return "continued at " + to
	}
	return fmt.Sprintf("rewound %s, to %s", term.Count(undone, "record", "records"), to)
}
