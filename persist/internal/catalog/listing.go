package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/persist/internal/format"
)

// MaxListings is how often a reader looks again because files that it was about
// to read are gone: the program that has the store open removes old ones.
const MaxListings = 8

// list reads the manifests of the snapshot files, again if one vanishes before it
// is read.
func (v *Catalog) list(ctx context.Context) error {
	for range MaxListings {
		numbers, err := v.Numbers()
		if err != nil {
			return err
		}
		if v.Snapshots, err = v.manifests(ctx, numbers); err != nil || !v.anyVanished() {
			return err
		}
	}
	return nil // A name that never can be opened is not one that vanished.
}

// Numbers returns the numbers of the snapshot files there are, ascending.
func (v *Catalog) Numbers() (numbers []uint32, err error) {
	entries, err := v.Files.ReadDir(SnapshotDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), SnapshotType)
		number, err := strconv.ParseUint(base, 10, 32)
		if ok && err == nil && number > 0 && SnapshotName(uint32(number)) == SnapshotDir+"/"+e.Name() {
			numbers = append(numbers, uint32(number))
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// manifests reads the manifests of snapshot files, but for those that v has read.
func (v *Catalog) manifests(ctx context.Context, numbers []uint32) ([]SnapshotInfo, error) {
	infos := make([]SnapshotInfo, 0, len(numbers))
	for _, n := range numbers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, ok := slices.BinarySearchFunc(v.Snapshots, n, func(s SnapshotInfo, n uint32) int { return cmp.Compare(s.Number, n) })
		if ok && v.Snapshots[at].Err == nil {
			infos = append(infos, v.Snapshots[at])
		} else {
			infos = append(infos, v.inspect(SnapshotName(n), n))
		}
	}
	return infos, nil
}

func (v *Catalog) anyVanished() bool {
	return slices.ContainsFunc(v.Snapshots, func(s SnapshotInfo) bool { return errors.Is(s.Err, fs.ErrNotExist) })
}

// Relist looks which snapshot files there are now, and reports whether one that v
// knew is gone, or it knew none. Those of states that are newer than v do not
// concern it.
func (v *Catalog) Relist(ctx context.Context) (changed bool, err error) {
	if v.IsSave() {
		return false, nil
	}
	before := v.Snapshots
	if err := v.list(ctx); err != nil {
		return false, err
	}
	v.Snapshots = slices.DeleteFunc(v.Snapshots, func(s SnapshotInfo) bool {
		return !has(before, s.Number) && (s.Err != nil || s.ID.Seq > v.Log.Last)
	})
	if len(before) == 0 {
		return len(v.Snapshots) > 0, nil
	}
	return slices.ContainsFunc(before, func(s SnapshotInfo) bool { return !has(v.Snapshots, s.Number) }), nil
}

func has(snapshots []SnapshotInfo, number uint32) bool {
	return slices.ContainsFunc(snapshots, func(s SnapshotInfo) bool { return s.Number == number })
}

// Gone reports whether a file that was there when v was opened is no more.
func (v *Catalog) Gone(name string) bool {
	f, err := v.Files.Open(name)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Pruned makes err, which a file that is gone gave, one that says so.
func Pruned(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, format.ErrNotFound) {
		return fmt.Errorf("%w: removed since the store was opened for reading: %w", format.ErrNotFound, err)
	}
	return err
}
