package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// The home page of the site, and the index of the guide.
const (
	home       = "README.md"
	guideIndex = "docs/guide/README.md"
)

// A site is the documentation of a project.
type site struct {
	fsys    fs.FS
	game    bool
	pages   map[string]*page // By the path of its Markdown file.
	sources map[string]bool  // Files and directories of the project that have a page.
	images  map[string]bool
	nav     []section
	errs    []error
}

// A page is a Markdown file.
type page struct {
	file     string // The path in the project.
	url      string // The path in the site.
	source   []byte
	doc      ast.Node
	title    string
	summary  string // The first paragraph.
	headings []heading
	programs []string // The directories of the programs that run in the page.
}

// A heading is a title in a page, below the title of the page.
type heading struct {
	Level    int
	ID, Text string
}

var (
	// runComment matches the comment <!-- run DIRECTORY -->. The page shows the program in this
	// directory in its place.
	runComment = regexp.MustCompile(`^<!-- run (\S+) -->\s*$`)
	// codeComment matches the comment <!-- FILE.go NAME -->. The code below the comment is the body
	// of this function; see internal/arch.
	codeComment = regexp.MustCompile(`^<!-- (\S+\.go) (\w+) -->\s*$`)
)

// load reads the pages of the documentation, and all Markdown files to which they link. The
// argument game tells whether the site has the game.
func load(fsys fs.FS, game bool) (*site, error) {
	s := &site{fsys: fsys, game: game, pages: map[string]*page{}, sources: map[string]bool{}, images: map[string]bool{}}
	files := []string{home}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/README.md"} {
		found, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	for len(files) > 0 {
		file := files[0]
		files = files[1:]
		if s.pages[file] != nil {
			continue
		}
		p, err := s.parse(file)
		if err != nil {
			return nil, err
		}
		s.pages[file] = p
		links(p.doc, func(n ast.Node, dest string) string {
			if target, _, ok := p.local(dest); ok {
				if next := s.pageOf(target); next != "" {
					files = append(files, next)
				}
			}
			return dest
		})
	}
	for _, p := range s.sorted() {
		s.resolve(p)
	}
	s.expandSources()
	s.makeNav()
	return s, errors.Join(s.errs...)
}

func (s *site) fail(p *page, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf("%s: %s", p.file, fmt.Sprintf(format, args...)))
}

// sorted returns the pages in the order of their files.
func (s *site) sorted() (pages []*page) {
	for _, p := range s.pages {
		pages = append(pages, p)
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.file, b.file) })
	return pages
}

// programs returns the programs of all pages.
func (s *site) programs() (all []string) {
	for _, p := range s.pages {
		all = append(all, p.programs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))

// parse reads a page. Its headings get the ids that GitHub gives them.
func (s *site) parse(file string) (*page, error) {
	source, err := fs.ReadFile(s.fsys, file)
	if err != nil {
		return nil, err
	}
	p := &page{file: file, url: pageURL(file), source: source, doc: markdown.Parser().Parse(text.NewReader(source))}
	ids := map[string]int{}
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			h := heading{n.Level, slug(plain(n, source)), plain(n, source)}
			if ids[h.ID]++; ids[h.ID] > 1 {
				h.ID = fmt.Sprintf("%s-%d", h.ID, ids[h.ID]-1)
			}
			n.SetAttributeString("id", []byte(h.ID))
			if p.title == "" {
				p.title = h.Text
			} else {
				p.headings = append(p.headings, h)
			}
		case *ast.Paragraph:
			if p.summary == "" {
				p.summary = plain(n, source)
			}
		}
	}
	if p.title == "" {
		return nil, fmt.Errorf("%s: the page has no heading", file)
	}
	return p, nil
}

// pageURL returns the path of a page in the site.
func pageURL(file string) string {
	dir, name := path.Split(file)
	name = strings.ToLower(strings.TrimSuffix(name, ".md"))
	if name == "readme" {
		name = "index"
	}
	switch {
	case dir == "docs/":
		dir = "reference/"
	case strings.HasPrefix(dir, "docs/"):
		dir = strings.TrimPrefix(dir, "docs/")
	}
	return dir + name + ".html"
}

// slug returns the id of a heading: lower-case letters, digits, hyphens.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

