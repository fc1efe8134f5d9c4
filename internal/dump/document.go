package dump

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/internal/query"
)

// A document is a value of a struct type whose name ends in Doc: lsDoc makes
// documents of the format ecsdump.ls/1. Its list, if it has one, is the only member
// that is a slice of such structs.

// docSuffix ends the names of document types.
const docSuffix = "Doc"

// formatOf returns the format of documents of a type: "ecsdump.ls/1". The number is 1
// until one loses a member, or a member comes to mean something else.
func formatOf(typeName string) string {
	return "ecsdump." + strings.TrimSuffix(typeName, docSuffix) + "/1"
}

// document prints doc as JSON; with --ndjson, the elements of its list on lines of
// their own.
func (a *app) document(doc any) error {
	v := reflect.Indirect(reflect.ValueOf(doc))
	if list, ok := listOf(v.Type()); ok && a.ndjson {
		if slice, err := v.FieldByIndexErr(list.index); err == nil { // Else of an embedded struct that is not there.
			return stream(a, doc, each(slice.Len(), func(i int) (any, error) { return slice.Index(i).Interface(), nil }))
		}
	}
	members, err := membersOf(doc)
	if err != nil {
		return err
	}
	text := object(members)
	if !a.ndjson {
		text = indented(text, "")
	}
	a.Print(text, "\n")
	return a.Broken()
}

// tell prints doc as JSON, or calls people, which prints it for them.
func (a *app) tell(doc any, people func()) error {
	if a.json {
		return a.document(doc)
	}
	people()
	return nil
}

// each iterates over what f makes of 0 to n-1.
func each[T any](n int, f func(i int) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for i := range n {
			if v, err := f(i); !yield(v, err) {
				return
			}
		}
	}
}

// mapped iterates over what f makes of items, up to an error.
func mapped[T, U any](items iter.Seq2[T, error], f func(T) (U, error)) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for item, err := range items {
			var u U
			if err == nil {
				u, err = f(item)
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// visited iterates over what walk visits, up to an error.
func visited[T any](walk func(visit func(T) error) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := walk(func(v T) error {
			if !yield(v, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(*new(T), err)
		}
	}
}

// stream prints doc as JSON with items as its list, which may be too long to be
// held; in doc itself it is empty. With --ndjson the items are on lines of their own,
// and the members before and behind the list as well: of these only the items have no
// format. An error among the items ends the list, not the document, and is returned.
//
// Members behind the list are printed behind it. If doc is a pointer, they may be
// set while items are printed.
func stream[T any](a *app, doc any, items iter.Seq2[T, error]) error {
	list, ok := listOf(reflect.Indirect(reflect.ValueOf(doc)).Type())
	if !ok {
		return fmt.Errorf("%T has no list", doc)
	}
	before, _, err := membersAround(doc, list.name)
	if err != nil {
		return err
	}
	if a.ndjson {
		a.Print(object(before), "\n")
	} else {
		a.Print(strings.TrimSuffix(indented(object(before), ""), "\n}"), ",\n  ", strconv.Quote(list.name), ": [")
	}
	n, bad := 0, error(nil)
	for item, err := range items {
		var b []byte
		if err == nil {
			b, err = query.Marshal(item)
		}
		if err == nil {
			a.item(n, string(b))
			n, err = n+1, a.Broken()
		}
		if bad = err; bad != nil {
			break
		}
	}
	_, behind, err := membersAround(doc, list.name)
	if err == nil {
		a.behind(n, behind)
	}
	return cmp.Or(bad, err, a.Broken())
}

// item prints the item n of a list.
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

// behind prints what comes behind a list of n items: members of which the first is the
// format.
func (a *app) behind(n int, members []member) {
	more := len(members) > 1
	if a.ndjson {
		if more {
			a.Print(object(members), "\n")
		}
		return
	}
	if n > 0 {
		a.Print("\n  ")
	}
	if a.Print("]"); more {
		a.Print(",", indented(object(members[1:]), "")[1:], "\n")
		return
	}
	a.Print("\n}\n")
}

// A member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// indented returns JSON on lines that begin with prefix, but for the first.
func indented(text, prefix string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), prefix, "  "); err != nil {
		panic(err) // It was just marshalled.
	}
	return out.String()
}

// object returns members as an object on one line.
func object(members []member) string {
	var b strings.Builder
	for i, m := range members {
		fmt.Fprintf(&b, "%c%q:%s", "{,"[min(i, 1)], m.name, m.value)
	}
	return b.String() + "}"
}

// membersOf returns the members of doc in their order, its format first.
func membersOf(doc any) ([]member, error) {
	format, err := query.Marshal(formatOf(reflect.Indirect(reflect.ValueOf(doc)).Type().Name()))
	if err != nil {
		return nil, err
	}
	b, err := query.Marshal(doc)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	members := []member{{"format", format}}
	for d.More() {
		var m member
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m.name = name.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// membersAround returns the members of doc before and behind its list, both with
// the format first.
func membersAround(doc any, list string) (before, behind []member, err error) {
	members, err := membersOf(doc)
	at := 0
	for i, m := range members {
		if m.name == list {
			at = i
		}
	}
	if err == nil && at == 0 {
		err = fmt.Errorf("%T has no member %s", doc, list)
	}
	if err != nil {
		return nil, nil, err
	}
	return members[:at:at], append(members[:1:1], members[at+1:]...), nil
}

// A list is the member of a document type that --ndjson takes apart.
type list struct {
	name  string // In JSON.
	index []int
}

// listOf returns the list of the document type t: the only member that is a slice
// of documents.
func listOf(t reflect.Type) (found list, ok bool) {
	for _, f := range reflect.VisibleFields(t) {
		of := f.Type
		if of.Kind() != reflect.Slice || !strings.HasSuffix(of.Elem().Name(), docSuffix) {
			continue
		}
		if ok {
			return list{}, false
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		found, ok = list{name, f.Index}, true
	}
	return found, ok
}
