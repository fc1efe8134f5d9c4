package format

import (
	"fmt"
	"strconv"

	"github.com/stet-ecs/stet/internal/naming"
)

// CheckLabel returns an error if name is not a valid name of a snapshot. A number is not valid,
// because "snap:3" is the snapshot in file 3. 1e3 is not valid either, because it looks like a
// number.
func CheckLabel(name string) error {
	if err := CheckName("a snapshot's name", name); err != nil {
		return err
	}
	if _, notANumber := strconv.ParseFloat(name, 64); notANumber == nil {
		return fmt.Errorf("%w: %q looks like the number of a snapshot; add a word, as in %q", ErrName, name, "save "+name)
	}
	return nil
}

// CheckName returns an error wrapping [ErrName] if name is invalid, see [naming.Check]. The
// parameter what describes the object in the error. Names in files are checked too: a file may be
// hostile, and names are printed to terminals.
func CheckName(what, name string) error {
	if err := naming.Check(what, name); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	return nil
}
