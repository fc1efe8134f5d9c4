package inspect

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
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// ErrImport reports something that is no export, or one that describes no state.
var ErrImport = errors.New("persist: not an export")

// ErrDigest is the reason of an [ErrImport] for a state that is not the one which
// was exported.
var ErrDigest = errors.New("the digest differs")

// Import reads what Export wrote, in either form. The types are in it; no
// component needs to be known.
//
// An error wraps [ErrImport] or [persist.ErrNewer] and names the line, and the field in it.
// The state must have the digest that the export says, unless edited is set: then
// somebody changed it on purpose. Memory is a multiple of what is read.
func Import(ctx context.Context, r io.Reader, edited bool) (*Image, error) {
	lines := &lineReader{r: r, line: 1}
	x := &importer{d: json.NewDecoder(lines), schema: format.NewSchema()}
	x.d.DisallowUnknownFields()
	if err := x.read(ctx); err != nil {
		reason := errors.Join(ctx.Err(), lines.err) // err follows from it.
		if errors.Is(err, format.ErrNewer) {
			reason = errors.Join(reason, err)
		}
		if reason != nil {
			return nil, reason
		}
		offset := x.d.InputOffset()
		if x.unread { // It stands behind what was read before, at the end of the line.
			offset++
		}
		return nil, fmt.Errorf("%w: line %d: %w", ErrImport, lines.at(offset), err)
	}
	return x.image, x.check(edited)
}

// A lineReader knows in which lines the bytes are that were read last: the decoder reads ahead, and
// tells of an error at which byte it is.
type lineReader struct {
	r    io.Reader
	read int64
	line int     // Of what is before the first end.
	ends []int64 // Of lines.
	err  error   // Of r.
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

// at returns the line of an offset, which must not fall from call to call.
func (l *lineReader) at(offset int64) int {
	n, _ := slices.BinarySearch(l.ends, offset)
	l.line += n
	l.ends = slices.Delete(l.ends, 0, n)
	return l.line
}

// An importer reads an export. The lists come in order: those behind depend on
// those before.
//
// An export is one document with three lists, or lines: a head and then an item each. Both
// are read by one decoder, item by item, so that neither has to be in memory as text. What is
// built is checked twice: each item where it is read, so that an error has a line; and at the end
// the whole, by making a world of it and comparing digests.
//
//	stage   0 components ──▶ 1 entities ──▶ 2 rows
//	enter     schema grows    image is made   every index has its row in the registry
type importer struct {
	d      *json.Decoder
	head   exportHead
	schema *format.Schema // Grows by the components.
	image  *Image         // From the first entity or row on.
	stage  int            // Index in stages of the list that is being read.
	listed bool           // The export is one document.
	unread bool           // The value that is wrong was not read to its end.
}

var stages = []string{exportComponents, exportEntities, exportRows}

// read reads all there is. Of lines, the first is the object that is read member by member; what is
// left behind it is items.
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
	if !x.listed { // One item a line.
		if err := x.items(ctx, ""); err != nil {
			return err
		}
	}
	if _, err := x.d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the end")
	}
	return x.enter(exportRows) // There may have been none: an empty world.
}

// decode reads a value, and notes whether its error is before it or in it.
func (x *importer) decode(v any) error {
	before := x.d.InputOffset()
	err := x.d.Decode(v)
	x.unread = err != nil && x.d.InputOffset() <= before+1 // A comma may have been read.
	return err
}

// syntax words an error of package json.
func syntax(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if text, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return errors.New(text)
	}
	return err
}

// delim reads a bracket, which what names in its error.
func (x *importer) delim(want json.Delim, what string) error {
	token, err := x.d.Token()
	if err != nil {
		return syntax(err)
	}
	if token != want {
		return fmt.Errorf("want %s", what)
	}
	return nil
}

// member reads the value of a member of the document or of the first line: what the head says, in any
// order, or a list item by item.
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

// checkHead looks whether the head that was read so far names a format that is known: before any list,
// since what items mean depends on it.
func (x *importer) checkHead() error {
	switch {
	case x.head.Format == exportFormat:
		return nil
	case strings.HasPrefix(x.head.Format, exportFormat[:len(exportFormat)-1]): // Another number behind it.
		return fmt.Errorf("%w: export of format %.60q", format.ErrNewer, x.head.Format)
	}
	return fmt.Errorf("it does not begin with the format %q", exportFormat)
}

// items reads the items of a list of the document or, if it has no name, those of all
// lists to the end. What an item has tells to which list it belongs.
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
			return fmt.Errorf("an element of %s is among %s", list, name)
		}
		if err := x.item(ctx, list, &item); err != nil {
			return err
		}
	}
	return nil
}

// enter begins a list, if it is not that of the item before. Lists may be empty: whatever was
// left out is entered by the way. Before the first row each entity must have its index, and
// before the first entity all components are known, since an image is made for a schema.
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

// item adds an item of a list, and says in an error of which one it is.
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
		return errors.New("the name is empty, too long or there twice")
	case len(x.schema.Components) == format.MaxComponents:
		return fmt.Errorf("more than %d", format.MaxComponents)
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

// entity adds a row to the registry. While only those alive have come, both ends are where the rows end;
// those free move the second one on.
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
		return fmt.Errorf("%v: those alive come first, then those free, then those retired", e)
	default:
		return fmt.Errorf("%v: status %.60q is none of alive, free, retired", e, item.Status)
	}
	im.Registry = append(im.Registry, e)
	return nil
}

// indexRegistry notes which row an index has; each must have one. So n entities have the indices 0 to n-1:
// an export that leaves one out is of no state.
func indexRegistry(im *Image) error {
	im.Index = make([]uint32, len(im.Registry))
	seen := make([]bool, len(im.Registry))
	for row, e := range im.Registry {
		i := int64(e.Index())
		if i >= int64(len(seen)) || seen[i] {
			return fmt.Errorf("%v: of %d entities, each has an index below %d that no other one has", e, len(seen), len(seen))
		}
		seen[i] = true
		im.Index[i] = uint32(row)
	}
	return nil
}

// row adds a row to a component, or gives a resource its value. Whether its entity is alive is not asked
// here, but when a world is made of all.
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
			return errors.New("it is there twice")
		}
	}
	encoded, err := x.value(c, item)
	if err != nil {
		return err
	}
	row := c.N // Rows come in dense order, so it is the next.
	c.Resize(row + 1)
	if !c.Resource {
		if err := c.SetEntities(row, binary.LittleEndian.AppendUint64(nil, uint64(e)), len(x.image.Registry)); err != nil {
			return err
		}
	}
	_, err = c.SetRows(row, 1, encoded)
	return err
}

// value returns the encoded row that item gives.
func (x *importer) value(c *Component, item *importItem) ([]byte, error) {
	if item.Value != nil {
		return c.Layout.AppendRow(nil, item.Value)
	}
	if gap := implicitGap(c); item.Gap && gap != nil {
		return gap, nil
	}
	return nil, errors.New("the value is missing")
}

// check looks at the state as a whole: can a world be in it, and is it the one that
// was exported? That rows are of entities alive, and of each once, is seen by the world.
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
