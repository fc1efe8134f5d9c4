// Package naming says which names can be given, to components, snapshots, marks and
// inputs, and how any name is shown in a sentence.
package naming

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSize is how many bytes a name may have.
const maxSize = 255

// Check returns why name is not one that can be typed and seen, which all that are given
// must be: 1 to 255 bytes of UTF-8, all of whose characters can be seen, with no space
// around them. what says whose it is, with an article. Names that were stored before
// somebody asked can be others.
func Check(what, name string) error {
	switch {
	case name == "", len(name) > maxSize:
		return fmt.Errorf("%s has 1 to %d bytes, not %d", what, maxSize, len(name))
	case !utf8.ValidString(name), strings.ContainsFunc(name, unseen), strings.TrimSpace(name) != name:
		return fmt.Errorf("%q has characters that cannot be seen", name)
	}
	return nil
}

// unseen reports whether nobody can see r.
func unseen(r rune) bool { return !unicode.IsGraphic(r) }

// Shown returns name as it is put into a sentence: in quotes if it is not a plain word, so
// that a name out of a file can neither break a line nor command a terminal, and cut if it
// is longer than any that can be given.
func Shown(name string) string {
	if Check("", name) != nil || strings.ContainsFunc(name, quoted) {
		if len(name) > maxSize {
			return strconv.Quote(name[:maxSize]) + "…"
		}
		return strconv.Quote(name)
	}
	return name
}

// quoted reports whether a name with r in it is not plain.
func quoted(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\\' }
