package pagefile

import (
	"runtime"
	"strconv"
)

// initialMap is how much address space bbolt maps when it creates a file. Each
// time a file outgrows its map, bbolt copies what is not written yet.
var initialMap = mapSize(runtime.GOOS, strconv.IntSize)

// mapSize returns what costs nothing to map: on Windows a map makes the file
// as long as itself, and 32 bits of address space are soon used up.
func mapSize(goos string, bits int) int {
	if goos == "windows" || bits == 32 {
		return 64 << 20
	}
	return 1 << 30
}
