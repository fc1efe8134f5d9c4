package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// check returns the faults of a file, ordered by line. It supports Go and its templates,
// JavaScript, Markdown, and files whose comments begin with #.
func check(file, source string) ([]fault, error) {
	switch {
	case strings.Contains(file, "testdata/"):
		return nil, nil
	case strings.HasSuffix(file, ".go"):
		return checkGo(file, source)
	case strings.HasSuffix(file, ".js"), strings.HasSuffix(file, ".tmpl"):
		return checkScript(file, source, "//"), nil
	case strings.HasPrefix(path.Base(file), "Makefile"), strings.HasPrefix(file, ".ci/"), hashComments[path.Ext(file)]:
		return checkScript(file, source, "#"), nil
	case strings.HasSuffix(file, ".md"):
		return checkPage(file, source), nil
	}
	return nil, nil
}

// checkGo checks the comments, the string literals and the test names of Go code. It ignores
// generated code, because the template of the code is checked.
func checkGo(file, source string) (faults []fault, err error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	lines := strings.Split(source, "\n")
	wide := map[int]bool{}
	for _, group := range tree.Comments {
		for _, p := range passagesOf(fset, group) {
			faults = append(faults, checkWords(file, p)...)
			faults = append(faults, checkSentences(file, p)...)
		}
		for _, c := range group.List {
			first, last := fset.Position(c.Pos()).Line, fset.Position(c.End()).Line
			for n := first; n <= last; n++ {
				if width := columns(lines[n-1]); width > maxColumns && !wide[n] && !isDirective(c.Text) {
					wide[n] = true
					faults = append(faults, fault{file, n, "columns", fmt.Sprint(width)})
				}
			}
		}
	}
	isTest := strings.HasSuffix(file, "_test.go")
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if isTest && n.Recv == nil {
				faults = append(faults, checkTestName(file, fset.Position(n.Pos()).Line, n.Name.Name)...)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !isTest {
				faults = append(faults, checkWords(file, passage{fset.Position(n.Pos()).Line, n.Value})...)
			}
		}
		return true
	})
	return faults, nil
}

// isDirective reports whether a comment is an instruction for a tool. Its line cannot be broken.
func isDirective(comment string) bool {
	return directive.MatchString(comment)
}

var directive = regexp.MustCompile(`^//(go:|nolint|export |line |\+build)`)

// passagesOf divides a comment into paragraphs and list items. It excludes indented code, and the
// expected output of an example.
func passagesOf(fset *token.FileSet, group *ast.CommentGroup) (passages []passage) {
	var lines []numbered
	for _, c := range group.List {
		if isDirective(c.Text) {
			continue
		}
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), "/*"), "*/")
		for i, line := range strings.Split(text, "\n") {
			lines = append(lines, numbered{fset.Position(c.Pos()).Line + i, strings.TrimSuffix(line, "\r")})
		}
	}
	for _, l := range lines {
		if output.MatchString(l.text) {
			return nil
		}
	}
	return paragraphs(lines, func(line string) bool {
		return strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ") && !item.MatchString(line)
	})
}

var (
	output = regexp.MustCompile(`^\s*(?i:unordered )?(?i:output):`)
	item   = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s`)
)

// A numbered line is a line of a file.
type numbered struct {
	line int
	text string
}

// paragraphs joins lines to passages. A passage ends at a blank line, at code, and at the next list
// item.
func paragraphs(lines []numbered, isCode func(string) bool) (passages []passage) {
	var now *passage
	inItem := false
	for _, l := range lines {
		text := strings.TrimSpace(l.text)
		switch {
		case text == "":
			now, inItem = nil, false
			continue
		case item.MatchString(l.text):
			now, inItem = nil, true
		case !inItem && isCode(l.text):
			now = nil
			continue
		}
		if now == nil {
			passages = append(passages, passage{line: l.line, text: text})
			now = &passages[len(passages)-1]
		} else {
			now.text += "\n" + text
		}
	}
	return passages
}

// hashComments are the extensions of files whose comments begin with #.
var hashComments = map[string]bool{".sh": true, ".yml": true, ".py": true, ".conf": true}

// checkScript checks comments on their own lines that begin with mark. It does not measure the
// lines of a template that contain "{{".
func checkScript(file, source, mark string) (faults []fault) {
	var block []numbered
	flush := func() {
		for _, p := range paragraphs(block, func(line string) bool { return strings.HasPrefix(line, "  ") }) {
			faults = append(faults, checkWords(file, p)...)
			faults = append(faults, checkSentences(file, p)...)
		}
		block = nil
	}
	for i, line := range strings.Split(source, "\n") {
		text, found := strings.CutPrefix(strings.TrimSpace(line), mark)
		if !found || strings.HasPrefix(text, "!") {
			flush()
			continue
		}
		block = append(block, numbered{i + 1, text})
		if width := columns(line); width > maxColumns && !strings.Contains(line, "{{") {
			faults = append(faults, fault{file, i + 1, "columns", fmt.Sprint(width)})
		}
	}
	flush()
	return faults
}

var (
	markup = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|<[^>]*>")
	letter = regexp.MustCompile(`[A-Za-z]`)
)

// checkPage checks the prose of Markdown: not its code, tables, headings and links.
func checkPage(file, source string) (faults []fault) {
	var prose []numbered
	fenced := false
	for i, line := range strings.Split(source, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
			trimmed = ""
		}
		if fenced || strings.HasPrefix(trimmed, "#") {
			trimmed = ""
		}
		if strings.HasPrefix(trimmed, "|") {
			for _, cell := range strings.Split(trimmed, "|") {
				faults = append(faults, checkWords(file, passage{i + 1, cell})...)
				if path.Base(file) != "BENCHMARKS.md" {
					faults = append(faults, checkSentences(file, passage{i + 1, cell})...)
				}
			}
			trimmed = ""
		}
		if trimmed == "" {
			line = ""
		}
		// Count a code span, or the target of a link, as one word.
		line = markup.ReplaceAllStringFunc(line, func(s string) string {
			if strings.HasPrefix(s, "]") {
				return "]"
			}
			return "`" + strings.Map(func(r rune) rune {
				if r == ' ' || r == '.' {
					return '_'
				}
				return r
			}, letter.ReplaceAllString(s, "x")) + "`"
		})
		prose = append(prose, numbered{i + 1, line})
	}
	passages := paragraphs(prose, func(line string) bool { return strings.HasPrefix(line, "    ") })
	for _, p := range passages {
		faults = append(faults, checkWords(file, p)...)
		faults = append(faults, checkSentences(file, p)...)
	}
	if forNewUsers(file) {
		faults = append(faults, checkLevel(file, passages)...)
	}
	return faults
}
