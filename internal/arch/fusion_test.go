package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFusibleProducts_NoneInCode finds float products that a compiler may fuse with a sum, as in
// x*y + z. Fused code rounds only once, so its result differs in the last bits. Then worlds would
// differ between machines; see docs/MACHINES.md. A conversion of the product, as in float64(x*y),
// prevents the fusion.
func TestFusibleProducts_NoneInCode(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	modules := modulesIn(t, root)
	found, seen := map[string]bool{}, map[string]bool{}
	for _, dir := range modules {
		errs := checkTypes("amd64", listed(t, dir, dir != root), nil, func(fset *token.FileSet, files []*ast.File, info *types.Info) {
			for _, file := range files {
				name, err := filepath.Rel(root, fset.Position(file.Pos()).Filename)
				if err != nil {
					t.Error(err)
				}
				name = filepath.ToSlash(name)
				for looked := path.Dir(name); looked != "."; looked = path.Dir(looked) {
					seen[looked] = true
				}
				for _, at := range fusible(file, info) {
					found[fmt.Sprintf("%s:%d", name, fset.Position(at).Line)] = true
				}
			}
		})
		for _, err := range errs {
			// Ignore the errors of a nested module. It imports packages of other modules, which may
			// be missing on this machine.
			if dir == root {
				t.Error(err)
			}
		}
	}
	for file, why := range map[string]string{
		"internal/build/build.go":      "finds out whether the machine fuses",
		"examples/rollback/fusible.go": "shows what happens",
	} {
		planted := 0
		for at := range found {
			if strings.HasPrefix(at, file+":") {
				planted++
				delete(found, at)
			}
		}
		if planted != 1 {
			t.Errorf("%s, which %s, has %d fusible products, want 1", file, why, planted)
		}
	}
	// This file draws pictures, and no world depends on them.
	const draws = "examples/asteroids/window/draw.go:"
	maps.DeleteFunc(found, func(at string, _ bool) bool { return strings.HasPrefix(at, draws) })
	for at := range found {
		t.Errorf("%s: a product of floats that may be fused with a sum; write float64(x*y)", at)
	}
	for _, dir := range append(modules[1:], filepath.Join(root, "benchmarks")) {
		name, err := filepath.Rel(root, dir)
		if name = filepath.ToSlash(name); err != nil || !seen[name] {
			t.Errorf("no file of %s was looked at", name)
		}
	}
}

// modulesIn returns the directories of the modules of the project, the root module first.
func modulesIn(t *testing.T, root string) (dirs []string) {
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "go.mod" {
			dirs = append(dirs, filepath.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(dirs, func(a, b string) int { return len(a) - len(b) })
	if len(dirs) < 2 || dirs[0] != root {
		t.Fatalf("modules %v", dirs)
	}
	return dirs
}

// listed returns the go list output for the packages of a module and their imports. For a nested
// module, it leaves out the packages of other projects. This machine may not have them.
func listed(t *testing.T, dir string, nested bool) string {
	list := exec.Command("go", "list", fmt.Sprintf("-e=%v", nested), "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Standard", "./...")
	list.Dir, list.Env = dir, append(os.Environ(), "GOWORK=off")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !nested {
		return string(out)
	}
	var text bytes.Buffer
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			Standard        bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return text.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard || strings.HasPrefix(p.ImportPath, module) {
			if err := json.NewEncoder(&text).Encode(p); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestFusibleProducts_FoundInTestFile(t *testing.T) {
	source, err := os.ReadFile("testdata/fusible.go")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fusibleLines(t, string(source)), wanted(string(source)); !slices.Equal(got, want) {
		t.Errorf("found in lines %v, want %v", got, want)
	}
}

// Go code in the pages of the project must also convert products. The test does not know the types
// of this code, so it searches the text.
func TestFusibleProducts_NoneInDocs(t *testing.T) {
	pages := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guide/*.md", "../../examples/*/README.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatal(pattern, err, len(more))
		}
		pages = append(pages, more...)
	}
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if base := filepath.Base(page); base == "MACHINES.md" || base == "DETERMINISM.md" {
			continue // These pages show fused examples.
		}
		for _, line := range code(string(text)) {
			blocks++
			if plainProduct(line) {
				t.Errorf("%s: a product that may be fused with a sum; write float64(x*y): %s", page, line)
			}
		}
	}
	if blocks == 0 {
		t.Error("no page has code")
	}
	for line, want := range map[string]bool{
		"p.X += v.X * dt":             true,
		"p.X += float64(v.X * dt)":    false,
		"p.X = p.X + v.X*dt":          true,
		"n := 2*i + 1":                false,
		"func f(p *Position, dt int)": false,
		"for i := range 10 {":         false,
	} {
		if got := plainProduct(line); got != want {
			t.Errorf("plainProduct(%q) = %v, want %v", line, got, want)
		}
	}
}

// fusible returns the positions of float products that a compiler may fuse with a sum. The sum can
// also be in a later statement. So a product is safe only as the operand of a conversion, as in
// float64(x*y), or of an operation other than + and -.
func fusible(file *ast.File, info *types.Info) (found []token.Pos) {
	var outer []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			outer = outer[:len(outer)-1]
			return true
		}
		switch e := n.(type) {
		case *ast.BinaryExpr:
			t := info.Types[e]
			if t.Value == nil && (e.Op == token.MUL && isFloat(t.Type, types.IsFloat) && !isRounded(outer, info) || isComplexProduct(e.Op, t.Type)) {
				found = append(found, e.OpPos)
			}
		case *ast.AssignStmt:
			t := info.Types[e.Lhs[0]].Type
			if e.Tok == token.MUL_ASSIGN && isFloat(t, types.IsFloat) || isComplexProduct(e.Tok, t) {
				found = append(found, e.TokPos)
			}
		}
		outer = append(outer, n)
		return true
	})
	return found
}

