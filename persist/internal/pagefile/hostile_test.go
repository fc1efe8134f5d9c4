package pagefile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

var le = binary.LittleEndian

// A forgery is a valid file that a test changes with knowledge of the format.
type forgery struct {
	body   []byte
	bucket uint64 // Page of the leaf that names the bucket.
	top    uint64 // Root node of the bucket, or 0.
}

func forge(data []byte) forgery {
	f := forgery{body: bytes.Clone(body(data))}
	f.bucket = le.Uint64(f.body[16+16:])
	f.top = le.Uint64(f.at(f.bucket)[16+16+5:])
	return f
}

// at returns the bytes from page id on.
func (f forgery) at(id uint64) []byte { return f.body[id*pageSize:] }

// element returns the bytes of page id that begin at element i.
func (f forgery) element(id uint64, i int) []byte { return f.at(id)[16+16*i:] }

// child returns child i of branch id.
func (f forgery) child(id uint64, i int) uint64 { return le.Uint64(f.element(id, i)[8:]) }

// leaf returns the first leaf below the page id.
func (f forgery) leaf(id uint64) uint64 {
	for f.at(id)[8] == 1 {
		id = f.child(id, 0)
	}
	return id
}

// bump adds n to the little-endian 4-byte number at b.
func bump(b []byte, n int32) { le.PutUint32(b, le.Uint32(b)+uint32(n)) }

// checkHostile reads data in every way and fails if the file is accepted.
func checkHostile(t *testing.T, name string, data []byte) {
	t.Helper()
	root := pagefile.OpenRoot(t)
	writeFile(t, root, "f", data)
	pages, err := scan(root)
	if !errors.Is(err, disk.ErrCorrupt) || !known(err) {
		t.Errorf("%s: Scan = %v, want %v", name, err, disk.ErrCorrupt)
	}
	for i := 1; i < len(pages); i++ {
		if pages[i].key.Compare(pages[i-1].key) <= 0 {
			t.Errorf("%s: Scan gave %v after %v", name, pages[i].key, pages[i-1].key)
		}
	}
	if _, err := pagefile.Check(t.Context(), disk.Dir(root), "f"); !errors.Is(err, disk.ErrCorrupt) || !known(err) {
		t.Errorf("%s: Check = %v, want %v", name, err, disk.ErrCorrupt)
	}
	checkReadAll(t, root)
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		return
	}
	defer f.Close()
	for i := uint32(0); i < 30_000; i += 1 + i/8 {
		if _, _, err := f.Get(pagefile.Key{Column: 1, Page: i}); err != nil && !known(err) {
			t.Errorf("%s: Get = %v", name, err)
		}
	}
}

