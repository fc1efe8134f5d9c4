package flat

import (
	"bytes"
	"errors"
	"io/fs"
	"time"

	"github.com/stet-ecs/stet/disk"
)

// A ReadDevice is a device that another program may write. It is like a [Device] that is open for
// reading only. If a file is missing, the error wraps [fs.ErrNotExist].
type ReadDevice interface {
	Files() ([]uint64, error)

	// ReadFiles returns the bytes of some files, or nil for a missing file. Another program may
	// write a file during the call. The result may then have old bytes up to some offset, and new
	// bytes from there on.
	ReadFiles(numbers ...uint64) ([][]byte, error)

	// Open opens a file for reading. A read or Size returns the state at the time of the call.
	Open(number uint64) (File, error)

	Sizes(numbers []uint64) ([]int64, error)

	// Written reports whether a program has the device open for writing.
	Written() (bool, error)

	Close() error
}

// OpenRead returns the file system on a device that another program may write. It takes over the
// device, and closes it after an error.
//
//   - Each call with a name reads the list of names again, so it returns the current state:
//     O(names).
//   - Calls that would change a file or a name return an error that wraps [fs.ErrPermission].
//   - Reading an open file that was removed returns an error that wraps [fs.ErrNotExist].
//   - Locked returns true for every file while a program has the device open for writing.
//   - If the list of names is damaged, the error wraps a [*disk.DamageError].
func OpenRead(d ReadDevice) (disk.FS, error) {
	r := &reader{device: d, tree: &tree{device: sharedDevice{d}, names: map[string]*inode{".": {dir: true}}}}
	if err := r.refresh(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return r, nil
}

// A sharedDevice is a device whose files another program writes and removes.
type sharedDevice struct{ ReadDevice }

func (sharedDevice) Remove(uint64) error { return fs.ErrPermission }

// A reader is a tree that another program may change. The mutex of the tree also guards the fields
// of the reader.
type reader struct {
	*tree
	device ReadDevice
	lists  [firstFile][]byte // The lists of names that were read last. Nil if a list is missing.
}

// refresh reads the lists of names again. The caller holds the mutex.
//
// A writer may change the lists during the read, so the bytes can look damaged. Therefore, refresh
// reports damage only if a second read returns the same bytes.
func (r *reader) refresh() error {
	if r.closed {
		return fs.ErrClosed
	}
	var before [firstFile][]byte
	for try := 0; ; try++ {
		read, err := r.device.ReadFiles(0, 1)
		if err != nil {
			return err
		}
		lists := [firstFile][]byte(read)
		if r.log.epoch > 0 && equal(lists, r.lists) {
			return nil
		}
		list, err := newestNames(lists, nil)
		if err == nil && list.log.epoch == 0 {
			// There is no list. An empty device has no list either. But if the device has files
			// with contents, the list was lost, and newestNames returns an error.
			numbers, failed := r.device.Files()
			if failed != nil {
				return failed
			}
			list, err = newestNames(lists, numbers)
		}
		if err == nil {
			r.adopt(list.names)
			r.log, r.lists = list.log, lists
			return nil
		}
		if try > 0 && equal(lists, before) {
			return err
		}
		before = lists
		time.Sleep(time.Millisecond)
	}
}

func equal(a, b [firstFile][]byte) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// adopt replaces the names. Files keep their inodes, because a number always means the same file.
func (r *reader) adopt(names map[string]*inode) {
	inodes := map[uint64]*inode{}
	for _, n := range r.names {
		inodes[n.number] = n
	}
	for name, n := range names {
		if old := inodes[n.number]; old != nil && !n.dir {
			names[name] = old
		}
	}
	r.names = names
}

// refreshed is like refresh(), but it locks r.mu itself.
func (r *reader) refreshed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refresh()
}

func (r *reader) Open(name string) (disk.File, error) {
	if err := r.refreshed(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := r.tree.openFile(name, false)
	if err != nil {
		return nil, err
	}
	return readFile{f.(*handle), r}, nil
}

func (r *reader) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := r.refreshed(); err != nil {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: err}
	}
	return r.tree.ReadDir(dir)
}

func (r *reader) Locked(name string) (bool, error) {
	if err := r.refreshed(); err != nil {
		return false, &fs.PathError{Op: "look up", Path: name, Err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.regular(name); err != nil {
		return false, nil
	}
	return r.device.Written()
}

func refuse(call, name string) error {
	return &fs.PathError{Op: call, Path: name, Err: fs.ErrPermission}
}

func (r *reader) Create(name string) (disk.File, error)    { return nil, refuse("create", name) }
func (r *reader) OpenWrite(name string) (disk.File, error) { return nil, refuse("open", name) }
func (r *reader) Rename(_, to string) error                { return refuse("rename", to) }
func (r *reader) Publish(_, to string) error               { return refuse("publish", to) }
func (r *reader) Remove(name string) error                 { return refuse("remove", name) }
func (r *reader) Mkdir(name string) error                  { return refuse("mkdir", name) }
func (r *reader) SyncDir(dir string) error                 { return refuse("sync directory", dir) }
func (r *reader) Lock(name string) (disk.Lock, error)      { return nil, refuse("lock", name) }

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.device.Close()
}

// A readFile is an open file of a reader.
type readFile struct {
	*handle
	r *reader
}

func (f readFile) Sync() error { return refuse("sync", f.name) }

func (f readFile) Named(name string) (bool, error) {
	if err := f.r.refreshed(); err != nil {
		return false, err
	}
	return f.handle.Named(name)
}
