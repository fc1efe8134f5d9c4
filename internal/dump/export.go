package dump

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command export writes a state, or the changes of ticks, for other programs. The output is
// always a new file. Export removes the file after an error, because a reader cannot detect an
// incomplete export.

// changesDoc is what export --format json or ndjson prints for a range, with or without --json.
type changesDoc struct {
	From    stateDoc           `json:"from"`      // The state before the first change.
	To      uint64             `json:"to_record"` // The record of the last tick.
	Changes []tickDifferentDoc `json:"changes"`   // Ordered by tick.
}

// A tickDifferentDoc is a difference between the states before and after a tick.
type tickDifferentDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"record"`
	differenceDoc
}

var exportCommand = command{
	use: "export STORE [A..B]",
	doc: `Write a state, or what ticks changed, as JSON, NDJSON, CSV or tables

Write a whole state as JSON, or as NDJSON (one JSON value per line). The export is
complete: ecsdump import turns it into a save with the same digest.

CSV is a table with a column for each field. With -o, export writes a file for each
component to that directory. With --component, it writes one component to standard
output.

With a range A..B, export writes what each tick from A to B changed, those of A and B
included. A single point is one tick. There is a line for each entity or component (in
CSV for each field), with old and new values. Such an export cannot be imported. If A is
the oldest state of the store, what tick A changed is unknown, and export says so.

Parquet is for pandas, DuckDB and similar tools: a file for each component, in the new
directory that -o names. SQLite is one new file with a table for each component. A row
has the tick, the index and generation of the entity, and a column for each field. With
a range A..B, the tables have the rows of all states from A to B. With --every N they
have those of A, A+N, A+2N, … and of the last state. These two formats need the program
ecsdump-tables, which has the same commands. To install it from the sources of Stet, run
go -C cmd/ecsdump-tables install .

