package term

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// paged prints lines one by one to a screen with a height and a pager, and returns the output.
func paged(t *testing.T, lines, height int, pager string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the pager is run by sh")
	}
	var out bytes.Buffer
	s := &screen{out: &out}
	s.pageBeyond(height, pager)
	for range lines {
		_, err := io.WriteString(s, "line\n")
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	return out.String()
}

func TestPager_UnusedForOneScreen(t *testing.T) {
	pager := "sed s/line/paged/" // It reads all of its input.
	assert.Equal(t, strings.Repeat("line\n", 3), paged(t, 3, 4, pager))
	assert.Equal(t, strings.Repeat("paged\n", 4), paged(t, 4, 4, pager))
	assert.Equal(t, strings.Repeat("paged\n", 5000), paged(t, 5000, 4, pager))
	assert.Equal(t, strings.Repeat("line\n", 9), paged(t, 9, 0, pager), "no terminal")
	assert.Equal(t, strings.Repeat("line\n", 9), paged(t, 9, 4, ""), "no pager")
	assert.Empty(t, paged(t, 0, 4, pager))
}

func TestPager_SetsLESSVariable(t *testing.T) {
	t.Setenv("LESS", "")
	assert.Equal(t, "FRSX\n", paged(t, 9, 4, `cat >/dev/null; echo "$LESS"`))
	t.Setenv("LESS", "N")
	assert.Equal(t, "N\n", paged(t, 9, 4, `cat >/dev/null; echo "$LESS"`))
}

func TestPager_CannotStart(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	assert.Equal(t, strings.Repeat("line\n", 9), paged(t, 9, 4, "less"))
}

func TestPager_QuitBeforeEndOfOutput(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pager is run by sh")
	}
	var out bytes.Buffer
	failed := 0
	s := &screen{out: &out, failed: func() { failed++ }}
	s.pageBeyond(2, "head -n 3")
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 1<<20)
		_, err = io.WriteString(s, "line\n")
	}
	assert.Equal(t, 1, failed)
	require.NoError(t, s.Close())
	assert.Equal(t, "line\nline\nline\n", out.String())
}

func TestPager_SlowOutput(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out}
	s.pageBeyond(4, "cat >/dev/null")
	_, _ = io.WriteString(s, "held\n")
	assert.Empty(t, out.String())
	require.NoError(t, s.unpaged())
	assert.Equal(t, "held\n", out.String())
	for range 9 {
		_, _ = io.WriteString(s, "x")
	}
	require.NoError(t, s.Close())
	assert.Equal(t, "held\nxxxxxxxxx", out.String())
}

func TestPagerOf_Environment(t *testing.T) {
	only := func(names ...string) func(string) bool {
		return func(name string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") }
	}
	for _, test := range []struct {
		env  env
		has  func(string) bool
		want string
	}{
		{env{}, only("less", "more"), "less"},
		{env{}, only("more"), "more"},
		{env{}, only(), ""},
		{env{"TERM": "dumb"}, only("less"), ""},
		{env{"PAGER": "most -x"}, only("less"), "most -x"},
		{env{"PAGER": "cat"}, only("less"), ""},
		{env{"PAGER": "most", "ECSDUMP_PAGER": "less -N"}, only("less"), "less -N"},
		{env{"PAGER": "most", "ECSDUMP_PAGER": "cat"}, only("less"), ""},
		{env{"PAGER": " "}, only("less"), "less"},
	} {
		assert.Equal(t, test.want, pagerOf(test.env.get, test.has), "%v", test.env)
	}
}

func TestHasProgram_SearchesPath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	assert.False(t, hasProgram("less"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "less.exe"), nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "less"), nil, 0o700))
	assert.True(t, hasProgram("less"))
}
