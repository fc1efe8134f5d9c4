package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exampled are the packages in which an Example must call each exported function and method.
var exampled = []string{"ecs", "ecs/schedule", "ecs/rollback", "persist", "persist/inspect", "persist/repair", "persist/part"}

// withoutExample are functions that need no Example, each with the reason.
var withoutExample = map[string]string{
	"persist.Store.Defer":            "the world calls it: the store is its recorder",
	"persist.Store.Defers":           "the world calls it: the store is its recorder",
	"persist.Store.Record":           "the world calls it: the store is its recorder",
	"persist.Store.Restored":         "the world calls it: the store is its recorder",
	"persist/inspect.NewImage":       "packages below persist call it; its type is internal",
	"persist/inspect.Image.Internal": "packages below persist call it; its type is internal",
	"persist/inspect.View.Catalog":   "packages below persist call it; its type is internal",
}

// interfaceMethod matches the methods that a program does not call itself: the standard library or
// package schedule calls them through an interface.
var interfaceMethod = regexp.MustCompile(`\.(Error|Unwrap|Is|String|GoString|Format|LogValue|Uses|(Unm|M)arshal(JSON|Text))$`)

// arity matches a name with a number of components, such as Query2 or NewBundle3.
var arity = regexp.MustCompile(`\b((?:New)?(?:Query|Bundle|Row))[1-9]\b`)

// TestExamples_UseExportedFunctions finds exported functions that no Example calls. A user of such
// a function has only its comment.
func TestExamples_UseExportedFunctions(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap", "../../ecs/...", "../../persist/...", "../../examples/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exported, called := map[string]bool{}, map[string]bool{}
	errs := checkTypes("amd64", string(out), nil, func(fset *token.FileSet, files []*ast.File, info *types.Info) {
		for _, file := range files {
			name := fset.Position(file.Package).Filename
			test := strings.HasSuffix(name, "_test.go")
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if !test {
					if object := info.Defs[f.Name].(*types.Func); isExported(object) {
						exported[functionName(object)] = true
					}
				} else if strings.HasPrefix(filepath.Base(name), "example") || strings.HasPrefix(f.Name.Name, "Example") {
					ast.Inspect(f, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							if object, ok := info.Uses[id].(*types.Func); ok {
								called[functionName(object)] = true
							}
						}
						return true
					})
				}
			}
		}
	})
	for _, err := range errs {
		t.Error(err)
	}
	if len(exported) < 300 || len(called) < 200 {
		t.Fatalf("found %d exported functions, and %d that Examples call", len(exported), len(called))
	}
	for _, name := range slices.Sorted(maps.Keys(exported)) {
		_, excepted := withoutExample[name]
		has := called[name] || interfaceMethod.MatchString(name)
		if !has && !excepted {
			t.Errorf("no Example calls %s: write one, or give the reason in withoutExample", name)
		}
		if has && excepted {
			t.Errorf("an Example calls %s: remove it from withoutExample", name)
		}
	}
	for name := range withoutExample {
		if !exported[name] {
			t.Errorf("withoutExample names %s, which does not exist", name)
		}
	}
}

// isExported reports whether f is an exported function of a package in exampled, or an exported
// method of an exported type there.
func isExported(f *types.Func) bool {
	path, _, _ := strings.Cut(strings.TrimPrefix(f.Pkg().Path(), module), " ")
	if !f.Exported() || !slices.Contains(exampled, path) {
		return false
	}
	recv := f.Signature().Recv()
	return recv == nil || typeName(recv.Type()).Exported()
}

func typeName(t types.Type) *types.TypeName {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.(*types.Named).Obj()
}

// functionName returns the package, type and name of f without type arguments, for example
// "ecs.Storage.Get" or "ecs.QueryN.All". The go command compiles a package again for its tests, and
// adds a suffix to the path. The name does not have this suffix.
func functionName(f *types.Func) string {
	f = f.Origin()
	if f.Pkg() == nil {
		return f.Name()
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(f.Pkg().Path(), module), " ")
	if recv := f.Signature().Recv(); recv != nil {
		if _, ok := recv.Type().Underlying().(*types.Interface); !ok {
			name += "." + typeName(recv.Type()).Name()
		}
	}
	return arity.ReplaceAllString(name+"."+f.Name(), "${1}N")
}
