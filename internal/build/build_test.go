package build

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestBuildHere_Format(t *testing.T) {
	text := Here()
	if err := Check(text); err != nil {
		t.Error(err)
	}
	if floats := Floats(text); floats == "" || !strings.Contains(text, floats) {
		t.Errorf("Floats(%q) = %q", text, floats)
	}
	if !regexp.MustCompile(`^go\S+ ` + runtime.GOOS + `/` + runtime.GOARCH + ` (un)?fused math:[0-9a-f]{4}( \S+@\S+)?$`).MatchString(text) {
		t.Errorf("Here() = %q", text)
	}
	// MACHINES.md lists which processors fuse by default.
	switch fuses := strings.Contains(text, " fused "); {
	case slices.Contains([]string{"arm64", "ppc64", "ppc64le", "s390x", "riscv64", "loong64"}, runtime.GOARCH) && !fuses,
		slices.Contains([]string{"386", "arm", "wasm"}, runtime.GOARCH) && fuses:
		t.Errorf("Here() = %q", text)
	}
}

func TestCheck_ValidAndInvalidBuilds(t *testing.T) {
	for text, ok := range map[string]bool{
		Here(): true, "": true, strings.Repeat("a", MaxLen): true,
		strings.Repeat("a", MaxLen+1): false, "a\nb": false, "\x1b[2J": false, "\xff": false,
	} {
		if err := Check(text); (err == nil) != ok {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
}

func TestFloats_PartOfDescription(t *testing.T) {
	for text, want := range map[string]string{
		"go1.26.8 darwin/arm64 fused math:e83c game@v1": "fused math:e83c",
		"go1.26.8 linux/amd64 unfused math:a043":        "unfused math:a043",
		"":                                              "", "a b c d": "", "go1.26 linux/amd64 unfused": "",
	} {
		if got := Floats(text); got != want {
			t.Errorf("Floats(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestDiffer_NamesBothBuilds(t *testing.T) {
	for _, c := range []struct{ ours, theirs, want string }{
		{"a", "a", ""}, {"a", "", ""}, {"", "b", ""}, {"a", "b", `"b", here "a"`},
	} {
		if got := Differ(c.ours, c.theirs); got != c.want {
			t.Errorf("Differ(%q, %q) = %q, want %q", c.ours, c.theirs, got, c.want)
		}
	}
}
