package digest

import (
	"encoding/binary"
	"testing"

	"github.com/zeebo/xxh3"
)

// sum returns the xxh3 sum of the concatenated parts.
func sum(parts ...any) uint64 {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		case string:
			b = append(b, p...)
		}
	}
	return xxh3.Hash(b)
}

// This test computes the digest as docs/FORMAT.md defines it, for a world of two entities with one
// component.
func TestDigest_FollowsFormatDoc(t *testing.T) {
	var h Hasher
	entities := []uint64{1 << 32, 1<<32 | 1}
	registry := Registry(&h, entities, 1, 2)
	if want := sum(sum(uint64(2), sum(entities[0], entities[1])), uint64(1), uint64(2)); registry != want {
		t.Errorf("Registry = %016x, want %016x", registry, want)
	}
	rows := h.Rows(2, func(lo, hi int) {
		h.Page = AppendEntities(h.Page, entities[lo:hi])
		h.Page = append(h.Page, "ab"...)
	})
	if want := sum(uint64(2), sum(entities[0], entities[1], "ab")); rows != want {
		t.Errorf("Rows = %016x, want %016x", rows, want)
	}
	world := World(7, registry, []Part{{"B", 2}, {"A", 1}})
	if want := sum(uint64(7), registry, uint64(1), "A", uint64(1), uint64(1), "B", uint64(2)); world != want {
		t.Errorf("World = %016x, want %016x", world, want)
	}
}

func TestHasherRows_SplitsIntoPages(t *testing.T) {
	var h Hasher
	var pages [][2]int
	n := 2*PageRows + 1
	h.Rows(n, func(lo, hi int) { pages = append(pages, [2]int{lo, hi}) })
	want := [][2]int{{0, PageRows}, {PageRows, 2 * PageRows}, {2 * PageRows, n}}
	if len(pages) != 3 || pages[0] != want[0] || pages[1] != want[1] || pages[2] != want[2] {
		t.Errorf("pages = %v, want %v", pages, want)
	}
}

func TestAppendEntities_KeepsDst(t *testing.T) {
	if got := string(AppendEntities([]byte("x"), []uint64{0x4142434445464748})); got != "xHGFEDCBA" {
		t.Errorf("AppendEntities = %q, want xHGFEDCBA", got)
	}
}
