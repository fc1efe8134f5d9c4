package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A tempDir is the directory of a store during its creation, under a unique temporary name. It
// holds the lock of the store until the call of publish(). A directory without the lock is a
// leftover of a process that has ended.
type tempDir struct {
	path  string
	root  *os.Root
	files disk.FS
	lock  disk.Lock
}

// dirTries is how many names makeTempDir tries.
const dirTries = 10

// makeTempDir makes a temporary directory, which publish later renames to dir.
func makeTempDir(dir string) (*tempDir, error) {
	for try := 1; ; try++ {
		t := &tempDir{path: tempDirName(dir)}
		err := t.make()
		if err == nil {
			return t, nil
		}
		if try == dirTries || !errors.Is(err, fs.ErrExist) && !errors.Is(err, disk.ErrLocked) && !errors.Is(err, disk.ErrLost) {
			return nil, err
		}
	}
}

// tempDirName returns a new temporary name for dir.
func tempDirName(dir string) string {
	return filepath.Join(filepath.Dir(dir), disk.TempName(filepath.Base(dir)))
}

func (t *tempDir) make() (err error) {
	if err := os.Mkdir(t.path, 0o700); err != nil {
		return err
	}
	if err := t.open(); err != nil {
		t.discard()
		return err
	}
	return nil
}

// open opens and locks the directory. Before the lock, another process may take the directory for a
// leftover and remove it. In that case open returns [disk.ErrLost].
func (t *tempDir) open() (err error) {
	if t.root, err = os.OpenRoot(t.path); err != nil {
		return err
	}
	t.files = disk.Dir(t.root)
	if t.lock, err = t.files.Lock(catalog.LockFile); err != nil {
		return err
	}
	opened, err := t.root.Stat(".")
	if err != nil {
		return err
	}
	if there, err := os.Stat(t.path); err != nil || !os.SameFile(opened, there) {
		return fmt.Errorf("%s: %w", t.path, disk.ErrLost)
	}
	return nil
}

// close releases the lock and closes the directory.
func (t *tempDir) close() {
	if t.lock != nil {
		t.lock.Close()
	}
	if t.root != nil {
		t.root.Close()
	}
	t.lock, t.root = nil, nil
}

// discard removes the directory with its contents.
func (t *tempDir) discard() {
	// Windows cannot remove open files.
	if runtime.GOOS == "windows" {
		t.close()
	}
	_ = os.RemoveAll(t.path)
	t.close()
}

// publish renames the directory to dir, unless dir exists.
func (t *tempDir) publish(dir string) error {
	// Windows cannot rename open files.
	if runtime.GOOS == "windows" {
		t.close()
	}
	err := inDirectory(filepath.Dir(dir), func(files disk.FS) error {
		return files.Publish(filepath.Base(t.path), filepath.Base(dir))
	})
	if err == nil {
		t.close()
	} else if errors.Is(err, fs.ErrExist) {
		// If dir exists, the error of checkUnused is clearer.
		err = cmp.Or(checkUnused(dir), err)
	}
	return err
}

// removeTempDirs removes temporary directories for dir that ended processes have left behind. It
// does nothing on Windows and under WebAssembly.
func removeTempDirs(dir string) {
	if runtime.GOOS == "windows" || runtime.GOARCH == "wasm" {
		return
	}
	parent := filepath.Dir(dir)
	entries, _ := os.ReadDir(parent)
	own, _ := disk.TempOf(filepath.Base(tempDirName(dir)))
	for _, e := range entries {
		if name, ok := disk.TempOf(e.Name()); ok && name == own && e.IsDir() {
			removeTempDir(filepath.Join(parent, e.Name()), dir)
		}
	}
}

// removeTempDir removes a directory if its writer has ended. It takes the lock and renames the
// directory first. If a new writer has just made the directory but not locked it yet, that writer
// gets [disk.ErrLost] and makes another one.
func removeTempDir(path, dir string) {
	files, err := disk.Open(path)
	if err != nil {
		return
	}
	defer files.Close()
	if locked, err := files.Locked(catalog.LockFile); locked || err != nil || !onlyStore(files) {
		return
	}
	lock, err := files.Lock(catalog.LockFile)
	if err != nil {
		return
	}
	defer lock.Close()
	aside := tempDirName(dir)
	if os.Rename(path, aside) == nil {
		_ = os.RemoveAll(aside)
	}
}

// onlyStore reports whether a directory contains only files of a store.
func onlyStore(files disk.FS) bool {
	entries, err := files.ReadDir(".")
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() != catalog.LockFile && e.Name() != catalog.JournalDir && e.Name() != catalog.SnapshotDir
	})
}
