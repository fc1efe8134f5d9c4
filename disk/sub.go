package disk

import (
	"io/fs"
	"os"
	"path"
)

// A sub is a directory of another tree.
type sub struct {
	fs  FS
	dir string
}

// Sub returns the directory dir of fsys as a separate tree. Closing that tree does nothing.
func Sub(fsys FS, dir string) FS { return sub{fsys, dir} }

func (s sub) path(name string) string { return path.Join(s.dir, name) }

func (s sub) Create(name string) (File, error)    { return s.file(s.fs.Create(s.path(name))) }
func (s sub) Open(name string) (File, error)      { return s.file(s.fs.Open(s.path(name))) }
func (s sub) OpenWrite(name string) (File, error) { return s.file(s.fs.OpenWrite(s.path(name))) }

func (s sub) Rename(from, to string) error  { return s.fs.Rename(s.path(from), s.path(to)) }
func (s sub) Publish(from, to string) error { return s.fs.Publish(s.path(from), s.path(to)) }
func (s sub) Remove(name string) error      { return s.fs.Remove(s.path(name)) }
func (s sub) Mkdir(name string) error       { return s.fs.Mkdir(s.path(name)) }
func (s sub) SyncDir(dir string) error      { return s.fs.SyncDir(s.path(dir)) }

func (s sub) ReadDir(dir string) ([]fs.DirEntry, error) { return s.fs.ReadDir(s.path(dir)) }
func (s sub) Lock(name string) (Lock, error)            { return s.fs.Lock(s.path(name)) }
func (s sub) Locked(name string) (bool, error)          { return s.fs.Locked(s.path(name)) }
func (s sub) Close() error                              { return nil }

func (s sub) Replicated() (bool, error) { return Replicated(s.fs) }

func (s sub) keepMode(temp, name string) { keepMode(s.fs, s.path(temp), s.path(name)) }

// file wraps f so that its names are relative to s.
func (s sub) file(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return subFile{f, s}, nil
}

type subFile struct {
	File
	sub sub
}

func (f subFile) Named(name string) (bool, error) { return f.File.Named(f.sub.path(name)) }

func (f subFile) SyncLocal(local func()) error { return SyncLocal(f.File, local) }

func (f subFile) reopen() (*os.File, error) { return Reopen(f.File) }

func (f subFile) WriteBack(offset, size int64) {
	if f, ok := f.File.(interface{ WriteBack(offset, size int64) }); ok {
		f.WriteBack(offset, size)
	}
}
