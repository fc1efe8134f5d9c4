package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// A candidate is a storage that may have members among the entities of one sparse page.
type candidate struct {
	*set
	page    *track.Page
	storage AnyStorage
}

// has reports whether e, whose index is of the page, is a member.
func (c *candidate) has(e Entity) bool {
	r := int(c.page.Rows[e&pageMask])
	return r < c.rows.N && c.dense.Live[r] == e
}

// pageCandidates are the candidates of one page, in the order of registration, as long as
// World.paged is at.
type pageCandidates struct {
	at  uint64
	all []candidate
}

// candidatesFor returns the storages that may have e: those whose sparse set has a page for
// its index. So what is destroyed is looked for where it can be, also if thousands of
// types are registered, most of which have nothing there.
func (w *World) candidatesFor(e Entity) []candidate {
	p := int(e.Index() >> pageBits)
	if p >= len(w.candidates) || w.candidates[p].at != w.paged {
		return w.findCandidates(p)
	}
	return w.candidates[p].all
}

//go:noinline
func (w *World) findCandidates(p int) []candidate {
	for p >= len(w.candidates) {
		w.candidates = append(w.candidates, pageCandidates{})
	}
	h := &w.candidates[p]
	clear(h.all)
	h.at, h.all = w.paged, h.all[:0]
	for i, s := range w.sets {
		if p < len(s.sparse.Pages) && s.sparse.Pages[p] != nil {
			h.all = append(h.all, candidate{s, s.sparse.Pages[p], w.storages[i]})
		}
	}
	return h.all
}

// page returns the page of index i, which it makes if there is none.
func (s *set) page(i uint32) *track.Page {
	if s.sparse.Page(i) == nil {
		s.w.paged++
	}
	return s.sparse.Grow(i)
}
