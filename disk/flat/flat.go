// Package flat is a file system on a device whose files have numbers instead of names. It is for
// platforms without atomic renames and without a sync of directories, such as the private files of
// a browser.
//
//	file 0 or 1   the list of names: a snapshot of all names, then a record for each later change
//	file 2, 3, …  the contents of one file each
//
// Each change of a name appends a record to the list. A crash keeps a prefix of the records, so a
// rename is atomic. A number is not reused after its file had a name.
package flat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// A Device stores numbered files. It can be opened only once at a time. If another program can take
// the device over, the device has a method Lost() bool. Lost reports whether another program has
// taken the device over.
type Device interface {
	// Files returns the numbers of the files, in any order.
	Files() ([]uint64, error)

	// Open opens a file for reading and writing. It creates a missing file.
	Open(number uint64) (File, error)

	// Remove removes a file that is not open. It does nothing if the file is missing.
	Remove(number uint64) error

	// Sizes returns the sizes of files in bytes, or -1 for a missing file. The files may be open.
	Sizes(numbers []uint64) ([]int64, error)

	// Close releases the device, so that another program can open it.
	Close() error
}

// A File is an open file of a [Device]. WriteAt past the end extends the file by zeros.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error          // Makes the file, its bytes and its length durable.
	Size() (int64, error) // In bytes.
	Close() error
}

// firstFile is the lowest number of a file with contents. The numbers below are for lists of names.
const firstFile = 2

// A tree is the file system on a device. The mutex guards everything except the bytes of files.
type tree struct {
	mu     sync.Mutex
	device Device
	names  map[string]*inode // By clean path. The root is ".".
	log    nameLog
	next   uint64   // The lowest number that was never used.
	unsafe []*inode // Removed files. A crash can restore their names.
	// Files without a name, which collect deletes on the device.
	garbage []*inode
	closed  bool
}

// An inode is a file or a directory.
type inode struct {
	dir    bool
	number uint64 // The number of the file on the device, or 0 for a directory.
	file   File   // The open file of the device, or nil if opens is 0.
	opens  int    // The number of open handles.
	lock   *lock  // Nil if the file is not locked.
}

// Open returns the file system on a device. It takes over the device, and closes it after an error.
// An empty device becomes an empty file system.
//
// Open removes the files that [disk.CreateTemp] has left, because no program can still write them.
// It also removes the contents that no name refers to. If the list of names is damaged, the error
// wraps a [*disk.DamageError], and nothing is removed.
func Open(d Device) (disk.FS, error) {
	t := &tree{device: d}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return t, nil
}

func (t *tree) open() error {
	numbers, err := t.device.Files()
	if err != nil {
		return err
	}
	list, err := readNames(t.device, numbers)
	if err != nil {
		return err
	}
	t.names, t.log, t.next = list.names, list.log, max(firstFile, list.log.last+1)
	for _, number := range numbers {
		t.next = max(t.next, number+1)
	}
	// A removal in the list may not be durable yet. If its contents were deleted now, a crash could
	// restore the name of a missing file. So make the names durable first.
	if err := t.log.begin(t.device, t.names, list.end); err != nil {
		return err
	}
	if err := t.removeTemps(); err != nil {
		return errors.Join(err, t.log.file.Close())
	}
	used := map[uint64]bool{}
	for _, n := range t.names {
		used[n.number] = true
	}
	for _, number := range numbers {
		if number >= firstFile && !used[number] {
			t.garbage = append(t.garbage, &inode{number: number})
		}
	}
	t.collect()
	return nil
}

// removeTemps removes the names of unfinished files and directories.
func (t *tree) removeTemps() error {
	removed := false
	// In this order, the contents of a directory come before the directory.
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(t.names))) {
		for _, part := range strings.Split(name, "/") {
			if _, temp := disk.TempOf(part); temp {
				if err := t.change(change{kind: remove, name: name}); err != nil {
					return err
				}
				removed = true
				break
			}
		}
	}
	if !removed {
		return nil
	}
	return t.syncNames()
}

