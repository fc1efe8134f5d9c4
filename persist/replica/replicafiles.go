package replica

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// replicaFiles applies the file operations of the log to the files of a store on this machine.
//
//	operation  effect on the files         updated size
//	opPart     appends to name.tmp         parts[name]
//	opWhole    renames name.tmp to name    sizes[name]
//	opWrite    writes to name              sizes[name]
//	opRemove   removes name and name.tmp   both are removed
//
// The files may already have later bytes than the operations so far, for two reasons. After a
// crash, operations are applied again. An owner writes to its files before the log has the writes.
// Therefore, applyOp compares new bytes with the file. If a byte differs, the bytes of the file
// from there on were never confirmed, so applyOp quarantines them. At the end of the log, tidyDirs
// compares names and sizes.
type replicaFiles struct {
	top   disk.FS          // The directory of the follower.
	dir   string           // Directory of the store, below top.
	sizes map[string]int64 // Sizes of the files, according to the log.
	parts map[string]int64 // Sizes of unfinished files, which have no name yet.
	// Files that are missing because they were removed before a crash. A later entry of the log
	// removes them again.
	gone map[string]bool
	// Files that are open for writing, by name. Their last writes may not be durable yet.
	open  map[string]disk.File
	aside *quarantine
}

// maxOpen is the number of files that replicaFiles keeps open for writing.
const maxOpen = 8

// errGap reports an operation on a file whose earlier operations are missing.
var errGap = errors.New("replica: the log has an operation on a file that it does not have")

// newReplicaFiles returns replicaFiles without files.
func newReplicaFiles(top disk.FS, dir string, a *quarantine) *replicaFiles {
	return &replicaFiles{top, dir, map[string]int64{}, map[string]int64{}, map[string]bool{}, map[string]disk.File{}, a}
}

// path returns the path of a file, below top.
func (t *replicaFiles) path(name string) string { return path.Join(t.dir, name) }

