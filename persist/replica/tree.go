package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// A tree is the files of a store as the log says that they are, and brings those that lie on this
// machine there.
//
//	opPart …   name.tmp grows           parts[name]
//	opWhole    name.tmp becomes name    sizes[name]
//	opWrite    name is written          sizes[name]
//	opRemove   either goes
//
// What lies here may be ahead of sizes: operations are applied again after a crash, and an owner's
// files had writes before the log. So bytes that are there already are compared. If they are the
// same, nothing happens; if not, they were never confirmed, and are set aside with all behind them
// before they are overwritten. At the end tidy compares names and sizes.
type tree struct {
	top   disk.FS
	dir   string           // Of the store, below top.
	sizes map[string]int64 // Of the files, by the log.
	parts map[string]int64 // What came of files that have no name yet.
	// Files that are not here: an operation that comes removes them, as it did before a crash.
	gone map[string]bool
	// For writing, named or temporary; what was written is not durable yet.
	open  map[string]disk.File
	aside *aside
}

// maxOpen is how many files a tree holds open for writing.
const maxOpen = 8

// errGap says that an operation needs what did not come before.
var errGap = errors.New("replica: the log has an operation on a file that it does not have")

// newTree returns a tree of no files.
func newTree(top disk.FS, dir string, a *aside) *tree {
	return &tree{top, dir, map[string]int64{}, map[string]int64{}, map[string]bool{}, map[string]disk.File{}, a}
}

// path returns where a file lies, below top.
func (t *tree) path(name string) string { return path.Join(t.dir, name) }

