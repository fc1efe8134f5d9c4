// Package disktest has a file system in memory that fails and crashes on request,
// to test what is written through a [disk.FS].
//
// It is as unkind as the real ones: what is not synced may survive in any subset
// of sectors, whole, in part, or as garbage; names that were not synced in any
// subset; and an fsync that fails marks its bytes clean, so that a later one
// succeeds without them.
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

// ErrShortWrite makes a write, if [Mem.Fail] is given it, put half of its bytes
// into the file before it fails. Other calls just fail with it.
var ErrShortWrite = errors.New("disktest: no space left, half was written")

// sectorSize is what a disk writes in one piece.
const sectorSize = 512

// A Mem is a tree of files in memory. It may be used from several goroutines. Names
// are cleaned paths below its top, which always exists.
type Mem struct {
	mu      sync.Mutex
	onCall  func(n int, call string)
	names   map[string]*inode // As programs see them.
	durable map[string]*inode // As a crash leaves them.
	pending []nameChange      // That no SyncDir covered.
	changes int               // Of what a crash could leave.
	calls   int
	fail    map[int]error
	failAll int // Every call from this one on fails; 0: none.
	failErr error
	origin  string
}

// A nameChange is a step from durable to names, within one directory. An empty
// name is no name. What lies below a directory goes with it.
type nameChange struct {
	from, to string
	file     *inode
}

// dir returns the directory that is to be synced.
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

// An inode is the bytes of a file.
type inode struct {
	name  string       // The one it was last given.
	dir   bool         // It has no bytes, but names below it.
	cache []byte       // As programs see them.
	disk  []byte       // As a crash leaves them.
	dirty map[int]bool // Sectors that the next Sync writes.
	lost  map[int]bool // Sectors that a failed Sync called clean.
	kept  bool         // cache and disk are shared with another Mem: copy before writing.
	lock  *lock        // nil: not locked.
	loose bool         // The lock keeps nobody out; see Loosen.
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

// Fail makes call number n fail with err, counting from 1 all calls that were
// ever made. A failed call changes nothing, except after [ErrShortWrite].
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

// OnCall makes f be called before each call, in the caller's goroutine, with the
// number of the call, from 1, and a text such as "sync 00000001.seg". It may
// crash the Mem or make it fail. nil: nothing is called.
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

// String lists the files with their sizes, after where the Mem came from.
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

// Bytes returns a copy of what the named file holds, or nil without one.
func (m *Mem) Bytes(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[name]; f != nil && !f.dir {
		return slices.Clone(f.cache)
	}
	return nil
}

// Put makes a file hold these bytes, durably, as if it always had. It is no
// call.
func (m *Mem) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, slices.Clone(data))
}

// put is Put without the lock. data is not copied before it is written to.
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

// Changes counts what was done that can make a difference after a crash.
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

// call counts a call and returns the error it is to fail with.
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

// change takes a step that the next SyncDir makes durable. m.mu is held.
func (m *Mem) change(c nameChange) {
	c.apply(m.names)
	m.pending = append(m.pending, c)
	m.changes++
}

// Create is a part of [disk.FS].
func (m *Mem) Create(name string) (disk.File, error) {
	f, err := m.make("create", name, false)
	if err != nil {
		return nil, err
	}
	return &file{fs: m, inode: f, writable: true}, nil
}

// Mkdir is a part of [disk.FS].
func (m *Mem) Mkdir(name string) error {
	_, err := m.make("mkdir", name, true)
	return err
}

// make makes a new name.
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

// isDir reports whether there is a directory of this name. m.mu is held.
func (m *Mem) isDir(name string) bool {
	return name == "." || m.names[name] != nil && m.names[name].dir
}

// Open is a part of [disk.FS].
func (m *Mem) Open(name string) (disk.File, error) { return m.openFile("open", name, false) }

// OpenWrite is a part of [disk.FS].
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

// Rename is a part of [disk.FS].
func (m *Mem) Rename(from, to string) error { return m.rename("rename", from, to, true) }

// Publish is a part of [disk.FS].
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

// Remove is a part of [disk.FS].
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

// ReadDir is a part of [disk.FS].
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

// in returns the text of a call to a directory.
func in(call, dir string) string {
	if dir == "." {
		return call
	}
	return call + " " + dir
}

// SyncDir is a part of [disk.FS].
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

// Close is a part of [disk.FS]. It does nothing and does not count.
func (m *Mem) Close() error { return nil }

// A file is an open file of a Mem.
type file struct {
	fs       *Mem
	inode    *inode
	writable bool
}

// call counts a call to the file under the name that it has by now.
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

// own makes the bytes f's alone.
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

// lose calls the dirty sectors clean although they are not on disk.
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

// Close does nothing, but counts.
func (f *file) Close() error { return f.call("close") }

// A lock is one of a program that uses a Mem. What a crash leaves is not locked.
type lock struct {
	*file
	name string
}

// Loosen makes the lock that a file stands for keep nobody out from now on, as that
// of a file system which machines share, but not their locks. Whoever has it does not
// notice by [disk.Lock.Held]. It is no call.
func (m *Mem) Loosen(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names[name].loose = true
}

// Lock is a part of [disk.FS].
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

// Locked is a part of [disk.FS].
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

// Sign makes text durable at once: nothing depends on it.
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
