package roster

import (
	"hash/maphash"
	"math/bits"
	"reflect"
	"unsafe"
)

// A hasher makes numbers of keys. They differ from run to run, so nobody can choose keys
// that all have one.
type hasher[K comparable] struct {
	seed  maphash.Seed
	word  uint64 // A seed too.
	words bool   // Keys are words: see isWord.
}

func newHasher[K comparable]() hasher[K] {
	t, seed := reflect.TypeFor[K](), maphash.MakeSeed()
	return hasher[K]{seed, maphash.Comparable(seed, 0), t.Size() <= 8 && isWord(t)}
}

// of returns the hash of key, whose lowest bits are as good as any.
func (h *hasher[K]) of(key K) uint32 {
	if h.words { // A multiplication takes a third of the time.
		hi, lo := bits.Mul64(word(key)^h.word, 0x9e3779b97f4a7c15)
		return uint32(hi ^ lo)
	}
	return uint32(maphash.Comparable(h.seed, key))
}

// word returns the bytes of key, of which there are 8 at most.
//
// A struct of two fields of 4 bytes that was just written is read field by field: to read
// all 8 at once, a processor waits until both are in its cache.
func word[K comparable](key K) (w uint64) {
	if unsafe.Sizeof(key) == 8 {
		halves := (*[2]uint32)(unsafe.Pointer(&key))
		return uint64(halves[0]) | uint64(halves[1])<<32
	}
	*(*K)(unsafe.Pointer(&w)) = key
	return w
}

// isWord reports whether two values of t are equal if, and only if, their bytes are: those
// of integers, and of structs and arrays of them.
func isWord(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	case reflect.Array:
		return isWord(t.Elem())
	case reflect.Struct:
		end := uintptr(0)
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" || f.Offset != end || !isWord(f.Type) { // A gap between fields says nothing.
				return false
			}
			end += f.Type.Size()
		}
		return end == t.Size()
	}
	return false
}
