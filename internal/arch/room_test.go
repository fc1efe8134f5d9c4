package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A room is a package as a graph of its files. An edge from file a to file b means that a uses a
// name, field or method of b. A method belongs to the file that declares it.
type room struct {
	path    string                         // Path below the module.
	lines   map[string]int                 // Number of lines with code, by file.
	names   int                            // Number of exported names in the package scope.
	options int                            // Number of exported types of functional options.
	aliases []string                       // Exported aliases of types in internal packages.
	methods map[string]map[string]bool     // The files with exported methods, by type.
	refs    map[string]map[string][]string // References from file to file, each "user → used" once.
}

// newRoom type-checks the files of a package.
func newRoom(path string, files []string, imports types.Importer, source func(file string) any) (*room, error) {
	r := &room{path: path, lines: map[string]int{}, methods: map[string]map[string]bool{}, refs: map[string]map[string][]string{}}
	fset := token.NewFileSet()
	var trees []*ast.File
	for _, file := range files {
		tree, err := parser.ParseFile(fset, file, source(file), parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		trees = append(trees, tree)
		r.lines[filepath.Base(file)] = codeLines(fset, tree)
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	pkg, err := (&types.Config{Importer: imports}).Check(path, fset, trees, info)
	if err != nil {
		return nil, err
	}
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			r.names++
			if isOption(pkg.Scope().Lookup(name)) {
				r.options++
			}
			if isInternalAlias(pkg.Scope().Lookup(name)) {
				r.aliases = append(r.aliases, name)
			}
			r.spread(fset, pkg.Scope().Lookup(name))
		}
	}
	r.connect(fset, trees, info)
	return r, nil
}

// codeLines returns the number of lines with code in a file, or 0 for a generated file.
func codeLines(fset *token.FileSet, tree *ast.File) int {
	if ast.IsGenerated(tree) {
		return 0
	}
	lines := map[int]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		}
		lines[fset.Position(n.Pos()).Line] = true
		lines[fset.Position(n.End()-1).Line] = true
		return true
	})
	return len(lines)
}

// spread records which files have the exported methods of a type. These include the methods of an
// embedded unexported type, because go doc also shows them.
func (r *room) spread(fset *token.FileSet, obj types.Object) {
	if _, ok := obj.(*types.TypeName); !ok || types.IsInterface(obj.Type()) {
		return
	}
	methods := types.NewMethodSet(types.NewPointer(obj.Type()))
	for i := range methods.Len() {
		m := methods.At(i).Obj().(*types.Func)
		owner, ok := types.Unalias(deref(m.Signature().Recv().Type())).(*types.Named)
		if ok && m.Exported() && m.Pkg() == obj.Pkg() && (owner.Obj() == obj || !owner.Obj().Exported()) {
			add(r.methods, obj.Name(), filepath.Base(fset.Position(m.Pos()).Filename), true)
		}
	}
}

// isOption reports whether obj is a functional option: a function type with one pointer parameter
// and no result.
func isOption(obj types.Object) bool {
	_, isType := obj.(*types.TypeName)
	f, isFunc := obj.Type().Underlying().(*types.Signature)
	if !isType || !isFunc || f.Params().Len() != 1 || f.Results().Len() > 0 {
		return false
	}
	_, isPointer := f.Params().At(0).Type().(*types.Pointer)
	return isPointer
}

// isInternalAlias reports whether obj is an alias of a type in an internal package.
func isInternalAlias(obj types.Object) bool {
	name, isType := obj.(*types.TypeName)
	if !isType || !name.IsAlias() {
		return false
	}
	of, isNamed := types.Unalias(obj.Type()).(*types.Named)
	return isNamed && of.Obj().Pkg() != nil && strings.Contains(of.Obj().Pkg().Path()+"/", "/internal/")
}

func deref(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

// connect finds the references between the files.
func (r *room) connect(fset *token.FileSet, trees []*ast.File, info *types.Info) {
	fileOf := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	// A field or method is named after its type, as in Type.Method.
	names := map[types.Object]string{}
	each := func(visit func(file, user string, id *ast.Ident)) {
		for _, tree := range trees {
			for _, d := range declarations(tree) {
				ast.Inspect(d.node, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						visit(fileOf(tree.Pos()), d.name, id)
					}
					return true
				})
			}
		}
	}
	each(func(file, user string, id *ast.Ident) {
		switch obj := info.Defs[id].(type) {
		case *types.Var:
			if obj.IsField() {
				names[obj] = user + "." + obj.Name()
			}
		case *types.Func:
			if names[obj] = user; user != obj.Name() && !strings.HasSuffix(user, "."+obj.Name()) {
				names[obj] = user + "." + obj.Name() // The method is declared in an interface.
			}
		}
	})
	each(func(file, user string, id *ast.Ident) {
		obj := origin(info.Uses[id])
		if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() != r.path {
			return
		}
		if to := fileOf(obj.Pos()); to != file {
			use := user + " → " + cmp.Or(names[obj], obj.Name())
			if !slices.Contains(r.refs[file][to], use) {
				add(r.refs, file, to, append(r.refs[file][to], use))
			}
		}
	})
}

