package dump

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A span is a range of records. An end that is a tick bounds ticks, on all
// branches; another point bounds the order in the journal.
type span struct {
	firstTick, lastTick uint64
	firstSeq, lastSeq   uint64
}

func (r span) holds(e journal.Entry) bool {
	return r.firstTick <= e.Tick && e.Tick <= r.lastTick && r.firstSeq <= e.ID.Seq && e.ID.Seq <= r.lastSeq
}

// span reads A..B, A.., ..B or a single point.
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

// chosen returns the records that the optional range in args names.
func (s *source) chosen(args []string) ([]journal.Entry, error) {
	if len(args) == 0 {
		return s.Log().Entries, nil
	}
	r, err := s.span(args[0])
	if err != nil {
		return nil, err
	}
	var chosen []journal.Entry
	for _, e := range s.Log().Entries {
		if r.holds(e) {
			chosen = append(chosen, e)
		}
	}
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
