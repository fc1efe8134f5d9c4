package dump

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A span is a range of records. An end that is a tick bounds ticks, on all
// branches; another point bounds the order in the journal.
type span struct {
	firstTick, lastTick uint64
	firstSeq, lastSeq   uint64
}

// holds reports whether e is in r.
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

// A journalDoc describes a journal.
type journalDoc struct {
	Segments  []segmentDoc `json:"segments"`
	Records   int          `json:"records"`
	Rewound   int          `json:"rewound"`    // Records that the newest state does not come from.
	Branches  int          `json:"branches"`   // Records that no readable one continues: 1 if nothing was rewound.
	FirstTick uint64       `json:"first_tick"` // Lowest and highest; 0 if there are no records.
	LastTick  uint64       `json:"last_tick"`
	Clean     bool         `json:"clean"`             // It was closed; nothing can be missing.
	Torn      string       `json:"torn,omitempty"`    // The unfinished end, if there is one.
	Writing   string       `json:"writing,omitempty"` // The end that a running program is writing, if it shows.
	Bytes     int64        `json:"bytes"`
}

// A segmentDoc describes a file of a journal.
type segmentDoc struct {
	File     string `json:"file"` // Relative to STORE.
	Epoch    uint64 `json:"epoch"`
	FirstSeq uint64 `json:"first_seq"`
	Records  int    `json:"records"`
	Bytes    int64  `json:"bytes"`
}

// journal describes the journal.
func (s *source) journal() *journalDoc {
	log := s.Log()
	j := &journalDoc{Records: len(log.Entries), Branches: len(s.Tips()), Clean: log.Clean}
	j.Segments = listed(log.Segments, func(seg journal.Segment) segmentDoc {
		j.Bytes += seg.Size
		return segmentDoc{"journal/" + seg.Name, seg.Epoch, seg.First, seg.Records, seg.Size}
	})
	known := s.rewoundFrom()
	for i, e := range log.Entries {
		if i == 0 {
			j.FirstTick = e.Tick
		}
		j.FirstTick, j.LastTick = min(j.FirstTick, e.Tick), max(j.LastTick, e.Tick)
		if e.ID.Seq >= known {
			j.Rewound++
		}
	}
	for range log.Ancestors(log.Head) {
		j.Rewound--
	}
	if t := log.Torn; t != nil && s.InUse() {
		j.Writing = fmt.Sprintf("journal/%s: %d bytes at offset %d", t.File, t.Length, t.Offset)
	} else if t != nil {
		j.Torn = fmt.Sprintf("journal/%s: %d bytes at offset %d: %s", t.File, t.Length, t.Offset, t.Reason)
	}
	return j
}

// String returns j for people, on one line.
func (j *journalDoc) String() string {
	s := fmt.Sprintf("%s in %s, %s", term.Count(j.Records, "record", "records"), term.Count(len(j.Segments), "segment", "segments"), term.Size(j.Bytes))
	if j.Records > 0 {
		s += fmt.Sprintf(", ticks %d to %d, %s", j.FirstTick, j.LastTick, term.Count(j.Branches, "branch", "branches"))
	}
	if j.Rewound > 0 {
		s += fmt.Sprintf(" (%s rewound)", term.Count(j.Rewound, "record", "records"))
	}
	return s
}