// collect deletes the files in t.garbage that have no open handle. The next call retries failed
// deletions.
func (t *tree) collect() {
	t.garbage = slices.DeleteFunc(t.garbage, func(n *inode) bool {
		return n.opens == 0 && t.device.Remove(n.number) == nil
	})
}

// find returns the inode with this name, or an error that wraps fs.ErrNotExist.
func (t *tree) find(call, name string) (*inode, error) {
	if t.closed {
		return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrClosed}
	}
	if n := t.names[path.Clean(name)]; n != nil {
		return n, nil
	}
	return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
}

// mustBeFree returns an error unless the clean name is valid and unused, in an existing directory.
func (t *tree) mustBeFree(call, name string) error {
	parent := t.names[path.Dir(name)]
	fail := func(err error) error { return &fs.PathError{Op: call, Path: name, Err: err} }
	switch {
	case t.closed:
		return fail(fs.ErrClosed)
	case !fs.ValidPath(name) || len(name) > maxName:
		return fail(fs.ErrInvalid)
	case parent == nil || !parent.dir:
		return fail(fs.ErrNotExist)
	case t.names[name] != nil:
		return fail(fs.ErrExist)
	}
	return nil
}

// change records a change of names, and makes it.
func (t *tree) change(c change) error {
	if err := t.log.add(t.device, t.names, c); err != nil {
		return fmt.Errorf("%s %s: the list of names: %w", c.verb(), c.name, err)
	}
	for _, n := range c.apply(t.names) {
		if !n.dir {
			t.unsafe = append(t.unsafe, n)
		}
	}
	return nil
}

func (t *tree) Create(name string) (disk.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name = path.Clean(name)
	if err := t.mustBeFree("create", name); err != nil {
		return nil, err
	}
	// Open the file before the change of names, so that a failed Open changes nothing.
	f, err := t.device.Open(t.next)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	n, err := t.make(name)
	if err != nil {
		// No name has the number, so the next Create uses it.
		return nil, errors.Join(err, f.Close())
	}
	n.file = f
	return t.handle(n, name, true)
}

// make adds a file to the names. The first open creates the file on the device.
func (t *tree) make(name string) (*inode, error) {
	if err := t.mustBeFree("create", name); err != nil {
		return nil, err
	}
	if err := t.change(change{kind: makeFile, name: name, number: t.next}); err != nil {
		return nil, err
	}
	t.next++
	return t.names[name], nil
}

func (t *tree) Mkdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name = path.Clean(name)
	if err := t.mustBeFree("mkdir", name); err != nil {
		return err
	}
	return t.change(change{kind: makeDir, name: name})
}

func (t *tree) Open(name string) (disk.File, error)      { return t.openFile(name, false) }
func (t *tree) OpenWrite(name string) (disk.File, error) { return t.openFile(name, true) }

func (t *tree) openFile(name string, writable bool) (disk.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.regular(name)
	if err != nil {
		return nil, err
	}
	return t.handle(n, name, writable)
}

// regular returns the file with this name. If it is a directory, the error wraps disk.ErrIrregular.
func (t *tree) regular(name string) (*inode, error) {
	n, err := t.find("open", name)
	if err == nil && n.dir {
		err = fmt.Errorf("%w: %s is a directory", disk.ErrIrregular, name)
	}
	return n, err
}

// handle returns a new handle of a file.
func (t *tree) handle(n *inode, name string, writable bool) (*handle, error) {
	if n.file == nil {
		f, err := t.device.Open(n.number)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		n.file = f
	}
	n.opens++
	return &handle{t: t, inode: n, file: n.file, name: name, writable: writable}, nil
}

func (t *tree) Rename(from, to string) error  { return t.rename("rename", from, to, true) }
func (t *tree) Publish(from, to string) error { return t.rename("publish", from, to, false) }

