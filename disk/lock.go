//go:build !wasm

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// Locked briefly holds the lock that it checks, so a Lock at the same time can fail. Lock
	// therefore tries lockTries times, with a pause of lockPause in between.
	lockTries = 10
	lockPause = 5 * time.Millisecond
)

// A dirLock is an advisory lock of the operating system.
type dirLock struct {
	flock *flock.Flock
	root  *os.Root
	name  string
}

func (d dir) Lock(name string) (Lock, error) {
	for try := 1; ; try++ {
		l, err := d.tryLock(name)
		if !errors.Is(err, ErrLocked) || try == lockTries {
			return l, err
		}
		time.Sleep(lockPause)
	}
}

func (d dir) tryLock(name string) (Lock, error) {
	if info, err := d.root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, irregular(name, info)
	}
	l := &dirLock{flock.New(filepath.Join(d.root.Name(), name), flock.SetPermissions(fileMode)), d.root, name}
	if _, err := l.flock.TryLock(); err != nil {
		return nil, err
	}
	held, err := l.Held() // Another process may have removed the file meanwhile.
	if err == nil && !held {
		err = fmt.Errorf("%s: %w", name, ErrLocked)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// locked reports whether any process holds the lock on the file called name.
func (d dir) locked(name string, _ fs.FileInfo) (bool, error) {
	l := flock.New(filepath.Join(d.root.Name(), name), flock.SetFlag(os.O_RDONLY))
	defer l.Close()
	ok, err := l.TryRLock()
	return err == nil && !ok, err
}

func (l *dirLock) Held() (bool, error) {
	if !l.flock.Locked() {
		return false, nil
	}
	info, err := l.flock.Stat()
	if err != nil {
		return false, err
	}
	return named(l.root, l.name, info)
}

func (l *dirLock) Close() error { return l.flock.Close() }
