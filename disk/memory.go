package disk

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
	"sync/atomic"
	"time"
)

// A memory is a directory tree in memory.
type memory struct {
	mu    sync.Mutex
	names map[string]*inode
}

// An inode is a file or a directory. Its name is stored in memory.names.
type inode struct {
	dir  bool
	lock atomic.Pointer[memoryLock] // Nil if not locked.

	mu   sync.RWMutex
	data []byte
}

var errNotEmpty = errors.New("directory not empty")

// Memory returns an empty tree in memory. The tree is lost when the program ends, so Sync and
// SyncDir do nothing. Close does nothing either, so a store in the tree can be opened again.
func Memory() FS { return &memory{names: map[string]*inode{".": {dir: true}}} }

// find returns the inode with this name, or an error that wraps fs.ErrNotExist. The caller holds
// m.mu.
func (m *memory) find(call, name string) (*inode, error) {
	if n := m.names[path.Clean(name)]; n != nil {
		return n, nil
	}
	return nil, &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
}

// free returns an error unless the clean name is valid and unused, in an existing directory. The
// caller holds m.mu.
func (m *memory) free(call, name string) error {
	parent := m.names[path.Dir(name)]
	switch {
	case !fs.ValidPath(name):
		return &fs.PathError{Op: call, Path: name, Err: fs.ErrInvalid}
	case parent == nil || !parent.dir:
		return &fs.PathError{Op: call, Path: name, Err: fs.ErrNotExist}
	case m.names[name] != nil:
		return &fs.PathError{Op: call, Path: name, Err: fs.ErrExist}
	}
	return nil
}

// make adds a new inode under a name.
func (m *memory) make(call, name string, n *inode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name = path.Clean(name)
	err := m.free(call, name)
	if err == nil {
		m.names[name] = n
	}
	return err
}

func (m *memory) Create(name string) (File, error) {
	n := new(inode)
	if err := m.make("create", name, n); err != nil {
		return nil, err
	}
	return &memoryFile{fs: m, inode: n, name: name, writable: true}, nil
}

func (m *memory) Mkdir(name string) error { return m.make("mkdir", name, &inode{dir: true}) }

func (m *memory) Open(name string) (File, error)      { return m.open(name, false) }
func (m *memory) OpenWrite(name string) (File, error) { return m.open(name, true) }

func (m *memory) open(name string, writable bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return nil, fmt.Errorf("%w: %s is a directory", ErrIrregular, name)
	}
	return &memoryFile{fs: m, inode: n, name: name, writable: writable}, nil
}

func (m *memory) Rename(from, to string) error { return m.rename("rename", from, to, true) }

func (m *memory) Publish(from, to string) error { return m.rename("publish", from, to, false) }

func (m *memory) rename(call, from, to string, replace bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(call, from)
	if err != nil {
		return err
	}
	from, to = path.Clean(from), path.Clean(to)
	old := m.names[to]
	if err := m.free(call, to); err != nil && (!replace || old == nil || old.dir || n.dir) {
		return err
	}
	if from == "." || strings.HasPrefix(to, from+"/") {
		return &fs.PathError{Op: call, Path: to, Err: fs.ErrInvalid}
	}
	delete(m.names, from)
	m.names[to] = n
	for name, n := range maps.Clone(m.names) {
		if below, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(m.names, name)
			m.names[to+"/"+below] = n
		}
	}
	return nil
}

func (m *memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find("remove", name); err != nil {
		return err
	}
	name = path.Clean(name)
	for other := range m.names {
		if strings.HasPrefix(other, name+"/") || name == "." {
			return &fs.PathError{Op: "remove", Path: name, Err: errNotEmpty}
		}
	}
	delete(m.names, name)
	return nil
}

