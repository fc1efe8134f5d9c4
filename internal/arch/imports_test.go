// Package arch checks that the code has the documented architecture.
package arch

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/stet-ecs/stet/"

// allowed maps each package to the packages that it may import. Packages of other modules are
// listed by a prefix of their path.
var allowed = map[string][]string{
	"ecs/layout":                {"internal/grow", "internal/near"},
	"internal/grow":             {},
	"internal/digest":           {"github.com/zeebo/xxh3"},
	"ecs/internal/track":        {},
	"ecs/internal/roster":       {},
	"ecs/internal/sound":        {"ecs/internal/track"},
	"ecs/raw":                   {"ecs/internal/sound", "ecs/layout", "internal/naming"},
	"ecs":                       {"ecs/internal/roster", "ecs/internal/sound", "ecs/internal/system", "ecs/internal/track", "ecs/layout", "ecs/raw", "internal/digest", "internal/naming"},
	"internal/build":            {},
	"ecs/internal/system":       {"ecs/raw"},
	"ecs/schedule":              {"ecs", "ecs/internal/system", "ecs/raw", "internal/naming"},
	"ecs/rollback":              {"ecs", "ecs/raw", "ecs/schedule", "internal/build"},
	"disk":                      {"golang.org/x/sys", "github.com/gofrs/flock"},
	"disk/archive":              {"disk"},
	"disk/flat":                 {"disk"},
	"disk/browser":              {"disk", "disk/flat"},
	"internal/near":             {},
	"internal/naming":           {},
	"internal/shell":            {},
	"journal/budget":            {},
	"journal":                   {"disk", "internal/background", "journal/budget"},
	"persist/internal/pagefile": {"disk", "go.etcd.io/bbolt"},
	"internal/parallel":         {},
	"internal/background":       {"golang.org/x/sys"},
	"persist/internal/format": {
		"disk", "ecs", "ecs/layout", "ecs/raw", "journal", "internal/build", "internal/digest", "internal/grow", "internal/naming", "persist/internal/pagefile",
		"github.com/klauspost/compress/zstd",
	},
	"persist/internal/progress": {},
	"persist/internal/image": {
		"ecs", "ecs/layout", "ecs/raw", "journal", "internal/digest", "internal/naming", "internal/parallel", "persist/internal/format", "github.com/zeebo/xxh3",
	},
	"persist/internal/snap": {
		"ecs", "ecs/raw", "journal", "internal/digest", "disk", "internal/naming", "persist/internal/pagefile", "internal/parallel",
		"persist/internal/format", "persist/internal/image", "persist/internal/progress", "github.com/zeebo/xxh3",
	},
	"persist/internal/catalog": {
		"ecs", "journal", "disk", "internal/build", "internal/naming", "internal/near", "persist/internal/pagefile", "internal/parallel",
		"persist/internal/format", "persist/internal/image", "persist/internal/progress", "persist/internal/snap",
	},
	"persist": {
		"ecs", "ecs/layout", "ecs/raw", "ecs/schedule", "journal", "journal/budget", "disk", "disk/archive", "internal/background", "internal/build", "internal/grow", "internal/naming", "internal/shell",
		"persist/internal/catalog", "persist/internal/format", "persist/internal/image", "persist/internal/progress", "persist/internal/snap",
	},
	"persist/inspect": {
		"ecs", "ecs/layout", "ecs/raw", "journal", "disk", "disk/archive", "internal/naming", "persist/internal/pagefile", "internal/parallel", "internal/shell", "persist",
		"persist/internal/catalog", "persist/internal/format", "persist/internal/image", "persist/internal/progress", "persist/internal/snap",
	},
	"persist/repair": {
		"ecs", "ecs/layout", "ecs/raw", "journal", "disk", "persist/inspect", "persist/internal/pagefile",
		"persist/internal/catalog", "persist/internal/format", "persist/internal/image", "persist/internal/progress", "persist/internal/snap",
	},
	"persist/inspect/web": {"ecs", "ecs/layout", "ecs/raw", "journal", "persist", "persist/inspect", "persist/repair", "internal/describe", "internal/query"},
	"persist/replica":     {"disk", "ecs", "journal", "journal/budget", "persist"},
	"persist/part":        {"disk", "ecs", "ecs/raw", "internal/naming", "persist"},
	"cmd/ecsdump":         {"internal/dump"},
	"internal/dump": {
		"disk", "ecs", "ecs/layout", "ecs/raw", "journal", "persist", "persist/inspect", "persist/inspect/web", "persist/repair", "internal/describe", "internal/near", "internal/query", "internal/shell", "internal/term",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/modelcontextprotocol/go-sdk",
	},
	"internal/describe":       {"ecs", "ecs/layout", "ecs/raw", "persist", "persist/inspect", "persist/repair", "internal/build", "internal/shell"},
	"internal/query":          {"ecs", "ecs/layout", "ecs/raw", "persist/inspect", "internal/near", "github.com/expr-lang/expr"},
	"internal/term":           {"github.com/mattn/go-runewidth", "golang.org/x/sys"},
	"examples/asteroids":      {"persist", "examples/asteroids/game", "golang.org/x/term"},
	"examples/asteroids/game": {"disk", "disk/archive", "ecs", "ecs/schedule", "persist"},
	"examples/factory":        {"ecs", "ecs/schedule", "persist"},
	"examples/guide":          {},
	"examples/guide/chapters": {},
	"examples/guide/first":    {"ecs", "persist"},
	"examples/guide/game1":    {"ecs", "examples/guide/play"},
	"examples/guide/game2":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game3":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game4":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game5":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game6":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game7":    {"ecs", "ecs/schedule", "examples/guide/play"},
	"examples/guide/game8":    {"ecs", "ecs/schedule", "examples/guide/play", "persist"},
	"examples/guide/game9":    {"ecs", "ecs/rollback", "ecs/schedule", "examples/guide/play"},
	"examples/guide/play":     {"disk", "ecs", "golang.org/x/term"},
	"examples/guide/time":     {"disk", "ecs", "ecs/schedule", "examples/guide/play", "persist"},
	"examples/life":           {"ecs", "journal", "persist"},
	"examples/metrics":        {"ecs", "persist"},
	"examples/queens":         {"ecs"},
	"examples/roguelike":      {"ecs"},
	"examples/rollback":       {"ecs", "ecs/rollback", "ecs/schedule", "ecs/raw", "persist"},
	"examples/server":         {"ecs", "ecs/schedule", "persist", "persist/inspect"},
	"internal/benchtable":     {"internal/term"},
	"internal/benchdata":      {"ecs", "persist"},
	"internal/journeys":       {"ecs", "internal/dump", "persist"},
	"internal/mutants":        {"internal/parallel"},
	"internal/wording":        {},
	"internal/webfiles":       {},
	"internal/querygen":       {},
	"benchmarks":              {},
}

// helpers are packages that only tests may import.
var helpers = []string{"disk/disktest", "internal/deep", "persist/internal/storetest", "internal/golden", "internal/arch", "persist/replica/replicatest"}

func TestPackages_AllowedImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		pkg := strings.TrimPrefix(fields[0], module)
		if slices.Contains(helpers, pkg) {
			continue
		}
		seen[pkg] = true
		rules, known := allowed[pkg]
		if !known {
			t.Errorf("%s is in no row of the table: add a row with its allowed imports", pkg)
			continue
		}
		for _, path := range fields[1:] {
			if !permitted(path, rules) {
				t.Errorf("%s must not import %s", pkg, path)
			}
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("%s has a row in the table but does not exist", pkg)
		}
	}
}

// permitted reports whether a package with the given rules may import path.
func permitted(path string, rules []string) bool {
	if own, ok := strings.CutPrefix(path, module); ok {
		return slices.Contains(rules, own)
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return true // The standard library.
	}
	return slices.ContainsFunc(rules, func(rule string) bool {
		return path == rule || strings.HasPrefix(path, rule+"/")
	})
}
