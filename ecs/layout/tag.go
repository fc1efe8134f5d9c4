package layout

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// tagKey is the key of the struct tag for stored names.
const tagKey = "stet"

// nameOf returns the stored name of f. It ignores errors in the tag, because describe has already
// reported them.
func nameOf(f reflect.StructField) string {
	name, _, _ := parseTag(f)
	return name
}

// parseTag parses the tag of f. It returns the stored name of f and its former names:
//
//	Health int `stet:"HP"`              stored as HP
//	Health int `stet:",was=HP"`         stored as Health, earlier as HP
//	Health int `stet:"hp,was=HP,was=L"` stored as hp, earlier as HP or L
func parseTag(f reflect.StructField) (name string, former []string, fault string) {
	tag, ok := f.Tag.Lookup(tagKey)
	if !ok {
		return f.Name, nil, ""
	}
	parts := strings.Split(tag, ",")
	name = cmp.Or(parts[0], f.Name)
	for _, p := range parts[1:] {
		was, ok := strings.CutPrefix(p, "was=")
		if !ok {
			return name, former, fmt.Sprintf("tag %.80q: %.40q is not of the form was=Name", tag, p)
		}
		former = append(former, was)
	}
	for _, n := range append(former, name) {
		if !validFieldName(n) {
			return name, former, fmt.Sprintf("tag %.80q: %.40q is not a field name", tag, n)
		}
	}
	return name, former, ""
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
