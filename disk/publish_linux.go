package disk

import (
	"errors"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"
)

// Publish renames with the flag RENAME_NOREPLACE, which some file systems do not support.
func (d dir) Publish(from, to string) error {
	below, err := d.root.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer below.Close()
	above, err := d.root.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer above.Close()
	err = unix.Renameat2(int(below.Fd()), path.Base(from), int(above.Fd()), path.Base(to), unix.RENAME_NOREPLACE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, errors.ErrUnsupported):
		return d.publishInSteps(from, to)
	case err != nil:
		return &fs.PathError{Op: "publish", Path: to, Err: err}
	}
	return nil
}
