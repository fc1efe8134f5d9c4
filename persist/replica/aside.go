package replica

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// An aside keeps what was written here and never confirmed, in a directory aside/N of its own:
//
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   the bytes of a file from OFFSET on, where it differs from the log's
//
// Below OFFSET the file is what the log has. A file may have several such parts, if the log differs
// at a lower offset later: each ends where the next one begins, and the last one at the end of the
// file. So the bytes of the log up to the lowest offset, and the parts in their order, are the file
// as it was.
//
// A part is durable before the bytes that it keeps are overwritten. A file named .tmp is a part
// that was not finished before a crash; the bytes are still in the store then.
type aside struct {
	top   disk.FS
	dir   string           // aside/N. "": nothing was set aside yet.
	files map[string]int64 // From which offset on each file is set aside.
	bytes int64            // Set aside in dir.
	older []olderAside     // What others set aside before, oldest first.

	maxDirs  int   // 0: maxAsides.
	maxBytes int64 // 0: maxAsideBytes.
}

// An olderAside is a directory that an earlier following set aside.
type olderAside struct {
	number int
	bytes  int64
}

const (
	// asideDir has a directory for each following that set something aside, numbered in their
	// order.
	asideDir = "aside"

	// maxAsides is how many of these directories are kept. Each is from one owner that lost the log
	// with ticks that were not confirmed: the last few say what happens on a machine.
	maxAsides = 8

	// maxAsideBytes is how many bytes all of them may have. An owner stops at 64 MiB of ticks that
	// are not confirmed, by default: this is room for four such owners.
	maxAsideBytes = 256 << 20

	// removedSuffix is behind the name of a directory that is being removed.
	removedSuffix = ".removed"
)

// place returns where something goes that is set aside, and makes the directories. The number N is
// one more than the highest that is there.
func (a *aside) place(name string) (string, error) {
	if a.dir == "" {
		if err := a.top.Mkdir(asideDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		older, last, err := a.list()
		if err != nil {
			return "", err
		}
		dir := fmt.Sprintf("%s/%d", asideDir, last+1)
		if err := a.top.Mkdir(dir); err != nil {
			return "", err
		}
		a.dir, a.older = dir, older
	}
	dirs := []string{".", asideDir, a.dir}
	if dir := path.Dir(name); dir != "." {
		dir = path.Join(a.dir, dir)
		if err := a.top.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if err := disk.SyncDir(a.top, dir); err != nil {
			return "", err
		}
	}
	return path.Join(a.dir, name), nil
}

// list returns the directories that have files, oldest first, and the highest number of all. It
// removes what a crash left: directories without files, or half removed. Other names are not ours
// and stay.
func (a *aside) list() (older []olderAside, last int, err error) {
	entries, err := a.top.ReadDir(asideDir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		name, removed := strings.CutSuffix(e.Name(), removedSuffix)
		number, dir := asideNumber(name), asideDir+"/"+e.Name()
		if number == 0 || !e.IsDir() {
			continue
		}
		last = max(last, number)
		var files int
		var size int64
		if !removed {
			if files, size, err = a.measure(dir); err != nil {
				return nil, 0, err
			}
		}
		if files == 0 {
			_ = removeAll(a.top, dir) // The next following tries again.
			continue
		}
		older = append(older, olderAside{number, size})
	}
	slices.SortFunc(older, func(x, y olderAside) int { return cmp.Compare(x.number, y.number) })
	return older, last, nil
}

// asideNumber returns the number that a directory is named by; 0: it has another name.
func asideNumber(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n <= 0 || n > 1<<30 || strconv.Itoa(n) != name {
		return 0
	}
	return n
}

// measure returns how many files lie below a directory, and their bytes. It removes parts that were
// not finished.
func (a *aside) measure(dir string) (files int, size int64, err error) {
	entries, err := a.top.ReadDir(dir)
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		var n int
		var bytes int64
		switch {
		case e.IsDir():
			n, bytes, err = a.measure(name)
		case strings.Contains(e.Name(), fromMark) && strings.HasSuffix(e.Name(), tempSuffix):
			_ = a.top.Remove(name)
		case e.Type().IsRegular():
			n = 1
			bytes, err = sizeOfFile(a.top, name)
		default:
			n = 1 // Another program put it there.
		}
		if err != nil {
			return 0, 0, err
		}
		files, size = files+n, size+bytes
	}
	return files, size, nil
}

// sizeOfFile returns how many bytes a file has.
func sizeOfFile(files disk.FS, name string) (int64, error) {
	f, err := files.Open(name)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}

