package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	tempSuffix = ".tmp"

	// tempRandom is the number of random characters in a temporary name. 16 characters are 80 bits.
	tempRandom = 16

	// maxTempBase is the maximum number of bytes of the final name in a temporary name. A longer
	// final name is cut off, because file systems allow 255 bytes in a name.
	maxTempBase = 255 - tempRandom - len(tempSuffix) - 1

	// tempTries is the number of names that CreateTemp tries.
	tempTries = 10

	// tempAge is the age from which an unfinished file is removed on file systems without locks.
	tempAge = time.Hour
)

// A Temp is a new file under a unique temporary name, NAME.RANDOM.tmp. [Temp.Rename] or
// [Temp.Publish] renames it to NAME atomically. On Unix, the file is locked until then.
// [RemoveTemps] keeps a locked file, because its writer is still running.
type Temp struct {
	File File // The caller closes File. On Windows, close it before Rename or Publish.

	fsys       FS
	name, temp string
	lock       Lock // Nil if not locked.
	done       bool // The file was renamed or removed.
}

// CreateTemp creates a temporary file in the directory of name. [Temp.Rename] and [Temp.Publish]
// rename the file to name.
func CreateTemp(fsys FS, name string) (*Temp, error) {
	for try := 1; ; try++ {
		t, err := createTemp(fsys, name)
		if err == nil || try == tempTries || !errors.Is(err, fs.ErrExist) && !errors.Is(err, ErrLost) {
			return t, err
		}
	}
}

func createTemp(fsys FS, name string) (*Temp, error) {
	temp := TempName(name)
	f, err := fsys.Create(temp)
	if err != nil {
		return nil, err
	}
	t := &Temp{File: f, fsys: fsys, name: name, temp: temp}
	if err := t.Lock(); err != nil {
		f.Close()
		t.Discard()
		return nil, err
	}
	return t, nil
}

// TempName returns a new temporary name for a file or a directory, in the same directory. No two
// calls return the same name.
func TempName(name string) string {
	dir, base := path.Split(name)
	if len(base) > maxTempBase {
		for base = base[:maxTempBase]; len(base) > 0 && !utf8.ValidString(base); {
			base = base[:len(base)-1]
		}
	}
	return dir + base + "." + rand.Text()[:tempRandom] + tempSuffix
}

// TempOf returns the final name of a file with the temporary name temp, and whether temp is a
// temporary name. A final name longer than 234 bytes is truncated.
func TempOf(temp string) (name string, ok bool) {
	rest, ok := strings.CutSuffix(temp, tempSuffix)
	dot := len(rest) - tempRandom - 1
	if !ok || dot <= 0 || rest[dot] != '.' {
		return "", false
	}
	for _, c := range []byte(rest[dot+1:]) {
		// rand.Text does not return this character.
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return "", false
		}
	}
	return rest[:dot], true
}

// Name returns the temporary name.
func (t *Temp) Name() string { return t.temp }

// Lock locks the file again after [Temp.Unlock]. If the file was removed since then, the error
// wraps [ErrLost]. On file systems without locks, Lock does nothing.
func (t *Temp) Lock() error {
	if !tempLocks || t.lock != nil {
		return nil
	}
	lock, err := t.fsys.Lock(t.temp)
	switch {
	// RemoveTemps holds the lock and is about to remove the file.
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("%s: %w", t.temp, ErrLost)
	// On file systems without locks, RemoveTemps checks the age of the file instead.
	case lockless(err):
		return nil
	case err != nil:
		return err
	}
	t.lock = lock
	named, err := t.File.Named(t.temp)
	if err == nil && !named { // The file was removed. Lock has created another one.
		err = fmt.Errorf("%s: %w", t.temp, ErrLost)
	}
	return err
}

// Unlock releases the lock, for a library that takes its own lock on the same file.
func (t *Temp) Unlock() {
	if t.lock != nil {
		t.lock.Close()
		t.lock = nil
	}
}

// Rename renames the file to its final name and replaces an existing file. If fsys is a directory
// of the operating system, the new file gets the permissions of the replaced file.
func (t *Temp) Rename() error {
	keepMode(t.fsys, t.temp, t.name)
	return t.publish(t.fsys.Rename)
}

// keepMode gives the file temp the permissions of the file name, if fsys supports that.
func keepMode(fsys FS, temp, name string) {
	if fsys, ok := fsys.(interface{ keepMode(temp, name string) }); ok {
		fsys.keepMode(temp, name)
	}
}

// Publish renames the file to its final name with [FS.Publish]. If that name is taken, the error
// wraps [fs.ErrExist].
func (t *Temp) Publish() error { return t.publish(t.fsys.Publish) }

func (t *Temp) publish(rename func(from, to string) error) error {
	err := rename(t.temp, t.name)
	if err == nil {
		t.done = true
		t.Unlock()
	}
	return err
}

// Discard removes the file, unless it already has its final name. Close File before Discard.
func (t *Temp) Discard() {
	if !t.done {
		t.done = true
		_ = t.fsys.Remove(t.temp)
		t.Unlock()
	}
}

// RemoveOthers removes temporary files of the same final name if their writers have ended. See
// [RemoveTemps].
func (t *Temp) RemoveOthers() error {
	own, _ := TempOf(path.Base(t.temp))
	return RemoveTemps(t.fsys, path.Dir(t.temp), func(temp string) bool {
		name, ok := TempOf(temp)
		return ok && name == own
	})
}

// RemoveTemps removes temporary files in dir if their writers have ended. The function match
// selects the files by their names. A locked file is kept. On file systems without locks, a file
// that was modified in the last hour is kept. Cost: reading the directory, and two locks for each
// file.
func RemoveTemps(fsys FS, dir string, match func(temp string) bool) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !match(e.Name()) {
			continue
		}
		if err := removeTemp(fsys, path.Join(dir, e.Name()), e); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeTemp removes a file if its writer has ended. It holds the lock during the removal, so that
// no writer takes the lock.
func removeTemp(fsys FS, temp string, e fs.DirEntry) error {
	if tempLocks {
		locked, err := fsys.Locked(temp)
		if err == nil && locked {
			return nil
		}
		var lock Lock
		if err == nil {
			lock, err = fsys.Lock(temp)
		}
		if errors.Is(err, ErrLocked) {
			return nil
		}
		if err == nil {
			defer lock.Close()
			return fsys.Remove(temp)
		}
		if !lockless(err) {
			return err
		}
	}
	info, err := e.Info()
	if err != nil || info.ModTime().IsZero() || time.Since(info.ModTime()) < tempAge {
		return err
	}
	return fsys.Remove(temp)
}
