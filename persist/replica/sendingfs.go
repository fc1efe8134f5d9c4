package replica

import (
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/stet-ecs/stet/disk"
)

// A sendingFS is the file system of a store. It passes reads to the store on this machine. It also
// passes writes, and records them in the owner's sender. Without an owner, it refuses writes.
//
// A call changes the files on this machine and the log:
//
//   - WriteAt writes to the file, and records the bytes unless the log has them already.
//   - Sync syncs the file. Then it appends all recorded calls, and waits until the log has them.
//   - Publish and Rename append the content in parts. Then they rename the file, append the name,
//     and wait until the log has it.
//   - Remove removes the file, and records the removal.
//
// Files named .tmp and files outside of journal/ and snapshots/ exist on this machine only.
//
// A store calls Sync where one write must be durable before the next write. The log has all synced
// writes in their original order. So a store can be recovered from the log.
type sendingFS struct {
	disk.FS // The store on this machine.
	sender  atomic.Pointer[sender]
}

func newSendingFS(files disk.FS) *sendingFS { return &sendingFS{FS: files} }

// errFollowed reports a write to a store that this machine only follows.
var errFollowed = errors.New("replica: this machine only follows the store; claim the store to write")

// currentSender returns the sender, or an error if writes are refused.
func (g *sendingFS) currentSender() (*sender, error) {
	s := g.sender.Load()
	if s == nil {
		return nil, errFollowed
	}
	return s, s.failure()
}

// Create implements [disk.FS].
func (g *sendingFS) Create(name string) (disk.File, error) {
	return g.openForWriting(name, g.FS.Create)
}

// OpenWrite implements [disk.FS].
func (g *sendingFS) OpenWrite(name string) (disk.File, error) {
	return g.openForWriting(name, g.FS.OpenWrite)
}

// openForWriting opens a file for writing, and registers it with the sender.
func (g *sendingFS) openForWriting(name string, open func(string) (disk.File, error)) (disk.File, error) {
	s, err := g.currentSender()
	if err != nil {
		return nil, err
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	return s.registerFile(f, name), nil
}

// Publish implements [disk.FS].
func (g *sendingFS) Publish(from, to string) error { return g.renameWith(from, to, g.FS.Publish) }

// Rename implements [disk.FS].
func (g *sendingFS) Rename(from, to string) error { return g.renameWith(from, to, g.FS.Rename) }

// renameWith renames or publishes a file by a call of name(). If the new name is replicated,
// renameWith also sends the file to the log.
func (g *sendingFS) renameWith(from, to string, name func(from, to string) error) error {
	s, err := g.currentSender()
	if err != nil {
		return err
	}
	if !replicated(to) {
		return name(from, to)
	}
	return s.publish(g.FS, from, to, name)
}

// Remove implements [disk.FS].
func (g *sendingFS) Remove(name string) error {
	s, err := g.currentSender()
	if err == nil {
		err = g.FS.Remove(name)
	}
	if err == nil && replicated(name) {
		s.addPending(op{kind: opRemove, name: name})
	}
	return err
}

// Mkdir implements [disk.FS].
func (g *sendingFS) Mkdir(name string) error {
	if _, err := g.FS.ReadDir(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	if _, err := g.currentSender(); err != nil {
		return err
	}
	return g.FS.Mkdir(name)
}

// SyncDir implements [disk.FS]. It returns when the log also has the names.
func (g *sendingFS) SyncDir(dir string) error {
	s, err := g.currentSender()
	if err == nil {
		err = disk.SyncDir(g.FS, dir)
	}
	if err == nil && (dir == journalDir || dir == snapshotDir) {
		err = s.flush()
	}
	return err
}

// Replicated is called by [disk.Replicated].
func (g *sendingFS) Replicated() (bool, error) {
	s := g.sender.Load()
	if s == nil {
		return true, nil
	}
	return true, s.monitor.current().Stuck
}

// Close implements [disk.FS]. It does nothing. A store closes its file system, but the follower or
// the owner still uses this file system.
func (g *sendingFS) Close() error { return nil }

// A sentFile is a file of the owner's store. Its writes are sent to the log.
type sentFile struct {
	disk.File
	sender *sender
	name   string // Guarded by sender.mu, because publishing changes it.
}

// WriteAt implements [disk.File].
func (f *sentFile) WriteAt(b []byte, at int64) (int, error) {
	name, err := f.current()
	if err != nil {
		return 0, err
	}
	if !replicated(name) {
		return f.File.WriteAt(b, at)
	}
	// Compare before the write changes the file.
	news := f.sender.needsWrite(name, at, b, f.File)
	// Record the write only after it succeeded: the log must not have a write that failed on this
	// machine.
	n, err := f.File.WriteAt(b, at)
	if err == nil && news {
		f.sender.addPending(writes(name, at, b)...)
	}
	return n, err
}

// current returns the current name of the file, or the error of the sender.
func (f *sentFile) current() (string, error) {
	f.sender.mu.Lock()
	defer f.sender.mu.Unlock()
	return f.name, f.sender.failed
}

// Close implements [disk.File].
func (f *sentFile) Close() error {
	f.sender.unregisterFile(f)
	return f.File.Close()
}

// Sync implements [disk.File]. For a file of the journal or a snapshot, it returns when the log has
// all writes.
func (f *sentFile) Sync() error { return f.SyncLocal(func() {}) }

// SyncLocal is called by [disk.SyncLocal]. It calls local() when the writes are durable on this
// machine. The log may get these writes much later, or never.
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

// WriteBack starts to write bytes to the device, if the file supports that.
func (f *sentFile) WriteBack(offset, size int64) {
	if w, ok := f.File.(interface{ WriteBack(offset, size int64) }); ok {
		w.WriteBack(offset, size)
	}
}

// writes returns operations that write b, each within the size limit.
func writes(name string, at int64, b []byte) (ops []op) {
	for len(b) > 0 {
		n := min(len(b), maxData)
		ops = append(ops, op{opWrite, name, uint64(at), append([]byte(nil), b[:n]...)})
		at, b = at+int64(n), b[n:]
	}
	return ops
}
