package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
)

// A document is a value of a struct type whose name ends in Doc. For example, lsDoc is the type of
// documents of the format ecsdump.ls/1. A document has at most one list: a member that is a slice
// of other document types.
//
//	--json    {                              --ndjson   {"format":"ecsdump.ls/1","tick":7,…}
//	            "format": "ecsdump.ls/1",               {"entity":"0v1", …}
//	            "tick": 7,                              {"entity":"1v1", …}
//	            "total": 2,
//	            "entities": [
//	              {"entity": "0v1", …},
//	              {"entity": "1v1", …}
//	            ]
//	          }
//
// List elements are printed as they are read. After a read error, the document is still completed,
// so its JSON is valid. Then the error is printed and sets the exit status.

// docSuffix is the suffix of the names of document types.
const docSuffix = "Doc"

// formatOf returns the format of documents of a type: "ecsdump.ls/1". The number stays 1 until a
// member is removed or changes its meaning.
func formatOf(typeName string) string {
	return "ecsdump." + strings.TrimSuffix(typeName, docSuffix) + "/1"
}

// printJSON prints doc as JSON. With --ndjson, it prints each list element on its own line. For a
// long list, use stream.
func (a *app) printJSON(doc any) error {
	if name, items := listOf(doc); name != "" && a.ndjson {
		return stream(a, doc, each(items.Len(), func(i int) (any, error) { return items.Index(i).Interface(), nil }))
	}
	text, err := formatted(doc)
	if err != nil {
		return err
	}
	if !a.ndjson {
		text = indented(text, "")
	}
	a.Print(text, "\n")
	return a.Broken()
}

// A report is a document that can also be printed as text.
type report interface{ print(a *app) }

// printReport prints doc as JSON or as text, depending on the flags.
func (a *app) printReport(doc report) error {
	if a.json {
		return a.printJSON(doc)
	}
	doc.print(a)
	return nil
}

// list prints items as they are read: with --json as the list of doc, otherwise as rows of g.
func list[T any](a *app, doc any, items walk[T], g *term.Grid, row func(T)) error {
	if a.json {
		return stream(a, doc, items)
	}
	_, err := rows(a, items, g, row)
	return err
}

// rows prints items as text while they are read, and returns their number. row() adds an item to g.
// rows stops early if the output is closed. Without items, rows prints no headings.
func rows[T any](a *app, items walk[T], g *term.Grid, row func(T)) (n int, err error) {
	err = items(func(item T) error {
		n++
		row(item)
		return a.Broken()
	})
	if n > 0 {
		g.Flush()
	}
	return n, err
}

// printMore prints that a limit left out the last n of total items.
func (a *app) printMore(n, total int, one, many string) {
	if n > 0 {
		a.Line("%d more of %s; --limit 0 prints all", n, term.Count(total, one, many))
	}
}

// printMoreUnknown prints that a limit left out an unknown number of items at the end.
func (a *app) printMoreUnknown(many string) { a.Line("more %s; --limit 0 prints all", many) }

// printEarlier prints that a limit left out the first n items.
func (a *app) printEarlier(n int, one, many string) {
	if n > 0 {
		a.Line("%s before these; --limit 0 prints all", term.Count(n, one, many))
	}
}

// rowPointer returns a pointer to a row number. It returns nil for row -1, so that the JSON member
// is omitted.
func rowPointer(row int) *int {
	if row < 0 {
		return nil
	}
	return &row
}

// A walk calls visit() for each item in order, and returns the first error. An item is valid only
// until visit() returns.
type walk[T any] = func(visit func(T) error) error

// errEnough is returned by a visit function to end a walk early.
var errEnough = errors.New("enough")

