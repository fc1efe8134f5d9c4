package disk

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Flat is one directory of an [FS], with the regular files in it and nothing
// else.
type Flat struct {
	fs  FS
	dir string
}

// Sub returns the directory dir of fs as a flat one.
func Sub(fs FS, dir string) *Flat { return &Flat{fs, dir} }

func (d *Flat) path(name string) string { return path.Join(d.dir, name) }

// Create is [FS].Create.
func (d *Flat) Create(name string) (File, error) { return d.fs.Create(d.path(name)) }

// Open is [FS].Open.
func (d *Flat) Open(name string) (File, error) { return d.fs.Open(d.path(name)) }

// OpenWrite is [FS].OpenWrite.
func (d *Flat) OpenWrite(name string) (File, error) { return d.fs.OpenWrite(d.path(name)) }

// Rename is [FS].Rename.
func (d *Flat) Rename(from, to string) error { return d.fs.Rename(d.path(from), d.path(to)) }

// Remove is [FS].Remove.
func (d *Flat) Remove(name string) error { return d.fs.Remove(d.path(name)) }

// List returns the regular files in order of their names.
func (d *Flat) List() ([]FileInfo, error) {
	entries, err := d.fs.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
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

// SyncDir makes the names durable.
func (d *Flat) SyncDir() error { return d.fs.SyncDir(d.dir) }