func (m *memory) ReadDir(dir string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n, err := m.find("list", dir); err != nil {
		return nil, err
	} else if !n.dir {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: errors.New("not a directory")}
	}
	var entries []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		if n := m.names[name]; path.Dir(name) == path.Clean(dir) && name != "." {
			entries = append(entries, fs.FileInfoToDirEntry(memoryInfo{path.Base(name), n.size(), n.dir}))
		}
	}
	return entries, nil
}

func (m *memory) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.find("sync directory", dir)
	return err
}

func (m *memory) Close() error { return nil }

// named reports whether name refers to n.
func (m *memory) named(name string, n *inode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[path.Clean(name)] == n
}

// A memoryLock is a lock on a file in memory.
type memoryLock struct {
	fs    *memory
	inode *inode
	name  string
}

func (m *memory) Lock(name string) (Lock, error) {
	if err := m.make("lock", name, new(inode)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	f, err := m.open(name, true)
	if err != nil {
		return nil, err
	}
	l := &memoryLock{m, f.(*memoryFile).inode, name}
	if !l.inode.lock.CompareAndSwap(nil, l) {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	return l, nil
}

func (m *memory) Locked(name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[path.Clean(name)]
	return n != nil && n.lock.Load() != nil, nil
}

func (l *memoryLock) Held() (bool, error) {
	return l.inode.lock.Load() == l && l.fs.named(l.name, l.inode), nil
}

func (l *memoryLock) Sign(text string) error {
	l.inode.mu.Lock()
	defer l.inode.mu.Unlock()
	l.inode.data = []byte(text)
	return nil
}

func (l *memoryLock) Close() error {
	l.inode.lock.CompareAndSwap(l, nil)
	return nil
}

// A memoryFile is an open file of a tree in memory.
type memoryFile struct {
	fs       *memory
	inode    *inode
	name     string // The name under which the file was opened.
	writable bool
	closed   atomic.Bool
}

// usable returns an error if the file is closed, or not open for writing.
func (f *memoryFile) usable(call string, writing bool) error {
	switch {
	case writing && f.closed.Load():
		return fs.ErrClosed
	case writing && !f.writable:
		return fs.ErrPermission
	case f.closed.Load():
		return &fs.PathError{Op: call, Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

func (f *memoryFile) ReadAt(b []byte, offset int64) (int, error) {
	if err := f.usable("read", false); err != nil {
		return 0, err
	}
	f.inode.mu.RLock()
	defer f.inode.mu.RUnlock()
	n := 0
	if offset < int64(len(f.inode.data)) {
		n = copy(b, f.inode.data[offset:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memoryFile) WriteAt(b []byte, offset int64) (int, error) {
	if err := f.usable("write", true); err != nil {
		return 0, err
	}
	n := f.inode
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(b) == 0 {
		return 0, nil // An empty write does not extend the file.
	}
	if more := int(offset) + len(b) - len(n.data); more > 0 {
		n.data = append(n.data, make([]byte, more)...)
	}
	return copy(n.data[offset:], b), nil
}

func (f *memoryFile) Size() (int64, error) {
	if err := f.usable("size", false); err != nil {
		return 0, err
	}
	return f.inode.size(), nil
}

func (n *inode) size() int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return int64(len(n.data))
}

func (f *memoryFile) Sync() error {
	if f.closed.Load() {
		return fs.ErrClosed
	}
	return nil
}

func (f *memoryFile) Named(name string) (bool, error) {
	return f.fs.named(name, f.inode), f.usable("look up", false)
}

func (f *memoryFile) Close() error {
	if f.closed.Swap(true) {
		return fs.ErrClosed
	}
	return nil
}

// A memoryInfo describes a directory entry.
type memoryInfo struct {
	name string
	size int64
	dir  bool
}

func (i memoryInfo) Name() string       { return i.name }
func (i memoryInfo) Size() int64        { return i.size }
func (i memoryInfo) IsDir() bool        { return i.dir }
func (i memoryInfo) ModTime() time.Time { return time.Time{} }
func (i memoryInfo) Sys() any           { return nil }

func (i memoryInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | dirMode
	}
	return fileMode
}
