// Package journaltest has a file system in memory that fails and crashes on
// request, to test what is written through a [journal.FS].
//
//	fs := journaltest.New()
//	fs.Fail(7, syscall.EIO)     // the seventh call fails
//	…
//	after := fs.Crash()         // what a crash now would leave for sure
//	after = fs.CrashSeed(42)    // … with some of what was not synced
//
// It is as unkind as the real ones: what is not synced may survive in any
// subset of sectors, whole, in part, or as garbage; and an fsync that fails
// marks its bytes clean, so that a later one succeeds without them.
package journaltest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/stet-ecs/stet/journal"
)

// ErrShortWrite makes a write, if [MemFS.Fail] is given it, put half of its bytes
// into the file before it fails. Other calls just fail with it.
var ErrShortWrite = errors.New("journaltest: no space left, half was written")

// sectorSize is what a disk writes in one piece.
const sectorSize = 512

// A MemFS is a directory in memory. It may be used from several goroutines.
type MemFS struct {
	mu      sync.Mutex
	onCall  func(n int, call string)
	names   map[string]*inode // As programs see them.
	durable map[string]*inode // As a crash leaves them.
	pending []nameChange      // Since the last SyncDir.
	calls   int
	fail    map[int]error
	failAll int // Every call from this one on fails; 0: none.
	failErr error
	origin  string
}

// A nameChange is a step from durable to names. An empty name is no name.
type nameChange struct {
	from, to string
	file     *inode
}

// An inode is the bytes of a file.
type inode struct {
	name  string       // The one it was last given.
	cache []byte       // As programs see them.
	disk  []byte       // As a crash leaves them.
	dirty map[int]bool // Sectors that the next Sync writes.
	lost  map[int]bool // Sectors that a failed Sync called clean.
}

// New returns an empty directory.
func New() *MemFS {
	return &MemFS{
		names:   map[string]*inode{},
		durable: map[string]*inode{},
		fail:    map[int]error{},
		origin:  "new",
	}
}

// Fail makes call number n fail with err, counting from 1 all calls that were
// ever made. A failed call changes nothing, except after [ErrShortWrite].
func (m *MemFS) Fail(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail[n] = err
}

// FailFrom makes all calls from number n on fail with err.
func (m *MemFS) FailFrom(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failAll, m.failErr = n, err
}

// OnCall makes f be called before each call, in the caller's goroutine, with the
// number of the call, from 1, and a text such as "sync 00000001.seg". It may
// crash the MemFS or make it fail. nil: nothing is called.
func (m *MemFS) OnCall(f func(n int, call string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onCall = f
}

// Calls returns how many calls were made.
func (m *MemFS) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// String lists the files with their sizes, after where the MemFS came from.
func (m *MemFS) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b strings.Builder
	b.WriteString(m.origin)
	for _, f := range m.list() {
		fmt.Fprintf(&b, "\n\t%s %d bytes, %d durable", f.Name, f.Size, len(m.names[f.Name].disk))
	}
	return b.String()
}

// Bytes returns a copy of what the named file holds, or nil without one.
func (m *MemFS) Bytes(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.names[name]; f != nil {
		return slices.Clone(f.cache)
	}
	return nil
}

// Put makes a file hold these bytes, durably, as if it always had. It is no
// call.
func (m *MemFS) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, data)
}

// Clone returns a MemFS that holds the same bytes, all of them durable.
func (m *MemFS) Clone() *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	clone := New()
	clone.origin = "clone of " + m.origin
	for name, f := range m.names {
		clone.put(name, f.cache)
	}
	return clone
}

// put is Put without the lock.
func (m *MemFS) put(name string, data []byte) {
	f := &inode{name: name, cache: slices.Clone(data), disk: slices.Clone(data)}
	m.names[name], m.durable[name] = f, f
}

// Crash returns what is there after a crash now that loses everything that was
// not synced. m itself goes on.
func (m *MemFS) Crash() *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := New()
	after.origin = fmt.Sprintf("crash before call %d, synced bytes only", m.calls)
	for name, f := range m.durable {
		after.put(name, f.disk)
	}
	return after
}

// CrashSeed returns what is there after a crash now that loses only some of
// what was not synced. The seed decides what.
func (m *MemFS) CrashSeed(seed uint64) *MemFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crasher{rand.New(rand.NewPCG(seed, 0x5eed))}
	after := New()
	after.origin = fmt.Sprintf("crash before call %d, seed %d", m.calls, seed)
	names := c.names(m)
	for _, name := range slices.Sorted(keys(names)) {
		after.put(name, c.content(names[name]))
	}
	return after
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// A crasher draws what a crash leaves.
type crasher struct{ *rand.Rand }

// names applies a subset of the changes to names that were not synced.
func (c crasher) names(m *MemFS) map[string]*inode {
	names := map[string]*inode{}
	for name, f := range m.durable {
		names[name] = f
	}
	for _, change := range m.pending {
		if c.IntN(2) == 0 {
			change.apply(names)
		}
	}
	return names
}

