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

// A document is a value of a struct type whose name ends in Doc: lsDoc makes documents of the
// format ecsdump.ls/1. The list of a document is its only member that is a slice of such structs:
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
// List elements are printed as they are read, so an error may occur in the middle of a list. The
// printed document is complete even after an error. The error is printed after the document and
// sets the exit status.

// docSuffix is the suffix of the names of document types.
const docSuffix = "Doc"

// formatOf returns the format of documents of a type: "ecsdump.ls/1". The number stays 1 until a
// member is removed or changes its meaning.
func formatOf(typeName string) string {
	return "ecsdump." + strings.TrimSuffix(typeName, docSuffix) + "/1"
}

// printJSON prints doc as JSON; with --ndjson, the elements of its list on separate lines. The
// document is a complete value in memory. A document with a long list is printed by stream.
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

// A report is a document that can also be printed as text. Its method prints lines and tables,
// which return no error: execute checks for write errors at the end.
type report interface{ print(a *app) }

// printReport prints doc as JSON or as text, depending on the flags.
func (a *app) printReport(doc report) error {
	if a.json {
		return a.printJSON(doc)
	}
	doc.print(a)
	return nil
}

// list prints items as they are read, as the list of doc or as rows of g. A command thus has one
// walk for both forms.
func list[T any](a *app, doc any, items walk[T], g *term.Grid, row func(T)) error {
	if a.json {
		return stream(a, doc, items)
	}
	_, err := rows(a, items, g, row)
	return err
}

// rows prints items as text while they are read. It calls the function row to add an item to g. It
// returns the number of items, and prints no headings if there are none. After each row it checks
// whether the output is still open, so a walk through a large store ends early.
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

// printMore prints how many of total things follow the printed ones and were left out by a limit.
func (a *app) printMore(n, total int, one, many string) {
	if n > 0 {
		a.Line("%d more of %s; --limit 0 prints all", n, term.Count(total, one, many))
	}
}

// printMoreUnknown prints that more items follow the printed ones, without their number. A limit
// left these items out.
func (a *app) printMoreUnknown(many string) { a.Line("more %s; --limit 0 prints all", many) }

// printEarlier prints the number n of items before the printed ones. A limit left these items out.
func (a *app) printEarlier(n int, one, many string) {
	if n > 0 {
		a.Line("%s before these; --limit 0 prints all", term.Count(n, one, many))
	}
}

// rowPointer returns a pointer to row, or nil for -1, so that the JSON member is omitted.
func rowPointer(row int) *int {
	if row < 0 {
		return nil
	}
	return &row
}

// A walk calls visit for one item after the other, as the walks of package inspect do. It ends with
// the first error, which is an error of reading or of visit. An item is valid only until visit
// returns.
type walk[T any] = func(visit func(T) error) error

// errEnough is returned by a visit function to end a walk early.
var errEnough = errors.New("enough")

// ignoreEnough returns err, the result of a walk. It returns nil if err is errEnough, because visit
// then ended the walk early.
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

// mapped returns a walk that visits f of each item.
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

// stream prints doc as JSON with items as its list, which may exceed memory. The list in doc is
// empty. With --ndjson each item has its own line, and so have the members before and after the
// list. The lines of items do not contain the member format. If an item fails, stream completes the
// document without further items, and returns the error.
//
// Members after the list are marshalled after the last item. If doc is a pointer, the caller can
// set them while items are printed.
//
//	before      {"format":"ecsdump.log/1","earlier":0,          marshalled with an empty list
//	list        "records": [ item, item, …                      one by one
//	after       ], "end":"true"}                                marshalled again, after the list
//
// The document is marshalled twice and cut at its list, so tags, embedded structs and the order
// of members follow package json in both forms.
func stream[T any](a *app, doc any, items walk[T]) error {
	list, _ := listOf(doc)
	if list == "" {
		return fmt.Errorf("%T has no list", doc)
	}
	before, _, err := membersAround(doc, list)
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
	// Marshal again: the members after the list may have been set while items were printed.
	_, behind, err := membersAround(doc, list)
	if err == nil {
		a.printMembersAfter(n, formatMember(doc), behind)
	}
	return cmp.Or(bad, err, a.Broken())
}

// item prints item n of a list. The comma comes before an item, because the last item is unknown
// until the walk ends.
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

// printMembersAfter prints the members after a list of n items. With --ndjson it prints no line if
// no member follows the list.
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

// indented returns JSON on lines that begin with prefix, except the first.
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

// membersAround returns the members of doc before and after its list, without braces. The members
// before the list begin with the format. membersAround searches the marshalled JSON, because
// package json decides which members are omitted and which come from embedded structs.
func membersAround(doc any, list string) (before, behind string, err error) {
	text, err := formatted(doc)
	if err != nil {
		return "", "", err
	}
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
			return text[1:start], strings.TrimPrefix(text[d.InputOffset():len(text)-1], ","), err
		}
	}
	return "", "", cmp.Or(err, fmt.Errorf("%T has no member %s", doc, list))
}

// listOf returns the list of doc that --ndjson splits: the only member that is a slice of
// documents. The name is empty if there is no list, or if the list is in an embedded struct that
// is nil.
//
// A document with two such lists cannot be streamed, and is printed in one piece. Slices of other
// types, such as strings and values, do not count.
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
