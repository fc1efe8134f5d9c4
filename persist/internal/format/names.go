package format

import (
	"fmt"
	"strconv"

	"github.com/stet-ecs/stet/internal/naming"
)

// CheckLabel returns what is wrong with the name of a snapshot. A number is none, since
// "snap:3" is the snapshot in file 3; neither is 1e3, which looks like one.
func CheckLabel(name string) error {
	if err := CheckName("a snapshot's name", name); err != nil {
		return err
	}
	if _, notANumber := strconv.ParseFloat(name, 64); notANumber == nil {
		return fmt.Errorf("%w: %q would be taken for the number of a snapshot", ErrName, name)
	}
	return nil
}

// CheckName returns an error wrapping [ErrName] unless name can be given, see [naming.Check]; what says
// whose it is. It is asked when a name is given and when it is read: marks and inputs are printed to
// terminals and put into command lines as they are, and a file may come from a stranger.
func CheckName(what, name string) error {
	if err := naming.Check(what, name); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	return nil
}
