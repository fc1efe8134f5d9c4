package repair

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// An export is a state as text that people can read, edit and diff. It contains the whole state
// in order, with gaps, free indices and default values. So an imported state has the same digest
// as the exported one. Import checks the digest.

// exportFormat is the value of member "format" in an export.
const exportFormat = "ecsdump.export/1"

// An exportHead is the first object of an export.
type exportHead struct {
	Format string `json:"format"`
	Tick   uint64 `json:"tick"`
	Digest string `json:"digest"`
}

// An importItem is an element of a list in an export. Components are ordered by number, entities
// as in the registry, rows as in the dense arrays.
type importItem struct {
	// Name is the name of a component or resource.
	Name *string `json:"name,omitempty"`
	// Kind is "component" or "resource".
	Kind string `json:"kind,omitempty"`
	// Rewinds says whether a rollback of the world restores the component.
	Rewinds *bool `json:"rewinds,omitempty"`
	Indexed bool  `json:"indexed,omitempty"`
	// Default is the value of gaps in an indexed component. If it is missing, gaps hold the zero
	// value.
	Default json.RawMessage `json:"default,omitempty"`
	Version uint32          `json:"version,omitempty"`
	Layout  json.RawMessage `json:"layout,omitempty"`

	// Component is the component of a row.
	Component string `json:"component,omitempty"`
	// Entity is an entity of the registry, or the entity of a row. It is missing for resources
	// and gaps.
	Entity string `json:"entity,omitempty"`
	// Status is the status of an entity: alive, free or retired, in this order.
	Status string `json:"status,omitempty"`
	Gap    bool   `json:"gap,omitempty"`
	// Value is the value of a row. If a gap has no Value, it holds the default.
	Value json.RawMessage `json:"value,omitempty"`
}

// list returns the name of the list that contains i.
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

// Export writes a state to w. [Import] reads the state back, with the same digest. The text is one
// JSON document or, if the argument lines is true, one JSON value per line (NDJSON). Both forms
// have a head, components, entities and rows, in this order:
//
//	{"format":"ecsdump.export/1","tick":7,"digest":"…",
//	 "components":[{"name":"Position","kind":"component","rewinds":true,"layout":{…}}],
//	 "entities":[{"entity":"0v1","status":"alive"}],
//	 "rows":[{"component":"Position","entity":"0v1","value":{"X":1,"Y":2}}]}
//
// Values are in the syntax of [layout.Value.AppendExact].
func Export(ctx context.Context, of *inspect.Image, w io.Writer, lines bool) error {
	im := of.Internal()
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
	for row, e := range im.Registry {
		if row%format.PageRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.item(&importItem{Entity: e.String(), Status: statusOf(im, row)})
	}
	x.list(exportRows)
	for _, c := range im.Components {
		if err := x.rows(ctx, c); err != nil {
			return err
		}
	}
	return x.end()
}

// statusOf returns the status of the entity in a row of the registry.
func statusOf(im *image.Image, row int) string {
	switch {
	case row < im.Alive:
		return "alive"
	case row < im.Free:
		return "free"
	}
	return "retired"
}

// exportComponentOf describes the schema of c, except its Go type and its former schemas.
func exportComponentOf(c *image.Component) (*importItem, error) {
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

// An exporter writes an export item by item, so memory does not grow with the state. end() returns
// the first error of the writer.
type exporter struct {
	w     *bufio.Writer
	lines bool
	value bytes.Buffer

	// before is the text to write before the next item, for example a separator. behind is the text
	// that closes the list.
	before, behind string
}

// marshal returns v as one line, which is valid until the next call.
func (x *exporter) marshal(v any) string {
	x.value.Reset()
	e := json.NewEncoder(&x.value)
	e.SetEscapeHTML(false)
	// Encoding the types of an export never fails.
	_ = e.Encode(v)
	return strings.TrimSuffix(x.value.String(), "\n")
}

func (x *exporter) print(text ...string) {
	for _, t := range text {
		_, _ = x.w.WriteString(t)
	}
}

// head writes the head of the export. In a document it leaves out the closing brace, because the
// lists follow as members of the same object.
func (x *exporter) head(h exportHead) {
	text := x.marshal(h)
	if x.lines {
		x.print(text, "\n")
	} else {
		x.print(strings.TrimSuffix(text, "}"))
	}
}

// list ends the previous list, if any, and begins a new one.
func (x *exporter) list(name string) {
	if !x.lines {
		x.print(x.behind, ",\n \"", name, "\":[")
		x.before, x.behind = "\n  ", "]"
	}
}

// item writes an element of the current list.
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
func (x *exporter) rows(ctx context.Context, c *image.Component) error {
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
			// The value of a gap is part of the digest, so it must be exported. Only the default
			// value can be left out.
			r.Gap = true
			if gap := implicitGap(c); gap != nil && string(c.Row(row)) == string(gap) {
				r.Value = nil
			}
		}
		x.item(&r)
	}
	return nil
}

// implicitGap returns the default value of gaps if an export may leave it out, otherwise nil. A
// value above maxImplicit bytes must be written. Otherwise a small file with many gaps could demand
// much memory.
func implicitGap(c *image.Component) []byte {
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
