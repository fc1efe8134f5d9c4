package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Append appends the canonical encoding of the description to dst. It is a msgpack array that
// begins with kind and name.
//
//	scalars, String, Bytes   [kind, name]
//	Struct                   [kind, name, field, type, field, type, …]
//	Array                    [kind, name, elem, length]
//	Slice, Pointer           [kind, name, elem]
//	Map                      [kind, name, elem, key]
func (t *Type) Append(dst []byte) []byte {
	dst = appendLength(dst, &arrayForm, t.size())
	dst = appendUint(dst, uint64(t.Kind))
	dst = appendString(dst, t.fullName())
	for _, f := range t.Fields {
		dst = appendString(dst, f.Name)
		dst = f.Type.Append(dst)
	}
	if t.Elem != nil {
		dst = t.Elem.Append(dst)
	}
	switch t.Kind {
	case Array:
		dst = appendUint(dst, uint64(t.Len))
	case Map:
		dst = t.Key.Append(dst)
	}
	return dst
}

// size returns the length of the msgpack array that encodes t.
func (t *Type) size() int {
	switch t.Kind {
	case Struct:
		return 2 + 2*len(t.Fields)
	case Slice, Pointer:
		return 3
	case Array, Map:
		return 4
	}
	return 2
}

// Parse reads an encoded description. It accepts exactly the bytes that [Type.Append] writes for a
// valid description. Otherwise it returns a [*DataError]. If an unknown kind is the only fault, the
// error wraps [ErrNewer]. Parse allocates a small multiple of len(src).
func Parse(src []byte) (*Type, error) {
	if len(src) > maxDescription {
		return nil, bad(fmt.Sprintf("description is larger than %d bytes", maxDescription))
	}
	r := reader{src: src}
	t, err := r.typ(1)
	if err != nil {
		err.Path = join("", err.Path)
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if err := t.validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// typ reads a description. depth is its nesting depth, from 1.
func (r *reader) typ(depth int) (*Type, *DataError) {
	if depth > maxDepth {
		return nil, bad(fmt.Sprintf("nested more than %d deep", maxDepth))
	}
	n, err := r.length(&arrayForm)
	if err != nil {
		return nil, err
	}
	t := new(Type)
	if err := r.head(t); err != nil {
		return nil, err
	}
	if t.Kind == Struct {
		return t, r.fields(t, n, depth)
	}
	if n != t.size() {
		return nil, bad(fmt.Sprintf("%v described by %d elements, want %d", t.Kind, n, t.size()))
	}
	return t, r.contents(t, depth)
}

// head reads the kind and name, with which every description begins, into t.
func (r *reader) head(t *Type) *DataError {
	kind, err := r.unsigned(8, 8)
	if err != nil {
		return err
	}
	name, err := r.bytes(&strForm)
	if err != nil {
		return err
	}
	if t.Kind = Kind(kind); t.Kind >= endOfKinds {
		err := bad(t.Kind.String() + " is unknown to this version")
		err.Err = ErrNewer
		return err
	}
	if t.setFullName(string(name)); !validTypeName(t.fullName()) {
		return bad("bad type name")
	}
	return nil
}

// fields reads the fields of the struct t. n is the number of msgpack elements that encode t's
// fields.
func (r *reader) fields(t *Type, n, depth int) *DataError {
	if n < 2 || n%2 != 0 {
		return bad(fmt.Sprintf("struct described by %d elements", n))
	}
	for range n/2 - 1 {
		name, err := r.bytes(&strForm)
		if err != nil {
			return err
		}
		f := Field{Name: string(name)}
		if !validFieldName(f.Name) {
			return bad(fmt.Sprintf("bad field name %.40q", f.Name))
		}
		if f.Type, err = r.typ(depth + 1); err != nil {
			return err.in("." + f.Name)
		}
		t.Fields = append(t.Fields, f)
	}
	return nil
}

// contents reads the elements after kind and name in the description of t, which is not a struct.
func (r *reader) contents(t *Type, depth int) (err *DataError) {
	if t.Kind < Array {
		return nil
	}
	if t.Elem, err = r.typ(depth + 1); err != nil {
		return err.in(elemPart(t.Kind))
	}
	switch t.Kind {
	case Array:
		length, err := r.unsigned(31, 31)
		t.Len = int(length)
		return err
	case Map:
		if t.Key, err = r.typ(depth + 1); err != nil {
			return err.in("[key]")
		}
	}
	return nil
}

// A typeJSON is the JSON form of a description. Members that a kind does not have are omitted.
type typeJSON struct {
	Kind   string      `json:"kind"`
	Name   string      `json:"name,omitempty"`
	Fields []fieldJSON `json:"fields,omitempty"` // For a struct.
	Elem   *typeJSON   `json:"elem,omitempty"`   // For an array, slice, map or pointer.
	Key    *typeJSON   `json:"key,omitempty"`    // For a map.
	Len    int         `json:"len,omitempty"`    // For an array.
}

type fieldJSON struct {
	Name string    `json:"name"`
	Type *typeJSON `json:"type"`
}

// AppendJSON appends the description as JSON, for [ParseJSON]:
//
//	{"kind":"struct","name":"Position","fields":[{"name":"X","type":{"kind":"float64"}}]}
func (t *Type) AppendJSON(dst []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Encode never fails for a description.
	_ = e.Encode(t.toJSON())
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (t *Type) toJSON() *typeJSON {
	if t == nil {
		return nil
	}
	j := &typeJSON{Kind: t.Kind.String(), Name: t.fullName(), Elem: t.Elem.toJSON(), Key: t.Key.toJSON(), Len: t.Len}
	for _, f := range t.Fields {
		j.Fields = append(j.Fields, fieldJSON{f.Name, f.Type.toJSON()})
	}
	return j
}

// ParseJSON reads the output of [Type.AppendJSON]. For other input, the error wraps [ErrInvalid].
// If an unknown kind is the only fault, it wraps [ErrNewer].
func ParseJSON(src []byte) (*Type, error) {
	if len(src) > 16*maxDescription {
		return nil, bad("description is too large")
	}
	d := json.NewDecoder(bytes.NewReader(src))
	d.DisallowUnknownFields()
	var j *typeJSON
	if err := d.Decode(&j); err != nil {
		return nil, bad("JSON: " + err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, bad("more than one JSON value")
	}
	t, err := j.typ(1)
	if err != nil {
		err.Path = join("", err.Path)
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return t, nil
}

// typ returns the description for j. depth is its nesting depth, from 1.
func (j *typeJSON) typ(depth int) (*Type, *DataError) {
	if j == nil {
		return nil, nil
	}
	if depth > maxDepth {
		return nil, bad(fmt.Sprintf("nested more than %d deep", maxDepth))
	}
	t := &Type{Len: j.Len}
	for k := Bool; k < endOfKinds; k++ {
		if k.String() == j.Kind {
			t.Kind = k
		}
	}
	if t.Kind == 0 {
		err := bad(fmt.Sprintf("kind %.60q is unknown to this version", j.Kind))
		err.Err = ErrNewer
		return nil, err
	}
	t.setFullName(j.Name)
	for _, f := range j.Fields {
		typ, err := f.Type.typ(depth + 1)
		if err != nil {
			return nil, err.in("." + f.Name)
		}
		t.Fields = append(t.Fields, Field{f.Name, typ})
	}
	var err *DataError
	if t.Elem, err = j.Elem.typ(depth + 1); err != nil {
		return nil, err.in(elemPart(t.Kind))
	}
	if t.Key, err = j.Key.typ(depth + 1); err != nil {
		return nil, err.in("[key]")
	}
	return t, nil
}
