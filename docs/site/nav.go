package main

import (
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A section is a part of the list of pages.
type section struct {
	Title, URL string // URL is "" if the section has no page of its own.
	Groups     []group
}

// A group is a part of a section.
type group struct {
	Title  string
	Folded bool // The reader must open the group to see its pages.
	Items  []item
}

// An item is a page in a list.
type item struct{ Title, URL string }

// makeNav makes the list of pages. The chapters of the guide have the order and the groups of its
// index. Other pages are ordered by title.
func (s *site) makeNav() {
	guide := section{Title: "Guide", URL: pageURL(guideIndex), Groups: s.chapters()}
	listed := map[string]bool{}
	for _, g := range guide.Groups {
		for _, i := range g.Items {
			listed[i.URL] = true
		}
	}
	var reference, decisions, examples, project []item
	for _, p := range s.sorted() {
		i := item{p.title, p.url}
		switch dir := path.Dir(p.file); {
		case p.file == home || p.file == guideIndex:
		case dir == "docs/guide":
			if !listed[p.url] {
				s.fail(p, "the chapter is not in %s", guideIndex)
			}
		case dir == "docs":
			reference = append(reference, i)
		case dir == "docs/decisions":
			decisions = append(decisions, i)
		case dir == ".":
			project = append(project, i)
		default:
			examples = append(examples, i)
		}
	}
	for _, items := range [][]item{reference, decisions, examples, project} {
		slices.SortFunc(items, func(a, b item) int { return strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)) })
	}
	s.nav = []section{guide}
	for _, other := range []section{
		{Title: "Reference", Groups: []group{{Items: reference}, {"Design decisions", true, decisions}}},
		{Title: "Examples", Groups: []group{{Items: examples}}},
		{Title: "Project", Groups: []group{{Items: project}}},
	} {
		other.Groups = slices.DeleteFunc(other.Groups, func(g group) bool { return len(g.Items) == 0 })
		if len(other.Groups) > 0 {
			s.nav = append(s.nav, other)
		}
	}
}

// chapters returns the chapters of the guide, in groups.
func (s *site) chapters() (groups []group) {
	index := s.pages[guideIndex]
	if index == nil {
		return nil
	}
	for n := index.doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level > 1 {
				groups = append(groups, group{Title: plain(n, index.source)})
			}
		case *ast.List:
			if len(groups) == 0 {
				groups = []group{{}}
			}
			g := &groups[len(groups)-1]
			links(n, func(link ast.Node, dest string) string {
				url := path.Join(path.Dir(index.url), dest)
				for _, p := range s.pages {
					if p.url == url && path.Dir(p.file) == path.Dir(guideIndex) {
						g.Items = append(g.Items, item{plain(link, index.source), url})
					}
				}
				return dest
			})
		}
	}
	return groups
}

// neighbours returns the pages before and after a page in its section. In the section of the guide,
// the first two pages are the home page and the index of the guide.
func (s *site) neighbours(url string) (before, after *item) {
	for _, sec := range s.nav {
		var all []item
		if sec.URL != "" {
			all = append(all, item{"Overview", pageURL(home)}, item{sec.Title, sec.URL})
		}
		for _, g := range sec.Groups {
			all = append(all, g.Items...)
		}
		for k := range all {
			if all[k].URL != url {
				continue
			}
			if k > 0 {
				before = &all[k-1]
			}
			if k+1 < len(all) {
				after = &all[k+1]
			}
			return before, after
		}
	}
	return nil, nil
}

// sectionOf returns the title of the section of a page.
func (s *site) sectionOf(url string) string {
	for _, sec := range s.nav {
		for _, g := range sec.Groups {
			if slices.ContainsFunc(g.Items, func(i item) bool { return i.URL == url }) {
				return sec.Title
			}
		}
	}
	return "Guide"
}
