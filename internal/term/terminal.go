package term

import (
	"io"
	"os"
	"strconv"
)

// A terminal says what a stream leads to.
type terminal struct {
	is            bool // It is a terminal.
	width, height int  // 0: not known.
}

// terminalOf returns what stream leads to: only a file can be a terminal.
func terminalOf(stream any) terminal {
	f, ok := stream.(*os.File)
	if !ok {
		return terminal{}
	}
	width, height, ok := sizeOf(f)
	return terminal{ok, width, height}
}

// lineWidth returns how many columns a line printed to w may have; 0: any.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return terminalOf(w).width
}
