package repair

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// ErrImport reports input that is not an export, or an export that is not a valid state.
var ErrImport = errors.New("persist: not an export")

// ErrDigest means that an imported state does not have the digest in its export. The error also
// wraps [ErrImport].
var ErrDigest = errors.New("the digest differs")

// Import reads either form of text that Export writes. The export contains the types, so the
// program need not register them.
//
// An error wraps [ErrImport] or persist.ErrNewer, and names the line and the field. The state must
// have the digest in the export. If edited is set, the digest is ignored, since the export may have
// been edited. Import needs memory in proportion to the size of the export.
func Import(ctx context.Context, r io.Reader, edited bool) (*inspect.Image, error) {
	lines := &lineReader{r: r, line: 1}
	x := &importer{d: json.NewDecoder(lines), schema: format.NewSchema()}
	x.d.DisallowUnknownFields()
	if err := x.read(ctx); err != nil {
		// err may be only a consequence of cancellation, a read error or a newer format. If so,
		// return that reason.
		reason := errors.Join(ctx.Err(), lines.err)
		if errors.Is(err, format.ErrNewer) {
			reason = errors.Join(reason, err)
		}
		if reason != nil {
			return nil, reason
		}
		offset := x.d.InputOffset()
		// The decoder stopped at the end of the line before the faulty value. Go to the next line.
		if x.unread {
			offset++
		}
		return nil, fmt.Errorf("%w: line %d: %w", ErrImport, lines.at(offset), err)
	}
	if err := x.check(edited); err != nil {
		return nil, err
	}
	return inspect.NewImage(x.image), nil
}

// A lineReader counts lines, because the JSON decoder reports only the offset of an error. at()
// converts this offset to a line number.
type lineReader struct {
	r    io.Reader
	read int64
	line int     // Number of the line that ends at ends[0].
	ends []int64 // Offsets of line ends.
	err  error   // Error of r.
}

func (l *lineReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}

// at returns the line number of an offset. Offsets must not decrease from call to call.
func (l *lineReader) at(offset int64) int {
	n, _ := slices.BinarySearch(l.ends, offset)
	l.line += n
	l.ends = slices.Delete(l.ends, 0, n)
	return l.line
}

// An importer reads an export. The three lists come in a fixed order: components, entities, rows.
// Each list depends on the lists before it. Each component is added to the schema. The first entity
// or row creates the image from the schema.
//
// An export is either one document with three lists, or a head and items, one per line. The decoder
// reads both forms item by item, so the text is never in memory as a whole. Each item is checked
// when it is read, so the error has a line number. At the end, check() builds a world from the
// whole image and compares the digests.
type importer struct {
	d      *json.Decoder
	head   exportHead
	schema *format.Schema // Grows with each component.
	image  *image.Image   // Exists from the first entity or row on.
	stage  int            // Index in stages of the current list.
	listed bool           // The export is one document, not one item per line.
	unread bool           // decode failed before it read any of the value.
}

var stages = []string{exportComponents, exportEntities, exportRows}

// read reads the whole export. Its first JSON object is the document, or the head in the form with
// one item per line.
func (x *importer) read(ctx context.Context) error {
	if err := x.delim('{', "a JSON object"); err != nil {
		return err
	}
	for x.d.More() {
		token, err := x.d.Token()
		if err != nil {
			return err
		}
		if err := x.member(ctx, token); err != nil {
			return err
		}
	}
	if _, err := x.d.Token(); err != nil {
		return syntax(err)
	}
	if err := x.checkHead(); err != nil {
		return err
	}
	if !x.listed { // The export has one item per line.
		if err := x.items(ctx, ""); err != nil {
			return err
		}
	}
	if _, err := x.d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the export is followed by more text")
	}
	// An export of an empty world has no row, so the list of rows has not begun yet.
	return x.enter(exportRows)
}

// decode reads a value. If it fails before it has read any of the value, it sets x.unread to true,
// otherwise to false.
func (x *importer) decode(v any) error {
	before := x.d.InputOffset()
	err := x.d.Decode(v)
	// The decoder may have read a comma before the value, which is one byte.
	x.unread = err != nil && x.d.InputOffset() <= before+1
	return err
}

