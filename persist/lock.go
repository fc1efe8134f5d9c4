package persist

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// A lock keeps other processes from opening a store for writing. Its file says
// who holds it, and is empty after a clean close.
type lock struct {
	flock  *flock.Flock
	root   *os.Root
	before string // What the file said when the lock was taken.
}

// acquire takes the lock of a store, or returns an error that says who has it.
func acquire(root *os.Root) (*lock, error) {
	if info, err := root.Lstat(lockFile); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is a %v", ErrForeign, lockFile, info.Mode().Type())
	}
	l := &lock{flock.New(filepath.Join(root.Name(), lockFile), flock.SetPermissions(0o600)), root, ""}
	ok, err := l.flock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	holder, _ := root.ReadFile(lockFile)
	if l.before = string(holder); !ok {
		return nil, fmt.Errorf("%w by %s", ErrLocked, strings.TrimSpace(l.before))
	}
	host, _ := os.Hostname()
	if err := l.write(fmt.Sprintf("process %d on %s\n", os.Getpid(), host)); err != nil {
		l.flock.Close()
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	return l, nil
}

func (l *lock) write(text string) error {
	f, err := l.root.OpenFile(lockFile, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// undo gives the lock up and leaves the file as it was.
func (l *lock) undo() {
	_ = l.write(l.before)
	l.flock.Close()
}

// release gives the lock up; clean says that nothing is left to recover. A nil lock
// is none.
func (l *lock) release(clean bool) error {
	if l == nil {
		return nil
	}
	var err error
	if clean {
		err = l.write("")
	}
	if e := l.flock.Close(); err == nil {
		err = e
	}
	return err
}
