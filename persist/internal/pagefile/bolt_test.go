package pagefile_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// writtenByBolt reports whether bbolt wrote the file. The default writer always gives the two metas
// the transactions 0 and 1. bbolt begins with them too, and then counts up with each transaction.
func writtenByBolt(data []byte) bool {
	return binary.LittleEndian.Uint64(data[16+48:]) > 1 || binary.LittleEndian.Uint64(data[pageSize+16+48:]) > 1
}

// TestBolt_SameContentAsDefaultWriter writes random pages with both writers. It compares the
// results of every reader.
func TestBolt_SameContentAsDefaultWriter(t *testing.T) {
	root := pagefile.OpenRoot(t)
	rapid.Check(t, func(t *rapid.T) {
		pages := randomPages(t)
		var sizes [2]int64
		for i, opts := range writers {
			info, err := pagefile.CreateWith(disk.Dir(root), "f", opts, put(pages))
			if err != nil {
				t.Fatalf("CreateWith(%+v): %v", opts, err)
			}
			if sizes[i] = info.Size; info.Pages != uint64(len(pages)) {
				t.Fatalf("CreateWith(%+v) = %+v for %d pages", opts, info, len(pages))
			}
			if data := readFile(t, root, "f"); writtenByBolt(data) != opts.Bolt {
				t.Fatalf("CreateWith(%+v) used the other writer", opts)
			}
			checkContent(t, root, pages)
			checkBolt(t, root, pages)
		}
		// The file of bbolt is larger. It also has nodes that were replaced, and the first pages of
		// the empty database.
		if limit := sizes[0] + sizes[0]/20 + 16*pageSize; sizes[1] > limit {
			t.Fatalf("bbolt's file of %d pages has %d bytes, the other one %d", len(pages), sizes[1], sizes[0])
		}
	})
}

// randomPages returns random pages with ascending keys. Their values are small, near the sizes at
// which nodes change, or large enough for several transactions.
func randomPages(t *rapid.T) []page {
	size := rapid.OneOf(
		rapid.IntRange(0, 40), rapid.IntRange(900, 1100), rapid.IntRange(1900, 4200), rapid.IntRange(0, 100_000),
	)
	sizes := rapid.SliceOfN(size, 0, 200).Draw(t, "sizes")
	pages := numbered(len(sizes), 100_000)
	key := uint64(0)
	for i, size := range sizes {
		key += rapid.Uint64Range(1, 1<<33).Draw(t, "step")
		pages[i].key = pagefile.Key{Column: uint32(key >> 32), Page: uint32(key)}
		pages[i].value = pages[i].value[:size]
	}
	return pages
}

func TestBolt_ManySmallPages(t *testing.T) {
	root := pagefile.OpenRoot(t)
	pages := numbered(50_000, 20)
	ours := len(create(t, root, pages))
	theirs := len(createWith(t, root, pagefile.Options{Bolt: true}, pages))
	checkContent(t, root, pages)
	if theirs > ours+ours/20 {
		t.Errorf("bbolt's file has %d bytes, the other one %d", theirs, ours)
	}
}

// A file in memory cannot be mapped, so the option has no effect there.
func TestCreate_BoltIgnoredForMemoryFile(t *testing.T) {
	m := disktest.New()
	pages := numbered(40, 5000)
	if _, err := pagefile.CreateWith(m, "f", pagefile.Options{Bolt: true}, put(pages)); err != nil {
		t.Fatal(err)
	}
	if want := create(t, pagefile.OpenRoot(t), pages); !bytes.Equal(m.Bytes("f"), want) {
		t.Error("the file in memory has other bytes than one on disk without the option")
	}
}

func TestBolt_FileInSubdirectory(t *testing.T) {
	root := pagefile.OpenRoot(t)
	if err := root.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	pages := numbered(40, 5000)
	if _, err := pagefile.CreateWith(disk.Sub(disk.Dir(root), "sub"), "f", pagefile.Options{Bolt: true}, put(pages)); err != nil {
		t.Fatal(err)
	}
	if data := readFile(t, root, "sub/f"); !writtenByBolt(data) {
		t.Error("bbolt did not write the file")
	}
	checkNames(t, root, "sub")
}
