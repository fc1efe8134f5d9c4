// Package shell writes command lines for people to paste.
package shell

import "strings"

// Quote returns arg as a shell of Unix takes it for one word: as it is, if it has
// none but harmless characters.
func Quote(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@~,=%", r)
	}
	if arg != "" && arg[0] != '~' && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// Command returns the command line of words.
func Command(words ...string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, Quote(w))
	}
	return strings.Join(quoted, " ")
}
