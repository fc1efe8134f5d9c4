package replica

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// How often an owner reads its log back: what came since the last time, and all of it.
const (
	readBackEvery  = time.Minute
	readAllEvery   = 10               // Times readBackEvery.
	readBackSpread = 3 * time.Second  // After a failure, within that time.
	readBackClaim  = 8 * time.Second  // After a claim, within that time.
	readBackIdle   = 10 * time.Second // How long it waits for the next entry.
)

// watch reads the log back until ctx ends, as a machine reads that begins to follow. If an entry is
// missing for good, no new machine could follow: so the owner sends all files once more and trims
// the log. It reads all of the log soon after its claim and after the log failed: servers that
// begin again may not show what they have.
func (o *Owner) watch(ctx context.Context) {
	defer close(o.watched)
	var read link           // The last entry that was read back; zero: none was.
	var next, all time.Time // When the log is read again, and when all of it.
	failures, trims := o.sender.monitor.failures(), o.trims.Load()
	every := o.f.options.readBack()
	// Worlds that recover together do not read together.
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
			o.sender.monitor.heal()
			all = now
			continue
		}
		if err == nil { // Else it is tried again in a second.
			read, next = upto, now.Add(every)
		}
	}
}

// readBack reads the entries behind from up to the last that was appended, and returns that one. It
// returns a [HoleError] if the server that decides on appends does not show one of them, twice in
// turn, or if all entries do not hold a whole store.
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
		err = (&reading{log: s.log, at: from, whole: from != link{}}).run(ctx, upto)
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

// A reading follows the entries of a log without files.
type reading struct {
	log   Log
	at    link // The last entry that counts.
	end   Position
	begun bool // The beginning of a store was read,
	whole bool // and its end.
}

// run reads up to an entry.
func (r *reading) run(ctx context.Context, upto link) error {
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
		case waiting.Err() != nil: // Entries does not show the last one.
			e.Position = upto.Position + 1
		case err != nil:
			return err
		}
		if !r.take(e) {
			if err := r.fill(ctx, min(e.Position, upto.Position)); err != nil {
				return err
			}
			if r.end < min(e.Position, upto.Position) && !r.take(e) {
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

// fill reads the entries up to a position from the server that decides on appends.
func (r *reading) fill(ctx context.Context, upto Position) error {
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
		if !r.take(e) {
			return &HoleError{After: r.at.Position, Next: e.Position}
		}
	}
}

// take reads an entry. It returns false if the entry is damaged, or if entries before it are
// missing.
func (r *reading) take(e Entry) bool {
	h, ops, err := decodeEntry(e.Data)
	if err != nil {
		return false
	}
	switch {
	case h.before == r.at || r.at == link{}: // The log may begin anywhere.
	case h.before.Position > r.end:
		return false
	default:
		r.end = e.Position // It does not count.
		return true
	}
	r.at, r.end = link{e.Position, h.id}, e.Position
	for _, o := range ops {
		switch o.kind {
		case opBegin, opClaim: // A claim ends what the owner before was sending.
			r.begun = o.kind == opBegin
		case opComplete:
			r.whole = r.whole || r.begun
		}
	}
	return true
}
