package ecs

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/layout"
)

// holdsEntity reports whether t describes values that can hold entities.
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

// references are the places where values of a type hold entities. They are found
// once, by the type; values are then read and written in place.
type references struct {
	places []place
	unseen string // Why there may be entities that no place names, or "".
}

// A place is an entity inside a value, or something that holds entities itself.
type place struct {
	offset uintptr
	kind   reflect.Kind // Array, Slice, Map, Pointer; 0 for an entity.
	typ    reflect.Type // Unless it is an entity.
	elem   *references
	key    *references // Map: of its keys.
}

var entityType = reflect.TypeFor[Entity]()

func referencesOf(t reflect.Type) *references {
	f := finder{open: map[reflect.Type]bool{}, again: map[reflect.Type]bool{}}
	return &references{places: f.find(nil, t, 0, t.String()), unseen: f.unseen}
}

// A finder finds the places of a type.
type finder struct {
	open   map[reflect.Type]bool // Types being looked into,
	again  map[reflect.Type]bool // and those of them that were met inside themselves.
	unseen string
}

// find appends the places of t, which lies at offset.
func (f *finder) find(places []place, t reflect.Type, offset uintptr, path string) []place {
	switch t.Kind() {
	case reflect.Uint64:
		if t == entityType {
			return append(places, place{offset: offset})
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

// inside is find for what holds values of another type.
func (f *finder) inside(places []place, t reflect.Type, offset uintptr, path string) []place {
	if f.open[t] {
		f.again[t] = true
		return places
	}
	f.open[t] = true
	defer delete(f.open, t)
	p := place{offset: offset, kind: t.Kind(), typ: t, key: &references{}}
	p.elem = &references{places: f.find(nil, t.Elem(), 0, path+"[]")}
	if t.Kind() == reflect.Map {
		p.key.places = f.find(nil, t.Key(), 0, path+"[key]")
	}
	if len(p.elem.places)+len(p.key.places) == 0 {
		return places
	}
	if f.again[t] {
		f.unseen = path + " is of a recursive type, which is not followed"
	}
	return append(places, p)
}

// at returns the value of p, a place other than an entity, in the value at base.
func (p *place) at(base unsafe.Pointer) reflect.Value {
	return reflect.NewAt(p.typ, unsafe.Add(base, p.offset)).Elem()
}

// hold reports whether the value at base refers to e.
func (r *references) hold(base unsafe.Pointer, e Entity) bool {
	for i := range r.places {
		if p := &r.places[i]; p.kind == 0 {
			if *(*Entity)(unsafe.Add(base, p.offset)) == e {
				return true
			}
		} else if p.hold(p.at(base), e) {
			return true
		}
	}
	return false
}

func (p *place) hold(v reflect.Value, e Entity) bool {
	switch p.kind {
	case reflect.Pointer:
		return !v.IsNil() && p.elem.hold(v.UnsafePointer(), e)
	case reflect.Map:
		for i := v.MapRange(); i.Next(); { // In any order: the answer is yes or no.
			if p.key.hold(addressable(i.Key()), e) || p.elem.hold(addressable(i.Value()), e) {
				return true
			}
		}
		return false
	}
	for i := range v.Len() {
		if p.elem.hold(v.Index(i).Addr().UnsafePointer(), e) {
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
	name func(Entity) Entity // What an entity, which is not zero, becomes.

	cleared  bool // An entity became zero.
	collided bool // Two keys of a map became the same.
}

// rename replaces the entities in the value at base. Slices, maps and what
// pointers point to are replaced by copies: others may share them.
func (r *references) rename(base unsafe.Pointer, n *renaming) {
	for i := range r.places {
		p := &r.places[i]
		if p.kind != 0 {
			p.rename(p.at(base), n)
			continue
		}
		if e := (*Entity)(unsafe.Add(base, p.offset)); *e != 0 {
			*e = n.name(*e)
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

// renameMap leaves out entries whose key names an entity that became zero.
func (p *place) renameMap(v reflect.Value, n *renaming) {
	m := reflect.MakeMapWithSize(p.typ, v.Len())
	kept, cleared := 0, n.cleared
	for i := v.MapRange(); i.Next(); { // In any order: no two entries meet, or it is an error.
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
