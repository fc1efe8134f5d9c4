package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A typeJSON is a description as JSON. Members that a kind does not have are
// missing.
type typeJSON struct {
	Kind   string      `json:"kind"`
	Name   string      `json:"name,omitempty"`
	Fields []fieldJSON `json:"fields,omitempty"` // Struct.
	Elem   *typeJSON   `json:"elem,omitempty"`   // Array, slice, map and pointer.
	Key    *typeJSON   `json:"key,omitempty"`    // Map.
	Len    int         `json:"len,omitempty"`    // Array.
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
	// Descriptions always encode.
	_ = e.Encode(t.toJSON())
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func (t *Type) toJSON() *typeJSON {
	if t == nil {
		return nil
	}
	j := &typeJSON{Kind: t.Kind.String(), Name: t.Name, Elem: t.Elem.toJSON(), Key: t.Key.toJSON(), Len: t.Len}
	for _, f := range t.Fields {
		j.Fields = append(j.Fields, fieldJSON{f.Name, f.Type.toJSON()})
	}
	return j
}

// ParseJSON reads what [Type.AppendJSON] writes. Anything else is an error that
// wraps [ErrInvalid], or [ErrNewer] if only a kind is unknown.
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

// typ returns the description that j, nested in depth-1 others, is of.
func (j *typeJSON) typ(depth int) (*Type, *DataError) {
	if j == nil {
		return nil, nil
	}
	if depth > maxDepth {
		return nil, bad(fmt.Sprintf("nested more than %d deep", maxDepth))
	}
	t := &Type{Name: j.Name, Len: j.Len}
	for k := Bool; k < endOfKinds; k++ {
		if k.String() == j.Kind {
			t.Kind = k
		}
	}
	if t.Kind == 0 {
		err := bad(fmt.Sprintf("kind %.60q is not known to this version", j.Kind))
		err.Err = ErrNewer
		return nil, err
	}
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
