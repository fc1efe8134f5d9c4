package journal

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
)

// dirFS keeps a journal in a directory of the operating system.
type dirFS struct{ root *os.Root }

// DirFS returns the directory that root stands for. Names cannot lead out of
// it, neither by ".." nor by symbolic links. New files have mode 0600. The
// caller closes root after everything that uses the FS.
func DirFS(root *os.Root) FS { return dirFS{root} }

const fileMode = 0o600

func (d dirFS) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d dirFS) Open(name string) (File, error) { return d.open(name, os.O_RDONLY) }

func (d dirFS) OpenWrite(name string) (File, error) { return d.open(name, os.O_RDWR) }

func (d dirFS) open(name string, flag int) (File, error) {
	f, err := d.root.OpenFile(name, flag, fileMode)
	if err != nil {
		return nil, err // Not a File holding a nil *os.File.
	}
	return osFile{f}, nil
}

func (d dirFS) Rename(from, to string) error { return d.root.Rename(from, to) }

func (d dirFS) Remove(name string) error { return d.root.Remove(name) }

func (d dirFS) List() ([]FileInfo, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if os.IsNotExist(err) {
			continue // Removed since the directory was read.
		}
		if err != nil {
			return nil, err
		}
		files = append(files, FileInfo{Name: entry.Name(), Size: info.Size()})
	}
	slices.SortFunc(files, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// SyncDir does nothing on Windows, which cannot sync a directory and makes
// names durable with the file.
func (d dirFS) SyncDir() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		dir.Close()
		return fmt.Errorf("sync directory: %w", err)
	}
	return dir.Close()
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