func (t *tree) rename(call, from, to string, replace bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find(call, from)
	if err != nil {
		return err
	}
	from, to = path.Clean(from), path.Clean(to)
	old := t.names[to]
	if err := t.mustBeFree(call, to); err != nil && (!replace || old == nil || old.dir || n.dir) {
		return err
	}
	if from == "." || strings.HasPrefix(to, from+"/") {
		return &fs.PathError{Op: call, Path: to, Err: fs.ErrInvalid}
	}
	if old == n {
		return nil
	}
	for name := range t.names {
		if below, ok := strings.CutPrefix(name, from+"/"); ok && len(to)+1+len(below) > maxName {
			return &fs.PathError{Op: call, Path: to, Err: fs.ErrInvalid}
		}
	}
	return t.change(change{kind: move, name: from, to: to})
}

var errNotEmpty = errors.New("directory not empty")

// Remove also syncs the list of names, so that the device can delete the file.
func (t *tree) Remove(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("remove", name)
	if err != nil {
		return err
	}
	clean := path.Clean(name)
	for other := range t.names {
		if clean == "." || strings.HasPrefix(other, clean+"/") {
			return &fs.PathError{Op: "remove", Path: name, Err: errNotEmpty}
		}
	}
	if err := t.change(change{kind: remove, name: clean}); err != nil {
		return err
	}
	if !n.dir {
		_ = t.syncNames() // A later SyncDir retries and returns the error.
	}
	return nil
}

func (t *tree) ReadDir(dir string) ([]fs.DirEntry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.find("list", dir)
	if err == nil && !n.dir {
		err = &fs.PathError{Op: "list", Path: dir, Err: errors.New("not a directory")}
	}
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	l := &listing{t: t}
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		if path.Dir(name) == path.Clean(dir) && name != "." {
			n := t.names[name]
			entries = append(entries, entry{l, name, n})
			if !n.dir {
				l.numbers = append(l.numbers, n.number)
			}
		}
	}
	return entries, nil
}

// SyncDir makes all names durable, including names in other directories.
func (t *tree) SyncDir(dir string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.find("sync directory", dir); err != nil {
		return err
	}
	if err := t.syncNames(); err != nil {
		return fmt.Errorf("sync directory %s: the list of names: %w", dir, err)
	}
	return nil
}

// syncNames makes the names durable, and then deletes removed files on the device.
func (t *tree) syncNames() error {
	if err := t.log.sync(t.device, t.names); err != nil {
		return err
	}
	t.garbage, t.unsafe = append(t.garbage, t.unsafe...), nil
	t.collect()
	return nil
}

// Close closes the device. Every later call fails, including calls of open files and locks.
func (t *tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	return errors.Join(t.log.file.Close(), t.device.Close())
}

// A handle is an open file.
type handle struct {
	t        *tree
	inode    *inode
	file     File
	name     string // The name under which the file was opened.
	writable bool
	// Held for reading during calls of f.file. Close holds the mutex for writing.
	mu     sync.RWMutex
	closed bool
}

// begin locks f.mu for reading. If the file is closed, or writing is set and the file is read-only,
// begin unlocks f.mu and returns an error.
func (f *handle) begin(call string, writing bool) error {
	f.mu.RLock()
	err := error(nil)
	switch {
	case f.closed && writing:
		err = fs.ErrClosed
	case f.closed:
		err = &fs.PathError{Op: call, Path: f.name, Err: fs.ErrClosed}
	case writing && !f.writable:
		err = fs.ErrPermission
	}
	if err != nil {
		f.mu.RUnlock()
	}
	return err
}

func (f *handle) ReadAt(b []byte, offset int64) (int, error) {
	if err := f.begin("read", false); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	return f.file.ReadAt(b, offset)
}

func (f *handle) WriteAt(b []byte, offset int64) (int, error) {
	if err := f.begin("write", true); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	if len(b) == 0 {
		return 0, nil // An empty write does not extend the file.
	}
	return f.file.WriteAt(b, offset)
}

func (f *handle) Sync() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return fs.ErrClosed
	}
	return f.file.Sync()
}

func (f *handle) Size() (int64, error) {
	if err := f.begin("size", false); err != nil {
		return 0, err
	}
	defer f.mu.RUnlock()
	return f.file.Size()
}

