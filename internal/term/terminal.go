package term

import (
	"io"
	"os"
	"strconv"
)

// A terminal describes the destination of a stream.
type terminal struct {
	is            bool // True if the destination is a terminal.
	width, height int  // 0 means unknown.
}

// terminalOf describes the destination of stream. Only a file can be a terminal.
func terminalOf(stream any) terminal {
	f, ok := stream.(*os.File)
	if !ok {
		return terminal{}
	}
	width, height, ok := sizeOf(f)
	return terminal{ok, width, height}
}

// lineWidth returns the columns of a line printed to w; 0 means unlimited. COLUMNS overrides the
// width of the terminal.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return terminalOf(w).width
}
