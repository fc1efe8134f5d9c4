// Package build describes the program and the machine that it runs on in one line, as far as the
// results of its floats depend on them: docs/MACHINES.md.
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

// MaxLen is the length of the longest description, in bytes.
const MaxLen = 255

// Here describes this program:
//
//	go1.26.8 linux/arm64 fused math:5d02 example.com/game@v1.2.3
//
// "fused" says that x*y + z is one operation, "unfused" that it is two. The digits behind "math:" sum
// up results of package math. Last comes the main module, if its version is known. All but the
// module is found out by running it, since a compiler's flags and the processor count too.
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

// version returns a version of Go as one word: experiments follow it behind spaces.
func version(v string) string { return strings.Join(strings.Fields(v), "+") }

// Check returns what is wrong with a description that comes from outside.
func Check(text string) error {
	if len(text) > MaxLen || strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return fmt.Errorf("a build of %d bytes; at most %d, all printable", len(text), MaxLen)
	}
	return nil
}

// Floats returns what a description says of floats: "fused math:e83c". It is "" if text is no description.
func Floats(text string) string {
	words := strings.Fields(text)
	if len(words) < 4 || !strings.HasSuffix(words[2], "fused") || !strings.HasPrefix(words[3], "math:") {
		return ""
	}
	return words[2] + " " + words[3]
}

// Differ says how two builds differ, or "" if they do not or one is unknown.
func Differ(ours, theirs string) string {
	if ours == "" || theirs == "" || ours == theirs {
		return ""
	}
	return fmt.Sprintf("%q, here %q", theirs, ours)
}

// Variables, so that the compiler leaves the operations to the machine.
var third, three, minusOne = 1.0 / 3, 3.0, -1.0

// fusion says whether the compiler fuses a product with a sum. Rounded, a third times three is 1; the
// exact product is less by 2^-54.
func fusion() string {
	if productAndSum(third, three, minusOne) != 0 {
		return "fused"
	}
	return "unfused"
}

// productAndSum is what MACHINES.md warns of. Its operands are in registers: amd64 fuses no others.
//
//go:noinline
func productAndSum(x, y, z float64) float64 { return x*y + z }

// mathSum sums up the bits of results that differ between processors.
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
