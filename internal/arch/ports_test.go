package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/internal/deep"
)

// ports are systems and processors on which the code must compile, in addition to the systems that
// run the tests. `make ports` compiles for all ports. This test only checks the types of the code
// and of its tests, and so takes seconds instead of minutes. It finds constants that overflow an
// int, for example on linux/386. It also finds calls that a system lacks, for example
// windows/amd64. The other ports are checked only with STET_DEEP, as in CI.
var ports = []string{"linux/386", "windows/amd64", "wasip1/wasm", "linux/arm", "darwin/arm64", "freebsd/amd64", "js/wasm"}

func TestPorts_TypeCheck(t *testing.T) {
	for _, port := range ports[:deep.Or(3, len(ports))] {
		t.Run(port, func(t *testing.T) {
			t.Parallel()
			system, processor, _ := strings.Cut(port, "/")
			list := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap", "../../...")
			list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
			list.Stderr = os.Stderr
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), module+"persist/inspect") {
				t.Fatal("the packages of the module are not listed")
			}
			for _, err := range checkTypes(processor, string(out), nil, nil) {
				t.Error(err)
			}
		})
	}
}

func TestPorts_FindsIntOverflow(t *testing.T) {
	const listed = `{"ImportPath": "` + module + `p", "GoFiles": ["p.go"]}`
	source := map[string]string{"p.go": "package p\nfunc f() int { return 1 << 31 }\n"}
	if errs := checkTypes("amd64", listed, source, nil); len(errs) > 0 {
		t.Errorf("with 64 bits: %v", errs)
	}
	if errs := checkTypes("386", listed, source, nil); len(errs) == 0 {
		t.Error("1 << 31 is an int of 32 bits")
	}
}

// checkTypes returns the type errors of the packages of this module for a processor. The second
// argument is the output of go list -deps -json. source has the text of each file, or is nil to
// read the files from the disk. If visit is not nil, it is called for each package of the module.
func checkTypes(processor, listed string, source map[string]string, visit func(*token.FileSet, []*ast.File, *types.Info)) (errs []error) {
	fset, checked := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}
	for d := json.NewDecoder(strings.NewReader(listed)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return errs
		} else if err != nil {
			return append(errs, err)
		}
		// The go command generates packages named *.test.
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		ours := strings.HasPrefix(p.ImportPath, module)
		var files []*ast.File
		for _, name := range p.GoFiles {
			var text any
			if source != nil {
				text = source[name]
			}
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), text, parser.SkipObjectResolution)
			if err != nil {
				return append(errs, err)
			}
			files = append(files, file)
		}
		conf := types.Config{
			Sizes:            types.SizesFor("gc", processor),
			IgnoreFuncBodies: !ours, // Function bodies of other modules are not checked.
			FakeImportC:      true,
			Importer: importMap(func(path string) *types.Package {
				if mapped, ok := p.ImportMap[path]; ok {
					path = mapped
				}
				return checked[path]
			}),
			Error: func(err error) {
				if ours {
					errs = append(errs, err)
				}
			},
		}
		info := &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{},
			Defs:  map[*ast.Ident]types.Object{},
			Uses:  map[*ast.Ident]types.Object{},
		}
		checked[p.ImportPath], _ = conf.Check(p.ImportPath, fset, files, info)
		if ours && visit != nil {
			visit(fset, files, info)
		}
	}
}

// An importMap finds packages whose types are already checked.
type importMap func(path string) *types.Package

func (m importMap) Import(path string) (*types.Package, error) {
	if p := m(path); p != nil {
		return p, nil
	}
	return nil, errors.New("no package " + path)
}