// make creates the directories of the store.
func (t *replicaFiles) make() error {
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

// applyOp applies an operation. The result is durable after the next call of sync().
func (t *replicaFiles) applyOp(o *op) error {
	switch o.kind {
	case opPart:
		return t.addPart(o)
	case opWhole:
		return t.nameWhole(o)
	case opWrite:
		return t.write(o)
	case opRemove:
		if err := t.dropPart(o.name); err != nil {
			return err
		}
		if err := t.quarantineRest(o.name); err != nil {
			return err
		}
		return t.remove(o.name)
	}
	return nil
}

// quarantineRest quarantines the bytes of a file that the log does not have. The caller then
// removes the file.
func (t *replicaFiles) quarantineRest(name string) error {
	if size, known := t.sizes[name]; known {
		return t.aside.copyTail(t, name, size)
	}
	return t.aside.move(t, name)
}

// dropParts removes unfinished files whose remaining bytes will never be sent.
func (t *replicaFiles) dropParts() error {
	for name := range t.parts {
		if err := t.dropPart(name); err != nil {
			return err
		}
	}
	return nil
}

// dropPart removes an unfinished file, if it exists.
func (t *replicaFiles) dropPart(name string) error {
	if _, coming := t.parts[name]; !coming {
		return nil
	}
	delete(t.parts, name)
	return t.remove(name + tempSuffix)
}

// addPart appends to an unfinished file. The part at offset 0 starts the file, and replaces an
// unfinished file of that name.
func (t *replicaFiles) addPart(o *op) error {
	if _, named := t.sizes[o.name]; named {
		// This machine already has the file. The log sends it again for new followers.
		return nil
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
		if err := t.keepOpen(temp, f); err != nil {
			return err
		}
		t.parts[o.name] = 0
	}
	if int64(o.number) > t.parts[o.name] {
		return fmt.Errorf("%w: %s begins at %d", errGap, o.name, o.number)
	}
	// If the temporary file is missing, a crash came after its renaming. The operations are applied
	// again, and nameWhole then finds the file under its name.
	if err := t.writeAt(temp, o.data, int64(o.number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t.parts[o.name] = max(t.parts[o.name], int64(o.number)+int64(len(o.data)))
	return nil
}

// nameWhole gives a finished file its name. An existing file of that name remains if it begins with
// the same bytes.
func (t *replicaFiles) nameWhole(o *op) error {
	if _, named := t.sizes[o.name]; named {
		return nil
	}
	temp, size := o.name+tempSuffix, int64(o.number)
	if o.number == 0 { // An empty file has no parts.
		if err := t.addPart(&op{kind: opPart, name: o.name}); err != nil {
			return err
		}
	}
	if n, ok := t.parts[o.name]; !ok || n != size {
		return fmt.Errorf("%w: %s has %d bytes of %d", errGap, o.name, n, size)
	}
	// The content must be durable before the name becomes durable.
	if err := t.syncFile(temp); err != nil {
		return err
	}
	same, err := t.sameBeginning(o.name, temp, size)
	if err != nil {
		return err
	}
	if same == size {
		err = t.remove(temp)
	} else {
		if err = t.aside.copyTail(t, o.name, same); err == nil {
			err = t.top.Rename(t.path(temp), t.path(o.name))
		}
		// The file was published and removed before a crash.
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

// sameBeginning returns the length of the common prefix of two files, or -1 if the first file does
// not exist. The last argument is the size of the second file.
func (t *replicaFiles) sameBeginning(name, temp string, size int64) (int64, error) {
	same, err := commonPrefix(t.top, t.path(name), t.path(temp))
	if err != nil || same >= 0 {
		return min(same, size), err
	}
	has, err := sizeOfFile(t.top, t.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return -1, nil
	case err == nil && has < size:
		return 0, fmt.Errorf("%w: %s is missing", errGap, temp)
	}
	return size, err // The temporary file got its name before a crash.
}

// write writes to a file. If the file has different bytes at the offset, write first quarantines
// these bytes and all bytes after them.
func (t *replicaFiles) write(o *op) error {
	size, ok := t.sizes[o.name]
	if at := int64(o.number); !ok || at > size {
		return fmt.Errorf("%w: %s, at %d of %d", errGap, o.name, at, size)
	}
	f, err := t.writable(o.name)
	// The file is missing because it was removed before a crash. A later entry removes it again.
	// Until then, only record its size.
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
	same := firstDifference(old[:n], o.data[:n])
	if same < n { // Only bytes that the file already has can differ.
		if err := t.aside.copyTail(t, o.name, int64(o.number)+int64(same)); err != nil {
			return err
		}
	}
	if same < len(o.data) {
		if err := t.writeAt(o.name, o.data, int64(o.number)); err != nil {
			return err
		}
	}
	t.sizes[o.name] = max(size, int64(o.number)+int64(len(o.data)))
	return nil
}

// remove removes a file, named or temporary, if it exists.
func (t *replicaFiles) remove(name string) error {
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

// writeAt writes to a file. The bytes are durable after sync(), or when the file is closed.
func (t *replicaFiles) writeAt(name string, data []byte, at int64) error {
	f, err := t.writable(name)
	if err == nil {
		_, err = f.WriteAt(data, at)
	}
	return err
}

// writable returns a file that is open for writing.
func (t *replicaFiles) writable(name string) (disk.File, error) {
	if f := t.open[name]; f != nil {
		return f, nil
	}
	f, err := t.top.OpenWrite(t.path(name))
	if err == nil {
		err = t.keepOpen(name, f)
	}
	return f, err
}

// keepOpen keeps a file open. If too many files are open, it closes one.
func (t *replicaFiles) keepOpen(name string, f disk.File) error {
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
func (t *replicaFiles) syncFile(name string) error {
	f := t.open[name]
	if f == nil {
		return nil
	}
	delete(t.open, name)
	return errors.Join(f.Sync(), f.Close())
}

// sync makes all applied operations durable. Files that keepOpen closed are durable already.
func (t *replicaFiles) sync() error {
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

// names returns the names of all files in the directories of the store.
func (t *replicaFiles) names() (names []string, err error) {
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

// tidyDirs quarantines files, and ends of files, that the log does not have. Call it only at the
// end of the log, because a later entry may name a file. It returns an error if a file is missing.
// A file is treated according to its name:
//
//	a name in sizes            the bytes beyond sizes[name] are quarantined and cut off
//	name.tmp, name in parts    the file remains
//	any other name.tmp         the file is removed, because it is not part of a store
//	any other name             the file is quarantined
func (t *replicaFiles) tidyDirs() error {
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
			err = t.truncate(name, size)
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

// truncate shortens a file to a size, and quarantines the bytes after it. A [disk.FS] cannot
// shorten a file, so a shorter copy replaces it.
func (t *replicaFiles) truncate(name string, size int64) error {
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
	if err := t.aside.copyTail(t, name, size); err != nil {
		return err
	}
	if err := writeFile(t.top, t.path(name+tempSuffix), io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	if err := t.top.Rename(t.path(name+tempSuffix), t.path(name)); err != nil {
		return err
	}
	return disk.SyncDir(t.top, t.path(path.Dir(name)))
}

// writeFile creates a durable file with the content of a reader.
func writeFile(to disk.FS, name string, from io.Reader) error {
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := to.Create(name)
	if err != nil {
		return err
	}
	if _, err = io.Copy(io.NewOffsetWriter(f, 0), from); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readUpTo reads into b, and returns the number of bytes. The end of the file is no error.
func readUpTo(f io.ReaderAt, b []byte, at int64) (n int, err error) {
	if n, err = f.ReadAt(b, at); errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
