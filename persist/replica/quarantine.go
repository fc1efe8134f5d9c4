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

// A quarantine has unconfirmed data of a store that was written on this machine. It is a directory
// aside/N:
//
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   the bytes of a file from OFFSET on, if the log has the file
//
// A file has several OFFSET files if bytes at a lower offset were quarantined later. For example,
// NAME.from-200 is first, and NAME.from-100 then has the bytes 100 to 199. To restore the original
// file, take the log's bytes up to the lowest OFFSET, and append the OFFSET files in order.
//
// An OFFSET file is durable before its bytes are overwritten in the store. After a crash, a file
// named .tmp is unfinished, and its bytes are still in the store.
type quarantine struct {
	top   disk.FS
	dir   string            // The directory aside/N, or "" while the quarantine is empty.
	files map[string]int64  // The lowest quarantined offset, by file name.
	bytes int64             // The number of bytes in dir.
	older []olderQuarantine // Earlier quarantines, oldest first.

	maxDirs  int   // 0 means maxQuarantines.
	maxBytes int64 // 0 means maxQuarantineBytes.
}

// An olderQuarantine is the directory of an earlier quarantine.
type olderQuarantine struct {
	number int
	bytes  int64
}

const (
	// quarantineDir has one numbered directory for each call of Follow that quarantined data.
	quarantineDir = "aside"

	// maxQuarantines is the maximum number of quarantine directories. Each one has the unconfirmed
	// ticks of an owner that lost the log.
	maxQuarantines = 8

	// maxQuarantineBytes is the size limit of all quarantine directories together. By default, an
	// owner stops at 64 MiB of unconfirmed ticks, so the limit has room for four such owners.
	maxQuarantineBytes = 256 << 20

	// removedSuffix is appended to the name of a quarantine directory before the directory is
	// removed.
	removedSuffix = ".removed"
)

// pathFor returns the quarantine path for a file, and creates the directories. The first call
// chooses the number of the quarantine, which is higher than all existing ones.
func (a *quarantine) pathFor(name string) (string, error) {
	if a.dir == "" {
		if err := a.top.Mkdir(quarantineDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		older, last, err := a.list()
		if err != nil {
			return "", err
		}
		dir := fmt.Sprintf("%s/%d", quarantineDir, last+1)
		if err := a.top.Mkdir(dir); err != nil {
			return "", err
		}
		a.dir, a.older = dir, older
	}
	dirs := []string{".", quarantineDir, a.dir}
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

// list returns the quarantine directories that have files, oldest first, and the highest number. It
// removes directories that are empty or partly removed after a crash. It ignores other names.
func (a *quarantine) list() (older []olderQuarantine, last int, err error) {
	entries, err := a.top.ReadDir(quarantineDir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		name, removed := strings.CutSuffix(e.Name(), removedSuffix)
		number, dir := quarantineNumber(name), quarantineDir+"/"+e.Name()
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
			_ = removeAll(a.top, dir) // After an error, the next Follow tries again.
			continue
		}
		older = append(older, olderQuarantine{number, size})
	}
	slices.SortFunc(older, func(x, y olderQuarantine) int { return cmp.Compare(x.number, y.number) })
	return older, last, nil
}

// quarantineNumber returns N if the name of a directory is the number N, and 0 for any other name.
func quarantineNumber(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n <= 0 || n > 1<<30 || strconv.Itoa(n) != name {
		return 0
	}
	return n
}

// measure returns the number of files below a directory, and their total bytes. It removes
// unfinished files, named .tmp.
func (a *quarantine) measure(dir string) (files int, size int64, err error) {
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
			n = 1 // Another program put the file there.
		}
		if err != nil {
			return 0, 0, err
		}
		files, size = files+n, size+bytes
	}
	return files, size, nil
}

// sizeOfFile returns the size of a file.
func sizeOfFile(files disk.FS, name string) (int64, error) {
	f, err := files.Open(name)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}

// removeAll removes a directory and its contents.
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

// recordFile records that bytes of a file are quarantined from an offset on. It then removes the
// oldest quarantine directories until the limits are met.
func (a *quarantine) recordFile(name string, from, bytes int64) {
	if a.files == nil {
		a.files = map[string]int64{}
	}
	a.files[name] = from
	a.bytes += bytes
	total := a.bytes
	for _, o := range a.older {
		total += o.bytes
	}
	for len(a.older) > 0 && (len(a.older) >= cmp.Or(a.maxDirs, maxQuarantines) || total > cmp.Or(a.maxBytes, maxQuarantineBytes)) {
		a.remove(a.older[0].number)
		total -= a.older[0].bytes
		a.older = a.older[1:]
	}
}

// remove removes a quarantine directory. It first renames the directory, so after a crash the
// directory is complete, or its name shows that it is being removed. remove ignores errors, because
// the next Follow tries again.
func (a *quarantine) remove(number int) {
	dir := fmt.Sprintf("%s/%d", quarantineDir, number)
	if err := a.top.Publish(dir, dir+removedSuffix); err != nil {
		return
	}
	if err := disk.SyncDir(a.top, quarantineDir); err != nil {
		return
	}
	_ = removeAll(a.top, dir+removedSuffix)
}

// move quarantines a whole file of the store, if it exists. It adds only the bytes that are not
// quarantined yet.
func (a *quarantine) move(t *replicaFiles, name string) error {
	if _, known := a.files[name]; known {
		if err := a.copyTail(t, name, 0); err != nil {
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
	to, err := a.pathFor(name)
	if err != nil {
		return err
	}
	if err := t.top.Publish(t.path(name), to); err != nil {
		return err
	}
	if err := errors.Join(disk.SyncDir(t.top, path.Dir(to)), disk.SyncDir(t.top, t.path(path.Dir(name)))); err != nil {
		return err
	}
	a.recordFile(name, 0, size)
	return nil
}

// fromMark separates the name of a file from the offset of its quarantined bytes.
const fromMark = ".from-"

// copyTail copies the bytes of a file to the quarantine, beginning at an offset. It stops at the
// first byte that is already quarantined. The caller then overwrites, cuts off or removes these
// bytes in the store.
func (a *quarantine) copyTail(t *replicaFiles, name string, from int64) error {
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
	to, err := a.pathFor(name + fromMark + strconv.FormatInt(from, 10))
	if err != nil {
		return err
	}
	if err := writeFile(a.top, to+tempSuffix, io.NewSectionReader(f, from, end-from)); err != nil {
		return err
	}
	if err := a.top.Rename(to+tempSuffix, to); err != nil {
		return err
	}
	if err := disk.SyncDir(a.top, path.Dir(to)); err != nil {
		return err
	}
	a.recordFile(name, from, end-from)
	return nil
}

// replace quarantines all data of the store old that the store t does not have. Then the caller
// replaces old with t.
func (a *quarantine) replace(old, t *replicaFiles) error {
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
			err = a.copyTail(old, name, same)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commonPrefix returns the length of the common prefix of two files, or -1 if one of them does not
// exist.
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

// commonBytes returns the length of the common prefix of two files.
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

// firstDifference returns the index of the first byte that differs. If there is none, it returns
// the length of both slices.
func firstDifference(x, y []byte) int {
	for i := range x {
		if x[i] != y[i] {
			return i
		}
	}
	return len(x)
}
