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

// A document is a value of a struct type whose name ends in Doc: lsDoc makes
// documents of the format ecsdump.ls/1. Its list, if it has one, is the only member
// that is a slice of such structs:
//
//	--json    {                                  --ndjson   {"format":"ecsdump.ls/1","tick":7,"total":2}
//	            "format": "ecsdump.ls/1",                   {"entity":"0v1", …}
//	            "tick": 7,                                  {"entity":"1v1", …}
//	            "total": 2,
//	            "entities": [
//	              {"entity": "0v1", …},
//	              {"entity": "1v1", …}
//	            ]
//	          }
//
// Lists are printed as they are read, so an error may come in the middle of one. What is
// printed is a whole document all the same: the error comes behind it, with its exit status.

// docSuffix ends the names of document types.
const docSuffix = "Doc"

// formatOf returns the format of documents of a type: "ecsdump.ls/1". The number is 1
// until one loses a member, or a member comes to mean something else.
func formatOf(typeName string) string {
	return "ecsdump." + strings.TrimSuffix(typeName, docSuffix) + "/1"
}

// document prints doc as JSON; with --ndjson, the elements of its list on lines of
// their own. A document is one whole value in memory; what has a list that may be long is printed
// by stream.
func (a *app) document(doc any) error {
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

// A report is a document that can be printed for people as well. Its method prints lines and
// tables, which keep no error: execute asks at the end.
type report interface{ print(a *app) }

// tell prints doc: as JSON, or for people.
func (a *app) tell(doc report) error {
	if a.json {
		return a.document(doc)
	}
	doc.print(a)
	return nil
}

// list prints items as they are read: as the list of doc, or as rows. Which of the two it is, only
// this function knows: a command has one walk for both.
func list[T any](a *app, doc any, items walk[T], g *term.Grid, row func(T)) error {
	if a.json {
		return stream(a, doc, items)
	}
	_, err := rows(a, items, g, row)
	return err
}

// rows prints items for people as they are read, by row, which adds one to g. It returns how
// many there were; if there were none, it has not even printed the headings of g. After each row it
// asks whether anybody still reads, so that a walk through a large store ends.
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

// more prints how many of total things a limit left out behind those that were printed.
func (a *app) more(n, total int, one, many string) {
	if n > 0 {
		a.Line("%d more of %s; --limit 0 prints all", n, term.Count(total, one, many))
	}
}

// moreUnknown says that a limit left out things behind those that were printed, nobody knows how many.
func (a *app) moreUnknown(many string) { a.Line("more %s; --limit 0 prints all", many) }

// earlier prints how many things a limit left out before those that will be printed.
func (a *app) earlier(n int, one, many string) {
	if n > 0 {
		a.Line("%s before these; --limit 0 prints all", term.Count(n, one, many))
	}
}

// present returns a row for a member that is missing if there is none: -1.
func present(row int) *int {
	if row < 0 {
		return nil
	}
	return &row
}

// A walk calls visit with one thing after the other, as those of package inspect do. It ends
// with the first error, be it its own or that of visit. What is visited may be good only until
// visit returns.
type walk[T any] = func(visit func(T) error) error

// errEnough ends a walk whose caller wants no more of it.
var errEnough = errors.New("enough")

// ended returns what is wrong with a walk that ended with err: nothing, if it had visited
// enough.
func ended(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// each walks over what f makes of 0 to n-1.
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

// mapped walks over what f makes of items.
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

// stream prints doc as JSON with items as its list, which may be too long to be
// held; in doc itself it is empty. With --ndjson the items are on lines of their own,
// and the members before and behind the list as well: of these only the items have no
// format. An error among the items ends the list, not the document, and is returned.
//
// Members behind the list are printed behind it. If doc is a pointer, they may be
// set while items are printed.
//
//	before      {"format":"ecsdump.log/1","earlier":0,          marshalled with an empty list
//	list        "records": [ item, item, …                      one by one
//	behind      ], "end":"true"}                                marshalled again, when all were printed
//
// The document is marshalled twice and cut at its list, so that tags, embedded structs and the
// order of members are those of package json in both forms.
func stream[T any](a *app, doc any, items walk[T]) error {
	list, _ := listOf(doc)
	if list == "" {
		return fmt.Errorf("%T has no list", doc)
	}
	before, _, err := around(doc, list)
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
	_, behind, err := around(doc, list) // Anew: they may have been set since.
	if err == nil {
		a.behind(n, formatMember(doc), behind)
	}
	return cmp.Or(bad, err, a.Broken())
}

// item prints the item n of a list. The comma comes before an item rather than behind it, as
// nobody knows which one is the last until the walk ends.
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

// behind prints the members behind a list of n items. With --ndjson, if nothing stands behind the
// list there is no such line.
func (a *app) behind(n int, format, members string) {
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
		// Without the brace that opens them, which stands before the list.
		a.Print(",", indented("{"+members+"}", "")[1:], "\n")
		return
	}
	a.Print("\n}\n")
}

// indented returns JSON on lines that begin with prefix, but for the first.
func indented(text, prefix string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, "  "); err != nil {
		panic(err) // It was just marshalled.
	}
	return out.String()
}

// formatMember returns the first member of doc.
func formatMember(doc any) string {
	return fmt.Sprintf(`"format":%q`, formatOf(reflect.Indirect(reflect.ValueOf(doc)).Type().Name()))
}

// formatted returns doc as an object on one line, its format first.
func formatted(doc any) (string, error) {
	b, err := query.Marshal(doc)
	members := strings.TrimPrefix(string(b), "{")
	if members != "}" {
		members = "," + members
	}
	return "{" + formatMember(doc) + members, err
}

// around returns the members of doc before its list, of which the first is the format,
// and those behind it; without braces. It looks for the list in the JSON, since only package
// json knows which members are left out and which come from embedded structs.
func around(doc any, list string) (before, behind string, err error) {
	text, err := formatted(doc)
	if err != nil {
		return "", "", err
	}
	d := json.NewDecoder(strings.NewReader(text))
	_, err = d.Token() // The brace.
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

// listOf returns the list of doc, which --ndjson takes apart: the only member that is a
// slice of documents; no name if there is none, or the embedded struct with it is not there.
//
// A document with two such lists has none that could be streamed, and is printed whole. Slices of
// other types, as of strings and values, do not count.
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
