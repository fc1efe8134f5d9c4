// Package deep determines how many cases tests try. By default, tests try few cases, which take a
// minute and find nearly all faults. With STET_DEEP=1 in the environment, tests try all cases. CI
// sets STET_DEEP=1 at night.
package deep

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// plainGC is the GOGC percentage of tests without STET_DEEP. Their heaps have a few megabytes. With
// the default of 100, garbage collection uses a fifth of the time. Benchmarks use the default.
const plainGC = 400

func init() {
	measures := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.bench") })
	if os.Getenv("GOGC") == "" && !measures {
		debug.SetGCPercent(Or(plainGC, 100))
	}
}

// Or returns its second argument if STET_DEEP is set, and its first argument otherwise.
func Or[T any](some, all T) T {
	if os.Getenv("STET_DEEP") != "" {
		return all
	}
	return some
}