// ignoreEnough returns nil for errEnough, and any other error unchanged.
func ignoreEnough(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// each returns a walk that visits f(0) to f(n-1).
func each[T any](n int, f func(i int) (T, error)) walk[T] {
	return func(visit func(T) error) error {
		for i := range n {
			v, err := f(i)
			if err == nil {
				err = visit(v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// mapped returns a walk that applies f to each item.
func mapped[T, U any](items walk[T], f func(T) (U, error)) walk[U] {
	return func(visit func(U) error) error {
		return items(func(item T) error {
			u, err := f(item)
			if err != nil {
				return err
			}
			return visit(u)
		})
	}
}

// stream prints doc as JSON, with items as its list. The items are printed as they are read,
// because they may exceed memory. If an item fails, stream completes the document and returns the
// error. The output has three parts:
//
//	{"format":"ecsdump.log/1","earlier":0,   the members before the list, encoded at the start
//	"records": [ item, item, …               the items, encoded one by one
//	], "end":"true"}                         the members after the list, encoded at the end
//
// If doc is a pointer, the walk can set the members that follow the list. With --ndjson, each item
// is a line, and so are the members before and after the list.
func stream[T any](a *app, doc any, items walk[T]) error {
	before, list, _, err := membersAround(doc)
	if err != nil {
		return err
	}
	if a.ndjson {
		a.Print("{", before, "}\n")
	} else {
		a.Print(strings.TrimSuffix(indented("{"+before+"}", ""), "\n}"), ",\n  ", strconv.Quote(list), ": [")
	}
	n := 0
	bad := items(func(item T) error {
		b, err := query.Marshal(item)
		if err != nil {
			return err
		}
		a.item(n, string(b))
		n++
		return a.Broken()
	})
	// Marshal again: the walk may have set the members after the list.
	_, _, behind, err := membersAround(doc)
	if err == nil {
		a.printMembersAfter(n, formatMember(doc), behind)
	}
	return cmp.Or(bad, err, a.Broken())
}

// item prints item n of a list, and a comma before it unless it is the first.
func (a *app) item(n int, text string) {
	switch {
	case a.ndjson:
		a.Print(text, "\n")
	case n > 0:
		a.Print(",")
		fallthrough
	default:
		a.Print("\n    ", indented(text, "    "))
	}
}

// printMembersAfter prints the members that follow a list of n items.
func (a *app) printMembersAfter(n int, format, members string) {
	if a.ndjson {
		if members != "" {
			a.Print("{", format, ",", members, "}\n")
		}
		return
	}
	if n > 0 {
		a.Print("\n  ")
	}
	if a.Print("]"); members != "" {
		// Omit the opening brace, because it was printed before the list.
		a.Print(",", indented("{"+members+"}", "")[1:], "\n")
		return
	}
	a.Print("\n}\n")
}

// indented returns indented JSON. All lines except the first begin with prefix.
func indented(text, prefix string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, "  "); err != nil {
		panic(err) // The JSON was just marshalled, so it is valid.
	}
	return out.String()
}

// formatMember returns the first member of doc.
func formatMember(doc any) string {
	return fmt.Sprintf(`"format":%q`, formatOf(reflect.Indirect(reflect.ValueOf(doc)).Type().Name()))
}

// formatted returns doc as an object on one line, with its format first.
func formatted(doc any) (string, error) {
	b, err := query.Marshal(doc)
	members := strings.TrimPrefix(string(b), "{")
	if members != "}" {
		members = "," + members
	}
	return "{" + formatMember(doc) + members, err
}

// membersAround returns the name of the list of doc, and the JSON members of doc before and after
// the list, without braces. The first member is the format.
func membersAround(doc any) (before, list, behind string, err error) {
	text, err := formatted(doc)
	if err != nil {
		return "", "", "", err
	}
	list, _ = listOf(doc)
	d := json.NewDecoder(strings.NewReader(text))
	_, err = d.Token() // The opening brace.
	for err == nil && d.More() {
		start := d.InputOffset()
		var name json.Token
		var value json.RawMessage
		if name, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
		if name == list {
			return text[1:start], list, strings.TrimPrefix(text[d.InputOffset():len(text)-1], ","), err
		}
	}
	return "", "", "", cmp.Or(err, fmt.Errorf("%T has no list", doc))
}

// listOf returns the list of doc: the only member that is a slice of documents. The name is empty
// if doc has no list, has two such members, or has the list in a nil embedded struct.
func listOf(doc any) (name string, items reflect.Value) {
	v := reflect.Indirect(reflect.ValueOf(doc))
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Type.Kind() != reflect.Slice || !strings.HasSuffix(f.Type.Elem().Name(), docSuffix) {
			continue
		}
		list, err := v.FieldByIndexErr(f.Index)
		if err != nil || name != "" {
			return "", items
		}
		name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
		items = list
	}
	return name, items
}

// printFailure prints f to standard error: the message, then the commands to try. With --json, it
// prints one line of JSON with the first command.
func (a *app) printFailure(f *failure) {
	if f.code == exitProblem && errors.Is(f, errDiffer) {
		return // The differences are printed already.
	}
	if a.json {
		var doc errorDoc
		doc.Error.Code, doc.Error.Kind = f.code, exits[f.code].kind
		doc.Error.Message = f.Error()
		doc.Error.Try, _, _ = strings.Cut(f.next, "\n")
		text, err := formatted(doc)
		if err != nil {
			panic(err) // The document has only numbers and text.
		}
		fmt.Fprintln(a.stderr, text)
		return
	}
	for _, line := range f.lines() {
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(line))
	}
}

// printNote prints a message for the user to standard error. With --json, it prints nothing.
func (a *app) printNote(format string, args ...any) {
	if !a.json {
		a.bar.End()
		fmt.Fprintf(a.stderr, "ecsdump: %s\n", term.Clean(fmt.Sprintf(format, args...)))
	}
}
