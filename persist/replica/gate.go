package replica

import (
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
)

// A gate is the files of a store. Reads go through. Writes are passed on to the owner's sender;
// without an owner they are refused.
//
//	call                   here              to the log
//	WriteAt                at once           noted, if the log does not have these bytes
//	Sync                   first             all that is noted, waited for
//	Publish, Rename        when it has all   the content in parts, then the name, waited for
//	Remove                 at once           noted
//	files named .tmp, and those outside of journal/ and snapshots/: here only
//
// A store orders what must be durable before what by Sync. So a log that has what was synced, in
// the order in which it was written, has a store that can be recovered.
type gate struct {
	disk.FS // The store, on this machine.
	sender  atomic.Pointer[sender]
}

func newGate(files disk.FS) *gate { return &gate{FS: files} }

// errFollowed reports a write to a store that is followed.
var errFollowed = errors.New("replica: the store is followed; claim it to write")

// write returns the sender, for a call that writes.
func (g *gate) write() (*sender, error) {
	s := g.sender.Load()
	if s == nil {
		return nil, errFollowed
	}
	return s, s.lost()
}

// Create is a part of [disk.FS].
func (g *gate) Create(name string) (disk.File, error) { return g.opened(name, g.FS.Create) }

// OpenWrite is a part of [disk.FS].
func (g *gate) OpenWrite(name string) (disk.File, error) { return g.opened(name, g.FS.OpenWrite) }

// opened opens a file for writing, whose writes the sender hears.
func (g *gate) opened(name string, open func(string) (disk.File, error)) (disk.File, error) {
	s, err := g.write()
	if err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return s.opened(f, name), nil
}

// Publish is a part of [disk.FS].
func (g *gate) Publish(from, to string) error { return g.named(from, to, g.FS.Publish) }

// Rename is a part of [disk.FS].
func (g *gate) Rename(from, to string) error { return g.named(from, to, g.FS.Rename) }

// named gives a file its name, here by a function, and in the log if that has files of such a name.
func (g *gate) named(from, to string, name func(from, to string) error) error {
	s, err := g.write()
	if err != nil {
		return err
	}
	if !replicated(to) {
		return name(from, to)
	}
	return s.publish(g.FS, from, to, name)
}

// Remove is a part of [disk.FS].
func (g *gate) Remove(name string) error {
	s, err := g.write()
	if err == nil {
		err = g.FS.Remove(name)
	}
	if err == nil && replicated(name) {
		s.note(op{kind: opRemove, name: name})
	}
	return err
}

// Mkdir is a part of [disk.FS].
func (g *gate) Mkdir(name string) error {
	if _, err := g.FS.ReadDir(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	if _, err := g.write(); err != nil {
		return err
	}
	return g.FS.Mkdir(name)
}

// SyncDir is a part of [disk.FS]: names are durable when the log has them, too.
func (g *gate) SyncDir(dir string) error {
	s, err := g.write()
	if err == nil {
		err = disk.SyncDir(g.FS, dir)
	}
	if err == nil && (dir == journalDir || dir == snapshotDir) {
		err = s.flush()
	}
	return err
}

// Replicated is described with [disk.Replicated].
func (g *gate) Replicated() (bool, error) {
	s := g.sender.Load()
	if s == nil {
		return true, nil
	}
	return true, s.monitor.now().Stuck
}

// Close is a part of [disk.FS]. It does nothing: a store closes its files, and these go on to be
// followed or owned.
func (g *gate) Close() error { return nil }

// A sentFile is a file of the owner's store.
type sentFile struct {
	disk.File
	sender *sender
	name   string // Guarded by that of the sender: publishing gives it another one.
}

// WriteAt is a part of [disk.File].
func (f *sentFile) WriteAt(b []byte, at int64) (int, error) {
	name, err := f.current()
	if err != nil {
		return 0, err
	}
	if !replicated(name) {
		return f.File.WriteAt(b, at)
	}
	// Before b is written over what it is compared with.
	news := f.sender.beyond(name, at, b, f.File)
	// Noted only once it is here: the log shall not have what this machine failed to write.
	n, err := f.File.WriteAt(b, at)
	if err == nil && news {
		f.sender.note(writes(name, at, b)...)
	}
	return n, err
}

// current returns the name that the file has.
func (f *sentFile) current() (string, error) {
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	return f.name, f.sender.failed
}

// Close is a part of [disk.File].
func (f *sentFile) Close() error {
	f.sender.closed(f)
	return f.File.Close()
}

// Sync is a part of [disk.File]: of the journal, it returns when the log has what was written.
func (f *sentFile) Sync() error { return f.SyncLocal(func() {}) }

// SyncLocal is described with [disk.SyncLocal]: local is called when this machine has what was
// written, which the log may not have for long, or ever.
func (f *sentFile) SyncLocal(local func()) error {
	name, err := f.current()
	if err == nil {
		err = f.File.Sync()
	}
	if err == nil && replicated(name) {
		local()
		err = f.sender.flush()
	}
	return err
}

// WriteBack begins to bring bytes to the device, if the file can.
func (f *sentFile) WriteBack(offset, size int64) {
	if w, ok := f.File.(interface{ WriteBack(offset, size int64) }); ok {
		w.WriteBack(offset, size)
	}
}

// writes returns operations that write b, of which none is too long.
func writes(name string, at int64, b []byte) (ops []op) {
	for len(b) > 0 {
		n := min(len(b), maxData)
		ops = append(ops, op{opWrite, name, uint64(at), append([]byte(nil), b[:n]...)})
		at, b = at+int64(n), b[n:]
	}
	return ops
}

// readUpTo reads as much of b as the file has, and returns how much that is: an end is no error.
func readUpTo(f io.ReaderAt, b []byte, at int64) (n int, err error) {
	if n, err = f.ReadAt(b, at); errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
