package catalog

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/gofrs/flock"

	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Lock keeps other processes from opening a store for writing. Its file says
// who holds it, and is empty after a clean close.
type Lock struct {
	flock  *flock.Flock
	root   *os.Root
	before string // What the file said when the lock was taken.
}

const (
	// MaxHolder bounds what is believed of a lock file.
	MaxHolder = 512

	// A reader that asks whether a store is in use holds the lock for a moment. So
	// one that is held is asked for again, this often and after this long.
	lockTries = 10
	lockPause = 5 * time.Millisecond
)

// Acquire takes the lock of a store, or returns an error that says who has it.
func Acquire(root *os.Root) (*Lock, error) {
	if info, err := root.Lstat(LockFile); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is a %v", format.ErrForeign, LockFile, info.Mode().Type())
	}
	l := &Lock{flock.New(filepath.Join(root.Name(), LockFile), flock.SetPermissions(0o600)), root, ""}
	ok, err := l.flock.TryLock()
	for try := 1; !ok && err == nil && try < lockTries; try++ {
		time.Sleep(lockPause)
		ok, err = l.flock.TryLock()
	}
	if err != nil {
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	l.before = ReadHolder(root.Open(LockFile))
	if !ok {
		return nil, fmt.Errorf("%w by %s", format.ErrLocked, named(l.before))
	}
	if err := l.write(describeHolder() + "\n"); err != nil {
		l.flock.Close()
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	return l, nil
}

// Held reports whether a process has the store in dir open for writing, whatever
// the lock file says: that may be from one that was killed.
func Held(dir string) bool {
	path := filepath.Join(dir, LockFile)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	l := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer l.Close()
	ok, err := l.TryRLock()
	return err == nil && !ok
}

// describeHolder says what the lock file is to say of this process.
func describeHolder() string {
	host, _ := os.Hostname()
	now := time.Now().UTC().Format(time.RFC3339)
	return printable(fmt.Sprintf("process %d on %s since %s: %s", os.Getpid(), host, now, filepath.Base(os.Args[0])))
}

// ReadHolder returns what a lock file says, closing it; "" if it cannot be read.
func ReadHolder(f io.ReadCloser, err error) string {
	if err != nil {
		return ""
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, MaxHolder))
	return string(b)
}

// named returns what a lock file says as people may read it.
func named(holder string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(holder), "\n")
	if line == "" {
		return "another process, which does not say which"
	}
	return printable(line)
}

// printable replaces what may not be printed, and cuts what is too long.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) > MaxHolder-1 {
		s = strings.ToValidUTF8(s[:MaxHolder-1], "")
	}
	return s
}

func (l *Lock) write(text string) error {
	f, err := l.root.OpenFile(LockFile, os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// Undo gives the lock up and leaves the file as it was.
func (l *Lock) Undo() {
	_ = l.write(l.before)
	l.flock.Close()
}

// Release gives the lock up; clean says that nothing is left to recover. A nil lock
// is none.
func (l *Lock) Release(clean bool) error {
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
