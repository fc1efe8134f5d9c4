// Package build describes the running program and its machine in one line. The line contains
// everything that affects float results: see docs/MACHINES.md.
package build

import (
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unicode"
)

// MaxLen is the maximum length of a description in bytes.
const MaxLen = 255

// Here describes this program and its machine:
//
//	go1.26.8 linux/arm64 fused math:5d02 example.com/game@v1.2.3
//
//	fused      x*y + z is one operation (in an unfused build, it is two)
//	math:5d02  checksum of results of package math
//	last word  main module, if its version is available
//
// Compiler flags and the processor affect the results, so Here computes them at run time.
var Here = sync.OnceValue(func() string {
	text := fmt.Sprintf("%s %s/%s %s math:%04x", version(runtime.Version()), runtime.GOOS, runtime.GOARCH, fusion(), mathSum())
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		text += " " + info.Main.Path + "@" + info.Main.Version
	}
	if Check(text) != nil {
		text = text[:strings.LastIndexByte(text, ' ')]
	}
	return text
})

// version returns a Go version as one word. Some versions have spaces, such as "go1.26.8
// X:nogreenteagc" for a toolchain with an experiment.
func version(v string) string { return strings.Join(strings.Fields(v), "+") }

// Check returns an error if text, from an untrusted source, is not a valid description.
func Check(text string) error {
	if len(text) > MaxLen || strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return fmt.Errorf("a build of %d bytes; at most %d, all printable", len(text), MaxLen)
	}
	return nil
}

// Floats returns the part of a description about floats: "fused math:e83c". It returns "" if text
// is not a description.
func Floats(text string) string {
	words := strings.Fields(text)
	if len(words) < 4 || !strings.HasSuffix(words[2], "fused") || !strings.HasPrefix(words[3], "math:") {
		return ""
	}
	return words[2] + " " + words[3]
}

// Differ describes the difference between two builds. It returns "" if the builds are equal, or if
// a build is empty.
func Differ(ours, theirs string) string {
	if ours == "" || theirs == "" || ours == theirs {
		return ""
	}
	return fmt.Sprintf("%q, here %q", theirs, ours)
}

// These are variables, so that the compiler cannot compute the result.
var third, three, minusOne = 1.0 / 3, 3.0, -1.0

// fusion returns whether the compiler fuses a product and a sum. It computes third*three-1. The
// exact product is a little less than 1, and is rounded to 1. So the result is 0 if the product is
// rounded before the sum. A fused operation does not round the product, so its result is not 0.
func fusion() string {
	if productAndSum(third, three, minusOne) != 0 {
		return "fused"
	}
	return "unfused"
}

// productAndSum computes the expression that MACHINES.md warns about. It is a function of its own,
// so that the operands are in registers: on amd64, the compiler fuses only operands in registers.
//
//go:noinline
func productAndSum(x, y, z float64) float64 { return x*y + z }

// mathSum returns a checksum of results of package math that differ between processors.
func mathSum() uint16 {
	sum := fnv.New32a()
	for i := range 200 {
		x := float64(0.37*float64(i)) + third
		for _, y := range []float64{math.Exp(x / 7), math.Pow(x, 1.7), math.Sin(x), math.Atan(x), math.Log(x), math.Hypot(x, three), math.Tanh(x / 20)} {
			bits := math.Float64bits(y)
			var b [8]byte
			for j := range b {
				b[j] = byte(bits >> (8 * j))
			}
			sum.Write(b[:])
		}
	}
	return uint16(sum.Sum32() ^ sum.Sum32()>>16)
}
