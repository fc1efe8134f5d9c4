package ecs

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
)

// holdsEntity reports whether t describes values that can contain entities.
func holdsEntity(t *layout.Type) bool {
	if t == nil {
		return false
	}
	for _, f := range t.Fields {
		if holdsEntity(f.Type) {
			return true
		}
	}
	return t.Kind == layout.Entity || holdsEntity(t.Elem) || holdsEntity(t.Key)
}

// references has the places at which values of a type contain entities. It is computed once for
// each type.
type references struct {
	places []place
	unseen string // The reason why other places may have entities too, or "".
}

// A place is a part of a value: an entity, or a container with entities, such as a slice or map.
type place struct {
	offset uintptr
	kind   reflect.Kind // Array, Slice, Map or Pointer, or 0 for an entity.
	typ    reflect.Type // Type of the container, or nil for an entity.
	elem   *references
	key    *references // Places in the keys of a map.

	number int    // Number of the entity's place in the whole type, from 1.
	path   string // Path to the entity, as in Reference.Field.
}

var entityType = reflect.TypeFor[Entity]()

func referencesOf(t reflect.Type) *references {
	f := finder{root: t.String(), open: map[reflect.Type]bool{}, again: map[reflect.Type]bool{}}
	return &references{places: f.find(nil, t, 0, t.String()), unseen: f.unseen}
}

// A finder finds the places of entities in a type.
type finder struct {
	root   string
	found  int                   // The number of entities found.
	open   map[reflect.Type]bool // Types that contain the type being inspected.
	again  map[reflect.Type]bool // Recursive types.
	unseen string
}

// find appends the places of entities in the type t, which is a part of the root type at offset and
// path.
func (f *finder) find(places []place, t reflect.Type, offset uintptr, path string) []place {
	switch t.Kind() {
	case reflect.Uint64:
		if t == entityType {
			f.found++
			return append(places, place{offset: offset, number: f.found, path: strings.TrimPrefix(strings.TrimPrefix(path, f.root), ".")})
		}
	case reflect.Struct:
		for field := range t.Fields() {
			places = f.find(places, field.Type, offset+field.Offset, path+"."+field.Name)
		}
	case reflect.Array, reflect.Slice, reflect.Pointer, reflect.Map:
		return f.inside(places, t, offset, path)
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		f.unseen = fmt.Sprintf("%s is of kind %v, and entities behind it are not seen", path, t.Kind())
	}
	return places
}

// inside does the same as find(), for arrays, slices, pointers and maps.
func (f *finder) inside(places []place, t reflect.Type, offset uintptr, path string) []place {
	if f.open[t] {
		f.again[t] = true
		return places
	}
	f.open[t] = true
	defer delete(f.open, t)
	p := place{offset: offset, kind: t.Kind(), typ: t, key: &references{}}
	elem := path
	switch t.Kind() {
	case reflect.Map:
		p.key.places = f.find(nil, t.Key(), 0, path+"[key]")
		elem += "[value]"
	case reflect.Array, reflect.Slice:
		elem += "[]"
	}
	p.elem = &references{places: f.find(nil, t.Elem(), 0, elem)}
	if len(p.elem.places)+len(p.key.places) == 0 {
		return places
	}
	if f.again[t] {
		f.unseen = path + " is of a recursive type, which is not followed"
	}
	return append(places, p)
}

// at returns the container that the place p describes. The parameter base is the address of the
// whole value.
func (p *place) at(base unsafe.Pointer) reflect.Value {
	return reflect.NewAt(p.typ, unsafe.Add(base, p.offset)).Elem()
}

// hold reports whether the value at the address base contains e.
func (r *references) hold(base unsafe.Pointer, e Entity) bool {
	for i := range r.places {
		if p := &r.places[i]; p.kind == 0 { // A fast path for entities outside of containers.
			if *(*Entity)(unsafe.Add(base, p.offset)) == e {
				return true
			}
		} else if p.find(p.at(base), func(_ *place, held Entity) bool { return held == e }) {
			return true
		}
	}
	return false
}

// find passes each entity in the value at the address base to the callback, even zero entities.
// When the callback returns true, find stops and returns true. The order of map entries is
// undefined.
func (r *references) find(base unsafe.Pointer, is func(*place, Entity) bool) bool {
	for i := range r.places {
		if p := &r.places[i]; p.kind == 0 {
			if is(p, *(*Entity)(unsafe.Add(base, p.offset))) {
				return true
			}
		} else if p.find(p.at(base), is) {
			return true
		}
	}
	return false
}

func (p *place) find(v reflect.Value, is func(*place, Entity) bool) bool {
	switch p.kind {
	case reflect.Pointer:
		return !v.IsNil() && p.elem.find(v.UnsafePointer(), is)
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if p.key.find(addressable(i.Key()), is) || p.elem.find(addressable(i.Value()), is) {
				return true
			}
		}
		return false
	}
	for i := range v.Len() {
		if p.elem.find(v.Index(i).Addr().UnsafePointer(), is) {
			return true
		}
	}
	return false
}

// addressable returns a pointer to a copy of v.
func addressable(v reflect.Value) unsafe.Pointer {
	c := reflect.New(v.Type())
	c.Elem().Set(v)
	return c.UnsafePointer()
}

// A renaming replaces entities inside values.
type renaming struct {
	name func(*place, Entity) Entity // Returns the replacement for an entity that is not zero.

	cleared  bool // An entity was replaced by zero.
	collided bool // Replacements made two keys of a map equal.
}

// rename replaces the entities in the value at the address base. It first copies slices, maps and
// pointed-to values, which other values may share.
func (r *references) rename(base unsafe.Pointer, n *renaming) {
	for i := range r.places {
		p := &r.places[i]
		if p.kind != 0 {
			p.rename(p.at(base), n)
			continue
		}
		if e := (*Entity)(unsafe.Add(base, p.offset)); *e != 0 {
			*e = n.name(p, *e)
			n.cleared = n.cleared || *e == 0
		}
	}
}

func (p *place) rename(v reflect.Value, n *renaming) {
	if p.kind != reflect.Array && v.IsNil() {
		return
	}
	switch p.kind {
	case reflect.Map:
		p.renameMap(v, n)
		return
	case reflect.Pointer:
		c := reflect.New(p.typ.Elem())
		c.Elem().Set(v.Elem())
		v.Set(c.Convert(p.typ))
		p.elem.rename(v.UnsafePointer(), n)
		return
	case reflect.Slice:
		c := reflect.MakeSlice(p.typ, v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	for i := range v.Len() {
		p.elem.rename(v.Index(i).Addr().UnsafePointer(), n)
	}
}

// renameMap replaces the entities in the keys and values of a map. It removes an entry if an entity
// in its key became zero.
func (p *place) renameMap(v reflect.Value, n *renaming) {
	m := reflect.MakeMapWithSize(p.typ, v.Len())
	kept, cleared := 0, n.cleared
	// The order of the loop has no effect, because equal keys are an error.
	for i := v.MapRange(); i.Next(); {
		key, value := addressable(i.Key()), addressable(i.Value())
		n.cleared = false
		p.key.rename(key, n)
		if n.cleared {
			cleared = true
			continue
		}
		p.elem.rename(value, n)
		cleared = cleared || n.cleared
		m.SetMapIndex(reflect.NewAt(p.typ.Key(), key).Elem(), reflect.NewAt(p.typ.Elem(), value).Elem())
		kept++
	}
	n.cleared = cleared
	n.collided = n.collided || m.Len() < kept
	v.Set(m)
}
