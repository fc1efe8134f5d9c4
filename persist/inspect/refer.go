package inspect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// References to an entity are found without decoding all values. Pages of a [State] are searched
// for the bytes of the encoded entity, and only rows with these bytes are decoded.

// A Referrer is a value that refers to an entity.
type Referrer struct {
	Entity    ecs.Entity // The entity that has the value; [ecs.None] for a resource.
	Component string     // Name of the component or resource.
	Resource  bool
	Row       int
	// Fields are the paths of the references in the value: "Target", "Links[3]". The path is ""
	// if the value is an entity itself.
	Fields []string
}

// referrers collects the result of Referrers.
type referrers struct {
	state  *State
	entity ecs.Entity
	limit  int
	first  []Referrer
	total  int
}

// holdsEntities reports whether values of type t can contain entities.
func holdsEntities(t *layout.Type) bool {
	switch {
	case t == nil:
		return false
	case t.Kind == layout.Entity:
		return true
	}
	return holdsEntities(t.Elem) || holdsEntities(t.Key) ||
		slices.ContainsFunc(t.Fields, func(f layout.Field) bool { return holdsEntities(f.Type) })
}

// appendFieldsWith appends the paths of the fields in v that equal e. path is the path of v. A
// pointer has the path of the value that it points to, as in Go. If a map key contains the
// entity, the path is that of the map entry.
func appendFieldsWith(fields []string, path string, v layout.Value, e ecs.Entity) []string {
	switch v.Kind() {
	case layout.Entity:
		if ecs.Entity(v.Uint()) == e {
			fields = append(fields, path)
		}
	case layout.Struct:
		if path != "" {
			path += "."
		}
		for i, f := range v.Type().Fields {
			fields = appendFieldsWith(fields, path+f.Name, v.Index(i), e)
		}
	case layout.Map:
		for i := range v.Len() {
			at := fmt.Sprintf("%s[%v]", path, v.Key(i))
			if len(appendFieldsWith(nil, "", v.Key(i), e)) > 0 {
				fields = append(fields, "key of "+at)
			}
			fields = appendFieldsWith(fields, at, v.Index(i), e)
		}
	case layout.Pointer:
		for i := range v.Len() {
			fields = appendFieldsWith(fields, path, v.Index(i), e)
		}
	case layout.Array, layout.Slice:
		for i := range v.Len() {
			fields = appendFieldsWith(fields, fmt.Sprintf("%s[%d]", path, i), v.Index(i), e)
		}
	}
	return fields
}

// search adds the rows of c that contain the entity, in the order of rows.
func (l *referrers) search(ctx context.Context, c *image.Component) error {
	// needle has the bytes of the encoded entity: 8 bytes in values of fixed width, and a
	// MessagePack number in other values. Other data can have the same bytes by chance, so add()
	// decodes the value too.
	needle := binary.LittleEndian.AppendUint64(nil, uint64(l.entity))
	if c.Width < 0 {
		enc := format.NewEncoder()
		enc.Uint(uint64(l.entity))
		needle = enc.Buf
	}
	col := l.state.column(c)
	return col.eachPage(ctx, func(lo, hi int, content []byte) error {
		// Most pages do not contain the bytes. Only the others are split into rows.
		if !bytes.Contains(content, needle) {
			return nil
		}
		return col.splitPage(lo, hi, content, func(row int, value []byte) error {
			if !bytes.Contains(value, needle) {
				return nil
			}
			return l.add(col, row, value)
		})
	})
}

// add adds a row of c if its value refers to the entity. It counts all such rows and stores them up
// to the limit. It skips gaps: their rows may still have the bytes of a removed value.
func (l *referrers) add(c *stateColumn, row int, value []byte) error {
	v, err := c.Layout.Value(value)
	if err != nil {
		return err
	}
	fields := appendFieldsWith(nil, "", v, l.entity)
	if len(fields) == 0 {
		return nil
	}
	e, err := c.holder(row)
	if err != nil || e == ecs.Vacant {
		return err
	}
	if l.total++; len(l.first) < l.limit {
		l.first = append(l.first, Referrer{e, c.Name, c.Resource, row, fields})
	}
	return nil
}
