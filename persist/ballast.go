package persist

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"syscall"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A ballast is a file of a store that says nothing: space that is given up when a full disk
// keeps the store from being opened or resumed. Nothing can be removed from a store before
// it is written, durably, that it may be gone; on a disk that the store has filled by itself
// there would be no way out.
//
//	snapshot, prune, ballast if it is missing ... disk full ... Open: ballast removed, opened, pruned

const (
	// ballastFrom is how large a store is at least that has one.
	ballastFrom = 16 << 20

	// leastBallast is for a segment's header, a schema and what is said to be pruned. The
	// ledger, which is written anew, comes on top of it.
	leastBallast = 1 << 20
)

// keepBallast makes or enlarges the ballast of a store of so many bytes. That is no error if
// it cannot: there is no room for it then.
func keepBallast(files disk.FS, stored, ledger int64) {
	if stored < ballastFrom {
		return
	}
	need := leastBallast + 2*ledger
	if f, err := files.Open(catalog.BallastFile); err == nil {
		size, err := f.Size()
		f.Close()
		if err != nil || size >= leastBallast+ledger {
			return
		}
		_ = files.Remove(catalog.BallastFile)
	}
	if fillBallast(files, need) != nil {
		_ = files.Remove(catalog.BallastFile)
	}
}

// fillBallast writes bytes that no file system makes smaller.
func fillBallast(files disk.FS, size int64) error {
	f, err := files.Create(catalog.BallastFile)
	if err != nil {
		return err
	}
	buf, noise := make([]byte, 64<<10), rand.NewChaCha8([32]byte{})
	for at := int64(0); at < size && err == nil; at += int64(len(buf)) {
		_, _ = noise.Read(buf) // Never fails.
		_, err = f.WriteAt(buf, at)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// spendBallast reports whether err is that of a full disk and there was a ballast, which is
// gone now, so that it is worth trying again.
func spendBallast(files disk.FS, err error) bool {
	return full(err) && files.Remove(catalog.BallastFile) == nil && disk.SyncDir(files, ".") == nil
}

// full reports whether err says that there is no space left.
func full(err error) bool {
	const handleDiskFull, diskFull = syscall.Errno(39), syscall.Errno(112)
	windows := runtime.GOOS == "windows" && (errors.Is(err, handleDiskFull) || errors.Is(err, diskFull))
	return windows || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
