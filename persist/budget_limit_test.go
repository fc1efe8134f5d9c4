package persist_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
)

// This file is the limit in the budgets of snapshots, saves and loads. Hand-written code writes a
// world of one component to a file and reads it back. The code knows the types, so the file
// describes nothing and no other program can read it. The file shares nothing with other files.
// Damage is detected but not located.

// limitPage is how many bytes each checksum covers.
const limitPage = 64 << 10

// A limitFile has the entities and the values of the rows of a world, in row order, and then the
// checksums of all pages. load rebuilds the sparse array from the entities. For load, saveNamed
// first writes the entity at each index of the world. So a loaded world also has the entities
// without components, and a new entity gets an unused ID.
type limitFile struct {
	name string
	buf  []byte // Reused buffer for the copy.
}

// bytesOf returns the memory of rows.
func bytesOf[T any](rows []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rows))), len(rows)*int(unsafe.Sizeof(rows[0])))
}

// save writes the rows of s.
func (l *limitFile) save(b *testing.B, s *ecs.Storage[point]) {
	l.publish(b, bytesOf(s.Entities()), bytesOf(s.Values()))
}

// saveNamed writes the entity at each index of w and the rows of s. All entities of w are alive.
func (l *limitFile) saveNamed(b *testing.B, w *ecs.World, s *ecs.Storage[point]) {
	names := make([]ecs.Entity, w.Len())
	for _, e := range w.Entities() {
		names[e.Index()] = e
	}
	l.publish(b, bytesOf(names), bytesOf(s.Entities()), bytesOf(s.Values()))
}

// snapshot copies the rows of s, so that its world can continue, and writes the copy.
func (l *limitFile) snapshot(b *testing.B, s *ecs.Storage[point]) {
	l.buf = append(append(l.buf[:0], bytesOf(s.Entities())...), bytesOf(s.Values())...)
	l.publish(b, l.buf)
}

// publish writes the parts and their sums to a file. The file is complete and durable before it
// gets its name.
func (l *limitFile) publish(b *testing.B, parts ...[]byte) {
	unnamed := l.name + ".part"
	f, err := os.Create(unnamed)
	if err != nil {
		b.Fatal(err)
	}
	var sums []byte
	for _, part := range parts {
		for len(part) > 0 {
			page := part[:min(limitPage, len(part))]
			sums = binary.LittleEndian.AppendUint64(sums, xxh3.Hash(page))
			part = part[len(page):]
		}
	}
	for _, part := range append(parts, sums) {
		if _, err = f.Write(part); err != nil {
			b.Fatal(err)
		}
	}
	dir, openErr := os.Open(filepath.Dir(l.name))
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(unnamed, l.name), openErr, dir.Sync(), dir.Close()); err != nil {
		b.Fatal(err)
	}
}

// A limitWorld is the result of loading: a sparse set, and the entity at each index. That is 36
// bytes a row. A World has 40 and some bits, because it keeps the living entities together.
type limitWorld struct {
	names    []ecs.Entity
	sparse   []uint32
	entities []ecs.Entity
	values   []point
}

// load reads a world of n entities with indices below n. It reads pages directly to their final
// place and sums them while they are in the cache.
func (l *limitFile) load(b *testing.B, n int) *limitWorld {
	w := &limitWorld{
		names:    make([]ecs.Entity, n),
		sparse:   make([]uint32, n),
		entities: make([]ecs.Entity, n),
		values:   make([]point, n),
	}
	f, err := os.Open(l.name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var sums []byte
	for _, part := range [][]byte{bytesOf(w.names), bytesOf(w.entities), bytesOf(w.values)} {
		for len(part) > 0 {
			page := part[:min(limitPage, len(part))]
			if _, err := io.ReadFull(f, page); err != nil {
				b.Fatal(err)
			}
			sums = binary.LittleEndian.AppendUint64(sums, xxh3.Hash(page))
			part = part[len(page):]
		}
	}
	if stored, err := io.ReadAll(f); err != nil || !bytes.Equal(stored, sums) {
		b.Fatal("the sums differ", err)
	}
	for i, e := range w.names {
		if e.Index() != uint32(i) || e.Generation() == 0 {
			b.Fatal("the entity at an index is wrong")
		}
	}
	for row, e := range w.entities {
		if e.Index() >= uint32(n) || w.names[e.Index()] != e || w.sparse[e.Index()] != 0 {
			b.Fatal("an entity has an index out of range")
		}
		w.sparse[e.Index()] = uint32(row) + 1
	}
	return w
}