// plain returns the text of a node without its format.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(source))
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// links calls f for each link and each image below n, and sets its destination to the result.
func links(n ast.Node, f func(n ast.Node, dest string) string) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link:
			if entering {
				n.Destination = []byte(f(n, string(n.Destination)))
			}
		case *ast.Image:
			if entering {
				n.Destination = []byte(f(n, string(n.Destination)))
			}
		}
		return ast.WalkContinue, nil
	})
}

// local splits the destination of a link into a path in the project and an anchor. It returns false
// if the link leads to another web site.
func (p *page) local(dest string) (target, anchor string, ok bool) {
	if strings.Contains(dest, ":") {
		return "", "", false
	}
	dest, anchor, _ = strings.Cut(dest, "#")
	if dest == "" {
		return p.file, anchor, true
	}
	return path.Join(path.Dir(p.file), dest), anchor, true
}

// pageOf returns the Markdown file for a path in the project: the path itself, or README.md in this
// directory. It returns "" if there is no such file.
func (s *site) pageOf(target string) string {
	for _, file := range []string{target, target + "/README.md"} {
		if path.Ext(file) == ".md" {
			if info, err := fs.Stat(s.fsys, file); err == nil && !info.IsDir() {
				return file
			}
		}
	}
	return ""
}

// resolve checks the links of a page, and makes them relative links of the site. It collects the
// sources, images and programs that the page shows or links to.
func (s *site) resolve(p *page) {
	links(p.doc, func(n ast.Node, dest string) string {
		target, anchor, ok := p.local(dest)
		if !ok {
			return dest
		}
		if anchor != "" {
			anchor = "#" + anchor
		}
		_, isImage := n.(*ast.Image)
		info, err := fs.Stat(s.fsys, target)
		switch next := s.pageOf(target); {
		case err != nil:
			s.fail(p, "the link to %s has no target", dest)
			return dest
		case isImage:
			s.images[target] = true
			return relative(p.url, target)
		case next != "":
			if anchor != "" && !s.pages[next].has(anchor[1:]) {
				s.fail(p, "the link to %s has no target: %s has no such heading", dest, next)
			}
			if next == p.file && anchor != "" {
				return anchor
			}
			return relative(p.url, s.pages[next].url) + anchor
		default:
			s.sources[target] = true
			return relative(p.url, sourceURL(target, info.IsDir()))
		}
	})
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML:
			s.fail(p, "HTML in a line: %s", n.Segments.Value(p.source))
		case *ast.HTMLBlock:
			s.resolveComment(p, comment(n, p.source))
		}
		return ast.WalkContinue, nil
	})
}

// resolveComment handles a comment that names a program or a Go file. It checks that the program or
// the file exists, and adds it to the sources of the site. It reports any other HTML as a fault.
func (s *site) resolveComment(p *page, text string) {
	if m := runComment.FindStringSubmatch(text); m != nil {
		if info, err := fs.Stat(s.fsys, m[1]); err != nil || !info.IsDir() {
			s.fail(p, "the program %s is not a directory of the project", m[1])
			return
		}
		for _, other := range s.programs() {
			if other != m[1] && programFile(other) == programFile(m[1]) {
				s.fail(p, "the programs %s and %s have the same name", other, m[1])
			}
		}
		p.programs = append(p.programs, m[1])
		s.sources[m[1]] = true
	} else if m := codeComment.FindStringSubmatch(text); m != nil {
		if _, err := fs.Stat(s.fsys, m[1]); err != nil {
			s.fail(p, "the code of %s: %v", m[2], err)
			return
		}
		s.sources[m[1]] = true
	} else if !strings.HasPrefix(text, "<!--") {
		s.fail(p, "HTML: %s", text)
	}
}

// comment returns the text of an HTML block.
func comment(n *ast.HTMLBlock, source []byte) string {
	text := string(n.Lines().Value(source))
	if n.HasClosure() {
		text += string(n.ClosureLine.Value(source))
	}
	return text
}

func (p *page) has(id string) bool {
	return id == slug(p.title) || slices.ContainsFunc(p.headings, func(h heading) bool { return h.ID == id })
}

// relative returns the link from one path of the site to another.
func relative(from, to string) string {
	dir := path.Dir(from)
	up := ""
	for dir != "." && !strings.HasPrefix(to, dir+"/") {
		dir, up = path.Dir(dir), up+"../"
	}
	if dir != "." {
		to = strings.TrimPrefix(to, dir+"/")
	}
	return up + to
}
