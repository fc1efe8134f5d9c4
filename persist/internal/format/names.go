package format

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is how many bytes a name may have.
const maxLabel = 255

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

// CheckName returns why name is not one that can be typed and seen. what says whose
// it is. Names are printed to terminals and put into command lines as they are, so that
// control characters and spaces around them are refused when they are read as well.
func CheckName(what, name string) error {
	switch {
	case name == "", len(name) > maxLabel:
		return fmt.Errorf("%w: %s has 1 to %d bytes, not %d", ErrName, what, maxLabel, len(name))
	case !utf8.ValidString(name), strings.ContainsFunc(name, unseen), strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %q has characters that cannot be seen", ErrName, name)
	}
	return nil
}

// unseen reports whether nobody can see r.
func unseen(r rune) bool { return !unicode.IsGraphic(r) }
