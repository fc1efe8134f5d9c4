// Package naming defines valid names for components, snapshots, marks and inputs. It also quotes
// names for use in a sentence.
package naming

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSize is the maximum length of a name in bytes.
const maxSize = 255

// Check returns an error if name is invalid. A valid name has 1 to 255 bytes of UTF-8, only visible
// characters, and no space at its start or end. The first argument is the subject of the error
// text, such as "the name of a component". Files of older versions may contain invalid names.
func Check(what, name string) error {
	switch {
	case name == "", len(name) > maxSize:
		return fmt.Errorf("%s has 1 to %d bytes, not %d", what, maxSize, len(name))
	case !utf8.ValidString(name), strings.ContainsFunc(name, unseen), strings.TrimSpace(name) != name:
		return fmt.Errorf("%q has characters that cannot be seen", name)
	}
	return nil
}

// unseen reports whether r is invisible.
func unseen(r rune) bool { return !unicode.IsGraphic(r) }

// Shown returns name for use in a sentence. It quotes a name that is not a plain word, so that a
// name from a file cannot send commands to a terminal. It shortens names above maxSize.
func Shown(name string) string {
	if Check("", name) != nil || strings.ContainsFunc(name, quoted) {
		if len(name) > maxSize {
			return strconv.Quote(name[:maxSize]) + "…"
		}
		return strconv.Quote(name)
	}
	return name
}

// quoted reports whether a name with the rune r must be quoted.
func quoted(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '\\' }
