package layout

import (
	"fmt"
	"reflect"
)

// DeepCopy returns a function that copies a value of type T with all slices, maps and pointers in
// it. It returns nil if plain copies of T share no mutable memory.
//
//   - Slices of a value that share memory get separate copies.
//   - Nil stays nil, and empty stays empty.
//   - Strings and time.Time values are immutable and stay shared.
//
// The error is a [*TypeError] that names the first field that cannot be copied. Such a field is an
// interface, func or channel, or a pointer in the key of a map. Recursive types are errors too,
// because their values could be cyclic.
func DeepCopy[T any]() (copied func(T) T, err error) {
	t := reflect.TypeFor[T]()
	c := copiers{root: t, open: map[reflect.Type]bool{}, done: map[reflect.Type]separator{}}
	separate, fault := c.of(t, rootPath(t))
	if fault != nil {
		return nil, fault
	}
	if separate == nil {
		return nil, nil
	}
	return func(v T) T {
		separate(ptr(&v))
		return v
	}, nil
}

// A separator gives a shallow copy memory of its own. The shallow copy is at p. The separator
// copies its slices, maps and pointer targets, which it shares with the original. For a type that
// shares no memory, the separator is nil.
type separator func(p ptr)

// copiers creates the separators of one Go type and the types inside it.
type copiers struct {
	root reflect.Type
	// The type that is visited now, and the types that contain it.
	open map[reflect.Type]bool
	done map[reflect.Type]separator
}

// of returns the separator of type t. path leads from the root type to t.
func (c *copiers) of(t reflect.Type, path string) (separator, *TypeError) {
	if t.Size() == 0 || neverChanges[t] {
		return nil, nil
	}
	if c.open[t] {
		return nil, &TypeError{Type: c.root, Path: path, Reason: "a type that contains itself can hold values that go round in circles"}
	}
	if separate, done := c.done[t]; done {
		return separate, nil
	}
	c.open[t] = true
	separate, err := c.ofKind(t, path)
	delete(c.open, t)
	c.done[t] = separate
	return separate, err
}

// ofKind returns the separator of a type that was not visited yet.
func (c *copiers) ofKind(t reflect.Type, path string) (separator, *TypeError) {
	fault := func(reason string) *TypeError { return &TypeError{Type: c.root, Path: path, Reason: reason} }
	switch t.Kind() {
	case reflect.Struct:
		return c.ofStruct(t, path)
	case reflect.Array:
		elem, err := c.of(t.Elem(), path+"[]")
		return repeatedly(elem, t.Len(), t.Elem().Size()), err
	case reflect.Slice:
		elem, err := c.of(t.Elem(), path+"[]")
		return separateSlice(t, elem), err
	case reflect.Pointer:
		elem, err := c.of(t.Elem(), path)
		return separatePointer(t, elem), err
	case reflect.Map:
		key, err := c.of(t.Key(), path+"[key]")
		if err == nil && key != nil {
			return nil, fault("a copy of a pointer in the key of a map is another key")
		}
		if err != nil {
			return nil, err
		}
		elem, err := c.of(t.Elem(), path+"[value]")
		return separateMap(t, elem), err
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return nil, fault(fmt.Sprintf("the content of %s cannot be copied", withArticle[t.Kind()]))
	}
	return nil, nil
}

var withArticle = map[reflect.Kind]string{
	reflect.Interface: "an interface", reflect.Func: "a func", reflect.Chan: "a chan", reflect.UnsafePointer: "an unsafe.Pointer",
}

func (c *copiers) ofStruct(t reflect.Type, path string) (separator, *TypeError) {
	type field struct {
		offset   int
		separate separator
	}
	var fields []field
	for f := range t.Fields() {
		separate, err := c.of(f.Type, path+"."+f.Name)
		if err != nil {
			return nil, err
		}
		if separate != nil {
			fields = append(fields, field{int(f.Offset), separate})
		}
	}
	if fields == nil {
		return nil, nil
	}
	return func(p ptr) {
		for _, f := range fields {
			f.separate(at(p, f.offset))
		}
	}, nil
}

// repeatedly returns a separator that calls elem for n consecutive values.
func repeatedly(elem separator, n int, size uintptr) separator {
	if elem == nil {
		return nil
	}
	return func(p ptr) {
		for i := range n {
			elem(at(p, i*int(size)))
		}
	}
}

func separateSlice(t reflect.Type, elem separator) separator {
	size := t.Elem().Size()
	return func(p ptr) {
		v := valueAt(t, p)
		if v.IsNil() {
			return
		}
		n := v.Len()
		own := reflect.MakeSlice(t, n, n)
		reflect.Copy(own, v)
		v.Set(own)
		if elem != nil {
			repeatedly(elem, n, size)(own.UnsafePointer())
		}
	}
}

func separatePointer(t reflect.Type, elem separator) separator {
	return func(p ptr) {
		v := valueAt(t, p)
		if v.IsNil() {
			return
		}
		own := reflect.New(t.Elem())
		own.Elem().Set(v.Elem())
		// reflect.New returns an unnamed pointer type, but t may be a named one.
		v.Set(own.Convert(t))
		if elem != nil {
			elem(own.UnsafePointer())
		}
	}
}

func separateMap(t reflect.Type, elem separator) separator {
	return func(p ptr) {
		v := valueAt(t, p)
		if v.IsNil() {
			return
		}
		own := reflect.MakeMapWithSize(t, v.Len())
		for entries := v.MapRange(); entries.Next(); {
			value := entries.Value()
			if elem != nil {
				copied := reflect.New(t.Elem())
				copied.Elem().Set(value)
				elem(copied.UnsafePointer())
				value = copied.Elem()
			}
			own.SetMapIndex(entries.Key(), value)
		}
		v.Set(own)
	}
}
