package disk

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// A dirLock is a lock that only works within this program. Neither a browser nor WASI has locks
// between programs.
type dirLock struct {
	root *os.Root
	name string
	file *os.File // Stays open, so that its inode number is not reused.
	info fs.FileInfo
}

var (
	locksMu sync.Mutex
	locks   []*dirLock // Locks that are held.
)

// holder returns the lock that is held on the file that info describes, or nil. The caller holds
// locksMu.
func holder(info fs.FileInfo) *dirLock {
	i := slices.IndexFunc(locks, func(l *dirLock) bool { return os.SameFile(l.info, info) })
	if i < 0 {
		return nil
	}
	return locks[i]
}

func (d dir) Lock(name string) (Lock, error) {
	if info, err := d.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(name, info)
	}
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	l := &dirLock{root: d.root, name: name, file: f}
	if l.info, err = f.Stat(); err == nil && !l.take() {
		err = fmt.Errorf("%s: %w", name, ErrLocked)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// take takes the lock l and returns true, unless another lock on its file is held.
func (l *dirLock) take() bool {
	locksMu.Lock()
	defer locksMu.Unlock()
	if holder(l.info) != nil {
		return false
	}
	locks = append(locks, l)
	return true
}

// locked reports whether a lock is held on the file that info describes.
func (d dir) locked(_ string, info fs.FileInfo) (bool, error) {
	locksMu.Lock()
	defer locksMu.Unlock()
	return holder(info) != nil, nil
}

func (l *dirLock) Held() (bool, error) {
	locksMu.Lock()
	taken := slices.Contains(locks, l)
	locksMu.Unlock()
	if !taken {
		return false, nil
	}
	return named(l.root, l.name, l.info)
}

func (l *dirLock) Close() error {
	locksMu.Lock()
	defer locksMu.Unlock()
	if i := slices.Index(locks, l); i >= 0 {
		locks = slices.Delete(locks, i, i+1)
		return l.file.Close()
	}
	return nil
}