Perfetto is a trace for ui.perfetto.dev, with a counter for each expression of --select.
The expressions are about the whole world, as in plot. Without --select, the trace
counts all entities and the entities with each component. It covers the ticks of the
range, or all ticks that lead to the state of --at. A tick is a millisecond of the
trace. A counter is 0 where its expression stops having a number, and where damage
hides the state, because a trace cannot end a counter.`,
	example: `  ecsdump export D > all.json
  ecsdump export D --at 100 --format ndjson -o tick100.ndjson
  ecsdump export D --format csv --component Position
  ecsdump export D 100..200 --format ndjson --component Health
  ecsdump export D --format perfetto --select 'alive, sum(Health) as health' -o game.json
  ecsdump-tables export D --format parquet -o tables
  ecsdump-tables export D 100..200 --every 10 --format sqlite -o game.db`,
	complete: []completer{(*completion).ranges},
	run: func(f flags) action {
		var x exportCmd
		oneOf(f.FlagSet, &x.format, "format", "format", "json, ndjson, csv, parquet, sqlite or perfetto", "json", "ndjson", "csv", "parquet", "sqlite", "perfetto")
		f.output(&x.out, "a new file, or a new directory for csv and parquet; the default is standard output")
		f.StringSliceVar(&x.components, "component", nil, "only these components and resources; not for a state as json or ndjson")
		f.number(&x.every, "every", "", 1, "for parquet, sqlite and perfetto: only the first state, every Nth after it, and the last one")
		f.expressions(&x.selected, "select", `for perfetto: the counters, as EXPR or "EXPR as NAME"`)
		f.point(&x.at)
		return func(c *call) error {
			if err := x.check(c); err != nil {
				return err
			}
			return c.read(c.args[0], x.run)
		}
	},
}

// An exportCmd has the flags of an export. The format and the range select the output:
//
//	a state   json, ndjson      a file that import can read, written by package repair
//	a state   csv               a table for each component
//	a range   json, ndjson      a document like that of diff --json
//	a range   csv               one table, with a line for each field
//	a range   perfetto          counters, with the values of plot
//	a state   parquet, sqlite   a table for each component
//	a range   parquet, sqlite   a table for each component, with the rows of several states
type exportCmd struct {
	format     string
	out        string
	components []string
	every      uint
	selected   []string
	at         string
}

// check validates the flags:
//
//   - A state as JSON or NDJSON must have all components, because import reads such a file.
//   - CSV on standard output can contain only one table.
//   - A flag without effect is an error.
func (x *exportCmd) check(c *call) error {
	if c.ndjson {
		if x.format != "ndjson" && c.flags.Changed("format") {
			return c.misused("give either --format %s or --ndjson", x.format)
		}
		x.format = "ndjson"
	}
	isRange := len(c.args) == 2
	switch {
	case x.format != "perfetto" && len(x.selected) > 0:
		return c.misused("--select is for perfetto")
	case x.writesTables():
		return cmp.Or(x.checkTables(c), c.atOrRange(1))
	case x.format == "perfetto":
		return cmp.Or(x.checkTrace(c), c.atOrRange(1))
	case c.flags.Changed("every"):
		return c.misused("--every is for parquet, sqlite and perfetto")
	case !isRange && x.format != "csv" && len(x.components) > 0:
		return c.misused("an export of a state needs all components; use --component for csv and ranges")
	case !isRange && x.format == "csv" && x.out == "" && len(x.components) != 1:
		return c.misused("csv needs a file for each component: give one --component, or a directory with -o")
	}
	return c.atOrRange(1)
}

// run writes the export: one state, or the changes of a range of ticks. It calls s.Raw, so that
// control characters in stored names and values are written unchanged.
func (x *exportCmd) run(s *source) error {
	if x.writesTables() {
		return x.tables(s)
	}
	s.Raw()
	if x.format == "perfetto" {
		return x.toNewFile(s.app, func() error { return x.trace(s) })
	}
	if len(s.args) > 1 {
		return x.toNewFile(s.app, func() error { return x.changes(s, s.args[1]) })
	}
	im, err := s.state(x.at)
	if err != nil {
		return err
	}
	if x.format != "csv" {
		return x.toNewFile(s.app, func() error { return repair.Export(s.ctx, im.Image, s.Out, x.format == "ndjson") })
	}
	chosen := im.Components
	if len(x.components) > 0 {
		if chosen, err = s.components(im, x.components, true); err != nil {
			return err
		}
	}
	if x.out != "" {
		return x.directory(s.ctx, chosen)
	}
	// check allows CSV on standard output only with exactly one component.
	return exportCSV(s.ctx, s.Out, chosen[0])
}

// toNewFile calls f with standard output redirected to the new file. It flushes the file even if f
// fails, because cmp.Or evaluates all arguments.
func (x *exportCmd) toNewFile(a *app, f func() error) error {
	if x.out == "" {
		return f()
	}
	return newFile(x.out, func(w io.Writer) error {
		stdout := a.Writer
		a.Writer = bufio.NewWriter(w)
		defer func() { a.Writer = stdout }()
		return cmp.Or(f(), a.Flush())
	})
}

// newFile creates a file, calls f to write the file, and removes the file after an error. It never
// overwrites an existing file. The file is closed even if f fails, because cmp.Or evaluates all
// arguments.
func newFile(path string, f func(w io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return outputExists(path)
	}
	if err != nil {
		return systemError(err)
	}
	if err := cmp.Or(f(file), file.Close()); err != nil {
		return cmp.Or(err, os.Remove(path))
	}
	return nil
}

// outputExists returns the error for an output path that exists.
func outputExists(path string) error {
	return fail(exitUsage, "", "%s exists; give a new name, because nothing is overwritten", path)
}

// directory writes a CSV file for each component into a new directory. It removes the directory
// after an error.
func (x *exportCmd) directory(ctx context.Context, components []*inspect.Component) error {
	if err := os.Mkdir(x.out, 0o777); errors.Is(err, os.ErrExist) {
		return outputExists(x.out)
	} else if err != nil {
		return systemError(err)
	}
	for _, c := range components {
		err := newFile(x.out+"/"+FileName(c.Name)+".csv", func(w io.Writer) error { return exportCSV(ctx, w, c) })
		if err != nil {
			return cmp.Or(err, os.RemoveAll(x.out))
		}
	}
	return nil
}

// FileName converts name to a file name. Different names have different file names. Bytes other
// than letters, digits, _, - and . are escaped, as in %2F. A leading dot is escaped too.
func FileName(name string) string {
	var b []byte
	for i := range len(name) {
		c := name[i]
		plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.' && i > 0
		if plain {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return string(b)
}

// changes writes the changes of the ticks of a range, both ends included.
func (x *exportCmd) changes(s *source, text string) error {
	from, to, err := s.changeEnds(text)
	if err != nil {
		return err
	}
	if err := s.requireComponents(fmt.Sprintf("record:%d", to), x.components); err != nil {
		return err
	}
	changes := x.differences(s, from, to)
	if x.format == "csv" {
		return changesCSV(s.app, changes)
	}
	// stream reads the flag --ndjson, so set it for --format ndjson.
	s.ndjson = x.format == "ndjson"
	doc := changesDoc{From: describe.StateOf(s.View, from), To: to, Changes: []tickDifferentDoc{}}
	return stream(s.app, &doc, mapped(changes, func(x tickDifference) (tickDifferentDoc, error) {
		doc, err := differenceDocOf(x.Difference)
		return tickDifferentDoc{x.commit.Tick, x.commit.Seq, doc}, err
	}))
}

// changeEnds returns two records for a range A..B: that of the state before tick A, and that of
// state B. A range without a start begins after the oldest state. If the state before tick A is
// unknown, changeEnds says so, and the changes are those of the later ticks.
func (s *source) changeEnds(text string) (from, to uint64, err error) {
	first, last, err := parseRange(text)
	if err != nil {
		return 0, 0, err
	}
	if from, to, err = s.resolveEnds(first, last); err != nil {
		return 0, 0, err
	}
	if first == "" {
		from = s.oldest(to)
	}
	// Check for damage before anything is printed. Otherwise it would be found in the middle of the
	// output.
	if _, err = s.Path(from, to); damaged(err) {
		return 0, 0, err
	} else if err != nil {
		return 0, 0, s.missing(describe.Command("diff", s.path, fmt.Sprintf("record:%d", from), fmt.Sprintf("record:%d", to)), "record %d does not lead to record %d: %w", from, to, err)
	}
	// A range without a start has no first tick, and the state after record 0 has no tick.
	if first == "" || from == 0 {
		return from, to, nil
	}
	before, ok := s.beforeTick(from)
	if !ok {
		s.printNote("%s: what the first tick of the range changed is unknown, because the store has no older state", s.path)
		return from, to, nil
	}
	_, err = s.Path(before, from)
	return before, to, err
}

// A tickDifference is a difference between the states before and after a tick.
type tickDifference struct {
	describe.Difference
	commit *inspect.Commit
}

// differences visits the changes of the ticks between two records. A difference is valid only until
// visit() returns.
func (x *exportCmd) differences(s *source, from, to uint64) walk[tickDifference] {
	return func(visit func(tickDifference) error) error {
		return s.Changes(s.ctx, from, to, func(d *inspect.Diff, c *inspect.Commit) error {
			if len(x.components) > 0 {
				onlyComponents(d, x.components)
			}
			for _, y := range describe.Differences(d, false, nil) {
				if err := visit(tickDifference{y, c}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// changesCSV writes a line for each changed field, with values as JSON.
func changesCSV(a *app, changes walk[tickDifference]) error {
	out := csv.NewWriter(a.Out)
	// The csv writer stores its first error, which is checked at the end.
	_ = out.Write([]string{"tick", "record", "entity", "component", "change", "field", "old", "new"})
	err := changes(func(x tickDifference) error {
		fields, err := fieldsOf(x.Difference)
		entity, component := x.Names()
		for _, d := range fields {
			_ = out.Write([]string{
				strconv.FormatUint(x.commit.Tick, 10), strconv.FormatUint(x.commit.Seq, 10), entity, component, x.Change,
				d.Path, exactText(d.Old), exactText(d.New),
			})
		}
		return err
	})
	out.Flush()
	return cmp.Or(err, out.Error())
}

// fieldsOf returns the fields that differ. An added or removed component is one entry without a
// path. A created or destroyed entity is one entry without values.
func fieldsOf(x describe.Difference) ([]inspect.FieldDiff, error) {
	if x.Component == nil {
		return make([]inspect.FieldDiff, 1), nil
	}
	if x.Change == "changed" {
		return x.Component.Fields(x.Row)
	}
	before, after, err := x.Values()
	return []inspect.FieldDiff{{Old: before, New: after}}, err
}

// exactText returns v as exact JSON, or "" if v is missing.
func exactText(v layout.Value) string {
	if v.Kind() == 0 {
		return ""
	}
	return string(v.AppendExact(nil))
}

// maxFlatArray is the largest array whose elements have separate columns. A longer array is one
// column of JSON.
const maxFlatArray = 16

// exportCSV writes a table of the rows of c: the entity, then a column for each field. Structs and
// short arrays are split into columns. Unused rows are left out. A resource has one row with an
// empty entity.
func exportCSV(ctx context.Context, w io.Writer, c *inspect.Component) error {
	out := csv.NewWriter(w)
	line := []string{"entity"}
	columnsOf("", c.Layout, func(name string, _ *layout.Type) { line = append(line, name) })
	_ = out.Write(line) // The writer stores its first error.
	for row := range c.Len() {
		entity := "" // Empty for a resource.
		if !c.Resource {
			if c.Entities()[row] == ecs.Vacant {
				continue
			}
			entity = c.Entities()[row].String()
		}
		v, err := c.Value(row)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		line = append(line[:0], entity)
		cellsOf(v, func(v layout.Value) { line = append(line, cellText(v)) })
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// isFlat reports whether a value of type t is split into columns.
func isFlat(t *layout.Type) bool {
	return t.Kind == layout.Struct || t.Kind == layout.Array && t.Len <= maxFlatArray
}

// columnsOf calls visit() with the names and types of the columns of t: X, Info.Range, Slots[1]. A
// type that cannot be split has one column, "value". cellsOf has the same order.
func columnsOf(path string, t *layout.Type, visit func(name string, t *layout.Type)) {
	switch {
	case t.Kind == layout.Struct:
		for _, f := range t.Fields {
			columnsOf(strings.TrimPrefix(path+"."+f.Name, "."), f.Type, visit)
		}
	case isFlat(t):
		for i := range t.Len {
			columnsOf(path+"["+strconv.Itoa(i)+"]", t.Elem, visit)
		}
	default:
		visit(cmp.Or(path, "value"), t)
	}
}

// cellsOf calls visit() with the value of v in each column of its type.
func cellsOf(v layout.Value, visit func(layout.Value)) {
	if !isFlat(v.Type()) {
		visit(v)
		return
	}
	for i := range v.Len() {
		cellsOf(v.Index(i), visit)
	}
}

// cellText returns v as a CSV cell. Strings are unquoted, nil is empty, and constants and durations
// are numbers. Other values, such as maps, are JSON.
func cellText(v layout.Value) string {
	switch k := v.Kind(); {
	case v.IsNil():
		return ""
	case k == layout.String:
		return v.Text()
	case !v.Type().Named() && (k < layout.Complex64 || k == layout.Entity):
		return v.String()
	}
	return string(v.AppendExact(nil))
}
