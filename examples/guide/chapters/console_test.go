package chapters_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/dump"
	"github.com/stet-ecs/stet/internal/golden"
)

// asEcsdump is an environment variable. If it is set, the test binary runs as ecsdump.
const asEcsdump = "STET_GUIDE_AS_ECSDUMP"

func TestMain(m *testing.M) {
	if os.Getenv(asEcsdump) != "" {
		os.Exit(dump.Main(nil))
	}
	var err error
	root, err = os.MkdirTemp("", "stet-guide-")
	check(err)
	code := m.Run()
	check(os.RemoveAll(root))
	os.Exit(code)
}

// A console block of the guide follows a comment with the name of a store in the map stores.
var consoleBlock = regexp.MustCompile("(?s)(<!-- store: (\\w+) -->\n)```text\n(.*?)```\n")

// stores has functions that create the stores of the console blocks.
var stores = map[string]func(dir string) error{"battle": recordBattle}

// TestConsole_OutputInGuide runs the commands in the console blocks of the guide, and compares
// their output. With -update, it writes the output.
func TestConsole_OutputInGuide(t *testing.T) {
	pages, err := filepath.Glob("../../../docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(err, len(pages))
	}
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, page, consoleBlock.ReplaceAllStringFunc(string(text), func(block string) string {
			blocks++
			part := consoleBlock.FindStringSubmatch(block)
			return part[1] + "```text\n" + runConsole(t, part[2], part[3]) + "```\n"
		}))
	}
	if blocks == 0 {
		t.Error("no page has a console block")
	}
}

// runConsole runs the commands of a block in a directory with the store. The result has each
// command with its output.
func runConsole(t *testing.T, store, block string) string {
	t.Helper()
	dir := t.TempDir()
	if err := stores[store](filepath.Join(dir, store)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ecsdump ")
		if !ok {
			continue
		}
		c := exec.Command(os.Args[0], words(command)...)
		c.Dir, c.Env = dir, append(os.Environ(), asEcsdump+"=1")
		out, err := c.CombinedOutput()
		if err != nil && c.ProcessState.ExitCode() != 1 { // 1 means that diff found a difference.
			t.Errorf("%s: %v: %s", command, err, out)
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(line + string(out))
	}
	return b.String()
}

// words splits a command at blanks outside single quotes.
func words(command string) (words []string) {
	for i, part := range strings.Split(strings.TrimSpace(command), "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