// TestHostileFile_ChangedTree changes the structure of valid files and recomputes all checksums.
func TestHostileFile_ChangedTree(t *testing.T) {
	// A tree with two levels of branches.
	small := create(t, pagefile.OpenRoot(t), numbered(30_000, 20))
	// A branch over leaves of many pages each.
	large := create(t, pagefile.OpenRoot(t), numbered(12, 20_000))
	single := create(t, pagefile.OpenRoot(t), numbered(2, 20_000)) // A tree of one leaf.
	inline := create(t, pagefile.OpenRoot(t), numbered(5, 50))
	tests := []struct {
		name  string
		data  []byte
		forge func(f forgery)
	}{
		{"a branch that is its own child", small, func(f forgery) { le.PutUint64(f.element(f.top, 0)[8:], f.top) }},
		{"a branch that is its own last child", small, func(f forgery) { le.PutUint64(f.element(f.top, 1)[8:], f.top) }},
		{"a cycle of two", small, func(f forgery) { le.PutUint64(f.element(f.child(f.top, 0), 0)[8:], f.top) }},
		{"the same child twice", small, func(f forgery) { le.PutUint64(f.element(f.top, 1)[8:], f.child(f.top, 0)) }},
		{"the same leaf twice", small, func(f forgery) {
			b := f.child(f.top, 0)
			le.PutUint64(f.element(b, 1)[8:], f.child(b, 0))
		}},
		{"children exchanged", small, func(f forgery) {
			a, b := f.child(f.top, 0), f.child(f.top, 1)
			le.PutUint64(f.element(f.top, 0)[8:], b)
			le.PutUint64(f.element(f.top, 1)[8:], a)
		}},
		{"a leaf higher than the others", small, func(f forgery) {
			le.PutUint64(f.element(f.top, 0)[8:], f.leaf(f.top))
		}},
		{"a child beyond the file", small, func(f forgery) { le.PutUint64(f.element(f.top, 0)[8:], 1<<40) }},
		{"a child whose offset overflows", small, func(f forgery) { le.PutUint64(f.element(f.top, 0)[8:], 1<<52+f.top) }},
		{"a child among the meta pages", small, func(f forgery) { le.PutUint64(f.element(f.top, 0)[8:], 1) }},
		{"the bucket's leaf as a child", small, func(f forgery) { le.PutUint64(f.element(f.top, 0)[8:], f.bucket) }},
		{"a branch without children", small, func(f forgery) { le.PutUint16(f.at(f.top)[10:], 0) }},
		{"too many children", small, func(f forgery) { le.PutUint16(f.at(f.top)[10:], 0xFFFF) }},
		{"one child too many", small, func(f forgery) { f.at(f.top)[10]++ }},
		{"one child too few", small, func(f forgery) { f.at(f.top)[10]-- }},
		{"a branch of two pages", small, func(f forgery) { le.PutUint32(f.at(f.child(f.top, 0))[12:], 1) }},
		{"a page with the number of another", small, func(f forgery) { f.at(f.leaf(f.top))[0]++ }},
		{"a page of no type", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[8:], 0) }},
		{"a page of two types", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[8:], 3) }},
		{"a free list as a child", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[8:], 0x10) }},
		{"a branch with the flag of a leaf", small, func(f forgery) { le.PutUint16(f.at(f.top)[8:], 2) }},
		{"a leaf with the flag of a branch", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[8:], 1) }},
		{"a branch key beyond the page", small, func(f forgery) { le.PutUint32(f.element(f.top, 0), 0xFFFFFFF0) }},
		{"a branch key of another size", small, func(f forgery) { le.PutUint32(f.element(f.top, 0)[4:], 7) }},
		{"branch keys that descend", small, func(f forgery) {
			n := int(le.Uint16(f.at(f.top)[10:]))
			keys := f.at(f.top)[16+16*n:]
			var first [8]byte
			copy(first[:], keys)
			copy(keys, keys[8:16])
			copy(keys[8:], first[:])
		}},
		{"a branch key that is not its child's", small, func(f forgery) {
			b := f.child(f.top, 0)
			n := int(le.Uint16(f.at(b)[10:]))
			f.at(b)[16+16*n+8+7]++
		}},
		{"a leaf without entries", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[10:], 0) }},
		{"too many entries", small, func(f forgery) { le.PutUint16(f.at(f.leaf(f.top))[10:], 0xFFFF) }},
		{"one entry too few", small, func(f forgery) { f.at(f.leaf(f.top))[10]-- }},
		{"a bucket among the entries", small, func(f forgery) { le.PutUint32(f.element(f.leaf(f.top), 3), 1) }},
		{"a key of another size", small, func(f forgery) { bump(f.element(f.leaf(f.top), 3)[8:], 1) }},
		{"a key somewhere else", small, func(f forgery) { bump(f.element(f.leaf(f.top), 3)[4:], -28) }},
		{"a value of 4 GiB", small, func(f forgery) { le.PutUint32(f.element(f.leaf(f.top), 91)[12:], 0xFFFFFFFF) }},
		{"leaf keys that do not ascend", small, func(f forgery) {
			id := f.leaf(f.top)
			n := int(le.Uint16(f.at(id)[10:]))
			copy(f.at(id)[16+16*n+28:], f.at(id)[16+16*n:16+16*n+8])
		}},
		{"a leaf of many pages and entries", small, func(f forgery) { le.PutUint32(f.at(f.leaf(f.top))[12:], 5) }},
		{"a leaf longer than the file", large, func(f forgery) { le.PutUint32(f.at(f.leaf(f.top))[12:], 0xFFFFFFFF) }},
		{"a value longer than the file", single, func(f forgery) {
			id := f.leaf(f.top)
			bump(f.at(id)[12:], 1000)
			bump(f.element(id, int(le.Uint16(f.at(id)[10:]))-1)[12:], 1000*pageSize)
		}},
		{"a leaf one page longer", large, func(f forgery) { bump(f.at(f.leaf(f.top))[12:], 1) }},
		{"a leaf with a page to spare", single, func(f forgery) { bump(f.at(f.leaf(f.top))[12:], 1) }},
		{"a leaf one page shorter", large, func(f forgery) { bump(f.at(f.leaf(f.top))[12:], -1) }},
		{"a value that ends elsewhere", large, func(f forgery) { bump(f.element(f.leaf(f.top), 0)[12:], 1) }},
		{"a value over the next leaf", large, func(f forgery) {
			id := f.leaf(f.top)
			last := f.element(id, int(le.Uint16(f.at(id)[10:]))-1)
			bump(f.at(id)[12:], 5)
			bump(last[12:], 5*pageSize)
		}},
		{"a later key in a large leaf", large, func(f forgery) {
			e := f.element(f.leaf(f.top), 1)
			e[le.Uint32(e[4:])] = 0xFF
		}},
		{"no bucket", inline, func(f forgery) { le.PutUint16(f.at(f.bucket)[10:], 0) }},
		{"two buckets", inline, func(f forgery) { le.PutUint16(f.at(f.bucket)[10:], 2) }},
		{"a bucket of another name", inline, func(f forgery) { f.at(f.bucket)[32] = 'P' }},
		{"a value in place of the bucket", inline, func(f forgery) { le.PutUint32(f.element(f.bucket, 0), 0) }},
		{"a bucket with a sequence", inline, func(f forgery) { f.at(f.bucket)[16+16+5+8] = 1 }},
		{"a bucket header that is too short", inline, func(f forgery) { le.PutUint32(f.element(f.bucket, 0)[12:], 15) }},
		{"a bucket header beyond the page", inline, func(f forgery) { le.PutUint32(f.element(f.bucket, 0)[12:], 5000) }},
		{"an inline bucket that is too short", inline, func(f forgery) { le.PutUint32(f.element(f.bucket, 0)[12:], 17) }},
		{"an inline bucket at a page", inline, func(f forgery) { le.PutUint64(f.at(f.bucket)[16+16+5:], 2) }},
		{"an inline branch", inline, func(f forgery) { f.at(f.bucket)[16+16+5+16+8] = 1 }},
		{"an inline leaf of many entries", inline, func(f forgery) { le.PutUint16(f.at(f.bucket)[16+16+5+16+10:], 200) }},
		{"an inline value beyond the bucket", inline, func(f forgery) {
			bump(f.at(f.bucket)[16+16+5+16+16+4*16+12:], 1)
		}},
		{"inline keys that do not ascend", inline, func(f forgery) {
			f.at(f.bucket)[16+16+5+16+16+5*16+7] = 9
		}},
		{"a bucket at a page beyond the file", small, func(f forgery) { le.PutUint64(f.at(f.bucket)[16+16+5:], 1<<52) }},
		{"a bucket at its own leaf", small, func(f forgery) { le.PutUint64(f.at(f.bucket)[16+16+5:], f.bucket) }},
	}
	for _, tt := range tests {
		f := forge(tt.data)
		tt.forge(f)
		if bytes.Equal(f.body, body(tt.data)) {
			t.Errorf("%s: nothing was changed", tt.name)
		}
		checkHostile(t, tt.name, sealed(f.body, pagesOf(tt.data)))
	}
}

