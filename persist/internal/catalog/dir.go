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

// MakeDir makes dir and what is missing above it, and makes the names durable, from the
// top down. A name is durable once the directory that has it is synced.
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

// MakeDirs makes the directories of a store and makes their names durable.
func MakeDirs(files disk.FS) error {
	for _, name := range []string{JournalDir, SnapshotDir} {
		if err := files.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return disk.SyncDir(files, ".")
}

// Ours returns an error if the directory, whose path dir is for people, holds
// things, but nothing of a store: nobody's files shall get a store among them. What an unfinished
// creation leaves behind does not count, neither for a store nor for somebody else's things: it
// may be created again over that.
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
		return fmt.Errorf("%w: %s holds %s and nothing of a store; give an empty directory", format.ErrForeign, dir, naming.Shown(foreign))
	}
	return nil
}

// lookInto reports whether a directory of a store holds a file of one, and
// otherwise names something in it that is none.
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

// halfBackup returns an error if a backup to files was not finished. Whole snapshots may be there
// already, so it would pass for a store that lost its journal.
func halfBackup(files disk.FS) error {
	if _, err := files.ReadDir(unfinishedBackup); err != nil {
		return nil
	}
	if _, err := files.ReadDir(JournalDir); err == nil {
		return nil
	}
	return fmt.Errorf("%w: a backup that was not finished; remove it and make it again", format.ErrForeign)
}

// unfinishedBackup is what the journal of a backup is called until all of it is
// durable. A directory that has it and no journal is not a store yet.
const unfinishedBackup = "journal.tmp"
