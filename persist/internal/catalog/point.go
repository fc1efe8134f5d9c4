package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/internal/near"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// Resolve returns the record that a point in time names. It searches the path to the newest state,
// newest record first. So if several branches have a tick, time or name, Resolve prefers the branch
// of the newest state. It reads payloads only for times and names.
//
// A point is one of:
//
//	""  @latest      the newest state, see [Catalog.Newest]
//	@first           the oldest loadable ancestor of the newest state
//	@-5s             the newest tick at least 5 seconds older than the newest state
//	@+5s             the first tick at least 5 seconds newer than the oldest one
//	@2026-11-24T02:47:10Z
//	                 the newest tick on the path to the newest state, committed by then
//	@02:47:10        the same for a UTC time of day: the last one before the newest state
//	1200             tick 1200 on the path to the newest state
//	1200@tip:1       tick 1200 on the path to another point
//	record:88        record 88, on any branch
//	snap:3           the state in snapshot file 3
//	snap:NAME        the state in the snapshot that the program gave this name
//	mark:NAME        the newest tick with this name on the path to the newest state, or
//	                 else on any branch
//	tip:1            the end of the first branch, see [journal.Log.Tips]
//	POINT~10         10 records before the point: @latest~10, mark:NAME~1. A record is a tick,
//	                 unless the program set [persist.Options.CommitEvery]
//
// If the store does not have the point, the error wraps [format.ErrNotFound]. If the point was
// pruned, the error names the oldest state. If the syntax is wrong, the error wraps
// [format.ErrPoint].
func (c *Catalog) Resolve(point string) (seq uint64, err error) {
	seq, err = c.resolve(point)
	from, n, ok := cutBack(point)
	if err == nil || !ok { // The suffix may belong to a name, such as "mark:a~1".
		return seq, err
	}
	if seq, err = c.Resolve(from); err != nil {
		return 0, err
	}
	return c.back(from, seq, n)
}

// cutBack splits "A~N" into A and N. A must not be empty.
func cutBack(point string) (from string, n uint64, ok bool) {
	i := strings.LastIndexByte(point, '~')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(point[i+1:], 10, 64)
	return point[:i], n, err == nil
}

// resolve returns the record of a point without a suffix "~N".
func (c *Catalog) resolve(point string) (seq uint64, err error) {
	number := func(s string) (n uint64) { // number sets err, which the cases below check.
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = badPoint(point)
		}
		return n
	}
	switch name, rest, _ := strings.Cut(point, ":"); {
	case point == "" || point == "@latest":
		seq, _ = c.Newest()
		return seq, nil
	case point == "@first":
		return c.first(), nil
	case strings.HasPrefix(point, "@-"), strings.HasPrefix(point, "@+"):
		return c.agePoint(point)
	case strings.HasPrefix(point, "@"):
		return c.timePoint(point)
	case name == "record":
		if n := number(rest); err == nil {
			return c.record(n)
		}
	case name == "snap":
		return c.snapshotPoint(rest)
	case name == "mark":
		return c.markPoint(rest)
	case name == "tip":
		if n := number(rest); err == nil {
			return c.tipPoint(n)
		}
	default:
		tick, end, on := strings.Cut(point, "@")
		if n := number(tick); err != nil {
			return 0, err
		} else if !on {
			return c.tickPoint(n)
		} else if end == "" {
			return 0, badPoint(point)
		} else if seq, err = c.Resolve(end); err == nil {
			return c.tickBefore(n, end, seq)
		}
	}
	return 0, err
}

// badPoint returns the error that explains the syntax of points.
func badPoint(point string) error {
	return fmt.Errorf("%w: %q; write a tick, @latest, @first, @-5s, @+5s, @02:47:10, @2006-01-02T15:04:05Z, record:N, snap:N, snap:NAME, mark:NAME, tip:N, one of these with ~N behind it, or TICK@ before it", format.ErrPoint, point)
}

// first returns the oldest ancestor of the newest state that can be loaded. The journal may contain
// older ticks, without a snapshot before them. In a damaged store, the result is the oldest known
// ancestor.
func (c *Catalog) first() uint64 {
	if s, ok := c.OldestBase(c.End()); ok && len(c.Damage()) == 0 {
		return s.ID.Seq
	}
	return c.Oldest(c.End())
}

// Oldest follows the known ancestors of record seq. It returns the parent of the oldest one, or seq
// if no ancestor is known.
func (c *Catalog) Oldest(seq uint64) uint64 {
	for e := range c.Log.Ancestors(seq) {
		seq = e.Parent
	}
	return seq
}

