package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// draftStore makes a directory that f fills, and gives it its name once all of it is
// durable. Until then it is called like it with .tmp behind. If anything fails, there
// is neither.
func draftStore(dir string, f func(files disk.FS) error) (err error) {
	if err := unused(dir); err != nil {
		return err
	}
	temp := filepath.Clean(dir) + catalog.TempType
	if err := os.Mkdir(temp, 0o700); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it was left behind unfinished; remove it", err)
	} else if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(temp) // Nothing in it is anybody else's.
		}
	}()
	if err := fillDraft(temp, f); err != nil {
		return err
	}
	if err := unused(dir); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	if e := syncParent(dir); e != nil {
		return fmt.Errorf("persist: %s has its name, which is not durable: %w", dir, e)
	}
	return nil
}

// fillDraft makes the directories of a store in dir and calls f.
func fillDraft(dir string, f func(files disk.FS) error) error {
	files, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	if err := catalog.MakeDirs(files); err != nil {
		return err
	}
	return f(files)
}

// unused returns an error if something has that name.
func unused(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("persist: %w: %s is there; give a name that nothing has", fs.ErrExist, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

func syncParent(path string) error {
	files, err := disk.Open(filepath.Dir(filepath.Clean(path)))
	if err != nil {
		return err
	}
	defer files.Close()
	return files.SyncDir(".")
}