func (f *handle) Named(name string) (bool, error) {
	if err := f.begin("look up", false); err != nil {
		return false, err
	}
	f.mu.RUnlock()
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	return f.t.names[path.Clean(name)] == f.inode, nil
}

func (f *handle) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	t, n := f.t, f.inode
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.opens--; n.opens > 0 {
		return nil
	}
	err := n.file.Close()
	if n.file = nil; !t.closed {
		t.collect()
	}
	return err
}

// A lock is a lock on a file. The device keeps other programs out, so a lock works within this
// program only.
type lock struct {
	t     *tree
	inode *inode
	name  string
}

func (t *tree) Lock(name string) (disk.Lock, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name = path.Clean(name)
	if _, err := t.make(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	n, err := t.regular(name)
	if err != nil {
		return nil, err
	}
	if n.lock != nil {
		return nil, fmt.Errorf("%s: %w", name, disk.ErrLocked)
	}
	n.lock = &lock{t, n, name}
	return n.lock, nil
}

func (t *tree) Locked(name string) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[path.Clean(name)]
	return n != nil && n.lock != nil, nil
}

func (l *lock) Held() (bool, error) {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if d, ok := l.t.device.(interface{ Lost() bool }); l.t.closed || ok && d.Lost() {
		return false, nil
	}
	return l.inode.lock == l && l.t.names[path.Clean(l.name)] == l.inode, nil
}

// Sign replaces the file by a new file, so a crash leaves either the old or the new text.
func (l *lock) Sign(text string) error {
	t := l.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.inode.lock != l || t.names[path.Clean(l.name)] != l.inode {
		return fmt.Errorf("sign %s: %w", l.name, disk.ErrLost)
	}
	number := t.next
	f, err := t.device.Open(number)
	if err != nil {
		return err
	}
	t.next++
	_, err = f.WriteAt([]byte(text), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = t.change(change{kind: makeFile, name: path.Clean(l.name), number: number})
	}
	if err != nil {
		return err // The next Open deletes the new file, which has no name.
	}
	l.inode.lock, l.inode = nil, t.names[path.Clean(l.name)]
	l.inode.lock = l
	return nil
}

func (l *lock) Close() error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	if l.inode.lock == l {
		l.inode.lock = nil
	}
	return nil
}

// A listing has the file sizes for the entries of a ReadDir. It reads all sizes at the first use,
// because each call of the device can be slow.
type listing struct {
	t       *tree
	numbers []uint64
	mu      sync.Mutex
	sizes   map[uint64]int64 // Sizes by file number. Nil before the first use.
}

// size returns the size of a file, or -1 if the device does not have it.
func (l *listing) size(number uint64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sizes == nil {
		sizes, err := l.t.device.Sizes(l.numbers)
		if err != nil {
			return 0, err
		}
		l.sizes = map[uint64]int64{}
		for i, number := range l.numbers {
			l.sizes[number] = sizes[i]
		}
	}
	return l.sizes[number], nil
}

// An entry is an entry of a directory.
type entry struct {
	listing *listing
	name    string
	inode   *inode
}

func (e entry) Name() string      { return path.Base(e.name) }
func (e entry) IsDir() bool       { return e.inode.dir }
func (e entry) Type() fs.FileMode { return info{dir: e.inode.dir}.Mode().Type() }

func (e entry) Info() (fs.FileInfo, error) {
	t, n, size := e.listing.t, e.inode, int64(0)
	if !n.dir {
		var err error
		if size, err = e.listing.size(n.number); err != nil {
			return nil, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := t.find("stat", e.name)
	_, shared := t.device.(sharedDevice)
	if err == nil && (n != now || size < 0 && shared) {
		err = &fs.PathError{Op: "stat", Path: e.name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	// The size is -1 if a crash has removed the file from the device. Open creates the file again,
	// so its size is 0.
	return info{e.Name(), max(0, size), n.dir}, nil
}

// An info describes a directory entry.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}
