package term

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Width returns how many columns of a terminal s takes. Most texts are ASCII, for which that is
// known without looking at runes; and nearly all others have only runes that never join others, so
// that what they take adds up.
func Width(s string) int {
	width := 0
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			width++
		case alone(r):
			width += runewidth.RuneWidth(r)
		default:
			return runewidth.StringWidth(s)
		}
	}
	return width
}

// alone reports whether r makes one sign with no rune beside it that is ASCII or alone: letters of
// Latin scripts, and the dashes, arrows and lines of tables.
func alone(r rune) bool {
	return 0xa0 <= r && r < 0x300 && r != 0xad || 0x2010 <= r && r < 0x2028 || 0x2190 <= r && r < 0x2200 || 0x2500 <= r && r < 0x25a0
}

// cutTo cuts s to a width, if it is not 0.
func cutTo(width int, s string) string {
	if width == 0 {
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// fold breaks s into lines of a width, at spaces. A word that is wider is broken as well if hard
// is set, else it stands on a line of its own.
func fold(s string, width int, hard bool) (lines []string) {
	line := ""
	for i, word := range strings.Split(s, " ") {
		if i > 0 && Width(line)+1+Width(word) <= width {
			line += " " + word
			continue
		}
		if i > 0 {
			lines = append(lines, line)
		}
		for hard && Width(word) > width {
			head := cmp.Or(runewidth.Truncate(word, width, ""), word[:1])
			lines, word = append(lines, head), word[len(head):]
		}
		line = word
	}
	return append(lines, line)
}

// foldLine folds a line of text, if width is not 0. What follows is indented further than the line is, or
// hangs on the lines that lead past it.
func foldLine(s string, width int, hard bool) []string {
	text := strings.TrimLeft(s, " |")
	before := s[:len(s)-len(text)]
	hang := before + "  "
	if width == 0 || Width(s) <= width || width <= 2*len(hang) {
		return []string{s}
	}
	lines := fold(text, width-len(hang), hard)
	for i := range lines {
		if i == 0 {
			lines[i] = before + lines[i]
		} else {
			lines[i] = hang + lines[i]
		}
	}
	return lines
}

// filled returns the lines of a block of text: as one line those of a paragraph that has lines
// which are too long. What is indented, or leads to such a line, is no paragraph.
func filled(lines []string, width int) []string {
	long := false
	for i, line := range lines {
		if strings.HasPrefix(line, " ") && i > 0 {
			return append(filled(lines[:i], width), lines[i:]...)
		}
		long = long || Width(line) > width
	}
	if !long || strings.HasPrefix(lines[0], " ") {
		return lines
	}
	return []string{strings.Join(lines, " ")}
}

// foldEntry folds a line, if width is not 0. If it has two columns, as the flags in a help have, what
// follows stands below the second.
func foldEntry(s string, width int) (lines []string) {
	text := strings.TrimLeft(s, " ")
	hang := len(s) - len(text)
	if gap := strings.Index(text, "  "); hang > 0 && gap > 0 {
		if at := hang + gap + strings.IndexFunc(text[gap:], func(r rune) bool { return r != ' ' }); at <= width/2 {
			hang = at
		}
	}
	if width == 0 || Width(s) <= width || hang >= width {
		return []string{s}
	}
	before := s[:hang]
	for _, line := range fold(s[hang:], width-hang, false) {
		lines = append(lines, strings.TrimRight(before+line, " "))
		before = strings.Repeat(" ", hang)
	}
	return lines
}

// Clean replaces what could play tricks on a terminal. Names come from files
// that anybody may have written.
func Clean(s string) string {
	plain := func(r rune) bool { return r == ' ' || r != utf8.RuneError && unicode.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// Size returns a size for people: "1.5 KiB".
func Size(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	x, unit := float64(bytes)/1024, 0
	for ; x >= 1024 && unit < 3; unit++ {
		x /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", x, "KMGT"[unit])
}

// Count returns n with its noun: "1 row", "2 rows".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
