package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// nested maps the directory of each nested module to the packages of this module that it may
// import.
var nested = map[string][]string{
	"persist/inspect/web/browsertest": {}, // The module contains only tests.
	"cmd/ecsdump-tables":              {"ecs/layout", "internal/dump"},
	// For the program of the tests.
	"disk/browser/browsertest":  {"disk/browser", "ecs", "persist"},
	"docs/site":                 {"internal/webfiles"},
	"examples/asteroids/window": {"examples/asteroids/game", "ecs", "disk", "disk/archive", "disk/browser", "disk/disktest", "internal/webfiles", "persist", "persist/inspect"},
	"persist/replica/natslog": {"persist/replica", "disk", "internal/dump",
		// The example needs a world, a store and the web page.
		"ecs", "journal", "persist", "persist/inspect", "persist/inspect/web"},
}

func TestNestedModules_AllowedImports(t *testing.T) {
	imports := nestedImports(t, os.DirFS("../.."))
	for dir, paths := range imports {
		rules, known := nested[dir]
		if !known {
			t.Errorf("the module in %s is in no row of the table: add a row with its allowed imports", dir)
		}
		for _, p := range paths {
			if !permitted(p, rules) {
				t.Errorf("the module in %s must not import %s", dir, p)
			}
		}
	}
	for dir := range nested {
		if _, ok := imports[dir]; !ok {
			t.Errorf("the module in %s has a row in the table but does not exist", dir)
		}
	}
}

// TestWorkspace_Complete compares go.work with the existing modules. So "go test work" runs
// the tests of all modules.
func TestWorkspace_Complete(t *testing.T) {
	text, err := os.ReadFile("../../go.work")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "use (")
	list, _, _ = strings.Cut(list, ")")
	want := []string{"."}
	for dir := range nested {
		want = append(want, "./"+dir)
	}
	slices.Sort(want)
	if got := strings.Fields(list); !slices.Equal(got, want) {
		t.Errorf("go.work uses %q, want %q", got, want)
	}
}

func TestNestedImports_FindsImports(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got := nestedImports(t, fstest.MapFS{
		"go.mod":                   file("module m"),
		"ecs/ecs.go":               file(`package ecs; import "` + module + `journal"`),
		"engine/nats/go.mod":       file("module n"),
		"engine/nats/a/a.go":       file(`package a; import ("fmt"; "` + module + `ecs"; "` + module + `engine/nats/b"; "example.com/x")`),
		"engine/nats/b/b_test.go":  file(`package b; import "` + module + `journal"`),
		"engine/nats/in/go.mod":    file("module i"),
		"engine/nats/in/main.go":   file("package main"),
		"engine/testdata/z/go.mod": file("module z"),
	})
	if len(got) != 2 || !slices.Equal(got["engine/nats"], []string{module + "ecs"}) || len(got["engine/nats/in"]) != 0 {
		t.Errorf("found %v", got)
	}
}

// nestedImports returns the packages of this module that nested modules below root import, by
// directory of the module.
func nestedImports(t *testing.T, root fs.FS) map[string][]string {
	imports := map[string][]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (base == "testdata" || strings.ContainsAny(base[:1], "._")):
			return fs.SkipDir
		case base == "go.mod" && name != base:
			// A module without imports also has an entry in the map.
			imports[path.Dir(name)] = append(imports[path.Dir(name)], []string{}...)
		case !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go"):
		default:
			return importsOf(root, name, imports)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// importsOf adds the imports of a file to the nested module that contains the file. It ignores
// files of the root module.
func importsOf(root fs.FS, name string, imports map[string][]string) error {
	owner := path.Dir(name)
	for ; owner != "."; owner = path.Dir(owner) {
		if _, err := fs.Stat(root, owner+"/go.mod"); err == nil {
			break
		}
	}
	if owner == "." {
		return nil
	}
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	tree, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if strings.HasPrefix(p, module) && !strings.HasPrefix(p, module+owner) {
			imports[owner] = append(imports[owner], p)
		}
	}
	return nil
}
