// Package deep says how much tests try. Without more they try what finds nearly
// all mistakes in a minute; with STET_DEEP=1 in the environment, as CI sets it at night,
// they try all that they are made for.
package deep

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// plainGC is how many percent a heap grows before it is collected in tests that try some.
// Their heaps are a few megabytes, so that collecting them at Go's 100 takes a fifth of
// the time. Benchmarks measure with what programs have.
const plainGC = 400

func init() {
	measures := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.bench") })
	if os.Getenv("GOGC") == "" && !measures {
		debug.SetGCPercent(Or(plainGC, 100))
	}
}

// Or returns all if STET_DEEP is set, some if it is not.
func Or[T any](some, all T) T {
	if os.Getenv("STET_DEEP") != "" {
		return all
	}
	return some
}
