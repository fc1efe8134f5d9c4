package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// MakeDir creates dir and its missing parents, and makes their names durable. It starts with the
// topmost directory. A name is durable once its parent directory is synced.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	files, err := disk.Open(parent)
	if err != nil {
		return err
	}
	defer files.Close()
	return disk.SyncDir(files, ".")
}

// MakeDirs creates the directories of a store and makes their names durable.
func MakeDirs(files disk.FS) error {
	for _, name := range []string{JournalDir, SnapshotDir} {
		if err := files.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return disk.SyncDir(files, ".")
}

// Ours returns an error if the directory contains files but no store, so that a store is never
// created among unrelated files. The remains of an unfinished creation do not count. dir is the
// path of the directory, for messages.
func Ours(files disk.FS, dir string) error {
	top, err := files.ReadDir(".")
	if err == nil {
		err = halfBackup(files)
	}
	if err != nil {
		return err
	}
	foreign := ""
	for _, e := range top {
		name := e.Name()
		switch {
		case e.IsDir() && (name == JournalDir || name == SnapshotDir):
			known, other, err := lookInto(files, name)
			if known || err != nil {
				return err
			}
			foreign = cmp.Or(foreign, other)
		case name != LockFile && name != BallastFile && name != JournalDir && name != SnapshotDir:
			foreign = cmp.Or(foreign, name)
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: %s contains %s and no store; choose an empty directory", format.ErrForeign, dir, naming.Shown(foreign))
	}
	return nil
}

// lookInto reports whether a store directory contains a file of a store. If not, it returns the
// name of an unrelated file, if any.
func lookInto(files disk.FS, dir string) (known bool, foreign string, err error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return false, "", err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasSuffix(name, segmentType) || strings.HasSuffix(name, ledgerType) || strings.HasSuffix(name, SnapshotType):
			return true, "", nil
		case !strings.HasSuffix(name, TempType):
			foreign = cmp.Or(foreign, dir+"/"+name)
		}
	}
	return false, foreign, nil
}

// halfBackup returns an error if the given file system contains an unfinished backup. An unfinished
// backup can look like a store that lost its journal.
func halfBackup(files disk.FS) error {
	if _, err := files.ReadDir(unfinishedBackup); err != nil {
		return nil
	}
	if _, err := files.ReadDir(JournalDir); err == nil {
		return nil
	}
	return fmt.Errorf("%w: an unfinished backup; remove it and run the backup again", format.ErrForeign)
}

// unfinishedBackup is the name of a backup's journal until the backup is durable. A directory with
// this name and without a journal is not a store yet.
const unfinishedBackup = "journal.tmp"
