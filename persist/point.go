package persist

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Resolve returns the record that a point in time names. It may be
//
//	""  @latest      the head
//	@latest~10       10 ticks before the head
//	@first           the oldest state the head comes from
//	@-5s             the newest tick at least 5 seconds older than the head
//	1200             tick 1200 on the way to the head
//	seq:88           record 88, on whatever branch
//	snap:3           the state in snapshot file 3
//	snap:NAME        the state in the snapshot that the program gave this name
//
// An error wraps [ErrNotFound] if the store has no such point, and [ErrPoint] if
// it is written otherwise.
func (v *View) Resolve(point string) (seq uint64, err error) {
	number := func(s string) (n uint64) {
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = badPoint(point)
		}
		return n
	}
	switch name, rest, _ := strings.Cut(point, ":"); {
	case point == "" || point == "@latest":
		return v.Head(), nil
	case point == "@first":
		return v.back(math.MaxUint64, true)
	case strings.HasPrefix(point, "@latest~"):
		if n := number(point[len("@latest~"):]); err == nil {
			return v.back(n, false)
		}
	case strings.HasPrefix(point, "@-"):
		age, err := time.ParseDuration(point[2:])
		if err != nil || age < 0 {
			return 0, badPoint(point)
		}
		return v.before(age)
	case name == "seq":
		if n := number(rest); err == nil {
			return v.record(n)
		}
	case name == "snap":
		return v.snapshotPoint(rest)
	default:
		if n := number(point); err == nil {
			return v.tickPoint(n)
		}
	}
	return 0, err
}

func badPoint(point string) error {
	return fmt.Errorf("%w: %q; write a tick, @latest~N, @first, @-5s, seq:N, snap:N or snap:NAME", ErrPoint, point)
}

// back returns the record n ticks before the head.
func (v *View) back(n uint64, orOldest bool) (uint64, error) {
	seq := v.Head()
	for i := uint64(0); i < n; i++ {
		e, ok := v.log.Find(seq)
		if !ok {
			if orOldest {
				return seq, nil
			}
			return 0, fmt.Errorf("%w: the head has only %d ticks before it", ErrNotFound, i)
		}
		seq = e.Parent
	}
	return seq, nil
}

// before returns the newest ancestor of the head that is older than it by age.
func (v *View) before(age time.Duration) (uint64, error) {
	var head time.Time
	for e := range v.log.Ancestors(v.Head()) {
		t, _, err := v.tick(e)
		if err != nil {
			return 0, err
		}
		if head.IsZero() {
			head = t.time
		}
		if head.Sub(t.time) >= age {
			return e.ID.Seq, nil
		}
	}
	return 0, fmt.Errorf("%w: the head has no ancestor that is %v older", ErrNotFound, age)
}

func (v *View) record(seq uint64) (uint64, error) {
	if _, ok := v.log.Find(seq); ok || seq == v.Head() {
		return seq, nil
	}
	for _, s := range v.snapshots {
		if s.Err == nil && s.ID.Seq == seq {
			return seq, nil
		}
	}
	return 0, fmt.Errorf("%w: record %d; there are %d", ErrNotFound, seq, len(v.log.Entries))
}

func (v *View) snapshotPoint(name string) (uint64, error) {
	number, err := strconv.ParseUint(name, 10, 64)
	if err != nil && checkLabel(name) != nil {
		return 0, badPoint("snap:" + name)
	}
	for _, s := range slices.Backward(v.snapshots) {
		if err == nil && uint64(s.Number) == number || err != nil && s.Label == name && name != "" {
			return s.ID.Seq, s.Err
		}
	}
	return 0, fmt.Errorf("%w: snapshot %s; there are %d", ErrNotFound, name, len(v.snapshots))
}

// tickPoint returns the record of a tick on the way to the head.
func (v *View) tickPoint(tick uint64) (uint64, error) {
	seq := v.Head()
	low, high := uint64(math.MaxUint64), uint64(0)
	for e := range v.log.Ancestors(seq) {
		if e.Tick == tick {
			return e.ID.Seq, nil
		}
		seq, low, high = e.Parent, min(low, e.Tick), max(high, e.Tick)
	}
	for _, s := range v.snapshots { // The base has no record.
		if s.Err == nil && s.ID.Seq == seq {
			if s.Tick == tick {
				return seq, nil
			}
			low, high = min(low, s.Tick), max(high, s.Tick)
		}
	}
	return 0, fmt.Errorf("%w: tick %d; the way to the head has ticks %d to %d", ErrNotFound, tick, low, high)
}