// back returns the record that is n records before record seq. It does not count a record that only
// adds marks to the tick of its parent. The parameter point is for messages.
func (c *Catalog) back(point string, seq, n uint64) (uint64, error) {
	for i := uint64(0); i < n; {
		e, ok := c.Log.Known(seq)
		if !ok {
			if err := c.Removed(fmt.Sprintf("the tick %d before %s was", n, naming.Shown(point))); err != nil {
				return 0, err
			}
			return 0, fmt.Errorf("%w: %s has only %d records before it", format.ErrNotFound, naming.Shown(point), i)
		}
		if seq = e.Parent; e.Flags&format.FlagRepeats == 0 {
			i++
		}
	}
	return seq, nil
}

// tipPoint returns the end of the branch with this number, counting from 1.
func (c *Catalog) tipPoint(number uint64) (uint64, error) {
	tips := c.Log.Tips()
	if number < 1 || number > uint64(len(tips)) {
		return 0, fmt.Errorf("%w: tip %d; there are %d", format.ErrNotFound, number, len(tips))
	}
	return tips[number-1].ID.Seq, nil
}

// agePoint returns the record of a point "@-5s" or "@+5s".
func (c *Catalog) agePoint(point string) (uint64, error) {
	age, err := time.ParseDuration(point[2:])
	if err != nil || age < 0 {
		return 0, badPoint(point)
	}
	if point[1] == '+' {
		return c.after(age)
	}
	return c.before(age)
}

// after returns the first tick on the path to the newest state that is newer than the oldest tick
// by at least the given duration. The oldest tick is that of the oldest loadable state, even if
// older ticks are readable.
func (c *Catalog) after(age time.Duration) (uint64, error) {
	way := slices.Collect(c.Log.Ancestors(c.End()))
	var first time.Time
	oldest := c.first()
	for _, e := range slices.Backward(way) {
		if e.ID.Seq < oldest || e.Lost() {
			continue
		}
		t, err := c.Read(e)
		if err != nil {
			return 0, err
		}
		if first.IsZero() {
			first = t.Time
		}
		if t.Time.Sub(first) >= age {
			return e.ID.Seq, nil
		}
	}
	return 0, fmt.Errorf("%w: no tick on the path to the newest state is %v newer than the oldest", format.ErrNotFound, age)
}

// before returns the newest ancestor of the newest state that is older by at least the given
// duration.
func (c *Catalog) before(age time.Duration) (uint64, error) {
	seq, _, err := c.by(func(newest time.Time) time.Time { return newest.Add(-age) })
	if errors.Is(err, errTooEarly) {
		if err := c.Removed(fmt.Sprintf("the state %v before the newest one was", age)); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("%w: the newest state has no ancestor that is %v older", format.ErrNotFound, age)
	}
	return seq, err
}

// timePoint returns the record of a point that is a clock time.
func (c *Catalog) timePoint(point string) (uint64, error) {
	then, ok := clock(point[1:])
	if !ok {
		return 0, badPoint(point)
	}
	var at string
	seq, oldest, err := c.by(func(newest time.Time) time.Time {
		t := then(newest)
		at = t.UTC().Format(time.RFC3339Nano)
		return t
	})
	if errors.Is(err, errTooEarly) {
		switch removed := c.Removed(fmt.Sprintf("the state at %s was", at)); {
		case removed != nil:
			return 0, removed
		case oldest.IsZero():
			return 0, fmt.Errorf("%w: %s: no tick has a commit time", format.ErrNotFound, point)
		}
		return 0, fmt.Errorf("%w: %s is before the first tick, which was committed at %s", format.ErrNotFound, at, oldest.UTC().Format(time.RFC3339Nano))
	}
	return seq, err
}

// clock parses a time, or a time of day without a date. The time is in UTC unless the text has a
// zone. The argument of the resulting function is the time of the newest state. For a time of day,
// the function returns its last occurrence up to that time. Otherwise it returns the parsed time.
func clock(text string) (then func(newest time.Time) time.Time, ok bool) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return func(time.Time) time.Time { return t }, true
		}
	}
	for _, form := range []string{time.TimeOnly, "15:04"} {
		if t, err := time.Parse(form, text); err == nil {
			// t has only a time of day. Use the date of the newest state.
			return func(newest time.Time) time.Time {
				year, month, day := newest.UTC().Date()
				if t = t.AddDate(year-t.Year(), int(month-t.Month()), day-t.Day()); t.After(newest) {
					return t.AddDate(0, 0, -1)
				}
				return t
			}, true
		}
	}
	return nil, false
}

// errTooEarly reports a time before all ticks.
var errTooEarly = errors.New("no tick is as old")

