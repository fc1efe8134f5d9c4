package layout

import (
	"fmt"
	"reflect"
	"strings"
)

// tagKey is the key of the struct tag for stored names.
const tagKey = "stet"

// A fieldName holds the stored name of a Go struct field and its former names.
type fieldName struct {
	name   string
	former []string
}

// nameOf returns the stored name of f and its former names. It ignores errors in the tag, because
// describe has already reported them.
func nameOf(f reflect.StructField) fieldName {
	n, _ := parseTag(f)
	return n
}

// parseTag parses the tag of f:
//
//	Health int `stet:"HP"`              stored as HP
//	Health int `stet:",was=HP"`         stored as Health, earlier as HP
//	Health int `stet:"hp,was=HP,was=L"` stored as hp, earlier as HP or L
func parseTag(f reflect.StructField) (n fieldName, fault string) {
	n.name = f.Name
	tag, ok := f.Tag.Lookup(tagKey)
	if !ok {
		return n, ""
	}
	parts := strings.Split(tag, ",")
	if parts[0] != "" {
		n.name = parts[0]
	}
	for _, p := range parts[1:] {
		former, ok := strings.CutPrefix(p, "was=")
		if !ok {
			return n, fmt.Sprintf("tag %.80q: %.40q is not of the form was=Name", tag, p)
		}
		n.former = append(n.former, former)
	}
	for _, name := range append(n.former, n.name) {
		if !validFieldName(name) {
			return n, fmt.Sprintf("tag %.80q: %.40q is not a field name", tag, name)
		}
	}
	return n, ""
}

// formerFault returns an error text if two fields of t have the same stored or former name.
// Otherwise it returns "".
func (t *Type) formerFault() string {
	claimed := make(map[string]bool, len(t.Fields))
	for _, f := range t.Fields {
		claimed[f.Name] = true
	}
	for _, f := range t.Fields {
		for _, former := range t.Former[f.Name] {
			if claimed[former] {
				return fmt.Sprintf("field %s: its former name %s also belongs to another field; rename them one release apart, or migrate", f.Name, former)
			}
			claimed[former] = true
		}
	}
	return ""
}
