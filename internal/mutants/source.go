package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A pkg is a package as the go command lists it, with its type information.
type pkg struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool

	set   *token.FileSet
	info  types.Info
	types *types.Package
}

// A source is a file into which faults are put.
type source struct {
	*pkg
	path   string // Relative to the root of the module, with slashes.
	text   string
	syntax *ast.File
}

func (s *source) offset(p token.Pos) int { return s.set.Position(p).Offset }

// of returns the source text of the node n.
func (s *source) of(n ast.Node) string { return s.text[s.offset(n.Pos()):s.offset(n.End())] }

// functionAt returns the name of the function that contains position p.
func (s *source) functionAt(p token.Pos) string {
	for _, d := range s.syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Pos() <= p && p < f.End() {
			return functionName(f)
		}
	}
	return "var"
}

// functionName returns the name of a function, or Type.Method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	name, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[")
	return strings.TrimPrefix(name, "*") + "." + f.Name.Name
}

// load parses and type-checks packages. It reads the imported packages from the export data that
// the go command has built.
func load(packages []string) (sources []*source, err error) {
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Name,GoFiles,Export,DepOnly"}, packages...)...)
	cmd.Stderr = os.Stderr
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	set, exports := token.NewFileSet(), map[string]string{}
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for d := json.NewDecoder(strings.NewReader(string(list))); d.More(); {
		p := &pkg{set: set, info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
		if err := d.Decode(p); err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			path, err := filepath.Rel(root, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			files = append(files, file)
			sources = append(sources, &source{pkg: p, path: filepath.ToSlash(path), text: string(text), syntax: file})
		}
		if p.types, err = (&types.Config{Importer: imports}).Check(p.ImportPath, set, files, &p.info); err != nil {
			return nil, err
		}
	}
	return sources, nil
}