// syntax rewords an error of package json.
func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if text, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return errors.New(text)
	}
	return err
}

// delim reads the given bracket. In an error, the second argument names that bracket.
func (x *importer) delim(want json.Delim, what string) error {
	token, err := x.d.Token()
	if err != nil {
		return syntax(err)
	}
	if token != want {
		return fmt.Errorf("expected %s", what)
	}
	return nil
}

// member reads the value of the member with the given name, in the document or in the first line.
// The member is a field of the head, or a list. member reads a list item by item.
func (x *importer) member(ctx context.Context, name json.Token) error {
	text := fmt.Sprint(name)
	scalars := map[string]any{"format": &x.head.Format, "tick": &x.head.Tick, "digest": &x.head.Digest}
	if v := scalars[text]; v != nil {
		if err := x.decode(v); err != nil {
			return fmt.Errorf("%s: %w", text, syntax(err))
		}
		return nil
	}
	if !slices.Contains(stages, text) {
		return fmt.Errorf("no member %.60q", text)
	}
	if err := x.checkHead(); err != nil {
		return err
	}
	x.listed = true
	if err := x.enter(text); err != nil {
		return err
	}
	if err := x.delim('[', "an array"); err != nil {
		return err
	}
	if err := x.items(ctx, text); err != nil {
		return err
	}
	return x.delim(']', "the end of the array")
}

// checkHead checks that the head names a supported format. It must run before any list is read,
// because the meaning of items depends on the format.
func (x *importer) checkHead() error {
	switch {
	case x.head.Format == exportFormat:
		return nil
	// Another version of the same format.
	case strings.HasPrefix(x.head.Format, exportFormat[:len(exportFormat)-1]):
		return fmt.Errorf("%w: export of format %.60q", format.ErrNewer, x.head.Format)
	}
	return fmt.Errorf("the export does not begin with the format %q", exportFormat)
}

// items reads the items of the named list. If name is "", it reads the items of all lists up to
// the end. The members of an item say which list the item belongs to.
func (x *importer) items(ctx context.Context, name string) error {
	for name == "" || x.d.More() {
		var item importItem
		err := x.decode(&item)
		if name == "" && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return syntax(err)
		}
		list := item.list()
		if name != "" && list != name {
			return fmt.Errorf("an element of %s is in the list of %s", list, name)
		}
		if err := x.item(ctx, list, &item); err != nil {
			return err
		}
	}
	return nil
}

// enter begins the named list. It returns an error if the current list must come later. After the
// components, it creates the image from their schema. Before the first row, it sets the row of each
// index in the registry.
func (x *importer) enter(name string) error {
	stage := slices.Index(stages, name)
	if stage < x.stage {
		return fmt.Errorf("%s must come before %s", name, stages[x.stage])
	}
	if x.image == nil && stage > 0 {
		x.image = image.New(x.schema)
		x.image.Schema = x.schema
	}
	if x.stage < 2 && stage == 2 {
		if err := indexRegistry(x.image); err != nil {
			return err
		}
	}
	x.stage = stage
	return nil
}

// item adds an item to a list. If an item fails, the error names the item.
func (x *importer) item(ctx context.Context, list string, item *importItem) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.enter(list); err != nil {
		return err
	}
	switch list {
	case exportComponents:
		if err := x.component(item); err != nil {
			return fmt.Errorf("component %.60q: %w", *item.Name, err)
		}
	case exportEntities:
		return x.entity(item)
	default:
		if err := x.row(item); err != nil {
			return fmt.Errorf("%.60s of %.60q: %w", cmp.Or(item.Entity, "row"), item.Component, err)
		}
	}
	return nil
}

