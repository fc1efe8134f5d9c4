package disktest

import (
	"errors"
	"io"
	"path"

	"github.com/stet-ecs/stet/disk"
)

// Directory is the content of a directory in the result of [Contents].
const Directory = "a directory"

// Contents returns the contents of all files of a tree, by name.
func Contents(fsys disk.FS) (map[string]string, error) {
	all := map[string]string{}
	return all, addContents(all, fsys, ".")
}

// addContents adds the files below dir.
func addContents(all map[string]string, fsys disk.FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			all[name] = Directory
			err = errors.Join(err, addContents(all, fsys, name))
			continue
		}
		content, failure := readFile(fsys, name)
		all[name], err = content, errors.Join(err, failure)
	}
	return err
}

func readFile(fsys disk.FS, name string) (string, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	size, err := f.Size()
	b := make([]byte, size)
	if err == nil && size > 0 {
		_, err = io.ReadFull(io.NewSectionReader(f, 0, size), b)
	}
	return string(b), errors.Join(err, f.Close())
}
