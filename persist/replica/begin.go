package replica

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// begin brings the files of this machine to the end of the log. The file named state names the last
// entry that the store includes. begin continues with the next entry, except in these cases:
//
//   - There is neither a store nor a state: Read the log from the beginning.
//   - There is a store without a state, and the log is new: Keep the store. The first claim sends
//     it to the log.
//   - There is a store without a state, and the log has or had entries: This is an error.
//   - The state is damaged, or the files do not match it: Quarantine the store, and read the log
//     from the beginning.
//   - The next entries were trimmed: Read the log from its oldest entry.
//   - The log ends before the entry in state: This is an error. With Forget, read the log from the
//     beginning.
//   - The log was emptied before this machine had all entries: This is an error. With Forget, keep
//     the store. The next claim sends it to the log.
func (f *Follower) begin(ctx context.Context) error {
	s, err := readState(f.files)
	damaged := errors.Is(err, errState)
	if err != nil && !damaged {
		return err
	}
	var known Position
	if s != nil {
		known = s.At.Position
	}
	first, last, err := f.bounds(ctx, known)
	if err != nil {
		return err
	}
	names, err := newReplicaFiles(f.files, storeDir, f.aside).names()
	lies := len(names) > 0 // Whether this machine has a store.
	switch {
	case err != nil:
		return err
	case s == nil && lies && last > 0 && !damaged:
		return fmt.Errorf("%w: %s holds a store that belongs to another log", persist.ErrForeign, storeDir)
	case first == 0 && last > 0 && (s == nil || s.Files == nil || s.At.Position != last):
		if !f.options.Forget {
			return fmt.Errorf("%w: the log is empty and ended at %d, and this machine does not have all of its entries; let a machine that has all of them claim the log and send its store with Rebase", ErrLogShorter, last)
		}
		f.at, f.end, f.owned, f.origin = trail{{Position: last}}, last, lies, lies
	case s == nil:
		f.owned, f.origin = lies && damaged, lies && last == 0
	case last < s.At.Position && !f.options.Forget:
		return &ShorterError{Known: s.At.Position, Last: last}
	case last < s.At.Position:
		f.owned = true
	default:
		err = f.resumeState(ctx, s, first)
	}
	if err == nil {
		err = f.catchUp(ctx, last)
	}
	// The file state includes operations that the files lack. So read the log again from its
	// beginning.
	if errors.Is(err, errGap) {
		f.tree, f.next, f.at, f.end, f.owned = nil, nil, trail{}, 0, true
		err = f.catchUp(ctx, last)
	}
	if err != nil {
		return err
	}
	return f.saveState()
}

// bounds returns the bounds of the log. If the log seems to end before a known position, the answer
// may be stale, so bounds retries for a while.
func (f *Follower) bounds(ctx context.Context, known Position) (first, last Position, err error) {
	err = f.retry(ctx, func() error {
		if first, last, err = f.log.Bounds(ctx); err == nil && last < known {
			err = errOldAnswer
		}
		return err
	})
	if errors.Is(err, errOldAnswer) {
		err = nil
	}
	return first, last, err
}

// retry repeats try() after a stale answer, a missing entry, or a damaged entry. It gives up after
// the duration Options.sure.
func (f *Follower) retry(ctx context.Context, try func() error) error {
	begun, tries := time.Now(), backoff{5 * time.Millisecond, 100 * time.Millisecond}
	for {
		err := try()
		if !errors.Is(err, errOldAnswer) && !errors.Is(err, ErrHole) && !errors.Is(err, errEntry) || time.Since(begun) > f.options.sure() || ctx.Err() != nil {
			return err
		}
		tries.pause(ctx)
	}
}

// resumeState continues from the file state s. If entries after this state were trimmed from the
// log, the caller reads all entries again.
func (f *Follower) resumeState(ctx context.Context, s *state, first Position) error {
	f.term, f.info, f.owned, f.origin, f.logged = s.Term, s.Info, s.Owner, s.First, s.Logged
	if s.Files == nil || first > s.At.Position+1 {
		// Read all entries again.
		return nil
	}
	// If the log is empty or begins after s.At, it has no entry to compare with s.At.
	if first > 0 && first <= s.At.Position {
		at := s.trail()
		err := f.retry(ctx, func() error { return at.check(ctx, f.log) })
		switch {
		// The entry was trimmed after the call of bounds().
		case errors.Is(err, errTrimmed):
			return nil
		case errors.Is(err, ErrLogShorter) && f.options.Forget:
			f.owned = true
			return nil
		case err != nil:
			return err
		}
	}
	f.offer.set(s.Offer)
	f.at, f.end, f.tree = s.trail(), s.At.Position, newReplicaFiles(f.files, storeDir, f.aside)
	maps.Copy(f.tree.sizes, s.Files)
	maps.Copy(f.tree.parts, s.Parts)
	return nil
}

// catchUp applies the entries up to last. Then it quarantines files and bytes that the log does not
// have. This needs a complete store in the log. Without one, completeStore() does it later.
func (f *Follower) catchUp(ctx context.Context, last Position) error {
	err := f.retry(ctx, func() error { return f.read(ctx, &last) })
	if !errors.Is(err, errReached) {
		return err
	}
	if f.tree == nil {
		return nil
	}
	if err := f.tree.tidyDirs(); err != nil {
		return err
	}
	f.owned = false
	return nil
}