// by() returns the newest record that was committed at or before a limit. The function then()
// computes the limit from the time of the newest state. by() walks back from the newest state, and
// stops at the first record that is old enough. A binary search is impossible, because the writer's
// clock may have gone backwards. If all records are later, the error is [errTooEarly], and the
// second result is the time of the oldest record.
func (c *Catalog) by(then func(newest time.Time) time.Time) (seq uint64, oldest time.Time, err error) {
	var limit time.Time
	// If the record of the newest state is lost, its snapshot provides the time.
	newest, _ := c.Newest()
	if _, readable := c.Log.Find(newest); !readable {
		if s, ok := c.snapshotAt(newest); ok && !s.Time.IsZero() {
			limit, oldest = then(s.Time), s.Time
			if !oldest.After(limit) {
				return newest, oldest, nil
			}
		}
	}
	for e := range c.Log.Ancestors(c.End()) {
		if e.Lost() {
			continue
		}
		t, err := c.Read(e)
		if err != nil {
			return 0, oldest, err
		}
		// If no snapshot has provided the time of the newest state, use the time of the first
		// readable record.
		if oldest.IsZero() {
			limit = then(t.Time)
		}
		if oldest = t.Time; !oldest.After(limit) {
			return e.ID.Seq, oldest, nil
		}
	}
	return 0, oldest, errTooEarly
}

// record returns seq if the store has a state with this seq. A state can have a snapshot and no
// record. An example is the base, the first state of the store.
func (c *Catalog) record(seq uint64) (uint64, error) {
	// The head is accepted even if its record is lost. Loading its state then returns the reason.
	if _, ok := c.Log.Find(seq); ok || seq == c.Head() {
		return seq, nil
	}
	if _, ok := c.snapshotAt(seq); ok {
		return seq, nil
	}
	if err := c.Removed(fmt.Sprintf("record %d was", seq)); err != nil && c.tooOld(seq) {
		return 0, err
	}
	return 0, fmt.Errorf("%w: record %d; there are %d", format.ErrNotFound, seq, len(c.Log.Entries))
}

// snapshotPoint returns the record of the snapshot with this number or name. A snapshot's name is
// never a number.
func (c *Catalog) snapshotPoint(name string) (uint64, error) {
	number, err := strconv.ParseUint(name, 10, 64)
	if err != nil && format.CheckLabel(name) != nil {
		return 0, badPoint("snap:" + name)
	}
	// At most one snapshot has the name: see names.go.
	for _, s := range slices.Backward(c.Snapshots) {
		if err == nil && uint64(s.Number) == number || err != nil && s.Label == name && name != "" {
			return s.ID.Seq, s.Err
		}
	}
	if n := len(c.Snapshots); err == nil && n > 0 && number < uint64(c.Snapshots[n-1].Number) {
		if err := c.Removed(fmt.Sprintf("snapshot %s was", name)); err != nil {
			return 0, err
		}
	}
	if err == nil {
		return 0, fmt.Errorf("%w: snapshot %s; there are %d", format.ErrNotFound, name, len(c.Snapshots))
	}
	var labels []string
	for _, s := range c.Snapshots {
		if s.Label != "" {
			labels = append(labels, s.Label)
		}
	}
	return 0, fmt.Errorf("%w: slot %q; %s", format.ErrNotFound, name, insteadOf(name, labels))
}

// snapshotAt returns a readable snapshot of the state after record seq.
func (c *Catalog) snapshotAt(seq uint64) (SnapshotInfo, bool) {
	for _, s := range c.Snapshots {
		if s.Err == nil && s.ID.Seq == seq {
			return s, true
		}
	}
	return SnapshotInfo{}, false
}

// tickPoint returns the record of a tick on the path to the newest state. If that path lacks the
// tick, tickPoint searches the path to the head. In a damaged store, the head may be a later record
// whose state cannot be loaded.
func (c *Catalog) tickPoint(tick uint64) (uint64, error) {
	s := tickSearch{Catalog: c, tick: tick}
	// After a rewind, several branches can have a tick with this number. The path to the newest
	// state has one of them.
	newest, _ := c.Newest()
	if newest != c.End() && s.inSnapshot(newest) {
		return newest, nil
	}
	for _, end := range slices.Compact([]uint64{c.End(), c.Head()}) {
		if seq, ok := s.onPath(end); ok {
			return seq, nil
		}
	}
	return 0, s.notFound("the newest state")
}

// tickBefore returns the newest record with this tick on the path to record end. The parameter
// point names record end in messages.
func (c *Catalog) tickBefore(tick uint64, point string, end uint64) (uint64, error) {
	s := tickSearch{Catalog: c, tick: tick}
	if seq, ok := s.onPath(end); ok {
		return seq, nil
	}
	return 0, s.notFound(naming.Shown(point))
}

// A tickSearch searches for a tick, and keeps the nearest ticks that it saw.
type tickSearch struct {
	*Catalog
	tick                uint64
	before, after       uint64 // The nearest ticks before and after the wanted tick.
	hasBefore, hasAfter bool   // Whether the search saw such ticks.
}