// isComplexProduct reports whether op multiplies or divides complex numbers. Such an operation
// computes sums of products.
func isComplexProduct(op token.Token, t types.Type) bool {
	return slices.Contains([]token.Token{token.MUL, token.QUO, token.MUL_ASSIGN, token.QUO_ASSIGN}, op) && isFloat(t, types.IsComplex)
}

// isFloat reports whether t is of a kind of numbers: types.IsFloat or types.IsComplex. For a type
// parameter, one such type in the constraint is enough.
func isFloat(t types.Type, kind types.BasicInfo) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return isFloat(t.Constraint(), kind)
	case nil:
		return false
	default:
		switch u := t.Underlying().(type) {
		case *types.Basic:
			return u.Info()&kind != 0
		case *types.Interface:
			for i := range u.NumEmbeddeds() {
				if isFloat(u.EmbeddedType(i), kind) {
					return true
				}
			}
		case *types.Union:
			for i := range u.Len() {
				if isFloat(u.Term(i).Type(), kind) {
					return true
				}
			}
		}
	}
	return false
}

// isRounded reports whether a product is the operand of a conversion, or of an operation other than
// + and -. outer has the nodes that enclose the product, the innermost last.
func isRounded(outer []ast.Node, info *types.Info) bool {
	for _, n := range slices.Backward(outer) {
		switch e := n.(type) {
		case *ast.ParenExpr:
			continue
		case *ast.CallExpr:
			return info.Types[e.Fun].IsType()
		case *ast.BinaryExpr:
			return e.Op != token.ADD && e.Op != token.SUB
		}
		return false
	}
	return false
}

func fusibleLines(t *testing.T, source string) (lines []int) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{}
	if _, err := conf.Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	for _, at := range fusible(file, info) {
		if line := fset.Position(at).Line; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func wanted(source string) (lines []int) {
	n := 0
	for line := range strings.Lines(source) {
		n++
		if strings.HasSuffix(strings.TrimSpace(line), "// want") {
			lines = append(lines, n)
		}
	}
	return lines
}

// code returns the lines of Go in a page: fenced lines and indented lines.
func code(page string) (lines []string) {
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = strings.HasPrefix(line, "```go")
		case fenced || strings.HasPrefix(line, "    "):
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// plainProduct reports whether a line of Go adds or subtracts a product that is not converted. It
// ignores products with an integer literal.
func plainProduct(line string) bool {
	expr, err := parser.ParseExpr("func() {\n" + line + "\n}")
	if err != nil {
		return false
	}
	found := false
	product := func(e ast.Expr) {
		if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.MUL && !isInt(b.X) && !isInt(b.Y) {
			found = true
		}
	}
	ast.Inspect(expr, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.AssignStmt:
			if e.Tok == token.ADD_ASSIGN || e.Tok == token.SUB_ASSIGN {
				product(e.Rhs[0])
			}
		case *ast.BinaryExpr:
			if e.Op == token.ADD || e.Op == token.SUB {
				product(e.X)
				product(e.Y)
			}
		}
		return true
	})
	return found
}

func isInt(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}
