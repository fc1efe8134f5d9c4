package play

import (
	"fmt"
	"strings"
)

// Columns returns two texts side by side.
func Columns(left, right string) (text string) {
	lines := strings.Split(right, "\n")
	for i, line := range strings.Split(left, "\n") {
		if i < len(lines) {
			line = fmt.Sprintf("%-39s%s", line, lines[i])
		}
		text += strings.TrimRight(line, " ") + "\n"
	}
	return text
}
