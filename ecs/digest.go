package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A Digest is a 64-bit sum (xxh3) over a world or a part of it. Equal worlds
// have equal digests.
type Digest uint64

// String returns d as 16 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// Digests are the digest of a world and of its parts, so that two worlds that
// differ can be told where.
type Digests struct {
	World    Digest
	Registry Digest // Alive, free and retired entities, in order.
	Storages []StorageDigest
}

// A StorageDigest is the digest of a storage or resource. An empty storage has
// none.
type StorageDigest struct {
	Name   string
	Digest Digest
}

// Digest returns the digest of all that a restore puts back: the registry with
// generations and the order of reuse, entities and values of every storage in
// dense order, resources, and the tick. What cannot be encoded is left out.
//
// It costs O(rows).
func (w *World) Digest() Digest { return w.Digests(nil).World }

// Digests returns the digest of w and of each storage and resource for which
// keep returns true; nil keeps all.
func (w *World) Digests(keep func(raw.Storage) bool) Digests {
	var h digest.Hasher
	var parts []digest.Part
	for _, s := range w.Raw().Storages() {
		if digested(s) && (keep == nil || keep(s)) {
			parts = append(parts, digest.Part{Name: s.Name(), Sum: storageSum(&h, s)})
		}
	}
	registry := w.entities.sum(&h)
	d := Digests{World: Digest(digest.World(w.tick, registry, parts)), Registry: Digest(registry)}
	for _, p := range parts {
		d.Storages = append(d.Storages, StorageDigest{p.Name, Digest(p.Sum)})
	}
	return d
}

// digested reports whether s is in the digest of its world.
func digested(s raw.Storage) bool { return s.Rows() > 0 && s.Rewinds() && s.Layout() != nil }

func storageSum(h *digest.Hasher, s raw.Storage) uint64 {
	entities := s.Entities()
	return h.Rows(s.Rows(), func(lo, hi int) {
		if entities != nil {
			h.Page = digest.AppendEntities(h.Page, entities[lo:hi])
		}
		h.Page = s.AppendRows(h.Page, lo, hi)
	})
}

func (r *registry) sum(h *digest.Hasher) uint64 {
	return digest.Registry(h, r.dense.Live[:r.rows.Total], r.rows.N, r.rows.Extra)
}
