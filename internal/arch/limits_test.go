package arch

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var picture = flag.Bool("knots", false, "print the files of every package that need each other")

// house has the limits of the code. A key such as "methods ecs.World" is the kind of a limit, and a
// package, type or file. A key such as "methods" holds for all others.
var house = map[string]int{
	"knot":                  8, // Files that refer to each other in a cycle.
	"knot ecs":              12,
	"knot internal/query":   12,
	"methods":               4,   // Files that contain the exported methods of a type.
	"methods ecs.World":     12,  // Batches, groups and sorts have a file each.
	"methods ecs.Storage":   7,   // Batches, loops and sorts have a file each.
	"methods persist.Store": 7,   // Goto, Resume and slots have a file each.
	"lines":                 585, // Lines with code in a file that is not generated.
	// Types of functional options; use a struct instead, as CONTRIBUTING.md says.
	"options": 0,
	// Exported names in the package scope, including indexes, relations, events and as-of readers.
	"names ecs":             117,
	"names persist":         36, // Including followers, slots and the options of a file.
	"names persist/inspect": 48,
	"names persist/repair":  18,
	"names journal":         26,
}

// debts lists packages, types and files above their limits. The key is that of a limit, and the
// value is the current size. This value may only decrease. If code moves to another package, move
// its debt too.
var debts = map[string]int{}

func TestHouseLimits_NotExceeded(t *testing.T) {
	seen := map[string]int{}
	for _, r := range rooms(t) {
		knots := r.knots()
		if *picture {
			t.Log(r.summary())
		}
		figure := func(value int, what string, why func() string) {
			seen[what] = value
			if limit, ok := limitOf(what); ok && value > limit {
				t.Errorf("%s is %d, at most %d: %s", what, value, limit, why())
			}
		}
		figure(r.knot(), "knot "+r.path, func() string { return r.describe(knots[0]) })
		figure(r.options, "options "+r.path, func() string { return "make them a struct" })
		figure(r.names, "names "+r.path, func() string { return "see go doc ./" + r.path })
		for name, files := range r.methods {
			figure(len(files), "methods "+r.path+"."+name, func() string {
				return strings.Join(slices.Sorted(maps.Keys(files)), " ")
			})
		}
		for file, n := range r.lines {
			figure(n, "lines "+r.path+"/"+file, func() string { return "it has more than one topic" })
		}
	}
	for what, debt := range debts {
		switch value, ok := seen[what]; {
		case !ok:
			t.Errorf("the debt %q has no figure: delete it", what)
		case value < debt:
			t.Errorf("%s is %d now: lower its debt of %d, or delete it", what, value, debt)
		}
	}
}

// TestAliases_NoInternalTypes finds exported aliases of types in internal packages. For such an
// alias, go doc shows neither fields nor methods.
func TestAliases_NoInternalTypes(t *testing.T) {
	for _, r := range rooms(t) {
		if !strings.Contains("/"+r.path+"/", "/internal/") {
			for _, name := range r.aliases {
				t.Errorf("%s.%s is an alias of an internal type; declare an own type", r.path, name)
			}
		}
	}
}

func limitOf(what string) (limit int, ok bool) {
	kind, _, _ := strings.Cut(what, " ")
	for _, m := range []map[string]int{debts, house} {
		if limit, ok = m[what]; ok {
			return limit, true
		}
	}
	limit, ok = house[kind]
	return limit, ok
}

// summary returns the size of a package, and the cycles of its files.
func (r *room) summary() string {
	lines, longest := 0, ""
	for file, n := range r.lines {
		if lines += n; n > r.lines[longest] || n == r.lines[longest] && file < longest {
			longest = file
		}
	}
	text := fmt.Sprintf("%s: %d files, %d lines, %d in %s; %d exported names; largest knot %d\n",
		r.path, len(r.lines), lines, r.lines[longest], longest, r.names, r.knot())
	for _, name := range slices.Sorted(maps.Keys(r.methods)) {
		if files := r.methods[name]; len(files) > house["methods"] {
			text += fmt.Sprintf("  methods of %s in %d files: %s\n", name, len(files), strings.Join(slices.Sorted(maps.Keys(files)), " "))
		}
	}
	for _, knot := range r.knots() {
		text += "  " + r.describe(knot)
	}
	return text
}

// rooms returns the packages of the module, sorted by path. Their imports are read from the export
// data of the go command.
func rooms(t *testing.T) (all []*room) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export", "../../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
	}
	exports, own := map[string]string{}, []listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if strings.HasPrefix(p.ImportPath, module) && len(p.GoFiles) > 0 {
			own = append(own, p)
		}
	}
	slices.SortFunc(own, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range own {
		for i, file := range p.GoFiles {
			p.GoFiles[i] = filepath.Join(p.Dir, file)
		}
		r, err := newRoom(strings.TrimPrefix(p.ImportPath, module), p.GoFiles, imports, func(string) any { return nil })
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
