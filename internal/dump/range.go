package dump

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A range is written A..B in every command, but asks for one of three things:
//
//	log, stats                    records as they stand in the journal, on any branch: a span
//	history, bisect, plot, panel  the way to state B from state A, which B must come from
//	diff, export                  the states A and B; export tells what each tick between them changed
//
// Only a span can hold records that were rewound, and so the same tick twice. Tables of export are
// of the states on the way, as those of panel.

// A span is a range of records. An end that is a tick bounds ticks, on all
// branches; another point bounds the order in the journal.
type span struct {
	firstTick, lastTick uint64
	firstSeq, lastSeq   uint64
}

// holds reports whether e is in r: both its tick and its place in the journal must be.
func (r span) holds(e journal.Entry) bool {
	return r.firstTick <= e.Tick && e.Tick <= r.lastTick && r.firstSeq <= e.ID.Seq && e.ID.Seq <= r.lastSeq
}

// span reads A..B, A.., ..B or a single point. A single point is both ends. An end that is a tick
// leaves the order in the journal open, and the other way round, so that 100..record:88 means both.
func (s *source) span(text string) (span, error) {
	r := span{0, math.MaxUint64, 0, math.MaxUint64}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	if err := s.bound(first, &r.firstTick, &r.firstSeq); err != nil {
		return r, err
	}
	if err := s.bound(last, &r.lastTick, &r.lastSeq); err != nil {
		return r, err
	}
	if r.firstTick > r.lastTick || r.firstSeq > r.lastSeq {
		return r, fail(exitUsage, try("log", s.path, last+".."+first), "the range %s runs backwards", text)
	}
	return r, nil
}

// chosen returns the records that the optional range in args names. None is an error that says
// which there are, rather than an empty list.
func (s *source) chosen(args []string) ([]journal.Entry, error) {
	if len(args) == 0 {
		return s.Log().Entries, nil
	}
	r, err := s.span(args[0])
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(s.Log().Entries), func(e journal.Entry) bool { return !r.holds(e) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: no record in %s; there are %s", persist.ErrNotFound, args[0], s.journal())
	}
	return chosen, nil
}

// bound sets tick or seq to what a point names, neither if it is empty.
func (s *source) bound(text string, tick, seq *uint64) (err error) {
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil { // Of all branches, so it is not resolved.
		*tick = n
		return nil
	}
	*seq, err = s.Resolve(text)
	if errors.Is(err, persist.ErrPoint) {
		err = fmt.Errorf("%w; a range is A..B, A.. or ..B", err)
	}
	return err
}

// resolved returns the records that two points name; 0 for an empty first one.
func (s *source) resolved(first, last string) (from, to uint64, err error) {
	if to, err = s.Resolve(last); err == nil && first != "" {
		from, err = s.Resolve(first)
	}
	return from, to, err
}

// ends are what the arguments of diff name.
type ends struct {
	a, b  string // Points of the one store.
	store string // Else the second one.
}

// diffEnds tells points from a second store. What can be a point is one: a file of such a
// name is written ./100.
//
//	diff D              @latest~1 and the newest
//	diff D 100          100 and the newest
//	diff D 100 200      these two
//	diff D 100..200     these two; ..200 is from @first, 100.. to the newest
//	diff D E            a second store, as E is no point
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
	if isPoint(args[1]) { // After ranges: a name may hold dots, as in snap:2..9.
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text is written like a point in time, not like a path. It asks for
// the form alone: mark:boss is a point whether or not there is such a mark, so that a mistake in
// its name is told as one, and not as a file that is not there.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	// A kind is small letters before a colon: C:\game is a path, and one like a:b is written ./a:b. So
	// is a scheme, with // behind it.
	digits := strings.Trim(text, "0123456789") == ""
	kind, name, ok := strings.Cut(text, ":")
	ok = ok && !strings.HasPrefix(name, "//")
	return text != "" && (digits || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}
