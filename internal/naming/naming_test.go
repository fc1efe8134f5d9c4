package naming

import (
	"strings"
	"testing"
)

func TestCheck_ValidAndInvalidNames(t *testing.T) {
	for _, name := range []string{"a", "Position", "level 2", "Łódź", "★", strings.Repeat("x", 255)} {
		if err := Check("a name", name); err != nil {
			t.Errorf("Check(%q) = %v", name, err)
		}
	}
	for _, name := range []string{"", " a", "a\n", "\x00", "a\x1b[31mb", "a\xffb", "\u202e", "\u200b", strings.Repeat("x", 256), strings.Repeat("x", 1<<20)} {
		err := Check("a name", name)
		if err == nil {
			t.Errorf("Check(%.20q) = nil", name)
		} else if text := err.Error(); len(text) > 300 || strings.ContainsFunc(text, unseen) {
			t.Errorf("Check(%.20q) = %.80q…", name, text)
		}
	}
}

func TestShown_QuotesUnusualNames(t *testing.T) {
	for name, want := range map[string]string{
		"Position": "Position", "a.b-c/d": "a.b-c/d", "Łódź": "Łódź", "": `""`, "level 2": `"level 2"`, `a"b`: `"a\"b"`,
		"a\x1b[31m\nb": `"a\x1b[31m\nb"`, "\xff": `"\xff"`, "\u202e": `"\u202e"`, strings.Repeat("x", 300): `"` + strings.Repeat("x", 255) + `"…`,
	} {
		if got := Shown(name); got != want {
			t.Errorf("Shown(%q) = %s, want %s", name, got, want)
		}
	}
}