// make makes the directories of the store.
func (t *tree) make() error {
	for _, dir := range []string{t.dir, t.path(journalDir), t.path(snapshotDir)} {
		if err := t.top.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := disk.SyncDir(t.top, t.dir); err != nil {
		return err
	}
	return disk.SyncDir(t.top, ".")
}

// apply does what an operation says. What it wrote is durable after sync.
func (t *tree) apply(o *op) error {
	switch o.kind {
	case opPart:
		return t.part(o)
	case opWhole:
		return t.whole(o)
	case opWrite:
		return t.write(o)
	case opRemove:
		if err := t.dropPart(o.name); err != nil {
			return err
		}
		if err := t.keepRest(o.name); err != nil {
			return err
		}
		return t.remove(o.name)
	}
	return nil
}

// keepRest sets aside what a file has here and not in the log, which is about to remove it.
func (t *tree) keepRest(name string) error {
	if size, known := t.sizes[name]; known {
		return t.aside.keep(t, name, size)
	}
	return t.aside.move(t, name)
}

// drop removes the parts of files that have no name yet: the rest of them is never sent.
func (t *tree) drop() error {
	for name := range t.parts {
		if err := t.dropPart(name); err != nil {
			return err
		}
	}
	return nil
}

// dropPart removes what came of a file that has no name yet, if anything did.
func (t *tree) dropPart(name string) error {
	if _, coming := t.parts[name]; !coming {
		return nil
	}
	delete(t.parts, name)
	return t.remove(name + tempSuffix)
}

// part adds to a file that has no name yet. The part at 0 begins it, also where one of that name
// was begun before.
func (t *tree) part(o *op) error {
	if _, named := t.sizes[o.name]; named {
		return nil // It is sent once more, for others.
	}
	temp := o.name + tempSuffix
	if o.number == 0 {
		if err := t.remove(temp); err != nil {
			return err
		}
		f, err := t.top.Create(t.path(temp))
		if err != nil {
			return err
		}
		if err := t.hold(temp, f); err != nil {
			return err
		}
		t.parts[o.name] = 0
	}
	if int64(o.number) > t.parts[o.name] {
		return fmt.Errorf("%w: %s begins at %d", errGap, o.name, o.number)
	}
	// A file that had its name before a crash is no longer there under this one: whole finds out.
	if err := t.writeAt(temp, o.data, int64(o.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.parts[o.name] = max(t.parts[o.name], int64(o.number)+int64(len(o.data)))
	return nil
}

// whole gives a file its name. One of that name that was written here stays, if it begins with what
// was sent.
func (t *tree) whole(o *op) error {
	if _, named := t.sizes[o.name]; named {
		return nil
	}
	temp, size := o.name+tempSuffix, int64(o.number)
	if o.number == 0 { // An empty file had no parts.
		if err := t.part(&op{kind: opPart, name: o.name}); err != nil {
			return err
		}
	}
	if n, ok := t.parts[o.name]; !ok || n != size {
		return fmt.Errorf("%w: %s has %d bytes of %d", errGap, o.name, n, size)
	}
	if err := t.syncFile(temp); err != nil { // A file that has its name has its content.
		return err
	}
	same, err := t.sameBeginning(o.name, temp, size)
	if err != nil {
		return err
	}
	if same == size {
		err = t.remove(temp)
	} else {
		if err = t.aside.keep(t, o.name, same); err == nil {
			err = t.top.Rename(t.path(temp), t.path(o.name))
		}
		// It had its name, and was removed before a crash: as in write.
		if errors.Is(err, fs.ErrNotExist) {
			t.gone[o.name], err = true, nil
		}
	}
	if err == nil {
		err = disk.SyncDir(t.top, t.path(path.Dir(o.name)))
	}
	if err == nil {
		t.sizes[o.name] = size
		delete(t.parts, o.name)
	}
	return err
}

// sameBeginning returns with how many bytes of temp, which has size, a file begins; -1: there is no
// such file.
func (t *tree) sameBeginning(name, temp string, size int64) (int64, error) {
	old, err := t.top.Open(t.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	defer old.Close()
	now, err := t.top.Open(t.path(temp))
	if errors.Is(err, fs.ErrNotExist) { // It has its name already, which was not noted.
		if has, err := old.Size(); err != nil || has >= size {
			return size, err
		}
		return 0, fmt.Errorf("%w: %s is not there", errGap, temp)
	}
	if err != nil {
		return 0, err
	}
	defer now.Close()
	same, err := commonBytes(old, now)
	return min(same, size), err
}

// write writes into a file. What was written there and is something else is set aside before, with
// all behind it.
func (t *tree) write(o *op) error {
	size, ok := t.sizes[o.name]
	if at := int64(o.number); !ok || at > size {
		return fmt.Errorf("%w: %s, at %d of %d", errGap, o.name, at, size)
	}
	f, err := t.writable(o.name)
	// It was here, as sizes has it, and was removed before a crash. The operation that does so
	// comes again; until then its writes are only counted.
	if errors.Is(err, fs.ErrNotExist) {
		t.gone[o.name] = true
	}
	if t.gone[o.name] {
		t.sizes[o.name] = max(size, int64(o.number)+int64(len(o.data)))
		return nil
	}
	if err != nil {
		return err
	}
	old := make([]byte, len(o.data))
	n, err := readUpTo(f, old, int64(o.number))
	if err != nil {
		return err
	}
	// Bytes behind the end of the file contradict nothing.
	if same := firstDifference(old[:n], o.data[:n]); same < n {
		if err := t.aside.keep(t, o.name, int64(o.number)+int64(same)); err != nil {
			return err
		}
	}
	if n < len(old) || !bytes.Equal(old, o.data) {
		if err := t.writeAt(o.name, o.data, int64(o.number)); err != nil {
			return err
		}
	}
	t.sizes[o.name] = max(size, int64(o.number)+int64(len(o.data)))
	return nil
}

// remove removes a file, named or temporary, if it is here.
func (t *tree) remove(name string) error {
	if f := t.open[name]; f != nil {
		delete(t.open, name)
		if err := f.Close(); err != nil {
			return err
		}
	}
	delete(t.sizes, name)
	delete(t.gone, name)
	if err := t.top.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeAt writes into a file, which is durable after sync or when the file is closed.
func (t *tree) writeAt(name string, data []byte, at int64) error {
	f, err := t.writable(name)
	if err == nil {
		_, err = f.WriteAt(data, at)
	}
	return err
}

// writable returns a file, opened for writing.
func (t *tree) writable(name string) (disk.File, error) {
	if f := t.open[name]; f != nil {
		return f, nil
	}
	f, err := t.top.OpenWrite(t.path(name))
	if err == nil {
		err = t.hold(name, f)
	}
	return f, err
}

// hold keeps a file open, and closes another one if there are many.
func (t *tree) hold(name string, f disk.File) error {
	for other := range t.open {
		if len(t.open) < maxOpen {
			break
		}
		if err := t.syncFile(other); err != nil {
			return err
		}
	}
	t.open[name] = f
	return nil
}

// syncFile makes a file durable, and closes it.
func (t *tree) syncFile(name string) error {
	f := t.open[name]
	if f == nil {
		return nil
	}
	delete(t.open, name)
	return errors.Join(f.Sync(), f.Close())
}

// sync makes all that was applied durable. Files that hold had to close were made so then.
func (t *tree) sync() error {
	for name := range t.open {
		if err := t.syncFile(name); err != nil {
			return err
		}
	}
	for _, dir := range []string{journalDir, snapshotDir} {
		if err := disk.SyncDir(t.top, t.path(dir)); err != nil {
			return err
		}
	}
	return nil
}

// names returns the names of the files that lie here.
func (t *tree) names() (names []string, err error) {
	for _, dir := range []string{journalDir, snapshotDir} {
		entries, err := t.top.ReadDir(t.path(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names, nil
}

// tidy sets aside what lies here and the log does not have: files, and the ends of files. It fails
// if something is missing. It is for a tree that was brought to the end of the log: before, a file
// may be here that a later entry gives its name.
//
//	the log has the name     what is behind its size is set aside and cut off
//	name.tmp, parts come     stays; none may be missing
//	name.tmp, else           removed: no part of a store, and it is never continued
//	any other                set aside
func (t *tree) tidy() error {
	missing := len(t.sizes) + len(t.parts)
	names, err := t.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		size, known := t.sizes[name]
		_, part := t.parts[strings.TrimSuffix(name, tempSuffix)]
		switch {
		case known:
			missing--
			err = t.cut(name, size)
		case strings.HasSuffix(name, tempSuffix) && part:
			missing--
		case strings.HasSuffix(name, tempSuffix):
			err = t.remove(name)
		default:
			err = t.aside.move(t, name)
		}
		if err != nil {
			return err
		}
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d files of the log are missing", errGap, missing)
	}
	return nil
}

// cut makes a file end where the log says. What is behind is set aside. A shorter file is made and
// takes its place, since a [disk.FS] cannot shorten one.
func (t *tree) cut(name string, size int64) error {
	if err := t.syncFile(name); err != nil {
		return err
	}
	f, err := t.top.Open(t.path(name))
	if err != nil {
		return err
	}
	defer f.Close()
	has, err := f.Size()
	switch {
	case err != nil:
		return err
	case has < size:
		return fmt.Errorf("%w: %s has %d bytes, and had %d", errGap, name, has, size)
	case has == size:
		return nil
	}
	if err := t.aside.keep(t, name, size); err != nil {
		return err
	}
	if err := writeFile(t.top, t.path(name+tempSuffix), f, size); err != nil {
		return err
	}
	if err := t.top.Rename(t.path(name+tempSuffix), t.path(name)); err != nil {
		return err
	}
	return disk.SyncDir(t.top, t.path(path.Dir(name)))
}

// writeFile makes a file that has the first bytes of another one, durably.
func writeFile(to disk.FS, name string, from io.ReaderAt, size int64) error {
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := to.Create(name)
	if err != nil {
		return err
	}
	buf := make([]byte, 256<<10)
	for at := int64(0); at < size && err == nil; at += int64(len(buf)) {
		n := min(int64(len(buf)), size-at)
		if _, err = from.ReadAt(buf[:n], at); err == nil || errors.Is(err, io.EOF) {
			_, err = f.WriteAt(buf[:n], at)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
