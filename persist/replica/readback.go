package replica

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// How often an owner reads its log back.
const (
	readBackEvery  = time.Minute      // Interval between two readings of the new entries.
	readAllEvery   = 10               // Every readAllEvery-th reading reads the whole log.
	readBackSpread = 3 * time.Second  // Longest random delay after a failure.
	readBackClaim  = 8 * time.Second  // Longest random delay after a claim.
	readBackIdle   = 10 * time.Second // How long a reading waits for the next entry.
)

// watch reads the log back until ctx ends, as a new follower would. If an entry stays missing, no
// new follower can read the log. Then, watch sends all files again and trims the log.
//
// It reads new entries regularly. It reads the whole log soon after the claim and after each
// failure, because a restarted server may not show all of its entries.
func (o *Owner) watch(ctx context.Context) {
	var read link // The last entry that was read back. Zero before the first reading.
	// next is the time of the next reading. A reading after the time all covers the whole log.
	var next, all time.Time
	failures, trims := o.sender.monitor.failures(), o.trims.Load()
	every := o.f.options.readBack()
	// Worlds that recover together must not read at the same time.
	next = time.Now().Add(rand.N(min(every, readBackClaim)))
	for ; ctx.Err() == nil; pause(ctx, min(time.Second, every)) {
		now := time.Now()
		if n := o.sender.monitor.failures(); n != failures {
			failures, next, all = n, now.Add(rand.N(min(every, readBackSpread))), now
		}
		if now.Before(next) || o.Err() != nil {
			continue
		}
		if n := o.trims.Load(); n != trims || !now.Before(all) {
			trims, read = n, link{}
		}
		upto, err := o.readBack(ctx, read)
		if read == (link{}) && err == nil {
			all = now.Add(readAllEvery * every)
		}
		if errors.Is(err, ErrHole) && o.rebase(ctx) == nil {
			o.sender.monitor.addRepair()
			all = now
			continue
		}
		if err == nil { // After an error, the reading is retried after a second.
			read, next = upto, now.Add(every)
		}
	}
}

// readBack reads the entries after a given one, up to the last entry that the owner appended. It
// returns the link of that last entry. If a reading fails twice, readBack returns a [HoleError]. A
// reading fails if an entry is missing, even on the server that decides on appends. A reading from
// the beginning also fails if it finds no complete store.
func (o *Owner) readBack(ctx context.Context, from link) (upto link, err error) {
	for range 2 {
		trims := o.trims.Load()
		s := o.sender
		s.order.Lock()
		upto = s.at[0]
		s.order.Unlock()
		if upto == from {
			return upto, nil
		}
		err = (&logReading{log: s.log, at: from, whole: from != link{}}).run(ctx, upto)
		if o.trims.Load() != trims {
			return upto, errTrimmed
		}
		if !errors.Is(err, ErrHole) {
			return upto, err
		}
		pause(ctx, min(time.Second, o.f.options.readBack()))
	}
	return upto, err
}

// A logReading reads the entries of a log and checks them, without writing any files.
type logReading struct {
	log   Log
	at    link // The last valid entry.
	end   Position
	begun bool // Whether the beginning of a store was read.
	whole bool // Whether a complete store was read.
}

// run reads the log up to an entry.
func (r *logReading) run(ctx context.Context, upto link) error {
	r.end = r.at.Position
	waiting, done := context.WithCancel(ctx)
	defer done()
	idle := time.AfterFunc(readBackIdle, done)
	defer idle.Stop()
	for e, err := range r.log.Entries(waiting, r.end) {
		idle.Reset(readBackIdle)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		// The last entry did not arrive in time, so treat it as missing.
		case waiting.Err() != nil:
			e.Position = upto.Position + 1
		case err != nil:
			return err
		}
		if !r.addEntry(e) {
			if err := r.fillGap(ctx, min(e.Position, upto.Position)); err != nil {
				return err
			}
			if r.end < min(e.Position, upto.Position) && !r.addEntry(e) {
				return &HoleError{After: r.at.Position, Next: e.Position}
			}
		}
		if r.end >= upto.Position {
			break
		}
	}
	if r.at.Position < upto.Position || r.at.Position == upto.Position && r.at != upto || !r.whole {
		return &HoleError{After: r.at.Position, Next: upto.Position}
	}
	return nil
}

// fillGap reads the missing entries up to a position from the server that decides on appends.
func (r *logReading) fillGap(ctx context.Context, upto Position) error {
	for {
		e, err := r.log.Next(ctx, r.end)
		switch {
		case err != nil:
			return err
		case e.Position == 0 && r.end < upto:
			return errOldAnswer
		case e.Position == 0, e.Position > upto:
			return nil
		}
		if !r.addEntry(e) {
			return &HoleError{After: r.at.Position, Next: e.Position}
		}
	}
}

// addEntry processes an entry. It returns false if the entry is damaged, or if preceding entries
// are missing.
func (r *logReading) addEntry(e Entry) bool {
	h, ops, err := decodeEntry(e.Data)
	if err != nil {
		return false
	}
	switch {
	// If r.at is zero, e is the oldest entry of the log. The entry before it may be trimmed.
	case h.before == r.at || r.at == link{}:
	case h.before.Position > r.end:
		return false
	default:
		r.end = e.Position // The entry is not valid, so it is skipped.
		return true
	}
	r.at, r.end = link{e.Position, h.id}, e.Position
	for _, o := range ops {
		switch o.kind {
		case opBegin, opClaim: // A claim ends the store that the previous owner was sending.
			r.begun = o.kind == opBegin
		case opComplete:
			r.whole = r.whole || r.begun
		}
	}
	return true
}
