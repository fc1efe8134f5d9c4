//go:build unix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf returns the size of the terminal f, in columns and lines. ok is false if f is not a
// terminal.
func sizeOf(f *os.File) (width, height int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}
