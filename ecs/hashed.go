package ecs

import "github.com/stet-ecs/stet/ecs/internal/track"

// The sparse array of a Hashed storage is cut into blocks like that of a Sparse
// one, but several blocks can have the same page as long as no two members need
// the same entry of it: a hash table whose hash is the low part of the index, and
// in which a collision moves one block to another page (row displacement: Tarjan
// and Yao, Storing a sparse table, 1979).
//
//	blocks   0  1  2  3  4  5
//	         A  A  -  A  B  A       A: entries of blocks 0, 1, 3 and 5
//
// That works because membership asks dense back: an entry that belongs to
// another block's entity is rubbish like any other. It costs 8 bytes for 4096
// indices of the world and about 10 for a member, where a page for each block
// would be 17 KB for a single one. At worst, if the indices of all members are
// equal modulo 4096, each of them needs a page, as in a Sparse storage.
//
// Nothing of it is saved: entries follow from dense, and are made again for all
// rows when the storage is put back.

// hashedTries is how many of the newest pages are tried for a block.
const hashedTries = 8

// pageFor returns the page in which the entry of e can be written.
func (s *set) pageFor(e Entity) *track.Page {
	i := e.Index()
	page := s.sparse.Page(i)
	if page != nil && !s.collides(page, i) {
		return page
	}
	for int(i>>pageBits) >= len(s.sparse.Pages) {
		s.sparse.Pages = append(s.sparse.Pages, nil)
	}
	var block []Entity // The members that move along.
	if page != nil {
		block = s.membersOf(page, i>>pageBits)
	}
	page = s.roomFor(append(block, e))
	for _, m := range block {
		page.Rows[m&pageMask] = s.sparse.Pages[i>>pageBits].Rows[m&pageMask]
	}
	s.sparse.Pages[i>>pageBits] = page
	return page
}

// collides reports whether the entry of index i in page belongs to a member with
// another index.
func (s *set) collides(page *track.Page, i uint32) bool {
	r := int(page.Rows[i&pageMask])
	if r >= s.rows.N {
		return false
	}
	x := s.dense.Live[r].Index()
	return x != i && x&pageMask == i&pageMask
}

// membersOf returns the members of a block, which page holds.
func (s *set) membersOf(page *track.Page, block uint32) (members []Entity) {
	for i, r := range page.Rows {
		if int(r) < s.rows.N {
			if e := s.dense.Live[r]; e.Index() == block<<pageBits+uint32(i) {
				members = append(members, e)
			}
		}
	}
	return members
}

// roomFor returns a page in which none of members collides.
func (s *set) roomFor(members []Entity) *track.Page {
next:
	for k := len(s.shared) - 1; k >= max(0, len(s.shared)-hashedTries); k-- {
		for _, e := range members {
			if s.collides(s.shared[k], e.Index()) {
				continue next
			}
		}
		return s.shared[k]
	}
	page := track.NewPage()
	s.shared = append(s.shared, page)
	return page
}

// placeAll makes the entries of all rows anew.
func (s *set) placeAll() {
	for r, e := range s.dense.Live[:s.rows.N] {
		s.pageFor(e).Rows[e&pageMask] = uint32(r)
	}
}
