// Package disktest has a file system in memory that fails and crashes on request, for tests of code
// that writes through a [disk.FS].
//
// It allows everything that real file systems allow:
//
//   - Unsynced bytes may survive in any subset of sectors: whole, in part, or as garbage.
//   - Unsynced name changes may survive in any subset.
//   - A failed fsync marks its bytes clean, so a later fsync succeeds without them.
package disktest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing/fstest"

	"github.com/stet-ecs/stet/disk"
)

// ErrShortWrite is an error for [Mem.Fail]: a write stores half of its bytes before it fails. In
// other calls, it has the effect of any other error.
var ErrShortWrite = errors.New("disktest: no space left, half was written")

// sectorSize is the unit that a disk writes atomically.
const sectorSize = 512

// A Mem is a tree of files in memory. It may be used from several goroutines. Names are cleaned
// paths relative to the root directory, which always exists.
type Mem struct {
	mu      sync.Mutex
	onCall  func(n int, call string)
	names   map[string]*inode // Names that programs see.
	durable map[string]*inode // Names that survive a crash.
	pending []nameChange      // Changes that no SyncDir covered.
	changes int               // Number of calls that changed what a crash can leave.
	calls   int
	fail    map[int]error
	failAll int // All calls from this number on fail. If 0, no call fails.
	failErr error
	origin  string
}

// A nameChange is a change in one directory that no SyncDir has covered yet. If from is empty, the
// change adds a name (to). If to is empty, the change removes a name (from). Otherwise, the change
// renames a file, or a directory with its contents.
type nameChange struct {
	from, to string
	file     *inode
}

// dir returns the directory whose sync makes the change durable.
func (c nameChange) dir() string { return path.Dir(cmp.Or(c.to, c.from)) }

func (c nameChange) apply(names map[string]*inode) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
	if c.from != "" && c.to != "" && c.file.dir {
		for name, f := range maps.Clone(names) {
			if below, ok := strings.CutPrefix(name, c.from+"/"); ok {
				delete(names, name)
				names[c.to+"/"+below] = f
			}
		}
	}
}

// An inode holds the bytes of a file.
type inode struct {
	name  string       // The last name of the file.
	dir   bool         // Set for a directory, which has no bytes.
	cache []byte       // Bytes that programs see.
	disk  []byte       // Bytes that survive a crash.
	dirty map[int]bool // Sectors that the next Sync writes.
	lost  map[int]bool // Sectors that a failed Sync marked clean.
	kept  bool         // Another Mem shares the bytes. Copy them before a write.
	lock  *lock        // Nil if not locked.
	loose bool         // Other owners can take the lock too; see Loosen.
}

// New returns an empty tree.
func New() *Mem {
	return &Mem{
		names:   map[string]*inode{},
		durable: map[string]*inode{},
		fail:    map[int]error{},
		origin:  "new",
	}
}

// Fail makes call number n fail with err. The number counts all calls since creation, starting at
// 1. A failed call changes nothing, with three exceptions. A write that fails with [ErrShortWrite]
// stores half of its bytes. A failed Sync marks its bytes clean. A failed Close of a lock releases
// the lock.
func (m *Mem) Fail(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail[n] = err
}

// FailFrom makes all calls from number n on fail with err.
func (m *Mem) FailFrom(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failAll, m.failErr = n, err
}

// OnCall makes the Mem call f before each call, in the caller's goroutine. n is the number of the
// call, starting at 1; call is a text such as "sync 00000001.seg". f may crash the Mem or make it
// fail. Nil means that no function is called.
func (m *Mem) OnCall(f func(n int, call string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onCall = f
}

// Calls returns how many calls were made.
func (m *Mem) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// String says how the Mem was made, and lists the files with their sizes.
func (m *Mem) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	b.WriteString(m.origin)
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if f := m.names[name]; f.dir {
			fmt.Fprintf(&b, "\n\t%s/", name)
		} else {
			fmt.Fprintf(&b, "\n\t%s %d bytes, %d durable", name, len(f.cache), len(f.disk))
		}
	}
	return b.String()
}

// Bytes returns a copy of the named file's contents, or nil if the file does not exist.
func (m *Mem) Bytes(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[name]; f != nil && !f.dir {
		return slices.Clone(f.cache)
	}
	return nil
}

// Put sets the durable contents of a file. It does not count as a call.
func (m *Mem) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, slices.Clone(data))
}

// put is Put without the lock. The inode uses data directly and copies it before the first write.
func (m *Mem) put(name string, data []byte) {
	for dir := path.Dir(name); dir != "." && m.names[dir] == nil; dir = path.Dir(dir) {
		m.names[dir] = &inode{name: dir, dir: true}
		m.durable[dir] = m.names[dir]
	}
	data = slices.Clip(data)
	f := &inode{name: name, cache: data, disk: data, kept: true}
	m.names[name], m.durable[name] = f, f
	m.changes++
}