func TestHostileFile_ChangedMetaPages(t *testing.T) {
	data := create(t, pagefile.OpenRoot(t), numbered(12, 900))
	both := func(at int, b byte) func([]byte) {
		return func(body []byte) { body[at], body[pageSize+at] = b, b }
	}
	tests := []struct {
		name  string
		forge func(body []byte)
	}{
		{"the first is another page", func(body []byte) { body[0] = 1 }},
		{"the second is not a meta page", func(body []byte) { body[pageSize+8] = 2 }},
		{"a count", func(body []byte) { body[10] = 1 }},
		{"another magic", both(16, 0)},
		{"another version", both(20, 3)},
		{"pages of 512 bytes", both(25, 2)},
		{"flags", both(28, 1)},
		{"a root beyond the file", both(16+16+6, 1)},
		{"a root at a meta page", both(16+16, 1)},
		{"a root at no leaf", both(16+16, 2)},
		{"a sequence", both(16+24, 1)},
		{"a free list", both(16+32, 2)},
		{"more pages than the file", both(16+41, 1)},
		{"two trees", func(body []byte) { body[pageSize+16+16]-- }},
		{"a transaction in the wrong place", both(16+48, 7)},
	}
	for _, tt := range tests {
		b := bytes.Clone(body(data))
		tt.forge(b)
		resealMetas(b)
		checkHostile(t, tt.name, sealed(b, pagesOf(data)))
	}
	b := bytes.Clone(body(data))
	b[16+56]++
	checkHostile(t, "another checksum", sealed(b, pagesOf(data)))
}

