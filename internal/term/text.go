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

// Width returns the number of terminal columns of s. An ASCII byte has one column. Runes that never
// combine with other runes have fixed widths, which are added. Other texts are rare, and package
// runewidth measures them as a whole.
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

// alone reports whether r is one of the runes that never combine with each other or with ASCII
// runes. These are Latin letters, and the dashes, arrows and lines of tables.
func alone(r rune) bool {
	return 0xa0 <= r && r < 0x300 && r != 0xad || 0x2010 <= r && r < 0x2028 || 0x2190 <= r && r < 0x2200 || 0x2500 <= r && r < 0x25a0
}

// cutTo cuts s to a width; 0 is unlimited.
func cutTo(width int, s string) string {
	if width == 0 {
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// fold breaks s at spaces into lines of a width. A wider word gets its own line. If the last
// argument is true, such a word is also broken.
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

// foldLine folds a line to a width; 0 is unlimited. Continuation lines are indented by two more
// columns. If s begins with part of a tree drawing, such as " | ", each continuation line begins
// with it too.
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

// filled joins the lines of a paragraph into one line if one of them is too long. From the first
// indented line on, lines stay as they are.
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

// foldEntry folds a line to a width; 0 is unlimited. If the line has two columns, such as a flag
// and its description, continuation lines begin at the second column.
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

// Clean replaces characters that could control the terminal, because stored names and values may
// come from an untrusted source.
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

// Size formats a number of bytes for people: "1.5 KiB".
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