// Changes returns how many calls have changed what a crash can leave: writes, syncs, and changes of
// names. While the number is the same, a crash leaves the same files.
func (m *Mem) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// Files returns the names of all files, in order.
func (m *Mem) Files() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var files []string
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if !m.names[name].dir {
			files = append(files, name)
		}
	}
	return files
}

// call counts a call and returns the error with which the call must fail.
func (m *Mem) call(format string, args ...any) error {
	m.mu.Lock()
	m.calls++
	n, onCall := m.calls, m.onCall
	m.mu.Unlock()
	if onCall != nil {
		onCall(n, fmt.Sprintf(format, args...))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail[n]; err != nil {
		return err
	}
	if m.failAll > 0 && n >= m.failAll {
		return m.failErr
	}
	return nil
}

// change applies a name change that the next SyncDir makes durable. The caller holds m.mu.
func (m *Mem) change(c nameChange) {
	c.apply(m.names)
	m.pending = append(m.pending, c)
	m.changes++
}

// Create implements [disk.FS].
func (m *Mem) Create(name string) (disk.File, error) {
	f, err := m.make("create", name, false)
	if err != nil {
		return nil, err
	}
	return &file{fs: m, inode: f, writable: true}, nil
}

// Mkdir implements [disk.FS].
func (m *Mem) Mkdir(name string) error {
	_, err := m.make("mkdir", name, true)
	return err
}

// make adds a new file or directory.
func (m *Mem) make(call, name string, dir bool) (*inode, error) {
	if err := m.call("%s %s", call, name); err != nil {
		return nil, &fs.PathError{Op: call, Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] != nil {
		return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrExist}
	}
	if !m.isDir(path.Dir(name)) {
		return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
	}
	f := &inode{name: name, dir: dir}
	m.change(nameChange{to: name, file: f})
	return f, nil
}

// isDir reports whether a directory with this name exists. The caller holds m.mu.
func (m *Mem) isDir(name string) bool {
	return name == "." || m.names[name] != nil && m.names[name].dir
}

// Open implements [disk.FS].
func (m *Mem) Open(name string) (disk.File, error) { return m.openFile("open", name, false) }

// OpenWrite implements [disk.FS].
func (m *Mem) OpenWrite(name string) (disk.File, error) {
	return m.openFile("open for writing", name, true)
}

func (m *Mem) openFile(call, name string, writable bool) (disk.File, error) {
	if err := m.call("%s %s", call, name); err != nil {
		return nil, &fs.PathError{Op: call, Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
	}
	if f.dir {
		return nil, &fs.PathError{Op: call, Path: name, Err: disk.ErrIrregular}
	}
	return &file{fs: m, inode: f, writable: writable}, nil
}

// Rename implements [disk.FS].
func (m *Mem) Rename(from, to string) error { return m.rename("rename", from, to, true) }

// Publish implements [disk.FS].
func (m *Mem) Publish(from, to string) error { return m.rename("publish", from, to, false) }

func (m *Mem) rename(call, from, to string, replace bool) error {
	err := m.call("%s %s %s", call, from, to)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[from]
	switch {
	case err != nil:
	case f == nil || !m.isDir(path.Dir(to)):
		err = fs.ErrNotExist
	case !replace && m.names[to] != nil:
		err = fs.ErrExist
	}
	if err != nil {
		return &os.LinkError{Op: call, Old: from, New: to, Err: err}
	}
	for name, below := range m.names {
		if strings.HasPrefix(name, from+"/") {
			below.name = to + name[len(from):]
		}
	}
	f.name = to
	m.change(nameChange{from: from, to: to, file: f})
	return nil
}

// Remove implements [disk.FS].
func (m *Mem) Remove(name string) error {
	err := m.call("remove %s", name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.names[name] == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	m.change(nameChange{from: name})
	return nil
}

// ReadDir implements [disk.FS].
func (m *Mem) ReadDir(dir string) ([]fs.DirEntry, error) {
	err := m.call("%s", in("list", dir))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && !m.isDir(dir) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: err}
	}
	entries := fstest.MapFS{}
	for name, f := range m.names {
		if path.Dir(name) != dir {
			continue
		}
		mode := fs.FileMode(0o600)
		if f.dir {
			mode = fs.ModeDir | 0o700
		}
		entries[path.Base(name)] = &fstest.MapFile{Data: f.cache, Mode: mode}
	}
	return entries.ReadDir(".")
}

// in returns the text of a call on a directory, such as "sync directory d". For the root, it omits
// the name.
func in(call, dir string) string {
	if dir == "." {
		return call
	}
	return call + " " + dir
}

// SyncDir implements [disk.FS].
func (m *Mem) SyncDir(dir string) error {
	err := m.call("%s", in("sync directory", dir))
	if err != nil {
		return &fs.PathError{Op: "sync directory", Path: dir, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.DeleteFunc(m.pending, func(c nameChange) bool {
		if c.dir() != dir {
			return false
		}
		c.apply(m.durable)
		return true
	})
	m.changes++
	return nil
}

// Close implements [disk.FS]. It does nothing and does not count as a call.
func (m *Mem) Close() error { return nil }

// A file is an open file of a Mem.
type file struct {
	fs       *Mem
	inode    *inode
	writable bool
}

// call counts a call on the file. The text of the call has the current name of the file.
func (f *file) call(verb string) error {
	f.fs.mu.Lock()
	name := f.inode.name
	f.fs.mu.Unlock()
	if err := f.fs.call("%s %s", verb, name); err != nil {
		return &fs.PathError{Op: verb, Path: name, Err: err}
	}
	return nil
}

func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	if err := f.call("read"); err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if offset >= int64(len(f.inode.cache)) {
		return 0, io.EOF
	}
	n := copy(b, f.inode.cache[offset:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	err := f.call("write")
	if err == nil && !f.writable {
		err = fmt.Errorf("write: %w", fs.ErrPermission)
	}
	if errors.Is(err, ErrShortWrite) {
		b = b[:len(b)/2]
	} else if err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.changes++
	return f.inode.write(b, int(offset)), err
}

func (f *inode) write(b []byte, offset int) int {
	if len(b) == 0 {
		return 0
	}
	f.own()
	if grow := offset + len(b) - len(f.cache); grow > 0 {
		f.cache = append(f.cache, make([]byte, grow)...)
	}
	if f.dirty == nil {
		f.dirty = map[int]bool{}
	}
	for at := offset; at < offset+len(b); at += sectorSize - at%sectorSize {
		f.dirty[at/sectorSize] = true
	}
	return copy(f.cache[offset:], b)
}

func (f *file) Sync() error {
	err := f.call("sync")
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	f.fs.changes++
	if err != nil {
		f.inode.lose()
		return err
	}
	f.inode.sync()
	return nil
}

// own gives f its own copy of the bytes.
func (f *inode) own() {
	if f.kept {
		f.cache, f.disk, f.kept = slices.Clone(f.cache), slices.Clone(f.disk), false
	}
}

// sync makes the dirty sectors durable.
func (f *inode) sync() {
	f.own()
	for sector := range f.dirty {
		start := sector * sectorSize
		end := min(start+sectorSize, len(f.cache))
		if len(f.disk) < end {
			f.disk = append(f.disk, make([]byte, end-len(f.disk))...)
		}
		copy(f.disk[start:end], f.cache[start:end])
		delete(f.lost, sector)
	}
	f.dirty = nil
}

// lose marks the dirty sectors clean although they are not on disk.
func (f *inode) lose() {
	if f.lost == nil {
		f.lost = map[int]bool{}
	}
	for sector := range f.dirty {
		f.lost[sector] = true
	}
	f.dirty = nil
}

func (f *file) Size() (int64, error) {
	if err := f.call("size"); err != nil {
		return 0, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return int64(len(f.inode.cache)), nil
}

func (f *file) Named(name string) (bool, error) {
	if err := f.call("look for"); err != nil {
		return false, err
	}
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.fs.names[path.Clean(name)] == f.inode, nil
}

// Close does nothing, but counts as a call.
func (f *file) Close() error { return f.call("close") }

// A lock is held by a program that uses a Mem. After a crash no lock is held.
type lock struct {
	*file
	name string
}

// Loosen makes the lock on a file ineffective: other owners can take it too. This simulates a file
// system that several machines share without sharing locks. [disk.Lock.Held] of the first owner
// still returns true. Loosen does not count as a call.
func (m *Mem) Loosen(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[name].loose = true
}

// Lock implements [disk.FS].
func (m *Mem) Lock(name string) (disk.Lock, error) {
	if _, err := m.make("lock", name, false); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	if f == nil || f.dir {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: disk.ErrIrregular}
	}
	if f.lock != nil && !f.loose {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: disk.ErrLocked}
	}
	f.lock = &lock{&file{fs: m, inode: f, writable: true}, name}
	return f.lock, nil
}

// Locked implements [disk.FS].
func (m *Mem) Locked(name string) (bool, error) {
	if err := m.call("look at lock %s", name); err != nil {
		return false, &fs.PathError{Op: "look at lock", Path: name, Err: err}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	return f != nil && f.lock != nil, nil
}

func (l *lock) Held() (bool, error) {
	named, err := l.Named(l.name)
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	return named && (l.inode.lock == l || l.inode.loose), err
}

// Sign makes text durable immediately, so every crash keeps the text.
func (l *lock) Sign(text string) error {
	if err := l.call("sign"); err != nil {
		return err
	}
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	f := l.inode
	f.cache, f.disk, f.dirty, f.lost, f.kept = []byte(text), []byte(text), nil, nil, true
	l.fs.changes++
	return nil
}

func (l *lock) Close() error {
	err := l.call("unlock")
	l.fs.mu.Lock()
	defer l.fs.mu.Unlock()
	if l.inode.lock == l {
		l.inode.lock = nil
	}
	return err
}
