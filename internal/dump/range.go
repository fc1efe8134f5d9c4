package dump

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// Every command writes a range as A..B. Each row has commands, and what the range means for them:
//
//	log, stats                    a span: all records from A to B, on any branch
//	bisect, plot, panel, export   the states on the path from A to B, which must descend from A
//	history, export               the changes of the ticks on this path, those of tick A included
//	diff                          the states A and B
//
// Export writes states as tables and traces, and changes in the other formats. The ticks of a path
// increase, but a record of Store.MarkLast repeats the tick before it. A span may have several
// records of one tick, because it includes rewound records.

// A span is a range of records, limited by ticks, record numbers or both.
type span struct {
	firstTick, lastTick uint64
	firstSeq, lastSeq   uint64
}

// holds reports whether record e is in the range r.
func (r span) holds(e journal.Entry) bool {
	return r.firstTick <= e.Tick && e.Tick <= r.lastTick && r.firstSeq <= e.ID.Seq && e.ID.Seq <= r.lastSeq
}

// span parses A..B, A.., ..B or a single point. For example, 100..record:88 is the range of records
// with a tick of at least 100 and a number of at most 88.
func (s *source) span(text string) (span, error) {
	r := span{0, math.MaxUint64, 0, math.MaxUint64}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	if err := s.setBound(first, &r.firstTick, &r.firstSeq); err != nil {
		return r, err
	}
	if err := s.setBound(last, &r.lastTick, &r.lastSeq); err != nil {
		return r, err
	}
	if r.firstTick > r.lastTick || r.firstSeq > r.lastSeq {
		return r, fail(exitUsage, describe.Command("log", s.path, last+".."+first), "the range %s runs backwards", text)
	}
	return r, nil
}

// recordsIn returns the records of the range in args, or all records without a range. If no record
// is in the range, it returns an error that names the available records.
func (s *source) recordsIn(args []string) ([]journal.Entry, error) {
	if len(args) == 0 {
		return s.Log().Entries, nil
	}
	r, err := s.span(args[0])
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(s.Log().Entries), func(e journal.Entry) bool { return !r.holds(e) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no record in %s; the journal has %s", persist.ErrNotFound, args[0], s.journal())
	}
	return chosen, nil
}

// setBound sets tick or seq to the value of a point. It sets neither if the point is empty.
func (s *source) setBound(text string, tick, seq *uint64) (err error) {
	if text == "" {
		return nil
	}
	// A tick number may name records on several branches, so do not resolve it to one record.
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		*tick = n
		return nil
	}
	*seq, err = s.Resolve(text)
	if errors.Is(err, persist.ErrPoint) {
		err = fmt.Errorf("%w; a range is A..B, A.. or ..B", err)
	}
	return err
}

// parseRange splits the range of a path into two points: A..B, A.., ..B or "..". A single point is
// both ends.
func parseRange(text string) (first, last string, err error) {
	switch {
	case isRange(text):
		first, last, _ = strings.Cut(text, "..")
		return first, last, nil
	case isPoint(text):
		return text, text, nil
	}
	return "", "", fail(exitUsage, "", "%q is not a range; write A..B, A.. or ..B, where A and B are points in time", text)
}

// isRange reports whether text has the form of a range with two dots.
func isRange(text string) bool {
	first, last, ok := strings.Cut(text, "..")
	return ok && (first == "" || isPoint(first)) && (last == "" || isPoint(last))
}

// resolveEnds returns the records of two points. If the first point is "", its record is 0. If the
// first point is a tick, its record is on the path to the last point.
func (s *source) resolveEnds(first, last string) (from, to uint64, err error) {
	if to, err = s.Resolve(last); err != nil || first == "" {
		return from, to, err
	}
	if isTick(first) && last != "" && !isTick(last) {
		first += "@" + last
	}
	from, err = s.Resolve(first)
	return from, to, err
}

// beforeTick returns the record of the state before the tick of record seq. A tick has several
// records if the program committed it again, to add marks. It returns false if no state before the
// tick can be reconstructed.
func (s *source) beforeTick(seq uint64) (before uint64, ok bool) {
	e, ok := s.Log().Known(seq)
	for ok {
		parent, known := s.Log().Known(e.Parent)
		if !known || parent.Tick != e.Tick {
			return e.Parent, s.oldest(seq) <= e.Parent
		}
		e = parent
	}
	return 0, false
}

// ends are the arguments of diff after the first store: two points, or a second store.
type ends struct {
	a, b  string // Points of the first store.
	store string // The second store; if set, a and b are empty.
}

// diffEnds parses the arguments of diff. A text in the form of a point is a point, and any other
// text is a second store. The path of a file with such a name is ./100.
//
//	diff D              @latest~1 and the newest state
//	diff D 100          100 and the newest state
//	diff D 100 200      100 and 200
//	diff D 100..200     100 and 200; ..200 starts at @first, 100.. ends at the newest state
//	diff D E            a second store, since E is not a point
//
// An empty point is the newest state.
func diffEnds(args []string) ends {
	switch {
	case len(args) == 1:
		return ends{a: "@latest~1"}
	case len(args) == 3:
		return ends{a: args[1], b: args[2]}
	// Check for a range first: the name in a point may contain dots, as in snap:2..9.
	case isRange(args[1]):
		first, last, _ := strings.Cut(args[1], "..")
		return ends{a: cmp.Or(first, "@first"), b: last}
	case isPoint(args[1]):
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text has the form of a point in time, as in 100, @latest~1, mark:boss or
// 100@tip:1. The point may be unknown.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	if tick, end, ok := strings.Cut(text, "@"); ok && isTick(tick) {
		text = end
	}
	// Lower-case letters before a colon are the kind of a point, as in mark:boss. But C:\game,
	// ./a:b and URLs are paths.
	kind, name, ok := strings.Cut(text, ":")
	ok = ok && !strings.HasPrefix(name, "//")
	return text != "" && (isTick(text) || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}

// isTick reports whether text is a number of decimal digits.
func isTick(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