// component adds a component to the schema.
func (x *importer) component(item *importItem) error {
	name := *item.Name
	_, twice := x.schema.Numbers[name]
	switch {
	case twice || name == "" || len(name) > format.MaxName:
		return errors.New("the name is empty, too long or used twice")
	case len(x.schema.Components) == format.MaxComponents:
		return fmt.Errorf("there are more than %d components", format.MaxComponents)
	case item.Kind != "component" && item.Kind != "resource":
		return fmt.Errorf("kind %.60q is neither component nor resource", item.Kind)
	case item.Rewinds == nil || item.Layout == nil:
		return errors.New("rewinds or layout is missing")
	}
	e := format.Entry{Name: name, Resource: item.Kind == "resource", Rewinds: *item.Rewinds, Indexed: item.Indexed, Version: item.Version}
	var err error
	if e.Layout, err = layout.ParseJSON(item.Layout); err != nil {
		return err
	}
	if item.Default != nil {
		if e.Default, err = e.Layout.AppendRow(nil, item.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	if err := e.CheckGaps(); err != nil {
		return err
	}
	x.schema.Add(e)
	return nil
}

// entity adds a row to the registry: first live rows, then free rows, then retired rows. The
// image's Alive is the end of the live rows, and Free is the end of the free rows.
func (x *importer) entity(item *importItem) error {
	e, err := ecs.ParseEntity(item.Entity)
	if err != nil {
		return err
	}
	im := x.image
	n := len(im.Registry)
	switch {
	case item.Status == "alive" && im.Alive == n:
		im.Alive, im.Free = n+1, n+1
	case item.Status == "free" && im.Free == n:
		im.Free = n + 1
	case item.Status == "retired":
	case item.Status == "alive" || item.Status == "free":
		return fmt.Errorf("%v: alive entities must come first, then free ones, then retired ones", e)
	default:
		return fmt.Errorf("%v: status %.60q is not alive, free or retired", e, item.Status)
	}
	im.Registry = append(im.Registry, e)
	return nil
}

// indexRegistry sets the row of each index. It fails if the n entities do not have the indices 0
// to n-1.
func indexRegistry(im *image.Image) error {
	im.Index = make([]uint32, len(im.Registry))
	seen := make([]bool, len(im.Registry))
	for row, e := range im.Registry {
		i := int64(e.Index())
		if i >= int64(len(seen)) || seen[i] {
			return fmt.Errorf("%v: the %d entities must have different indices below %d", e, len(seen), len(seen))
		}
		seen[i] = true
		im.Index[i] = uint32(row)
	}
	return nil
}

// row adds a row to a component, or sets a resource. Later, check() verifies that the entity is
// alive.
func (x *importer) row(item *importItem) error {
	n, ok := x.schema.Numbers[item.Component]
	if !ok {
		return errors.New("there is no such component")
	}
	c := x.image.Components[n]
	switch {
	case c.Resource && (item.Entity != "" || item.Gap || c.N > 0):
		return errors.New("a resource has one value, and no entity")
	case !c.Resource && (item.Entity == "") != item.Gap || item.Gap && !c.Indexed:
		return errors.New("a row has an entity; only gaps of an indexed component have none")
	}
	e := ecs.Vacant
	if item.Entity != "" {
		var err error
		if e, err = ecs.ParseEntity(item.Entity); err != nil {
			return err
		}
		if c.Find(e) >= 0 {
			return errors.New("the entity has two rows")
		}
	}
	encoded, err := x.value(c, item)
	if err != nil {
		return err
	}
	// Rows come in dense order.
	row := c.N
	c.Resize(row + 1)
	if !c.Resource {
		if err := c.SetEntities(row, binary.LittleEndian.AppendUint64(nil, uint64(e)), len(x.image.Registry)); err != nil {
			return err
		}
	}
	_, err = c.SetRows(row, 1, encoded)
	return err
}

// value returns the encoded value of item.
func (x *importer) value(c *image.Component, item *importItem) ([]byte, error) {
	if item.Value != nil {
		return c.Layout.AppendRow(nil, item.Value)
	}
	if gap := implicitGap(c); item.Gap && gap != nil {
		return gap, nil
	}
	return nil, errors.New("the value is missing")
}

// check builds a world from the whole image, and compares its digest with the exported digest.
// Building the world fails if an entity with a row is not alive or has two rows.
func (x *importer) check(edited bool) error {
	x.image.Tick = x.head.Tick
	if _, err := x.image.World(ecs.Options{}); err != nil {
		return fmt.Errorf("%w: %w", ErrImport, err)
	}
	if got := x.image.Digest().String(); got != x.head.Digest && !edited {
		return fmt.Errorf("%w: %w: the state has digest %s, but was exported with %.60q", ErrImport, ErrDigest, got, x.head.Digest)
	}
	return nil
}
