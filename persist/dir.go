package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// makeDir makes dir and what is missing above it, and makes the names durable.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer root.Close()
	return syncNames(root)
}

// makeDirs makes the directories of a store and makes their names durable.
func makeDirs(root *os.Root) error {
	for _, name := range []string{journalDir, snapshotDir} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return syncNames(root)
}

// syncNames makes the names in a directory durable. Windows has no such call.
func syncNames(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ours returns an error if the directory holds things, but nothing of a store.
// What an unfinished creation leaves behind does not count.
func ours(root *os.Root) error {
	foreign, known := "", false
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dir, name, _ := strings.Cut(path, "/")
		inside := name != "" && (dir == journalDir || dir == snapshotDir)
		switch {
		case path == "." || path == lockFile || path == journalDir || path == snapshotDir:
			return nil
		case inside && (strings.HasSuffix(name, segmentType) || strings.HasSuffix(name, snapshotType)):
			known = true
			return fs.SkipAll
		case inside && strings.HasSuffix(name, tempType):
			return nil
		case foreign == "":
			foreign = path
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && !known && foreign != "" {
		err = fmt.Errorf("%w: %s holds %s and nothing of a store; give an empty directory", ErrForeign, root.Name(), foreign)
	}
	return err
}