// content draws, sector by sector, what became of the bytes that were not
// synced, and where the file ends.
func (c crasher) content(f *inode) []byte {
	sectors := f.unsynced()
	data := slices.Clone(f.disk)
	for _, sector := range sectors {
		data = c.sector(f, data, sector)
	}
	if len(data) > len(f.disk) && c.IntN(4) == 0 {
		data = data[:len(f.disk)+c.IntN(len(data)-len(f.disk))]
	}
	return data
}

// sector draws what became of one sector: the old bytes, the new ones, a
// beginning of the new ones, or, if nothing in it was durable, garbage or
// zeros.
func (c crasher) sector(f *inode, data []byte, sector int) []byte {
	start := sector * sectorSize
	end := min(start+sectorSize, len(f.cache))
	fresh := start >= len(f.disk)
	kind := c.IntN(5)
	if kind == 0 || !fresh && kind >= 3 {
		return data
	}
	if len(data) < end {
		data = append(data, make([]byte, end-len(data))...)
	}
	switch kind {
	case 1:
		copy(data[start:end], f.cache[start:end])
	case 2:
		copy(data[start:start+c.IntN(end-start)], f.cache[start:end])
	case 3:
		for i := start; i < end; i++ {
			data[i] = byte(c.Uint32())
		}
	}
	return data
}

// unsynced returns the sectors whose bytes a crash may lose, in order.
func (f *inode) unsynced() []int {
	var sectors []int
	for sector := range f.dirty {
		sectors = append(sectors, sector)
	}
	for sector := range f.lost {
		if !f.dirty[sector] {
			sectors = append(sectors, sector)
		}
	}
	slices.Sort(sectors)
	return sectors
}

func (c nameChange) apply(names map[string]*inode) {
	if c.from != "" {
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
}

// call counts a call and returns the error it is to fail with.
func (m *MemFS) call(format string, args ...any) error {
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
func (m *MemFS) change(c nameChange) {
	c.apply(m.names)
	m.pending = append(m.pending, c)
}

// Create is a part of [journal.FS].
func (m *MemFS) Create(name string) (journal.File, error) {
	if err := m.call("create %s", name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] != nil {
		return nil, fmt.Errorf("create %s: %w", name, fs.ErrExist)
	}
	f := &inode{name: name}
	m.change(nameChange{to: name, file: f})
	return &file{fs: m, inode: f, writable: true}, nil
}

// Open is a part of [journal.FS].
func (m *MemFS) Open(name string) (journal.File, error) { return m.openFile("open", name, false) }

// OpenWrite is a part of [journal.FS].
func (m *MemFS) OpenWrite(name string) (journal.File, error) {
	return m.openFile("open for writing", name, true)
}

func (m *MemFS) openFile(call, name string, writable bool) (journal.File, error) {
	if err := m.call("%s %s", call, name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[name]
	if f == nil {
		return nil, fmt.Errorf("%s %s: %w", call, name, fs.ErrNotExist)
	}
	return &file{fs: m, inode: f, writable: writable}, nil
}

// Rename is a part of [journal.FS].
func (m *MemFS) Rename(from, to string) error {
	if err := m.call("rename %s %s", from, to); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.names[from]
	if f == nil {
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	f.name = to
	m.change(nameChange{from: from, to: to, file: f})
	return nil
}

// Remove is a part of [journal.FS].
func (m *MemFS) Remove(name string) error {
	if err := m.call("remove %s", name); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] == nil {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	m.change(nameChange{from: name})
	return nil
}

// List is a part of [journal.FS].
func (m *MemFS) List() ([]journal.FileInfo, error) {
	if err := m.call("list"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list(), nil
}

func (m *MemFS) list() []journal.FileInfo {
	var files []journal.FileInfo
	for _, name := range slices.Sorted(keys(m.names)) {
		files = append(files, journal.FileInfo{Name: name, Size: int64(len(m.names[name].cache))})
	}
	return files
}

// SyncDir is a part of [journal.FS].
func (m *MemFS) SyncDir() error {
	if err := m.call("sync directory"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, change := range m.pending {
		change.apply(m.durable)
	}
	m.pending = nil
	return nil
}

// A file is an open file of a MemFS.
type file struct {
	fs       *MemFS
	inode    *inode
	writable bool
}

// call counts a call to the file under the name that it has by now.
func (f *file) call(verb string) error {
	f.fs.mu.Lock()
	name := f.inode.name
	f.fs.mu.Unlock()
	return f.fs.call("%s %s", verb, name)
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
	return f.inode.write(b, int(offset)), err
}

func (f *inode) write(b []byte, offset int) int {
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
	if err != nil {
		f.inode.lose()
		return err
	}
	f.inode.sync()
	return nil
}

// sync makes the dirty sectors durable.
func (f *inode) sync() {
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

// Close does nothing, but counts.
func (f *file) Close() error { return f.call("close") }
