package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The maximum number of lines of DESIGN.md, of a decision record, and of the index of the guide.
const (
	maxDesign = 250
	maxRecord = 40
	maxIndex  = 60
)

// TestDesignDoc_LinksToRecords checks that DESIGN.md links to each decision record. It also checks
// the length of DESIGN.md and of the records.
func TestDesignDoc_LinksToRecords(t *testing.T) {
	design := readPage(t, "../../docs/DESIGN.md", maxDesign)
	records, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil || len(records) == 0 {
		t.Fatal(err, len(records))
	}
	for _, record := range records {
		readPage(t, record, maxRecord)
		if link := "(decisions/" + filepath.Base(record) + ")"; !strings.Contains(design, link) {
			t.Errorf("DESIGN.md has no link %s", link)
		}
	}
}

func readPage(t *testing.T, name string, lines int) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > lines {
		t.Errorf("%s has %d lines, at most %d", name, n, lines)
	}
	return string(text)
}

var (
	codePath = regexp.MustCompile("`([a-z]+/[a-z0-9_/-]+\\.(?:go|py|js|txtar|md))")
	pageLink = regexp.MustCompile(`\]\(([\w./-]*[./][\w./-]*)(#[^)]*)?\)`)
)

// TestDocs_NamedFilesExist checks that every file named in a page of documentation exists. A path
// in code is relative to the root of the project, and a link is relative to its page.
func TestDocs_NamedFilesExist(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guide/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 20 {
		t.Fatalf("only %d pages found", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codePath.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
		for _, m := range pageLink.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}
