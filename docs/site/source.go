package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"html"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// sourceURL returns the path of the page of a file or a directory of the project.
func sourceURL(file string, isDir bool) string {
	if isDir {
		return "source/" + file + "/index.html"
	}
	return "source/" + file + ".html"
}

// expandSources adds the files and the directories below each linked directory.
func (s *site) expandSources() {
	for _, dir := range s.sourceList() {
		err := fs.WalkDir(s.fsys, dir, func(name string, d fs.DirEntry, err error) error {
			switch base := path.Base(name); {
			case err != nil:
				return err
			case base[0] == '.' || d.IsDir() && base == "testdata":
				if d.IsDir() && name != dir {
					return fs.SkipDir
				}
			case d.IsDir() || s.isText(name):
				s.sources[name] = true
			}
			return nil
		})
		if err != nil {
			s.errs = append(s.errs, err)
		}
	}
}

func (s *site) sourceList() (all []string) {
	for name := range s.sources {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// isText reports whether the page of a file can show its content.
func (s *site) isText(name string) bool {
	if s.pages[name] != nil || path.Ext(name) == ".sum" {
		return false
	}
	info, err := fs.Stat(s.fsys, name)
	if err != nil || info.Size() > 300_000 {
		return false
	}
	data, err := fs.ReadFile(s.fsys, name)
	return err == nil && utf8.Valid(data)
}

// sourcePage returns the content of the page of a file or a directory.
func (s *site) sourcePage(name string) (url, body string, err error) {
	info, err := fs.Stat(s.fsys, name)
	if err != nil {
		return "", "", err
	}
	var b strings.Builder
	url = sourceURL(name, info.IsDir())
	fmt.Fprintf(&b, "<h1 class=\"path\">%s</h1>\n", s.trail(url, name))
	if !info.IsDir() {
		data, err := fs.ReadFile(s.fsys, name)
		if err != nil {
			return "", "", err
		}
		fmt.Fprintf(&b, "<div class=\"code\"><pre class=\"source\"><code>%s</code></pre></div>\n", colored(string(data), path.Ext(name) == ".go", true))
		return url, b.String(), nil
	}
	entries, err := fs.ReadDir(s.fsys, name)
	if err != nil {
		return "", "", err
	}
	b.WriteString("<ul class=\"files\">\n")
	for _, e := range entries {
		file := path.Join(name, e.Name())
		label := e.Name()
		if e.IsDir() {
			label += "/"
		}
		label = html.EscapeString(label)
		switch {
		case s.pages[file] != nil:
			fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a> %s</li>\n", relative(url, s.pages[file].url), label, html.EscapeString(s.pages[file].title))
		case s.sources[file]:
			fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a></li>\n", relative(url, sourceURL(file, e.IsDir())), label)
		case label[0] != '.':
			fmt.Fprintf(&b, "<li>%s</li>\n", label)
		}
	}
	b.WriteString("</ul>\n")
	return url, b.String(), nil
}

// trail returns the path of a file as HTML. Each directory that has a page is a link.
func (s *site) trail(url, name string) string {
	var b strings.Builder
	for k, part := range strings.Split(name, "/") {
		if k > 0 {
			b.WriteString("/<wbr>")
		}
		dir := strings.Join(strings.Split(name, "/")[:k+1], "/")
		if dir != name && s.sources[dir] {
			fmt.Fprintf(&b, "<a href=\"%s\">%s</a>", relative(url, sourceURL(dir, true)), html.EscapeString(part))
		} else {
			b.WriteString(html.EscapeString(part))
		}
	}
	return b.String()
}

// colored returns a source text as HTML. The tokens of Go have classes for their colors. With
// anchors set, each declared function has an id, so that links can lead to it. The code blocks of a
// chapter have no ids, because several blocks may show the same function.
func colored(source string, isGo, anchors bool) string {
	if !isGo {
		return html.EscapeString(source)
	}
	var (
		b    strings.Builder
		s    scanner.Scanner
		done int
		// declares is true after the keyword func, until the name of the function.
		declares = false
		// depth is the number of open parentheses.
		depth = 0
		ids   = map[string]bool{}
	)
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, []byte(source), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		at := file.Offset(pos)
		if tok == token.EOF {
			break
		}
		class := ""
		switch {
		case tok == token.COMMENT:
			class = "c"
		case tok == token.STRING, tok == token.CHAR:
			class = "s"
		case tok == token.INT, tok == token.FLOAT, tok == token.IMAG:
			class = "n"
		case tok.IsKeyword():
			class = "k"
			if tok == token.FUNC && (at == 0 || source[at-1] == '\n') {
				declares, depth = true, 0
			}
		case tok == token.LPAREN:
			depth++
		case tok == token.RPAREN:
			depth--
		case tok == token.LBRACE:
			declares = false
		case tok == token.IDENT && (declares && depth == 0 || strings.HasPrefix(source[at+len(text):], "(")):
			class = "f"
		}
		// A token without a class is written together with the next token that has one. Semicolons
		// that the scanner inserts at the ends of lines have no class.
		if class != "" {
			b.WriteString(html.EscapeString(source[done:at]))
			id := ""
			if class == "f" && declares && depth == 0 {
				if declares = false; anchors && !ids[text] {
					id, ids[text] = fmt.Sprintf(" id=\"func-%s\"", text), true
				}
			}
			// The scanner removes carriage returns from comments, so text can be shorter than the
			// source.
			end := min(at+len(text), len(source))
			fmt.Fprintf(&b, "<span class=%q%s>%s</span>", class, id, html.EscapeString(source[at:end]))
			done = end
		}
	}
	b.WriteString(html.EscapeString(source[done:]))
	return b.String()
}