// see reports whether the tick of a state is the wanted tick.
func (s *tickSearch) see(tick uint64) bool {
	switch {
	case tick < s.tick && (!s.hasBefore || tick > s.before):
		s.before, s.hasBefore = tick, true
	case tick > s.tick && (!s.hasAfter || tick < s.after):
		s.after, s.hasAfter = tick, true
	}
	return tick == s.tick
}

// inSnapshot reports whether a snapshot of the state after record seq has the wanted tick. The
// snapshot's state may have no record.
func (s *tickSearch) inSnapshot(seq uint64) bool {
	info, ok := s.snapshotAt(seq)
	return ok && s.see(info.Tick)
}

// onPath returns the newest record with the tick on the path to the record with number end.
func (s *tickSearch) onPath(end uint64) (seq uint64, ok bool) {
	seq = end
	for e := range s.Log.Ancestors(end) {
		if s.see(e.Tick) {
			return e.ID.Seq, true
		}
		seq = e.Parent
	}
	return seq, s.inSnapshot(seq)
}

// notFound returns the error for a tick that is not on the path to a state.
func (s *tickSearch) notFound(state string) error {
	if err := s.Removed(fmt.Sprintf("tick %d was", s.tick)); err != nil && !s.hasBefore {
		return err
	}
	nearest := "has no ticks"
	switch {
	case s.hasBefore && s.hasAfter:
		nearest = fmt.Sprintf("has ticks %d and %d, but none between", s.before, s.after)
	case s.hasBefore:
		nearest = fmt.Sprintf("ends with tick %d", s.before)
	case s.hasAfter:
		nearest = fmt.Sprintf("begins with tick %d", s.after)
	}
	return fmt.Errorf("%w: tick %d; the path to %s %s", format.ErrNotFound, s.tick, state, nearest)
}

// A Mark is a name that the program gave a tick.
type Mark struct {
	Name   string
	Seq    uint64
	Tick   uint64
	Time   time.Time // Commit time of the tick.
	OnHead bool      // The tick is the head or an ancestor of the head.
}

// Marks lists the names in the journal in commit order. It reads only ticks with marks. Damage does
// not stop Marks: the result has all readable marks, and err is the first damage. Marks skips ticks
// that the writing program removes meanwhile.
func (c *Catalog) Marks(ctx context.Context) (marks []Mark, err error) {
	for _, e := range c.Log.Entries {
		if e.Flags&format.FlagMarks == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return marks, err
		}
		t, bad := c.Read(e) // Names need no schema, and the schema may be lost.
		switch {
		case errors.Is(bad, format.ErrNotFound):
			continue
		case errors.Is(bad, format.ErrCorrupt):
			err = cmp.Or(err, bad)
			continue
		case bad != nil:
			return marks, bad
		}
		for _, name := range t.Marks {
			marks = append(marks, Mark{name, e.ID.Seq, t.Tick, t.Time, c.IsOnHead(e.ID.Seq)})
		}
	}
	return marks, err
}

// hasMark reports whether the tick of e has this name.
func (c *Catalog) hasMark(e journal.Entry, name string) (bool, error) {
	if e.Flags&format.FlagMarks == 0 || e.Lost() {
		return false, nil
	}
	t, err := c.Read(e)
	return err == nil && slices.Contains(t.Marks, name), err
}

// markPoint returns the newest record with this name on the path to the newest state. Otherwise it
// searches the path to the head, and then all branches.
func (c *Catalog) markPoint(name string) (uint64, error) {
	if format.CheckName("a mark's name", name) != nil {
		return 0, badPoint("mark:" + name)
	}
	for _, end := range slices.Compact([]uint64{c.End(), c.Head()}) {
		for e := range c.Log.Ancestors(end) {
			if found, err := c.hasMark(e, name); found || err != nil {
				return e.ID.Seq, err
			}
		}
	}
	for _, e := range slices.Backward(c.Log.Entries) {
		if found, err := c.hasMark(e, name); found || err != nil {
			return e.ID.Seq, err
		}
	}
	return 0, c.noMark(name)
}

// noMark returns the error for an unknown mark name. It suggests existing names.
func (c *Catalog) noMark(name string) error {
	marks, err := c.Marks(context.Background())
	if err != nil {
		return err
	}
	names := make([]string, len(marks))
	for i, m := range marks {
		names[i] = m.Name
	}
	err = fmt.Errorf("%w: mark %q; %s", format.ErrNotFound, name, insteadOf(name, names))
	if oldest, ok := c.OldestBase(c.End()); ok && c.Removed("") != nil {
		err = fmt.Errorf("%w; those before record %d, tick %d, were pruned", err, oldest.ID.Seq, oldest.Tick)
	}
	return err
}

// insteadOf suggests existing names for an unknown one: similar names, or a few others.
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
