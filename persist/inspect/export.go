package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// An export is a state as text that people can read, change and diff. It has all that a state has,
// and in the same order: gaps, free indices, default values. So what comes back in by Import has the
// same digest, and Import checks that it has.

// exportFormat is what an export says that it is.
const exportFormat = "ecsdump.export/1"

// An exportHead comes first in an export.
type exportHead struct {
	Format string `json:"format"`
	Tick   uint64 `json:"tick"`
	Digest string `json:"digest"`
}

// An importItem is an element of any list of an export. The components come in the order
// of their numbers, the entities in that of the registry, the rows in dense order.
type importItem struct {
	Name    *string         `json:"name,omitempty"`    // Of a component or resource.
	Kind    string          `json:"kind,omitempty"`    // component or resource.
	Rewinds *bool           `json:"rewinds,omitempty"` // It is put back when the world is.
	Indexed bool            `json:"indexed,omitempty"`
	Default json.RawMessage `json:"default,omitempty"` // What gaps of an indexed one hold; missing: the zero value.
	Version uint32          `json:"version,omitempty"`
	Layout  json.RawMessage `json:"layout,omitempty"`

	Component string          `json:"component,omitempty"` // Of a row.
	Entity    string          `json:"entity,omitempty"`    // Of an entity, or of a row; missing for a resource and a gap.
	Status    string          `json:"status,omitempty"`    // Of an entity: alive, then free, then retired.
	Gap       bool            `json:"gap,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"` // Of a row; missing: of a gap, the default.
}

// list returns the list that i must be of.
func (i *importItem) list() string {
	switch {
	case i.Name != nil:
		return exportComponents
	case i.Status != "":
		return exportEntities
	}
	return exportRows
}

// Names of the lists in an export.
const (
	exportComponents = "components"
	exportEntities   = "entities"
	exportRows       = "rows"
)

// Export writes im to w, so that [Import] gives an image with the same digest: as
// one JSON document or, with lines, as one JSON value a line (NDJSON). Either is
// head, components, entities, rows, in this order:
//
//	{"format":"ecsdump.export/1","tick":7,"digest":"…",
//	 "components":[{"name":"Position","kind":"component","rewinds":true,"layout":{…}}],
//	 "entities":[{"entity":"0v1","status":"alive"}],
//	 "rows":[{"component":"Position","entity":"0v1","value":{"X":1,"Y":2}}]}
//
// Values are as [layout.Value.AppendExact] writes them.
func Export(ctx context.Context, im *Image, w io.Writer, lines bool) error {
	x := &exporter{w: bufio.NewWriter(w), lines: lines}
	x.head(exportHead{exportFormat, im.Tick, im.Digest().String()})
	x.list(exportComponents)
	for _, c := range im.Components {
		d, err := exportComponentOf(c)
		if err != nil {
			return err
		}
		x.item(d)
	}
	x.list(exportEntities)
	rows := registry(im)
	for row, e := range im.Registry {
		if row%format.PageRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.item(&importItem{Entity: e.String(), Status: statusNames[rows.state(row).status]})
	}
	x.list(exportRows)
	for _, c := range im.Components {
		if err := x.rows(ctx, c); err != nil {
			return err
		}
	}
	return x.end()
}

var statusNames = [...]string{aliveIndex: "alive", freeIndex: "free", retiredIndex: "retired"}

// exportComponentOf describes c: all that its schema says, but its Go type and what it was before.
func exportComponentOf(c *Component) (*importItem, error) {
	d := &importItem{
		Name: &c.Name, Kind: "component", Rewinds: &c.Rewinds, Indexed: c.Indexed, Version: c.Version, Layout: c.Layout.AppendJSON(nil),
	}
	if c.Resource {
		d.Kind = "resource"
	}
	if len(c.Default) == 0 {
		return d, nil
	}
	v, err := c.Layout.Value(c.Default)
	d.Default = v.AppendExact(nil)
	return d, err
}

// An exporter writes an export. The first error of w stays in its buffer, and end returns it. Items
// are written one by one: memory does not grow with the state. Of a document, what separates an item
// from the one before is written with the item, as nobody knows which is the last.
type exporter struct {
	w     *bufio.Writer
	lines bool
	value bytes.Buffer

	before, behind string // What a document has before the next item, and behind the last.
}

// marshal returns v in one line, until the next call.
func (x *exporter) marshal(v any) string {
	x.value.Reset()
	e := json.NewEncoder(&x.value)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // What is exported always encodes.
	return strings.TrimSuffix(x.value.String(), "\n")
}

func (x *exporter) print(text ...string) {
	for _, t := range text {
		_, _ = x.w.WriteString(t)
	}
}

// head writes the head. That of a document is the beginning of an object, which the lists go on with.
func (x *exporter) head(h exportHead) {
	text := x.marshal(h)
	if x.lines {
		x.print(text, "\n")
	} else {
		x.print(strings.TrimSuffix(text, "}"))
	}
}

// list ends the list before, if there is one, and begins one.
func (x *exporter) list(name string) {
	if !x.lines {
		x.print(x.behind, ",\n \"", name, "\":[")
		x.before, x.behind = "\n  ", "]"
	}
}

// item writes an element of the list that was begun last.
func (x *exporter) item(i *importItem) {
	text := x.marshal(i)
	if x.lines {
		x.print(text, "\n")
		return
	}
	x.print(x.before, text)
	x.before = ",\n  "
}

// rows writes the rows of c.
func (x *exporter) rows(ctx context.Context, c *Component) error {
	for row := range c.Len() {
		if row%format.PageRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		v, err := c.Value(row)
		if err != nil {
			return err
		}
		r := importItem{Component: c.Name, Value: v.AppendExact(nil)}
		switch {
		case c.Resource:
		case c.Entities[row] != ecs.Vacant:
			r.Entity = c.Entities[row].String()
		default:
			r.Gap = true // Its value counts for the digest, so it is told where it is another one.
			if gap := implicitGap(c); gap != nil && string(c.Row(row)) == string(gap) {
				r.Value = nil
			}
		}
		x.item(&r)
	}
	return nil
}

// implicitGap returns the row of gaps whose value may be left out; nil: it must be
// given, or a small file could ask for much memory.
func implicitGap(c *Component) []byte {
	switch {
	case len(c.Default) > 0 && len(c.Default) <= maxImplicit:
		return c.Default
	case len(c.Default) == 0 && c.Width > 0 && c.Width <= maxImplicit:
		return make([]byte, c.Width)
	}
	return nil
}

const maxImplicit = 256

func (x *exporter) end() error {
	if !x.lines {
		x.print(x.behind, "}\n")
	}
	return x.w.Flush()
}
