package dump

import (
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

// Every command writes a range as A..B, but a range has one of three meanings:
//
//	log, stats                    a span: records in journal order, on any branch
//	history, bisect, plot, panel  the path from state A to state B, which must descend from A
//	diff, export                  the states A and B; export also has the changes of each tick
//
// Only a span can have rewound records, and so contain the same tick twice. export writes tables
// from the states of a path, like panel.

// A span is a range of records. If an end of the range is a tick, it limits the ticks, on all
// branches. Any other end limits the record numbers.
type span struct {
	firstTick, lastTick uint64
	firstSeq, lastSeq   uint64
}

// holds reports whether record e is in the range r.
func (r span) holds(e journal.Entry) bool {
	return r.firstTick <= e.Tick && e.Tick <= r.lastTick && r.firstSeq <= e.ID.Seq && e.ID.Seq <= r.lastSeq
}

// span parses A..B, A.., ..B or a single point, which is both ends. The span of 100..record:88 has
// the records with a tick of at least 100 and a number of at most 88.
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
	// A tick limits all branches, so it does not name a single record.
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

// resolveEnds returns the records of two points. from is 0 if first is empty.
func (s *source) resolveEnds(first, last string) (from, to uint64, err error) {
	if to, err = s.Resolve(last); err == nil && first != "" {
		from, err = s.Resolve(first)
	}
	return from, to, err
}

// ends has the two states of diff, or the second store.
type ends struct {
	a, b  string // Points of the first store.
	store string // The second store; if set, a and b are empty.
}

// diffEnds distinguishes points from a second store. A text in the form of a point is a point. A
// file whose name has that form is written as ./100.
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
	}
	if first, last, ok := strings.Cut(args[1], ".."); ok && (isPoint(first) || first == "") && (isPoint(last) || last == "") {
		if first == "" {
			first = "@first"
		}
		return ends{a: first, b: last}
	}
	// The check for a range comes first, because the name in a point may contain dots, as in
	// snap:2..9.
	if isPoint(args[1]) {
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text has the form of a point in time and not of a path. It checks only
// the form: mark:boss is a point even without such a mark. So a misspelled name is reported as an
// unknown mark.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	// Lower-case letters before a colon are the kind of a point, as in mark:boss. These are paths:
	// C:\game; ./a:b, for a file named a:b; and URLs, with // after the colon.
	digits := strings.Trim(text, "0123456789") == ""
	kind, name, ok := strings.Cut(text, ":")
	ok = ok && !strings.HasPrefix(name, "//")
	return text != "" && (digits || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}
