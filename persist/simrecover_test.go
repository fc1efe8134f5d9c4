package persist_test

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// recover opens the files of a crash on mem, continues the store, closes it and verifies all files.
// It returns the number of calls up to the end of closing. With a fault, recover may return the
// error that the fault caused.
func (r *simRun) recover(img simImage, mem *disktest.Mem, fault simFault) (calls int, err error) {
	w := storetest.New(0)
	before := w.Digest()
	s, err := persist.OpenFiles(storetest.Background, mem, w.World, persist.Options{SnapshotBytes: -1})
	if err != nil {
		if w.Digest() != before {
			return 0, fmt.Errorf("Open failed and changed the world: %w", err)
		}
		return 0, fmt.Errorf("recovery: %w", err)
	}
	commit, err := r.judge(img.simPromise, w, s.Report(), fault.n > 0)
	if err == nil {
		w.Fill(1)
		w.Seed.Set(storetest.Seed(commit))
		err = s.Commit()
	}
	if err == nil && img.n%2 == 0 {
		_, err = s.Snapshot(storetest.Background)
	}
	if e := storetest.Closed(s.Close(storetest.Background)); err == nil {
		err = e
	}
	if err != nil {
		return 0, err
	}
	calls = mem.Calls()
	if err := simVerify(mem, w); err != nil {
		return calls, err
	}
	return calls, r.verifyNotes(mem)
}

// simVerify verifies all files on mem. The newest state in them must be that of w.
func simVerify(mem *disktest.Mem, w *storetest.World) error {
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	if err != nil {
		return err
	}
	defer v.Close()
	report, err := v.Verify(storetest.Background)
	if err != nil {
		return err
	}
	if len(report.Problems) > 0 {
		return fmt.Errorf("verifying: %w", errors.Join(report.Problems...))
	}
	im, err := v.At(storetest.Background, v.Head())
	if err != nil {
		return err
	}
	if got, want := im.Digest(), simCommitOf(w.World).all; got != want {
		return fmt.Errorf("after going on and closing, the head has digest %v, want %v", got, want)
	}
	return nil
}

// recoverTwice injects a second failure while the store recovers. Then it recovers again from each
// of:
//
//   - the files after that failure
//   - the files after the failure and a crash
//   - the files after a crash right before the failing call
func (r *simRun) recoverTwice(img simImage, second simFault) error {
	var left []*disktest.Mem
	var failing string
	mem := img.mem.Clone()
	second.arm(mem)
	mem.OnCall(func(n int, call string) {
		if n == second.n {
			failing = call
			left = append(left, mem.Crash(), mem.CrashSeed(uint64(img.n)))
		}
	})
	promise, err := r.reopen(img.simPromise, mem, second, &failing)
	if err != nil {
		return err
	}
	mem.OnCall(nil)
	for _, mem := range left {
		if _, err := r.recover(img, mem, simFault{}); err != nil {
			return fmt.Errorf("crash before %q while recovering: %w", failing, err)
		}
	}
	img.simPromise = promise
	for _, mem := range []*disktest.Mem{mem.Crash(), mem.CrashSeed(uint64(img.n)), mem.Clone()} {
		if _, err := r.recover(img, mem, simFault{}); err != nil {
			return fmt.Errorf("%q failed while recovering, and then %w", failing, err)
		}
	}
	return nil
}

// reopen opens the files in mem while a disk call fails, and closes the store. It returns the
// promises for the next recovery.
func (r *simRun) reopen(p simPromise, mem *disktest.Mem, fault simFault, failing *string) (simPromise, error) {
	w := storetest.New(0)
	before := w.Digest()
	s, err := persist.OpenFiles(storetest.Background, mem, w.World, persist.Options{SnapshotBytes: -1})
	if err != nil {
		if w.Digest() != before {
			return p, fmt.Errorf("Open failed and changed the world: %w", err)
		}
		return p, fault.plain(err, *failing)
	}
	commit, err := r.judge(p, w, s.Report(), *failing != "")
	if e := storetest.Closed(s.Close(storetest.Background)); e != nil {
		err = errors.Join(err, fault.plain(e, *failing))
	}
	if p.acked >= 0 { // Without a durable commit, Open may have created a new store.
		p.acked, p.before, p.fresh, p.sealing = commit, commit, len(r.commits), -1
	}
	return p, err
}
