package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html"
	"html/template"
	"image"
	_ "image/gif" // The formats of the images of pages.
	_ "image/png"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	gohtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

//go:embed page
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "page/layout.html"))

// A view is what the layout shows.
type view struct {
	URL, Title, Summary string
	Body                template.HTML
	Headings            []heading
	Before, After       *item
	Nav                 []section
	Runs, Game          bool
}

// Rel returns a link from the page to a path of the site.
func (v view) Rel(to string) string { return relative(v.URL, to) }

// Has reports whether the page is in a group.
func (v view) Has(g group) bool {
	for _, i := range g.Items {
		if i.URL == v.URL {
			return true
		}
	}
	return false
}

// render returns the files of the site. It takes the compressed size of each program.
func (s *site) render(sizes map[string]int64) (map[string][]byte, error) {
	files := map[string][]byte{}
	index := searchIndex{}
	for _, p := range s.sorted() {
		body, err := s.body(p, sizes)
		if err != nil {
			return nil, err
		}
		before, after := s.neighbours(p.url)
		v := view{URL: p.url, Title: p.title, Summary: p.summary, Body: body, Headings: p.headings, Before: before, After: after, Runs: len(p.programs) > 0}
		if files[p.url], err = s.page(v); err != nil {
			return nil, err
		}
		index.add(p, s.sectionOf(p.url))
	}
	for _, name := range s.sourceList() {
		url, body, err := s.sourcePage(name)
		if err != nil {
			return nil, err
		}
		if files[url], err = s.page(view{URL: url, Title: name, Body: template.HTML(body)}); err != nil {
			return nil, err
		}
	}
	var err error
	if files["search.json"], err = json.Marshal(index); err != nil {
		return nil, err
	}
	for name := range s.images {
		if files[name], err = fs.ReadFile(s.fsys, name); err != nil {
			return nil, err
		}
	}
	for _, pattern := range []string{"page/*.js", "page/*.css", "page/*.svg"} {
		names, err := fs.Glob(assets, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if files[path.Base(name)], err = fs.ReadFile(assets, name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// page returns a page in the layout.
func (s *site) page(v view) ([]byte, error) {
	v.Nav, v.Game = s.nav, s.game
	var b bytes.Buffer
	err := layout.Execute(&b, v)
	return b.Bytes(), err
}

// body renders the Markdown of a page.
func (s *site) body(p *page, sizes map[string]int64) (template.HTML, error) {
	own := &bodyRenderer{s, p, sizes}
	r := renderer.NewRenderer(renderer.WithNodeRenderers(util.Prioritized(own, 1), util.Prioritized(extension.NewTableHTMLRenderer(), 2),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 3), util.Prioritized(gohtml.NewRenderer(), 4)))
	var b bytes.Buffer
	err := r.Render(&b, p.source, p.doc)
	return template.HTML(b.String()), err
}

// A bodyRenderer renders the nodes of a page that need more than goldmark does.
type bodyRenderer struct {
	site  *site
	page  *page
	sizes map[string]int64
}

// RegisterFuncs implements renderer.NodeRenderer.
func (r *bodyRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindHeading, r.heading)
	reg.Register(ast.KindCodeBlock, r.code)
	reg.Register(ast.KindFencedCodeBlock, r.code)
	reg.Register(ast.KindHTMLBlock, r.comment)
	reg.Register(ast.KindImage, r.image)
	reg.Register(tables.KindTable, r.table)
	reg.Register(tables.KindTableHeader, r.tableHeader)
	reg.Register(tables.KindTableCell, r.tableCell)
}

// heading renders a heading, and a link to it.
func (r *bodyRenderer) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	value, _ := h.AttributeString("id")
	id := html.EscapeString(string(value.([]byte)))
	switch {
	case entering:
		fmt.Fprintf(w, "<h%d id=\"%s\">", h.Level, id)
	case h.Level == 1:
		fmt.Fprint(w, "</h1>\n")
	default:
		fmt.Fprintf(w, "<a class=\"anchor\" href=\"#%s\" aria-label=\"Link to this section\">#</a></h%d>\n", id, h.Level)
	}
	return ast.WalkContinue, nil
}

// code renders a block of code. If the comment above the block names a function, a link to the
// source of the function follows.
func (r *bodyRenderer) code(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	if above, ok := n.PreviousSibling().(*ast.HTMLBlock); ok {
		m := runComment.FindStringSubmatch(comment(above, source))
		if m != nil && strings.TrimSpace(string(n.Lines().Value(source))) == runCommand(m[1]) {
			return ast.WalkSkipChildren, nil // The panel of the program shows this command already.
		}
	}
	isGo := false
	if fenced, ok := n.(*ast.FencedCodeBlock); ok {
		isGo = string(fenced.Language(source)) == "go"
	}
	fmt.Fprintf(w, "<div class=\"code\"><pre><code>%s</code></pre>", colored(string(n.Lines().Value(source)), isGo, false))
	if above, ok := n.PreviousSibling().(*ast.HTMLBlock); ok {
		if m := codeComment.FindStringSubmatch(comment(above, source)); m != nil {
			link := relative(r.page.url, sourceURL(m[1], false)) + "#func-" + m[2]
			fmt.Fprintf(w, "<a class=\"from\" href=\"%s\">%s</a>", link, html.EscapeString(m[1]))
		}
	}
	fmt.Fprint(w, "</div>\n")
	return ast.WalkSkipChildren, nil
}

// comment renders a comment: a program that runs in the page, or nothing.
func (r *bodyRenderer) comment(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		if m := runComment.FindStringSubmatch(comment(n.(*ast.HTMLBlock), source)); m != nil {
			rel := func(to string) string { return html.EscapeString(relative(r.page.url, to)) }
			fmt.Fprintf(w, "<section class=\"run\" data-program=\"%s\" data-worker=\"%s\" aria-label=\"Program %s\">\n"+
				"<p class=\"run-start\"><button type=\"button\" class=\"main\" hidden>▶ Run</button> <span class=\"size\">%.1f MB</span> "+
				"<code>%s</code> <a href=\"%s\">Source</a></p>\n</section>\n",
				rel(programFile(m[1])), rel("worker.js"), html.EscapeString(m[1]), float64(r.sizes[m[1]])/1e6, html.EscapeString(runCommand(m[1])), rel(sourceURL(m[1], true)))
		}
	}
	return ast.WalkSkipChildren, nil
}

