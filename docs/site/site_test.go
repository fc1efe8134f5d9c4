package main

import (
	"bytes"
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// project returns a small project with the given files in addition.
func project(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"README.md":            "# Stet\n\nSee the [guide](docs/guide/README.md).\n",
		"docs/guide/README.md": "# Guide\n\n## Begin\n\n- [Second](B.md): x\n- [First](A.md): x\n",
		"docs/guide/A.md":      "# A\n",
		"docs/guide/B.md":      "# B\n",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func build(t *testing.T, files map[string]string) map[string][]byte {
	t.Helper()
	s, err := load(project(files), false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.render(map[string]int64{"p/run": 1_234_567})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRender_Markdown(t *testing.T) {
	out := build(t, map[string]string{
		"docs/guide/A.md": "# A `b`\n\nA *word*, <https://go.dev> and [other](../X.md#one-two).\n\n## One, two\n\n## One, two\n\n" +
			"<!-- ecs/a_test.go ExampleA -->\n```go\nx := f(1, \"<\") // c\n```\n\n    ls <x>\n\n| a | |\n|---|--:|\n| `1` | 2 |\n\n| | |\n|---|---|\n| 3 | 4 |\n\n" +
			"![an image](i.png)\n\n<!-- Hidden. -->\n\n<!-- run p/run -->\n\n    go run ./p/run\n\n[source](../../p/run/main.go), [dir](../../p), [lower](#one-two-1)\n",
		"docs/X.md":        "# X\n\n## One two\n",
		"docs/guide/i.png": "",
		"ecs/a_test.go":    "package a\n\nfunc ExampleA() {}\n",
		"p/run/main.go":    "package main\n",
	})
	page := string(out["guide/a.html"])
	for _, want := range []string{
		`<title>A b · Stet</title>`, `<h1 id="a-b">A <code>b</code></h1>`, `<meta name="description" content="A word, https://go.dev and other.">`,
		`<a href="../reference/x.html#one-two">other</a>`, `<a href="https://go.dev">`,
		`<h2 id="one-two">One, two<a class="anchor" href="#one-two"`, `<h2 id="one-two-1">`, `<li class="level2"><a href="#one-two-1">One, two</a></li>`,
		`<pre><code>x := <span class="f">f</span>(<span class="n">1</span>, <span class="s">&#34;&lt;&#34;</span>) <span class="c">// c</span>` + "\n</code></pre>",
		`<a class="from" href="../source/ecs/a_test.go.html#func-ExampleA">ecs/a_test.go</a>`,
		"<pre><code>ls &lt;x&gt;\n</code></pre></div>",
		"<div class=\"table\"><table>\n<thead>\n<tr>\n<th>a</th>\n<td class=\"right\"></td>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td><code>1</code></td>\n<td class=\"right\">2</td>\n</tr>\n</tbody>\n</table></div>",
		"<table>\n<tbody>\n<tr>\n<td>3</td>\n<td>4</td>\n</tr>\n</tbody>\n</table>",
		`<img src="../docs/guide/i.png" alt="an image" loading="lazy">`,
		`data-program="../run/run.wasm" data-worker="../worker.js"`, `<span class="size">1.2 MB</span> <code>go run ./p/run</code> <a href="../source/p/run/index.html">Source</a>`,
		`<a href="../source/p/run/main.go.html">source</a>, <a href="../source/p/index.html">dir</a>, <a href="#one-two-1">lower</a>`,
		`<a rel="prev" href="b.html"><span>Previous</span> Second</a>`, `<script src="../run.js"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(page, "Hidden") || strings.Count(page, "go run") != 1 || strings.Contains(string(out["guide/b.html"]), "run.js") {
		t.Error("the page has too much")
	}
	if source := string(out["source/ecs/a_test.go.html"]); !strings.Contains(source, `<span class="f" id="func-ExampleA">ExampleA</span>() {}`) {
		t.Errorf("the source is %s", source)
	}
	if dir := string(out["source/p/index.html"]); !strings.Contains(dir, `<li><a href="run/index.html">run/</a></li>`) {
		t.Errorf("the directory is %s", dir)
	}
	for _, name := range []string{"docs/guide/i.png", "style.css", "run.js", "worker.js", "search.json", "index.html", "guide/index.html"} {
		if _, ok := out[name]; !ok {
			t.Errorf("the site lacks %s", name)
		}
	}
}

func TestLoad_BrokenLinksAndHTML(t *testing.T) {
	for text, want := range map[string]string{
		"[x](C.md)":                     "docs/guide/A.md: the link to C.md has no target",
		"[x](B.md#there)":               "docs/guide/A.md: the link to B.md#there has no target: docs/guide/B.md has no such heading",
		"[x](#there)":                   "the link to #there has no target",
		"![x](x.png)":                   "the link to x.png has no target",
		"[x](../../../y)":               "the link to ../../../y has no target",
		"<!-- run examples/missing -->": "the program examples/missing is not a directory",
		"<!-- run docs/guide -->\n\n<!-- run x/guide -->": "the programs docs/guide and x/guide have the same name",
		"<!-- ecs/a_test.go Example -->\n```go\n```":      "the code of Example: ",
		"<p>x</p>":     "HTML: <p>x</p>",
		"a <b>x</b> c": "HTML in a line: ",
	} {
		_, err := load(project(map[string]string{"docs/guide/A.md": "# A\n\n" + text + "\n", "x/guide/x.go": ""}), false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", text, err, want)
		}
	}
	if _, err := load(project(map[string]string{"docs/guide/C.md": "# C\n"}), false); err == nil || !strings.Contains(err.Error(), "docs/guide/C.md: the chapter is not in docs/guide/README.md") {
		t.Errorf("a chapter that is not in the index: %v", err)
	}
	if _, err := load(project(map[string]string{"docs/C.md": "text\n"}), false); err == nil || !strings.Contains(err.Error(), "docs/C.md: the page has no heading") {
		t.Errorf("a page without heading: %v", err)
	}
}

func TestNav_SectionsAndOrderOfPages(t *testing.T) {
	s, err := load(project(map[string]string{"docs/Y.md": "# B\n", "docs/X.md": "# a\n", "docs/decisions/d.md": "# D\n", "examples/e/README.md": "# E\n", "C.md": "# C\n"}), false)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, sec := range s.nav {
		b.WriteString(sec.Title + ":")
		for _, g := range sec.Groups {
			b.WriteString(" [" + g.Title + "]")
			for _, i := range g.Items {
				b.WriteString(" " + i.Title + "=" + i.URL)
			}
		}
		b.WriteString("\n")
	}
	want := "Guide: [Begin] Second=guide/b.html First=guide/a.html\n" +
		"Reference: [] a=reference/x.html B=reference/y.html [Design decisions] D=decisions/d.html\n" +
		"Examples: [] E=examples/e/index.html\nProject: [] C=c.html\n"
	if b.String() != want {
		t.Errorf("the pages are\n%s, want\n%s", b.String(), want)
	}
	for url, want := range map[string]string{"index.html": " guide/index.html", "guide/index.html": "index.html guide/b.html", "guide/b.html": "guide/index.html guide/a.html",
		"guide/a.html": "guide/b.html ", "reference/x.html": " reference/y.html", "source/x": " "} {
		before, after := s.neighbours(url)
		got := ""
		if before != nil {
			got = before.URL
		}
		got += " "
		if after != nil {
			got += after.URL
		}
		if got != want {
			t.Errorf("the neighbours of %s are %q, want %q", url, got, want)
		}
	}
}

func TestSearchIndex_TextBelowEachHeading(t *testing.T) {
	out := build(t, map[string]string{"docs/guide/A.md": "# A\n\ntop *text*\n\n## Part\n\n- one\n- `two`\n\n      x──▶y\n\n| a | b |\n|---|---|\n| c | d |\n\n### Last\n"})
	var x searchIndex
	if err := json.Unmarshal(out["search.json"], &x); err != nil {
		t.Fatal(err)
	}
	var got []searchPart
	for _, p := range x.Parts {
		if page := x.Pages[p.Page]; page.URL == "guide/a.html" {
			if page.Title != "A" || page.Section != "Guide" {
				t.Errorf("the page is %+v", page)
			}
			p.Page = 0
			got = append(got, p)
		}
	}
	want := []searchPart{{Text: "top text"}, {Heading: "Part", ID: "part", Text: "one two x y a b c d"}, {Heading: "Last", ID: "last"}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("the parts are %+v, want %+v", got, want)
	}
}

func TestRelative_LinkBetweenPages(t *testing.T) {
	for _, c := range [][3]string{
		{"index.html", "guide/a.html", "guide/a.html"}, {"guide/a.html", "guide/b.html", "b.html"}, {"guide/a.html", "index.html", "../index.html"},
		{"a/b/c.html", "a/d/e.html", "../d/e.html"}, {"a/b.html", "a/b/c.html", "b/c.html"}, {"guide/a.html", "", "../"}, {"index.html", "", ""},
	} {
		if got := relative(c[0], c[1]); got != c[2] {
			t.Errorf("from %s to %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

func TestSlug_SameAsGitHub(t *testing.T) {
	for heading, want := range map[string]string{"What each call restores": "what-each-call-restores", "OPFS or IndexedDB?": "opfs-or-indexeddb", "Time: a, b – c_d": "time-a-b--c_d", "Öl 2.0": "öl-20"} {
		if got := slug(heading); got != want {
			t.Errorf("%s: %q, want %q", heading, got, want)
		}
	}
}

func TestColored_KeepsText(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	root, err := projectRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "ecs", "*.go"))
	if err != nil || len(files) < 10 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range []string{string(text), string(text[:len(text)/2])} {
			if got := html.UnescapeString(tags.ReplaceAllString(colored(source, true, true), "")); got != source {
				t.Errorf("%s: the colors change the text", file)
			}
		}
	}
	for _, source := range []string{"", "`", "\"x", "x /* y", "'", "func", "a\r\n// b\r\nc", "…"} {
		if got := html.UnescapeString(tags.ReplaceAllString(colored(source, true, true), "")); got != source {
			t.Errorf("%q becomes %q", source, got)
		}
	}
}

// TestSite_LinksOfDocumentation builds the documentation of the project. Each link in the pages
// must lead to a file of the site and to an id in it. The ids of a page must differ.
func TestSite_LinksOfDocumentation(t *testing.T) {
	root, err := projectRoot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(os.DirFS(root), false)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, program := range s.programs() {
		sizes[program] = 1
	}
	out, err := s.render(sizes)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // Maps have another order each time.
		again, err := load(os.DirFS(root), false)
		if err != nil {
			t.Fatal(err)
		}
		files, err := again.render(sizes)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range out {
			if !bytes.Equal(files[name], data) || len(files) != len(out) {
				t.Fatalf("%s differs when the site is built again", name)
			}
		}
	}
	id, ref := regexp.MustCompile(` id="([^"]*)"`), regexp.MustCompile(` (?:href|src|data-program|data-worker)="([^"]*)"`)
	ids := map[string]map[string]bool{}
	for name, data := range out {
		ids[name] = map[string]bool{}
		for _, m := range id.FindAllSubmatch(data, -1) {
			if ids[name][string(m[1])] && filepath.Ext(name) == ".html" {
				t.Errorf("%s has two elements with the id %s", name, m[1])
			}
			ids[name][string(m[1])] = true
		}
	}
	links := 0
	for name, data := range out {
		if filepath.Ext(name) != ".html" {
			continue
		}
		for _, m := range ref.FindAllSubmatch(data, -1) {
			link := html.UnescapeString(string(m[1]))
			if strings.HasPrefix(link, "https://") || strings.HasPrefix(link, "http://") || strings.HasSuffix(link, ".wasm") {
				continue
			}
			target, anchor, _ := strings.Cut(link, "#")
			if target == "" {
				target = name
			} else if target = filepath.ToSlash(filepath.Join(filepath.Dir(name), target)); !fs.ValidPath(target) {
				t.Errorf("%s links to %s", name, link)
			}
			if out[target] == nil {
				t.Errorf("%s links to %s, which does not exist", name, link)
			} else if anchor != "" && !ids[target][anchor] {
				t.Errorf("%s links to %s, which has no such id", name, link)
			}
			links++
		}
	}
	if links < 5000 || len(out) < 100 {
		t.Errorf("only %d links in %d files", links, len(out))
	}
}

func TestHandler_ReloadShowsChangedPage(t *testing.T) {
	fsys := project(nil)
	b := &builder{dir: t.TempDir(), fsys: fsys}
	if err := b.build(false); err != nil {
		t.Fatal(err)
	}
	get := func() (int, string) {
		w := httptest.NewRecorder()
		b.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/guide/a.html", nil))
		return w.Code, w.Body.String()
	}
	now := time.Now()
	for k, c := range []struct {
		text, want string
		code       int
	}{{"# Changed\n", "Changed", 200}, {"# A\n\n[x](missing.md)\n", "docs/guide/A.md: the link to missing.md has no target", 500}, {"# Repaired\n", "Repaired", 200}} {
		fsys["docs/guide/A.md"] = &fstest.MapFile{Data: []byte(c.text), ModTime: now.Add(time.Duration(k) * time.Second)}
		if code, text := get(); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("status %d, want %d; the page lacks %q: %.300s", code, c.code, c.want, text)
		}
	}
}

func TestBuilder_RemovesOldPages(t *testing.T) {
	dir := t.TempDir()
	fsys := project(map[string]string{"docs/X.md": "# X\n"})
	b := &builder{dir: dir, fsys: fsys}
	if err := b.build(false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "reference", "x.html.gz")); err != nil {
		t.Fatal(err)
	}
	delete(fsys, "docs/X.md")
	if err := b.build(false); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x.html", "x.html.gz"} {
		if _, err := os.Stat(filepath.Join(dir, "reference", name)); err == nil {
			t.Errorf("%s remains", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "guide", "a.html")); err != nil {
		t.Error(err)
	}
}
