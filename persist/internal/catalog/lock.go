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

// A Lock prevents other processes from opening a store for writing. Its file describes the holder,
// and is empty after a clean close.
type Lock struct {
	disk.Lock
	files  disk.FS
	before string // Contents of the file before this process locked it.
	says   string // Contents of the file while this process holds the lock.
}

// A lock file has two lines. The first line describes the holder, for people. The second line is a
// random text. It distinguishes two processes with the same first line.
const (
	// maxHolder is the maximum number of bytes that are read from a lock file. Acquire writes no
	// more.
	maxHolder = 512

	// maxLine bounds the first line, so that the second line fits.
	maxLine = maxHolder - 32
)

// Acquire takes the lock of a store. If another process holds it, the error names that process. The
// system releases the lock when the process ends. The text in the file is for people. After a
// crash, it is still there and shows that the store was not closed.
func Acquire(files disk.FS) (*Lock, error) {
	l, err := files.Lock(LockFile)
	switch {
	case errors.Is(err, disk.ErrIrregular):
		return nil, fmt.Errorf("%w: %w; remove it; opening the store creates the file again", format.ErrForeign, err)
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

// Check returns an error that wraps [disk.ErrLost] if another process may have opened the store. It
// checks that this process still holds the lock, and that the lock file still has its text. On a
// file system whose locks do not work, only the text reveals another process. That process replaces
// the text before it reads the store. For a nil lock, Check returns nil.
func (l *Lock) Check() error {
	if l == nil {
		return nil
	}
	held, err := l.Held()
	says := ""
	if err == nil {
		says, err = readLock(l.files)
	}
	// If the lock file was replaced by an empty one, the holder is unknown.
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

// Held reports whether a process has the store in the given file system open for writing. It
// ignores the text in the lock file, which may be left over from a killed process.
func Held(files disk.FS) bool {
	locked, err := files.Locked(LockFile)
	return err == nil && locked
}

// describeHolder returns the text that describes this process in the lock file.
func describeHolder() string {
	host, _ := os.Hostname()
	now := time.Now().UTC().Format(time.RFC3339)
	return printable(fmt.Sprintf("process %d on %s since %s: %s", os.Getpid(), host, now, filepath.Base(os.Args[0])))
}

// unreadable replaces the text of an unreadable lock file. On Windows, a locked file is unreadable.
const unreadable = "?"

// LookAtLock returns the text of the lock file and whether the lock is held. It reads the text
// before and after it checks the lock. If the text has changed, another process may have taken the
// lock, and ok is false. ok is also false if the file system cannot report the lock.
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

// Named returns the text of a lock file in printable form, or "" if it is empty.
func Named(says string) string {
	switch says {
	case "":
		return ""
	case unreadable:
		return named("")
	}
	return named(says)
}

// readHolder returns the text of the lock file, or "" if it cannot be read.
func readHolder(files disk.FS) string {
	text, _ := readLock(files)
	return text
}

// readLock returns the text of the lock file.
func readLock(files disk.FS) (string, error) {
	f, err := files.Open(LockFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	return string(b), err
}

// named returns the first line of a lock file in printable form.
func named(holder string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(holder), "\n")
	if line == "" {
		return "another process, which is unknown"
	}
	return printable(line)
}

// printable replaces unprintable characters and truncates a long text.
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

// Undo releases the lock after a failed open. It restores the earlier text of the file, because an
// empty file would mean that the store was closed cleanly. If another process has taken the file,
// Undo does not change the text.
func (l *Lock) Undo() {
	if l.Check() == nil {
		_ = l.Sign(l.before)
	}
	_ = l.Close()
}

// Release releases the lock. clean says that the store needs no recovery. On a nil lock, Release
// does nothing.
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