// grow appends a branch with one child, and returns the page of the branch. below: the page of the
// child, first: the child's first key.
func (f *forgery) grow(below uint64, first pagefile.Key) uint64 {
	id := uint64(len(f.body) / pageSize)
	branch := make([]byte, pageSize)
	le.PutUint64(branch, id)
	le.PutUint16(branch[8:], 1)
	le.PutUint16(branch[10:], 1)
	le.PutUint32(branch[16:], 16)
	le.PutUint32(branch[20:], 8)
	le.PutUint64(branch[24:], below)
	binary.BigEndian.PutUint32(branch[32:], first.Column)
	binary.BigEndian.PutUint32(branch[36:], first.Page)
	f.body = append(f.body, branch...)
	for i := range 2 {
		le.PutUint64(f.body[i*pageSize+16+40:], id+1)
	}
	resealMetas(f.body)
	return id
}

// TestHostileFile_LeavesAtTwoDepths inserts a branch above one leaf. So this leaf is deeper than
// the others.
func TestHostileFile_LeavesAtTwoDepths(t *testing.T) {
	f := forge(create(t, pagefile.OpenRoot(t), numbered(400, 20)))
	lower := f.grow(f.child(f.top, 0), pagefile.Key{Column: 1})
	le.PutUint64(f.element(f.top, 0)[8:], lower)
	checkHostile(t, "a lopsided tree", sealed(f.body, 400))
}

// TestHostileFile_DeepTree builds a chain of branches that never repeats a page.
func TestHostileFile_DeepTree(t *testing.T) {
	f := forge(create(t, pagefile.OpenRoot(t), numbered(30_000, 20)))
	below := f.top
	for range 40 {
		below = f.grow(below, pagefile.Key{Column: 1})
	}
	le.PutUint64(f.at(f.bucket)[16+16+5:], below)
	data := sealed(f.body, 30_000)
	checkHostile(t, "a deep tree", data)

	root := pagefile.OpenRoot(t)
	writeFile(t, root, "f", data)
	file, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, _, err := file.Get(pagefile.Key{Column: 1}); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Get in a deep tree = %v, want %v", err, disk.ErrCorrupt)
	}
}
