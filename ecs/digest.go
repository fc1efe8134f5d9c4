package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// A Digest is a 64-bit hash (xxh3) of a world, or of its registry, a storage or a resource. Equal
// worlds have equal digests.
type Digest uint64

// String returns d as 16 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// Digests are the digests of a world and of its registry, storages and resources. They show where
// two worlds differ.
type Digests struct {
	World    Digest
	Registry Digest // Alive, free and retired entities, in order.
	Storages []StorageDigest
}

// A StorageDigest is the digest of a storage or resource that is not empty.
type StorageDigest struct {
	Name   string
	Digest Digest
}

// Digest returns the digest of all state that a restore restores: the registry, storages, resources
// and the tick. The orders of rows and of free indices count too. Values that cannot be encoded are
// left out.
//
// The cost is O(rows).
func (w *World) Digest() Digest { return w.Digests(nil).World }

// Digests returns the digest of w, and of each storage and resource for which keep returns true. If
// keep is nil, it returns the digests of all.
func (w *World) Digests(keep func(raw.Storage) bool) Digests {
	if debug {
		w.mustBeAlone("Digest")
	}
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

// digested reports whether the digest of the world includes s.
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
