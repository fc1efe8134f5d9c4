package catalog

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A Lock keeps other processes from opening a store for writing. Its file says
// who holds it, and is empty after a clean close.
type Lock struct {
	disk.Lock
	files  disk.FS
	before string // What the file said when the lock was taken,
	says   string // and what it says since.
}

// A lock file has two lines: who holds the lock, for people, and a random text, by which a holder
// tells its own signature from that of another one who would write the same first line.
const (
	// maxHolder is how many bytes of a lock file are read. Acquire writes no more.
	maxHolder = 512

	// maxLine bounds the first line, so that the second one fits behind it.
	maxLine = maxHolder - 32
)

// Acquire takes the lock of a store, or returns an error that says who has it. The system
// keeps the lock, so that it goes with the process; what the file says is for people, and
// tells after a crash that the store was not closed.
func Acquire(files disk.FS) (*Lock, error) {
	l, err := files.Lock(LockFile)
	switch {
	case errors.Is(err, disk.ErrIrregular):
		return nil, fmt.Errorf("%w: %w; remove it, and opening the store makes the file again", format.ErrForeign, err)
	case errors.Is(err, disk.ErrLocked):
		return nil, fmt.Errorf("%w by %s", format.ErrLocked, named(readHolder(files)))
	case err != nil:
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	before, says := readHolder(files), describeHolder()+"\n"+rand.Text()+"\n"
	if err := l.Sign(says); err != nil {
		l.Close()
		return nil, fmt.Errorf("persist: lock: %w", err)
	}
	return &Lock{l, files, before, says}, nil
}

// Check returns an error wrapping [disk.ErrLost] if another process may have the
// store by now: the lock file was removed or replaced, or, where a file system's locks
// keep nobody out, says something else than it did. Whoever takes a store signs the
// file before he reads anything of the store. A nil lock is always held.
func (l *Lock) Check() error {
	if l == nil {
		return nil
	}
	held, err := l.Held()
	says := ""
	if err == nil {
		says, err = readLock(l.files)
	}
	// An empty file that is not the one that was locked names nobody who could be told of.
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return fmt.Errorf("persist: look at %s: %w", LockFile, err)
	case held && says == l.says:
		return nil
	case missing || says == "" && !held:
		return fmt.Errorf("%w: %s was removed or replaced, so that others can open the store", disk.ErrLost, LockFile)
	default:
		return fmt.Errorf("%w: %s", disk.ErrLost, named(says))
	}
}

// Held reports whether a process has the store in files open for writing, whatever
// the lock file says: that may be from one that was killed.
func Held(files disk.FS) bool {
	locked, err := files.Locked(LockFile)
	return err == nil && locked
}

// describeHolder says what the lock file is to say of this process.
func describeHolder() string {
	host, _ := os.Hostname()
	now := time.Now().UTC().Format(time.RFC3339)
	return printable(fmt.Sprintf("process %d on %s since %s: %s", os.Getpid(), host, now, filepath.Base(os.Args[0])))
}

// unreadable stands for a lock file that says something that cannot be read: on Windows, while the lock is held.
const unreadable = "?"

// LookAtLock returns what the lock file says, and whether the lock is held. It reports false if the two do not
// belong together, since the file changed in between, or if the file system cannot tell.
func LookAtLock(files disk.FS) (says string, held, ok bool) {
	text := func() string {
		text, err := readLock(files)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unreadable
		}
		return text
	}
	says = text()
	held, err := files.Locked(LockFile)
	return says, held, err == nil && says == text()
}

// Named returns what a lock file says as people may read it; "" if it says nothing.
func Named(says string) string {
	switch says {
	case "":
		return ""
	case unreadable:
		return named("")
	}
	return named(says)
}

// readHolder returns what the lock file says, "" if it cannot be read.
func readHolder(files disk.FS) string {
	text, _ := readLock(files)
	return text
}

// readLock returns what the lock file says.
func readLock(files disk.FS) (string, error) {
	f, err := files.Open(LockFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	return string(b), err
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
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "")
	}
	return s
}

// Undo gives the lock up and leaves the file as it was, unless it is another's: who
// failed to open a store does not make one that crashed look closed.
func (l *Lock) Undo() {
	if l.Check() == nil {
		_ = l.Sign(l.before)
	}
	_ = l.Close()
}

// Release gives the lock up; clean says that nothing is left to recover. A nil lock
// is none.
func (l *Lock) Release(clean bool) error {
	if l == nil {
		return nil
	}
	var err error
	if clean {
		if err = l.Check(); err == nil {
			err = l.Sign("")
		}
	}
	return cmp.Or(err, l.Close())
}
