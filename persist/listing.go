package persist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// maxListings is how often a reader looks again because files that it was about
// to read are gone: the program that has the store open removes old ones.
const maxListings = 8

// list reads the manifests of the snapshot files, again if one vanishes before it
// is read.
func (v *catalog) list(ctx context.Context) error {
	for range maxListings {
		numbers, err := v.numbers()
		if err != nil {
			return err
		}
		if v.snapshots, err = v.manifests(ctx, numbers); err != nil || !v.anyVanished() {
			return err
		}
	}
	return nil // A name that never can be opened is not one that vanished.
}

// numbers returns the numbers of the snapshot files there are, ascending.
func (v *catalog) numbers() (numbers []uint32, err error) {
	entries, err := v.files.ReadDir(snapshotDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), snapshotType)
		number, err := strconv.ParseUint(base, 10, 32)
		if ok && err == nil && number > 0 && snapshotName(uint32(number)) == snapshotDir+"/"+e.Name() {
			numbers = append(numbers, uint32(number))
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// manifests reads the manifests of snapshot files, but for those that v has read.
func (v *catalog) manifests(ctx context.Context, numbers []uint32) ([]SnapshotInfo, error) {
	infos := make([]SnapshotInfo, 0, len(numbers))
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, ok := slices.BinarySearchFunc(v.snapshots, n, func(s SnapshotInfo, n uint32) int { return cmp.Compare(s.Number, n) })
		if ok && v.snapshots[at].Err == nil {
			infos = append(infos, v.snapshots[at])
		} else {
			infos = append(infos, v.inspect(snapshotName(n), n))
		}
	}
	return infos, nil
}

func (v *catalog) anyVanished() bool {
	return slices.ContainsFunc(v.snapshots, func(s SnapshotInfo) bool { return errors.Is(s.Err, fs.ErrNotExist) })
}

// relist looks which snapshot files there are now, and reports whether one that v
// knew is gone, or it knew none. Those of states that are newer than v do not
// concern it.
func (v *catalog) relist(ctx context.Context) (changed bool, err error) {
	if v.IsSave() {
		return false, nil
	}
	before := v.snapshots
	if err := v.list(ctx); err != nil {
		return false, err
	}
	v.snapshots = slices.DeleteFunc(v.snapshots, func(s SnapshotInfo) bool {
		return !has(before, s.Number) && (s.Err != nil || s.ID.Seq > v.log.Last)
	})
	if len(before) == 0 {
		return len(v.snapshots) > 0, nil
	}
	return slices.ContainsFunc(before, func(s SnapshotInfo) bool { return !has(v.snapshots, s.Number) }), nil
}

func has(snapshots []SnapshotInfo, number uint32) bool {
	return slices.ContainsFunc(snapshots, func(s SnapshotInfo) bool { return s.Number == number })
}

// gone reports whether a file that was there when v was opened is no more.
func (v *catalog) gone(name string) bool {
	f, err := v.files.Open(name)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// pruned makes err, which a file that is gone gave, one that says so.
func pruned(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: removed since the store was opened for reading: %w", ErrNotFound, err)
	}
	return err
}
