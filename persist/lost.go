package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// Another program may remove snapshot files of an open store. The journal has only changes, so
// without a snapshot no state can be recovered. But the world is still in memory, so the store
// writes another snapshot:
//
//	Guard, Sync, Snapshot, Close   look for the files (watch)
//	Commit, Sync, Snapshot, Close  write a full snapshot, which replaces the lost ones
//	if that fails                  the store fails: later records could not be recovered

// guard returns an error if another process may own the store. The journal calls guard before it
// reports a tick as durable. guard also looks for the snapshot files, because the tick could not be
// recovered without them.
func (s *Store) guard() error {
	if err := s.lock.Check(); err != nil {
		return err
	}
	s.watch.lookSometimes(s.files)
	return nil
}

// replaceLost begins a full snapshot of the last commit and copies all of it. If a snapshot is
// already under way, replaceLost only completes the copy of that one. The next Commit calls
// replaceLost again.
func (s *Store) replaceLost(lost []uint32) {
	if s.snapshotting() {
		s.finishCopy()
		return
	}
	if err := s.begin(slotName{}, s.journal.Sync); err != nil {
		s.fail(lostError(lost, err))
		return
	}
	s.finishCopy()
}

// dropLost prepares the store for the snapshot that replaces lost files. It clears the page table,
// because the new snapshot must share no pages with the lost files. It also creates the snapshot
// directory again.
func (s *Store) dropLost(lost []uint32) error {
	if len(lost) == 0 {
		return nil
	}
	if err := catalog.MakeDirs(s.files); err != nil {
		return lostError(lost, err)
	}
	s.base = pageBase{}
	s.pruned(bytesAmong(s.list, snapshotNames(lost)), nil)
	s.list = slices.DeleteFunc(s.list, func(o storedSnapshot) bool { return slices.ContainsFunc(lost, o.names) })
	return nil
}

// ensureBase makes sure that the last commit can be recovered from a snapshot. It looks for the
// snapshot files, and writes a full snapshot if some are lost.
func (s *Store) ensureBase(ctx context.Context) error {
	lost := s.watch.look(s.files)
	if len(lost) == 0 {
		return nil
	}
	if s.world.Raw().Dirty() {
		return lostError(lost, errors.New("the next Commit writes a full snapshot"))
	}
	if _, err := s.waitSnapshot(ctx); err != nil {
		return err
	}
	if lost = s.watch.missing(); len(lost) > 0 {
		if _, err := s.snapshot(ctx, slotName{}, s.journal.Sync); err != nil {
			return lostError(lost, err)
		}
	}
	return s.Err()
}

// ensureBaseAtClose begins a full snapshot if snapshot files are lost. Close waits for it.
func (s *Store) ensureBaseAtClose() {
	lost := s.watch.look(s.files)
	if len(lost) == 0 || s.Err() != nil {
		return
	}
	_, _ = s.waitSnapshot(context.Background()) // Fails only if the context ends.
	if lost = s.watch.missing(); len(lost) == 0 {
		return
	}
	if s.world.Raw().Dirty() {
		s.fail(lostError(lost, errors.New("no snapshot can be written of a world with uncommitted changes")))
		return
	}
	s.replaceLost(lost)
}

// sizesByNumber returns the sizes of the snapshot files in list by number. It leaves out the
// numbers in dropped.
func sizesByNumber(list []storedSnapshot, dropped ...uint32) map[uint32]int64 {
	sizes := make(map[uint32]int64, len(list))
	for i := range list {
		if n := list[i].Number; !slices.Contains(dropped, n) {
			sizes[n] = list[i].Size
		}
	}
	return sizes
}

// lostError returns an error that names the lost snapshots, and why no snapshot replaces them.
func lostError(lost []uint32, err error) error {
	return fmt.Errorf("%s: removed or cut short while the store was open, %w, and not replaced: %w",
		strings.Join(snapshotNames(lost), ", "), fs.ErrNotExist, err)
}

// snapshotNames returns the names of the files with these numbers.
func snapshotNames(numbers []uint32) []string {
	var names []string
	for _, n := range numbers {
		names = append(names, catalog.SnapshotName(n))
	}
	return names
}