// image renders an image with its size, so that the text does not move when the image is loaded.
func (r *bodyRenderer) image(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		dest := string(n.(*ast.Image).Destination)
		size := ""
		if f, err := r.site.fsys.Open(path.Join(path.Dir(r.page.url), dest)); err == nil {
			if c, _, err := image.DecodeConfig(f); err == nil {
				size = fmt.Sprintf(" width=\"%d\" height=\"%d\"", c.Width, c.Height)
			}
			_ = f.Close()
		}
		fmt.Fprintf(w, "<img src=\"%s\" alt=\"%s\"%s loading=\"lazy\">", html.EscapeString(dest), html.EscapeString(plain(n, source)), size)
	}
	return ast.WalkSkipChildren, nil
}

// table renders a table in a box that scrolls.
func (r *bodyRenderer) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		fmt.Fprint(w, "<div class=\"table\"><table>\n")
	} else {
		fmt.Fprint(w, "</table></div>\n")
	}
	return ast.WalkContinue, nil
}

// tableHeader renders the first row of a table, unless all its cells are empty.
func (r *bodyRenderer) tableHeader(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	empty := true
	for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
		empty = empty && !cell.HasChildren()
	}
	switch {
	case entering && empty:
		fmt.Fprint(w, "<tbody>\n")
		return ast.WalkSkipChildren, nil
	case entering:
		fmt.Fprint(w, "<thead>\n<tr>\n")
	case !empty:
		fmt.Fprint(w, "</tr>\n</thead>\n<tbody>\n")
	}
	return ast.WalkContinue, nil
}

// tableCell renders a cell of a table. An empty cell above a column is not a header.
func (r *bodyRenderer) tableCell(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "td"
	if n.Parent().Kind() == tables.KindTableHeader && n.HasChildren() {
		tag = "th"
	}
	switch {
	case !entering:
		fmt.Fprintf(w, "</%s>\n", tag)
	case n.(*tables.TableCell).Alignment == tables.AlignRight:
		fmt.Fprintf(w, "<%s class=\"right\">", tag)
	default:
		fmt.Fprintf(w, "<%s>", tag)
	}
	return ast.WalkContinue, nil
}

// runCommand returns the command that runs the program in a directory.
func runCommand(dir string) string { return "go run ./" + dir }

// programFile returns the path in the site of a compiled program.
func programFile(dir string) string { return "run/" + path.Base(dir) + ".wasm" }
