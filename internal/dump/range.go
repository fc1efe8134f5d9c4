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

// Every command writes a range as A..B. Each row has commands, and what the range means for them:
//
//	log, stats                    a span: all records from A to B, on any branch
//	history, bisect, plot, panel  the path from state A to state B, which must descend from A
//	diff, export                  the states A and B; export also has the changes of each tick
//
// A path has one record for each tick. A span may have several records of one tick, because it
// includes rewound records.

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

// resolveEnds returns the records of two points. If the first point is "", its record is 0.
func (s *source) resolveEnds(first, last string) (from, to uint64, err error) {
	if to, err = s.Resolve(last); err == nil && first != "" {
		from, err = s.Resolve(first)
	}
	return from, to, err
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
	}
	if first, last, ok := strings.Cut(args[1], ".."); ok && (isPoint(first) || first == "") && (isPoint(last) || last == "") {
		if first == "" {
			first = "@first"
		}
		return ends{a: first, b: last}
	}
	// Check for a range first: the name in a point may contain dots, as in snap:2..9.
	if isPoint(args[1]) {
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text has the form of a point in time, as in 100, @latest~1 or mark:boss.
// The point may be unknown.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	// Lower-case letters before a colon are the kind of a point, as in mark:boss. But C:\game,
	// ./a:b and URLs are paths.
	digits := strings.Trim(text, "0123456789") == ""
	kind, name, ok := strings.Cut(text, ":")
	ok = ok && !strings.HasPrefix(name, "//")
	return text != "" && (digits || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}
