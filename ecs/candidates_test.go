package ecs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// wide returns a world with n empty storages. Their components have the same Go type.
func wide(tb testing.TB, n int) *World {
	tb.Helper()
	w := NewWorld(Options{})
	for i := range n {
		MustRegister(w, Component[int32]{Name: fmt.Sprint("c", i)})
	}
	return w
}

// An entity can be in a storage only if the sparse array of the storage has a page for the entity's
// index. So Destroy searches only these storages.
func TestDestroy_SkipsStoragesWithoutPage(t *testing.T) {
	w := wide(t, 300)
	for range pageMask + 1 { // Create as many entities as one page of indices has.
		w.Create()
	}
	e := w.Create()
	assert.Empty(t, w.candidatesFor(e))
	w.storages[7].(*Storage[int32]).Set(e, 1)
	w.storages[3].(*Storage[int32]).Set(w.entities.of(0), 1)
	if h := w.candidatesFor(e); assert.Len(t, h, 1) {
		assert.Equal(t, "c7", h[0].storage.(AnyStorage).Name())
	}
	w.storages[2].(*Storage[int32]).Set(e, 1)
	w.Destroy(e)
	for _, k := range []int{2, 7} {
		assert.Zero(t, w.storages[k].Len())
	}
	assert.Equal(t, 1, w.storages[3].Len())
}

// BenchmarkDestroyBare creates and destroys an entity without components. The name of each case is
// the number of registered types.
func BenchmarkDestroyBare(b *testing.B) {
	for _, n := range []int{8, 8000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := wide(b, n)
			for b.Loop() {
				w.Destroy(w.Create())
			}
		})
	}
}

// When a sparse array gets a new page, Destroy must search its storage from then on. This must hold
// for every kind of storage, because each kind allocates pages in its own way.
func TestDestroy_FindsStorageWithFirstPage(t *testing.T) {
	for kind := range Ordered + 1 {
		if kind == Tag {
			continue
		}
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			w := NewWorld(Options{})
			s := MustRegister(w, Component[int32]{Name: "c", Kind: kind})
			// Destroy entities in three pages of indices, before the storage has these pages.
			for range 3 {
				w.Destroy(w.Create())
				e := w.Create()
				s.Set(e, 1)
				w.Destroy(e)
				assert.Zero(t, s.Len())
				assert.NoError(t, w.check())
				for range pageMask + 1 {
					w.Create()
				}
			}
		})
	}
}