// removeAll removes a directory with all that is in it.
func removeAll(files disk.FS, dir string) error {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			err = removeAll(files, name)
		} else {
			err = files.Remove(name)
		}
		if err != nil {
			return err
		}
	}
	return files.Remove(dir)
}

// note records that a file is set aside from an offset on, with so many bytes more. Then the oldest
// directories are removed until the others are within the limits.
func (a *aside) note(name string, from, bytes int64) {
	if a.files == nil {
		a.files = map[string]int64{}
	}
	a.files[name] = from
	a.bytes += bytes
	total := a.bytes
	for _, o := range a.older {
		total += o.bytes
	}
	for len(a.older) > 0 && (len(a.older) >= cmp.Or(a.maxDirs, maxAsides) || total > cmp.Or(a.maxBytes, maxAsideBytes)) {
		a.remove(a.older[0].number)
		total -= a.older[0].bytes
		a.older = a.older[1:]
	}
}

// remove removes a directory. It gets another name first, so that a crash leaves all of it or a
// name that says that it is removed. An error keeps nothing from being set aside: the next
// following tries again.
func (a *aside) remove(number int) {
	dir := fmt.Sprintf("%s/%d", asideDir, number)
	if err := a.top.Publish(dir, dir+removedSuffix); err != nil {
		return
	}
	if err := disk.SyncDir(a.top, asideDir); err != nil {
		return
	}
	_ = removeAll(a.top, dir+removedSuffix)
}

// move sets a file of a tree aside that the log does not have, if the file is there. If a part of
// it is set aside already, only the bytes before are added.
func (a *aside) move(t *tree, name string) error {
	if _, known := a.files[name]; known {
		if err := a.keep(t, name, 0); err != nil {
			return err
		}
		return t.remove(name)
	}
	size, err := sizeOfFile(t.top, t.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to, err := a.place(name)
	if err != nil {
		return err
	}
	if err := t.top.Publish(t.path(name), to); err != nil {
		return err
	}
	if err := errors.Join(disk.SyncDir(t.top, path.Dir(to)), disk.SyncDir(t.top, t.path(path.Dir(name)))); err != nil {
		return err
	}
	a.note(name, 0, size)
	return nil
}

// fromMark is between the name of a file and the offset that a part of it begins at.
const fromMark = ".from-"

// keep sets aside what a file has from an offset on, up to the part of it that is set aside
// already. It is called before the first of these bytes is overwritten, cut off or removed.
func (a *aside) keep(t *tree, name string, from int64) error {
	f, err := t.top.Open(t.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Size()
	if lowest, known := a.files[name]; known {
		end = min(end, lowest)
	}
	if err != nil || from >= end {
		return err
	}
	to, err := a.place(name + fromMark + strconv.FormatInt(from, 10))
	if err != nil {
		return err
	}
	if err := writeFile(a.top, to+tempSuffix, io.NewSectionReader(f, from, end-from), end-from); err != nil {
		return err
	}
	if err := a.top.Rename(to+tempSuffix, to); err != nil {
		return err
	}
	if err := disk.SyncDir(a.top, path.Dir(to)); err != nil {
		return err
	}
	a.note(name, from, end-from)
	return nil
}

// replace sets aside what the store old has and t, which takes its place, does not.
func (a *aside) replace(old, t *tree) error {
	names, err := old.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		_, known := t.sizes[name]
		same := int64(-1)
		if known {
			if same, err = commonPrefix(t.top, old.path(name), t.path(name)); err != nil {
				return err
			}
		}
		if same < 0 {
			err = a.move(old, name)
		} else {
			err = a.keep(old, name, same)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commonPrefix returns with how many equal bytes two files begin; -1: one of them is not there.
func commonPrefix(files disk.FS, x, y string) (int64, error) {
	var open [2]disk.File
	for i, name := range []string{x, y} {
		f, err := files.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return -1, nil
		}
		if err != nil {
			return 0, err
		}
		defer f.Close()
		open[i] = f
	}
	return commonBytes(open[0], open[1])
}

// commonBytes returns with how many equal bytes two files begin.
func commonBytes(x, y io.ReaderAt) (int64, error) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; at += int64(len(a)) {
		n, err := readUpTo(x, a, at)
		if err != nil {
			return 0, err
		}
		m, err := readUpTo(y, b, at)
		if err != nil {
			return 0, err
		}
		if both := min(n, m); both < len(a) || !bytes.Equal(a, b) {
			return at + int64(firstDifference(a[:both], b[:both])), nil
		}
	}
}

// firstDifference returns the index of the first byte that differs, or the length of both.
func firstDifference(x, y []byte) int {
	for i := range x {
		if x[i] != y[i] {
			return i
		}
	}
	return len(x)
}
