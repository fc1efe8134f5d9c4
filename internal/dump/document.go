package dump

import (
	"bytes"
	"encoding/json"
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

// versions are the versions of the document types that lost a member, or in which
// one came to mean something else. Those of the others are 1.
var versions = map[string]int{}

// docSuffix ends the names of document types.
const docSuffix = "Doc"

// formatOf returns the format of documents of type t: "ecsdump.ls/1".
func formatOf(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), docSuffix)
	return fmt.Sprintf("ecsdump.%s/%d", name, max(1, versions[name]))
}

// document prints doc as JSON; with --ndjson, the elements of its list on lines of
// their own.
func (a *app) document(doc any) error {
	v := reflect.Indirect(reflect.ValueOf(doc))
	if list, ok := listOf(v.Type()); ok && a.ndjson {
		if slice, err := v.FieldByIndexErr(list.index); err == nil { // Else of an embedded struct that is not there.
			return a.lines(doc, list.name, elements(slice))
		}
	}
	members, err := membersOf(doc)
	if err != nil {
		return err
	}
	return a.write(members, a.ndjson)
}

// stream prints doc as JSON with items as its list, which may be too long to be
// held; in doc itself it is empty. An error among the items ends the list, not the
// document, and is returned.
//
// Members behind the list are printed behind it. If doc is a pointer, they may be
// set while items are printed.
func stream[T any](a *app, doc any, items iter.Seq2[T, error]) error {
	list, ok := listOf(reflect.Indirect(reflect.ValueOf(doc)).Type())
	if !ok {
		return fmt.Errorf("%T has no list", doc)
	}
	untyped := func(yield func(any, error) bool) {
		for item, err := range items {
			if !yield(item, err) {
				return
			}
		}
	}
	if a.ndjson {
		return a.lines(doc, list.name, untyped)
	}
	return a.streamed(doc, list.name, untyped)
}

// elements iterates over a slice.
func elements(slice reflect.Value) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := range slice.Len() {
			if !yield(slice.Index(i).Interface(), nil) {
				return
			}
		}
	}
}

// lines prints the members of doc before its list, then the items, then the members
// behind it, each on a line. Of these only the items have no format.
func (a *app) lines(doc any, list string, items iter.Seq2[any, error]) error {
	before, _, err := membersAround(doc, list)
	if err != nil {
		return err
	}
	if err := a.write(before, true); err != nil {
		return err
	}
	bad := a.items(items, func(item []byte) { a.Print(string(item), "\n") })
	_, behind, err := membersAround(doc, list)
	if err == nil && len(behind) > 1 {
		err = a.write(behind, true)
	}
	return firstError(bad, err)
}

// streamed prints doc as one document.
func (a *app) streamed(doc any, list string, items iter.Seq2[any, error]) error {
	before, _, err := membersAround(doc, list)
	if err != nil {
		return err
	}
	a.Print("{")
	for _, m := range before {
		a.Print("\n  ", m.indented(), ",")
	}
	a.Print("\n  ", strconv.Quote(list), ": [")
	comma, end := "", "]"
	bad := a.items(items, func(item []byte) {
		a.Print(comma, "\n    ", indented(item, "    "))
		comma, end = ",", "\n  ]"
	})
	a.Print(end)
	_, behind, err := membersAround(doc, list)
	if err != nil {
		return firstError(bad, err)
	}
	for _, m := range behind[1:] {
		a.Print(",\n  ", m.indented())
	}
	a.Print("\n}\n")
	return firstError(bad, a.Broken())
}

// items calls f with each of items as JSON. It stops when output fails.
func (a *app) items(items iter.Seq2[any, error], f func([]byte)) error {
	for item, err := range items {
		if err != nil {
			return err
		}
		b, err := query.Marshal(item)
		if err != nil {
			return err
		}
		f(b)
		if err := a.Broken(); err != nil {
			return err
		}
	}
	return nil
}

func firstError(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// A member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// indented returns m as a line, or lines, of an indented object.
func (m member) indented() string { return fmt.Sprintf("%q: %s", m.name, indented(m.value, "  ")) }

func indented(b []byte, prefix string) string {
	var out bytes.Buffer
	if err := json.Indent(&out, b, prefix, "  "); err != nil {
		panic(err) // It was just marshalled.
	}
	return out.String()
}

// write prints members as an object, on one line or indented.
func (a *app) write(members []member, oneLine bool) error {
	if oneLine {
		a.Print(object(members), "\n")
		return a.Broken()
	}
	comma := "{"
	for _, m := range members {
		a.Print(comma, "\n  ", m.indented())
		comma = ","
	}
	a.Print("\n}\n")
	return a.Broken()
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
	format, err := query.Marshal(formatOf(reflect.Indirect(reflect.ValueOf(doc)).Type()))
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
