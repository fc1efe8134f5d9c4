package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"syscall"
)

// dir is a directory tree of the operating system.
type dir struct{ root *os.Root }

// Dir returns the tree below root. Names cannot lead out of root, neither by ".." nor by symbolic
// links. New files have mode 0600, new directories 0700. Under WebAssembly, locks only work within
// the same program. Close closes root.
func Dir(root *os.Root) FS { return dir{root} }

// plain returns err with op as the name of the failed operation. Package os reports the name of the
// system call: "openat" instead of "open".
func plain(op string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: op, Path: e.Path, Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &os.LinkError{Op: op, Old: e.Old, New: e.New, Err: e.Err}
	}
	return err
}

// Open returns the tree below the directory at path. See [Dir].
func Open(path string) (FS, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return dir{root}, nil
}

const (
	fileMode = 0o600
	dirMode  = 0o700
)

func (d dir) Create(name string) (File, error) {
	return d.open("create", name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open checks the name before it opens the file, because opening a pipe would block. It checks the
// open file again, because the name may refer to another file by then.
func (d dir) Open(name string) (File, error) {
	info, err := d.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(name, info)
	}
	if err != nil {
		return nil, plain("open", err)
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, plain("open", err)
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = irregular(name, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osFile{f, d.root, name}, nil
}

func irregular(name string, info fs.FileInfo) error {
	return fmt.Errorf("%w: %s is %s", ErrIrregular, name, kindOf(info.Mode()))
}

func (d dir) OpenWrite(name string) (File, error) { return d.open("open", name, os.O_RDWR) }

func (d dir) open(op, name string, flag int) (File, error) {
	f, err := d.root.OpenFile(name, flag, fileMode)
	if err != nil {
		// Return a nil interface, not a File that contains a nil *os.File.
		return nil, plain(op, err)
	}
	return osFile{f, d.root, name}, nil
}

// Rename frees the space of a large replaced file in the background. On some file systems, this
// takes a millisecond per megabyte.
func (d dir) Rename(from, to string) error {
	if old := d.replaced(to); old != nil {
		defer func() { go old.Close() }()
	}
	return plain("rename", d.root.Rename(from, to))
}

// replaced opens the file that a rename is about to replace. While it is open, the rename does not
// free its space. For a file below 1 MiB, replaced returns nil, because freeing its space takes
// little time.
func (d dir) replaced(name string) *os.File {
	if runtime.GOOS == "windows" { // Windows does not replace an open file.
		return nil
	}
	info, err := d.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() < 1<<20 {
		return nil
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil
	}
	return f
}

// publishInSteps implements Publish on systems that have no system call for it. A file gets the new
// name in addition to the old one. Then publishInSteps removes the old name. For a directory, it
// creates an empty directory with the new name, which the rename replaces.
func (d dir) publishInSteps(from, to string) error {
	info, err := d.root.Lstat(from)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		if err := d.root.Link(from, to); err != nil {
			return err
		}
		return d.root.Remove(from)
	// Windows and WebAssembly do not replace a directory.
	case runtime.GOOS == "windows", runtime.GOARCH == "wasm":
		if _, err := d.root.Lstat(to); err == nil {
			return &fs.PathError{Op: "publish", Path: to, Err: fs.ErrExist}
		}
		return d.root.Rename(from, to)
	}
	if err := d.root.Mkdir(to, dirMode); err != nil {
		return err
	}
	if err := d.root.Rename(from, to); err != nil {
		return errors.Join(err, d.root.Remove(to))
	}
	return nil
}

// keepMode gives the file temp the permissions of the file that it is about to replace. It returns
// no error, because some file systems have no permissions.
func (d dir) keepMode(temp, name string) {
	if info, err := d.root.Lstat(name); err == nil && info.Mode().IsRegular() && info.Mode().Perm() != fileMode {
		_ = d.root.Chmod(temp, info.Mode().Perm())
	}
}

func (d dir) Remove(name string) error { return plain("remove", d.root.Remove(name)) }

func (d dir) Mkdir(name string) error {
	return plain("create directory", d.root.Mkdir(name, dirMode))
}

func (d dir) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.isDir(name); err != nil {
		return nil, plain("read directory", err)
	}
	entries, err := fs.ReadDir(d.root.FS(), path.Clean(name))
	return entries, plain("read directory", err)
}

// isDir returns an error unless name is a directory. Without this check, opening a pipe would
// block.
func (d dir) isDir(name string) error {
	info, err := d.root.Stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// SyncDir does nothing on Windows. Windows cannot sync a directory, and syncs names together with
// the file.
func (d dir) SyncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if err := d.isDir(name); err != nil {
		return plain("sync directory", err)
	}
	f, err := d.root.Open(name)
	if err != nil {
		return plain("sync directory", err)
	}
	if err := f.Sync(); err != nil {
		f.Close()
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("%w: %w", ErrNoDirSync, plain("sync directory", err))
		}
		return plain("sync directory", err)
	}
	return f.Close()
}

func (d dir) Close() error { return d.root.Close() }

type osFile struct {
	*os.File
	root *os.Root
	name string // The name at creation or opening, relative to root.
}

func (f osFile) reopen() (*os.File, error) {
	again, err := f.root.OpenFile(f.name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := again.Stat()
	if err == nil {
		var same bool
		if same, err = f.Named(f.name); err == nil && same {
			same, err = named(f.root, f.name, info)
		}
		if err == nil && !same {
			err = fmt.Errorf("%w: another file has the name %s", ErrLost, f.name)
		}
	}
	if err != nil {
		again.Close()
		return nil, err
	}
	return again, nil
}

func (f osFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	return n, nameless(err)
}

func (f osFile) Sync() error { return nameless(f.File.Sync()) }

func (f osFile) Close() error { return nameless(f.File.Close()) }

// nameless removes the file name from err, because it may be out of date.
func nameless(err error) error {
	if named, ok := errors.AsType[*fs.PathError](err); ok {
		return named.Err
	}
	return err
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Named(name string) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	return named(f.root, name, info)
}

// named reports whether name refers to the file that info describes.
func named(root *os.Root, name string, info fs.FileInfo) (bool, error) {
	there, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(info, there), err
}

func (d dir) Locked(name string) (bool, error) {
	info, err := d.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, irregular(name, info)
	}
	return d.locked(name, info)
}

func (l *dirLock) Sign(text string) error {
	f, err := l.root.OpenFile(l.name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return cmp.Or(err, f.Close())
}
