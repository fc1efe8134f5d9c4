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

	// tempRandom is how many characters of a temporary name are random: 80 bits.
	tempRandom = 16

	// maxTempBase is how many bytes of a file's name its temporary name begins with. File systems allow 255
	// bytes in a name.
	maxTempBase = 255 - tempRandom - len(tempSuffix) - 1

	// tempTries is how many names CreateTemp tries.
	tempTries = 10

	// tempAge is how old an unfinished file must be to be removed where there are no locks.
	tempAge = time.Hour
)

// A Temp is a new file under a temporary name, NAME.RANDOM.tmp, which no other writer has. It takes NAME
// in one step, by [Temp.Rename] or [Temp.Publish]. It is locked until then, so that [RemoveTemps] can tell it
// from the leftover of a process that has ended.
type Temp struct {
	File File // The caller closes it. An open file can be renamed only on Unix.

	fsys       FS
	name, temp string
	lock       Lock // nil: not locked.
	done       bool // Renamed or removed.
}

// CreateTemp creates the file that is to be called name, in the same directory.
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

// TempName returns a new temporary name of a file or a directory, in the same directory. No two calls
// return the same one.
func TempName(name string) string {
	dir, base := path.Split(name)
	if len(base) > maxTempBase {
		for base = base[:maxTempBase]; len(base) > 0 && !utf8.ValidString(base); {
			base = base[:len(base)-1]
		}
	}
	return dir + base + "." + rand.Text()[:tempRandom] + tempSuffix
}

// TempOf returns the name that a file with the temporary name temp is to have, and whether temp is a
// temporary name. Of names longer than 234 bytes it returns the beginning.
func TempOf(temp string) (name string, ok bool) {
	rest, ok := strings.CutSuffix(temp, tempSuffix)
	dot := len(rest) - tempRandom - 1
	if !ok || dot <= 0 || rest[dot] != '.' {
		return "", false
	}
	for _, c := range []byte(rest[dot+1:]) {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') { // The alphabet of rand.Text.
			return "", false
		}
	}
	return rest[:dot], true
}

// Name returns the temporary name.
func (t *Temp) Name() string { return t.temp }

// Lock locks the file again after [Temp.Unlock]. It fails with an error wrapping [ErrLost] if the file
// was removed meanwhile. Where there are no locks, it does nothing.
func (t *Temp) Lock() error {
	if !tempLocks || t.lock != nil {
		return nil
	}
	lock, err := t.fsys.Lock(t.temp)
	switch {
	case errors.Is(err, ErrLocked): // By RemoveTemps.
		return fmt.Errorf("%s: %w", t.temp, ErrLost)
	case lockless(err): // RemoveTemps goes by the age of files then.
		return nil
	case err != nil:
		return err
	}
	t.lock = lock
	named, err := t.File.Named(t.temp)
	if err == nil && !named { // Taking the lock has made another file.
		err = fmt.Errorf("%s: %w", t.temp, ErrLost)
	}
	return err
}

// Unlock gives up the lock, for a library that takes a lock of its own on the same file.
func (t *Temp) Unlock() {
	if t.lock != nil {
		t.lock.Close()
		t.lock = nil
	}
}

// Rename gives the file its name. A file that has the name is replaced. The new one gets its
// permissions, if fsys is a directory of the operating system.
func (t *Temp) Rename() error {
	keepMode(t.fsys, t.temp, t.name)
	return t.publish(t.fsys.Rename)
}

// keepMode gives temp the permissions that name has.
func keepMode(fsys FS, temp, name string) {
	if fsys, ok := fsys.(interface{ keepMode(temp, name string) }); ok {
		fsys.keepMode(temp, name)
	}
}

// Publish gives the file its name, as [FS.Publish] does: it replaces nothing.
func (t *Temp) Publish() error { return t.publish(t.fsys.Publish) }

func (t *Temp) publish(rename func(from, to string) error) error {
	err := rename(t.temp, t.name)
	if err == nil {
		t.done = true
		t.Unlock()
	}
	return err
}

// Discard removes the file, unless it has its name. Close File before.
func (t *Temp) Discard() {
	if !t.done {
		t.done = true
		_ = t.fsys.Remove(t.temp)
		t.Unlock()
	}
}

// RemoveOthers removes the files that other writers of the same name have left behind: see [RemoveTemps].
func (t *Temp) RemoveOthers() error {
	own, _ := TempOf(path.Base(t.temp))
	return RemoveTemps(t.fsys, path.Dir(t.temp), func(temp string) bool {
		name, ok := TempOf(temp)
		return ok && name == own
	})
}

// RemoveTemps removes the regular files in dir for whose names match returns true, and whose writers
// have ended. It keeps a file that is locked. Where there are no locks, it keeps a file that was written to in the
// last hour. Cost: reading the directory, and two locks for each file.
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

// removeTemp removes a file if its writer has ended. It holds the lock while it does, so that no writer
// can take it meanwhile.
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
