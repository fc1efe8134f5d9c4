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
	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// ErrShortWrite makes a write, if [MemFS.Fail] is given it, put half of its bytes
// into the file before it fails. Other calls just fail with it.
var ErrShortWrite = disktest.ErrShortWrite

// A MemFS is a directory in memory. It may be used from several goroutines.
type MemFS struct {
	*disk.Flat // Makes it a [journal.FS].
	mem        *disktest.Mem
}

var _ journal.FS = (*MemFS)(nil)

// New returns an empty directory.
func New() *MemFS { return wrap(disktest.New()) }

func wrap(mem *disktest.Mem) *MemFS { return &MemFS{disk.Sub(mem, "."), mem} }

// Fail makes call number n fail with err, counting from 1 all calls that were
// ever made. A failed call changes nothing, except after [ErrShortWrite].
func (m *MemFS) Fail(n int, err error) { m.mem.Fail(n, err) }

// FailFrom makes all calls from number n on fail with err.
func (m *MemFS) FailFrom(n int, err error) { m.mem.FailFrom(n, err) }

// OnCall makes f be called before each call, in the caller's goroutine, with the
// number of the call, from 1, and a text such as "sync 00000001.seg". It may
// crash the MemFS or make it fail. nil: nothing is called.
func (m *MemFS) OnCall(f func(n int, call string)) { m.mem.OnCall(f) }

// Calls returns how many calls were made.
func (m *MemFS) Calls() int { return m.mem.Calls() }

// String lists the files with their sizes, after where the MemFS came from.
func (m *MemFS) String() string { return m.mem.String() }

// Bytes returns a copy of what the named file holds, or nil without one.
func (m *MemFS) Bytes(name string) []byte { return m.mem.Bytes(name) }

// Put makes a file hold these bytes, durably, as if it always had. It is no
// call.
func (m *MemFS) Put(name string, data []byte) { m.mem.Put(name, data) }

// Clone returns a MemFS that holds the same bytes, all of them durable.
func (m *MemFS) Clone() *MemFS { return wrap(m.mem.Clone()) }

// Crash returns what is there after a crash now that loses everything that was
// not synced. m itself goes on.
func (m *MemFS) Crash() *MemFS { return wrap(m.mem.Crash()) }

// CrashSeed returns what is there after a crash now that loses only some of
// what was not synced. The seed decides what.
func (m *MemFS) CrashSeed(seed uint64) *MemFS { return wrap(m.mem.CrashSeed(seed)) }
