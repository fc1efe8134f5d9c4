// Package shell formats command lines for users to paste.
package shell

import "strings"

// Quote returns arg as one word of a Unix shell. It returns arg unchanged if all characters are
// harmless.
func Quote(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@~,=%", r)
	}
	if arg != "" && arg[0] != '~' && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// Command returns a command line with the given words, quoted where necessary.
func Command(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, Quote(w))
	}
	return strings.Join(quoted, " ")
}
