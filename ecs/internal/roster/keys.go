package roster

import (
	"reflect"
	"unsafe"
)

// Keys are a map from keys to numbers. Keys of up to 8 bytes that are equal if their
// bytes are (integers, and structs and arrays of them) lie in a map of words: the runtime
// looks those up in half the time that it takes for a type that generic code brings along.
//
// [NewKeys] makes one.
type Keys[K comparable] struct {
	words map[uint64]uint32
	other map[K]uint32 // nil if all are in words.
}

// NewKeys returns an empty map.
func NewKeys[K comparable]() Keys[K] {
	if t := reflect.TypeFor[K](); t.Size() <= 8 && isWord(t) {
		return Keys[K]{words: make(map[uint64]uint32)}
	}
	return Keys[K]{other: make(map[K]uint32)}
}

// isWord reports whether two values of t are equal if, and only if, their bytes are.
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

// word returns the bytes of key, of which there are 8 at most.
func word[K comparable](key K) (w uint64) {
	*(*K)(unsafe.Pointer(&w)) = key
	return w
}

// Get returns the number of key, and whether it has one.
func (m *Keys[K]) Get(key K) (uint32, bool) {
	if m.other == nil {
		i, ok := m.words[word(key)]
		return i, ok
	}
	i, ok := m.other[key]
	return i, ok
}

// Set gives key the number i.
func (m *Keys[K]) Set(key K, i uint32) {
	if m.other == nil {
		m.words[word(key)] = i
		return
	}
	m.other[key] = i
}

// Delete takes key away.
func (m *Keys[K]) Delete(key K) {
	if m.other == nil {
		delete(m.words, word(key))
		return
	}
	delete(m.other, key)
}

// Clear makes m empty.
func (m *Keys[K]) Clear() {
	clear(m.words)
	clear(m.other)
}

// Len returns how many keys there are.
func (m *Keys[K]) Len() int { return len(m.words) + len(m.other) }

// Numbers calls f with the numbers of all keys, in any order.
func (m *Keys[K]) Numbers(f func(uint32)) {
	for _, i := range m.words {
		f(i)
	}
	for _, i := range m.other {
		f(i)
	}
}

// Bytes returns about how much memory m takes, but for what keys lead to.
func (m *Keys[K]) Bytes() int64 {
	return 2 * (int64(len(m.words))*12 + int64(len(m.other))*int64(unsafe.Sizeof(*new(K))+4))
}
