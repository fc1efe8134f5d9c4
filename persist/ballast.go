package persist

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"syscall"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// The ballast is a reserve file of random bytes that occupies disk space. If Open or Resume fails
// because the disk is full, the store deletes the ballast and tries again. Then it can remove old
// data. Removing old data needs some free space, because the store first writes a note to its
// journal. Without a ballast, a store that filled its own disk could never be opened again.
//
//	snapshot, prune, create ballast ... disk full ... Open: remove ballast, open, prune

const (
	// ballastFrom is the smallest size in bytes of a store that has a ballast.
	ballastFrom = 16 << 20

	// leastBallast is the smallest size of a ballast in bytes. It is enough for a segment header, a
	// schema and the note about pruning. Opening also rewrites the ledger, the journal's list of
	// segments. So keepBallast adds space for the ledger.
	leastBallast = 1 << 20
)

// keepBallast creates or enlarges the ballast of a store. stored is the store's size in bytes, and
// ledger is the size of its ledger. If the disk has no room for a ballast, the store works without
// one.
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

// fillBallast writes random bytes, which no file system can compress.
func fillBallast(files disk.FS, size int64) error {
	f, err := files.Create(catalog.BallastFile)
	if err != nil {
		return err
	}
	buf, noise := make([]byte, 64<<10), rand.NewChaCha8([32]byte{})
	for at := int64(0); at < size && err == nil; at += int64(len(buf)) {
		_, _ = noise.Read(buf) // Read never fails.
		_, err = f.WriteAt(buf, at)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// spendBallast reports whether the caller should retry after err. It returns true if err means a
// full disk and spendBallast has removed the ballast.
func spendBallast(files disk.FS, err error) bool {
	return full(err) && files.Remove(catalog.BallastFile) == nil && disk.SyncDir(files, ".") == nil
}

// full reports whether err means that no space is left.
func full(err error) bool {
	const handleDiskFull, diskFull = syscall.Errno(39), syscall.Errno(112)
	windows := runtime.GOOS == "windows" && (errors.Is(err, handleDiskFull) || errors.Is(err, diskFull))
	return windows || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
