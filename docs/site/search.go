package main

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// A searchIndex has the text of all pages, for the script that searches them.
type searchIndex struct {
	Pages []searchPage `json:"pages"`
	Parts []searchPart `json:"parts"`
}

type searchPage struct {
	URL     string `json:"url"`
	Title   string `json:"title"`
	Section string `json:"section"`
}

// A searchPart is a heading and the text below it.
type searchPart struct {
	Page    int    `json:"page"`
	Heading string `json:"heading,omitempty"` // "" for the text above the first heading.
	ID      string `json:"id,omitempty"`
	Text    string `json:"text,omitempty"`
}

// add adds a page of a section.
func (x *searchIndex) add(p *page, section string) {
	part := searchPart{Page: len(x.Pages)}
	x.Pages = append(x.Pages, searchPage{p.url, p.title, section})
	var text []string
	end := func() {
		part.Text = strings.Join(text, " ")
		x.Parts = append(x.Parts, part)
		text = nil
	}
	headings := p.headings
	for n := p.doc.FirstChild(); n != nil; n = n.NextSibling() {
		switch n.(type) {
		case *ast.HTMLBlock:
		case *ast.Heading:
			if n == p.doc.FirstChild() {
				continue
			}
			end()
			part.Heading, part.ID = headings[0].Text, headings[0].ID
			headings = headings[1:]
		default:
			text = append(text, strings.Join(strings.FieldsFunc(plain(n, p.source), isLine), " "))
		}
	}
	end()
}

// isLine reports whether r is a space, or a line or an arrow of a drawing. In the index, a space
// replaces such runes.
func isLine(r rune) bool {
	return r == ' ' || r >= '─' && r <= '◿' || r >= '←' && r <= '↿'
}
