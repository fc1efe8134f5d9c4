package arch

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackageList_Complete compares the list of packages in CONTRIBUTING.md with the existing
// packages.
func TestPackageList_Complete(t *testing.T) {
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rooms, _ := strings.Cut(string(text), "\n## The packages\n")
	rooms, _, _ = strings.Cut(rooms, "\n## ")
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .").FindAllStringSubmatch(rooms, -1) {
		listed = append(listed, m[1])
	}
	out, err := exec.Command("go", "list", "../../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		pkg := strings.TrimPrefix(path, module)
		k := slices.Index(listed, pkg)
		if k < 0 {
			t.Errorf("CONTRIBUTING.md does not say what %s is: add a line to the list of packages", pkg)
			continue
		}
		listed = slices.Delete(listed, k, k+1)
	}
	if len(listed) > 0 {
		t.Errorf("CONTRIBUTING.md lists packages that do not exist, or twice: %v", listed)
	}
}