func add[V any](m map[string]map[string]V, a, b string, v V) {
	if m[a] == nil {
		m[a] = map[string]V{}
	}
	m[a][b] = v
}

// origin returns the generic object of which obj is an instance. If obj is not an instance, it
// returns obj.
func origin(obj types.Object) types.Object {
	switch obj := obj.(type) {
	case *types.Func:
		return obj.Origin()
	case *types.Var:
		return obj.Origin()
	}
	return obj
}

// A declaration is a top-level declaration of a file, named as in go doc: Type.Method.
type declaration struct {
	name string
	node ast.Node
}

func declarations(tree *ast.File) (all []declaration) {
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			all = append(all, declaration{name, d})
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					all = append(all, declaration{spec.Name.Name, spec})
				case *ast.ValueSpec:
					all = append(all, declaration{spec.Names[0].Name, spec})
				}
			}
		}
	}
	return all
}

// receiver returns the type name of a receiver.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	}
	return x.(*ast.Ident).Name
}

// An edge is a reference from one file to another.
type edge struct{ from, to string }

// knots returns the groups of files that refer to each other in a cycle (strongly connected
// components), the largest first. It ignores the edges in cut.
func (r *room) knots(cut ...edge) (knots [][]string) {
	// This is Tarjan's algorithm. It numbers the files in the order of visits. The stack has the
	// visited files whose knot is not complete yet. low[file] is the lowest number on the stack
	// that is reachable from the file.
	number, low := map[string]int{}, map[string]int{}
	var stack []string
	var visit func(file string)
	visit = func(file string) {
		number[file] = len(number) + 1
		low[file] = number[file]
		stack = append(stack, file)
		for _, to := range slices.Sorted(maps.Keys(r.refs[file])) {
			switch {
			case slices.Contains(cut, edge{file, to}):
			case number[to] == 0:
				visit(to)
				low[file] = min(low[file], low[to])
			case slices.Contains(stack, to):
				low[file] = min(low[file], number[to])
			}
		}
		if low[file] == number[file] {
			k := slices.Index(stack, file)
			if knot := slices.Sorted(slices.Values(stack[k:])); len(knot) > 1 {
				knots = append(knots, knot)
			}
			stack = stack[:k]
		}
	}
	for _, file := range slices.Sorted(maps.Keys(r.refs)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	slices.SortStableFunc(knots, func(a, b []string) int { return len(b) - len(a) })
	return knots
}

// knot returns the number of files in the largest knot. It returns 1 if no files form a cycle.
func (r *room) knot(cut ...edge) int {
	if knots := r.knots(cut...); len(knots) > 0 {
		return len(knots[0])
	}
	return 1
}

// cycle returns a shortest cycle among the files of the knot.
func (r *room) cycle(knot []string) (shortest []edge) {
	for _, start := range knot {
		ways, next := map[string][]edge{start: nil}, []string{start}
		for len(next) > 0 && ways[start] == nil {
			file := next[0]
			next = next[1:]
			for _, to := range slices.Sorted(maps.Keys(r.refs[file])) {
				if _, been := ways[to]; slices.Contains(knot, to) && (!been || to == start && ways[start] == nil) {
					ways[to] = append(slices.Clip(ways[file]), edge{file, to})
					next = append(next, to)
				}
			}
		}
		if shortest == nil || len(ways[start]) < len(shortest) {
			shortest = ways[start]
		}
	}
	return shortest
}

// cuts returns up to n edges. Without one of these edges, the largest knot of the package is
// smaller. The edges that leave the smallest knot come first. Among equals, the edge with the
// fewest references comes first.
func (r *room) cuts(knot []string, n int) (text []string) {
	type candidate struct {
		edge
		size int
	}
	var all []candidate
	for _, from := range knot {
		for _, to := range slices.Sorted(maps.Keys(r.refs[from])) {
			if size := r.knot(edge{from, to}); slices.Contains(knot, to) && size < len(knot) {
				all = append(all, candidate{edge{from, to}, size})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(a.size-b.size, len(r.refs[a.from][a.to])-len(r.refs[b.from][b.to]))
	})
	for _, c := range all[:min(n, len(all))] {
		text = append(text, fmt.Sprintf("%d without %s", c.size, r.tell(c.edge, 4)))
	}
	return text
}

// tell describes an edge with up to n of its references.
func (r *room) tell(e edge, n int) string {
	uses := r.refs[e.from][e.to]
	text := strings.Join(uses[:min(n, len(uses))], ", ")
	if len(uses) > n {
		text += fmt.Sprintf(" and %d more", len(uses)-n)
	}
	return fmt.Sprintf("%s → %s (%s)", e.from, e.to, text)
}

// describe lists the files of the knot, a shortest cycle, and the best edges to remove.
func (r *room) describe(knot []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d files of %s need each other: %s\n", len(knot), len(r.lines), r.path, strings.Join(knot, " "))
	fmt.Fprintln(&b, "    a shortest cycle:")
	for _, e := range r.cycle(knot) {
		fmt.Fprintf(&b, "        %s\n", r.tell(e, 3))
	}
	if cuts := r.cuts(knot, 8); len(cuts) > 0 {
		fmt.Fprintf(&b, "    then the largest knot has\n        %s\n", strings.Join(cuts, "\n        "))
	}
	return b.String()
}
