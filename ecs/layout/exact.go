package layout

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stet-ecs/stet/internal/near"
)

// AppendRow parses src and appends the row of t to dst. src is JSON in the form of
// [Value.AppendExact]. The members of an object may be in any order. Each must be present exactly
// once. A map may be an object or an array of [key, value], in any order.
//
// The error is a [*DataError] that names the field. AppendRow allocates a small multiple of
// len(src).
func (t *Type) AppendRow(dst, src []byte) ([]byte, error) {
	r := t.exactReader(src)
	return r.row(t, dst, src, nil)
}

// AppendPatched appends a copy of the given row, with the changes in src, to dst. src is JSON in
// the form of [Type.AppendRow], but members of structs may be missing. A missing member keeps its
// value from the row, or is zero if the row is nil.
//
// Arrays, slices, maps and pointers in src replace the old value completely. So members that are
// missing inside them are zero.
//
// The errors are those of AppendRow, and an error for an invalid row.
func (t *Type) AppendPatched(dst, row, src []byte) ([]byte, error) {
	if row != nil {
		if err := t.Check(row, 1); err != nil {
			return dst, err
		}
	}
	r := t.exactReader(src)
	r.patch = true
	return r.row(t, dst, src, row)
}

// An exactReader converts JSON to rows.
type exactReader struct {
	d *json.Decoder
	// The form of the rows to write: packed or msgpack.
	form  conversion
	patch bool // Set if fields may be missing.
}

func (t *Type) exactReader(src []byte) *exactReader {
	r := exactReader{d: json.NewDecoder(bytes.NewReader(src)), form: conversion{toPacked: t.Width() != varies}}
	r.d.UseNumber()
	return &r
}

// row parses the JSON text src and appends the row of t to dst. The slice before is the old row.
// Fields that src does not have are copied from the old row.
func (r *exactReader) row(t *Type, dst, src, before []byte) ([]byte, error) {
	start := len(dst)
	if !utf8.Valid(src) {
		return dst, bad("JSON is not UTF-8").of(t)
	}
	dst, err := r.value(t, dst, before)
	if err != nil {
		return dst[:start], err.of(t)
	}
	if _, e := r.d.Token(); !errors.Is(e, io.EOF) {
		return dst[:start], bad("more than one JSON value").of(t)
	}
	return dst, nil
}

// next reads the next token.
func (r *exactReader) next() (json.Token, *DataError) {
	token, err := r.d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, bad("JSON: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	return token, nil
}

// value parses a value of type t and appends it. The slice before is the old value, or nil for the
// zero value.
func (r *exactReader) value(t *Type, dst, before []byte) ([]byte, *DataError) {
	token, err := r.next()
	if err != nil {
		return dst, err
	}
	if t.Kind == Struct {
		return r.fields(t, dst, before, token)
	}
	return r.rest(t, dst, token)
}

// rest parses and appends a value of type t whose first token was already read.
func (r *exactReader) rest(t *Type, dst []byte, token json.Token) ([]byte, *DataError) {
	switch k := t.Kind; {
	case k >= Bytes && k != Struct && k != Array && token == nil:
		return append(dst, codeNil), nil
	case k == String:
		text, err := r.text(token)
		if err != nil {
			return dst, err
		}
		return append(appendLength(dst, &strForm, len(text)), text...), nil
	case k == Bytes:
		content, err := decodeBase64(token)
		return append(appendLength(dst, &binForm, len(content)), content...), err
	case k == Struct:
		return r.fields(t, dst, nil, token)
	case k == Map:
		return r.entries(t, dst, token)
	case k == Array || k == Slice || k == Pointer:
		return r.elements(t, dst, token)
	case k == Complex64 || k == Complex128:
		return r.complex(k, dst, token)
	}
	bits, err := parseScalar(t.Kind, token)
	return r.form.write(dst, t.Kind, bits, 0), err
}

// wants returns the error for an unexpected token. The parameter what describes the expected value.
func wants(what string, token json.Token) *DataError {
	found := "null"
	switch x := token.(type) {
	case bool:
		found = strconv.FormatBool(x)
	case json.Number:
		found = x.String()
	case string:
		found = strconv.Quote(x)
	case json.Delim:
		found = map[json.Delim]string{'{': "an object", '[': "an array"}[x]
		if found == "" {
			found = "the end"
		}
	}
	return bad("want " + what + ", found " + shortened(found))
}

// parseScalar returns the bits of a bool, integer, float or entity.
func parseScalar(k Kind, token json.Token) (uint64, *DataError) {
	number, _ := token.(json.Number)
	text, isText := token.(string)
	switch {
	case k == Bool:
		if x, ok := token.(bool); ok && x {
			return 1, nil
		} else if ok {
			return 0, nil
		}
	case k == Entity && isText:
		if bits, ok := parseEntity(text); ok {
			return bits, nil
		}
	case k.signed():
		if x, err := strconv.ParseInt(string(number), 10, k.bits()); err == nil {
			return uint64(x), nil
		}
	case k.unsigned():
		if x, err := strconv.ParseUint(string(number), 10, k.bits()); err == nil {
			return x, nil
		}
	case k == Float32 || k == Float64:
		if bits, ok := parseFloat(string(number)+text, isText, k.bits()); ok {
			return bits, nil
		}
	}
	if isNumber(k, string(number)) {
		return 0, bad(fmt.Sprintf("%s does not fit into %v", shortened(string(number)), k))
	}
	return 0, wants(k.String(), token)
}

// isNumber reports whether s has the form of a number of kind k. It does not check whether the
// number fits.
func isNumber(k Kind, s string) bool {
	if k == Float32 || k == Float64 {
		return s != ""
	}
	digits := strings.TrimPrefix(s, "-")
	return (k.signed() || k.unsigned()) && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// shortened returns s, cut to a limit for error texts.
func shortened(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// parseEntity parses an entity: the index, "v", and the generation.
func parseEntity(s string) (uint64, bool) {
	index, generation, ok := strings.Cut(s, "v")
	i, err1 := strconv.ParseUint(index, 10, 32)
	g, err2 := strconv.ParseUint(generation, 10, 32)
	return g<<32 | i, ok && err1 == nil && err2 == nil
}

// parseFloat returns the bits of a float of the given size, which is 32 or 64 bits. s is a JSON
// number, or the contents of a string if quoted is set.
func parseFloat(s string, quoted bool, size int) (uint64, bool) {
	if digits, ok := strings.CutPrefix(s, "NaN:"); ok && quoted {
		bits, err := strconv.ParseUint(digits, 16, size)
		v := Value{typ: &Type{Kind: map[int]Kind{32: Float32, 64: Float64}[size]}}
		return bits, err == nil && len(digits) == size/4 && math.IsNaN(v.float(bits))
	}
	switch {
	case s == "NaN":
		return plainNaN[size], quoted
	case quoted && s != "+Inf" && s != "-Inf":
		return 0, false
	}
	x, err := strconv.ParseFloat(s, size)
	if size == 32 {
		return uint64(math.Float32bits(float32(x))), err == nil
	}
	return math.Float64bits(x), err == nil
}

// complex parses and appends a complex number that begins with token.
func (r *exactReader) complex(k Kind, dst []byte, token json.Token) ([]byte, *DataError) {
	part := map[Kind]Kind{Complex64: Float32, Complex128: Float64}[k]
	if token != json.Delim('[') {
		return dst, wants("[real, imaginary]", token)
	}
	var parts [2]uint64
	for i := range parts {
		token, err := r.next()
		if err == nil {
			parts[i], err = parseScalar(part, token)
		}
		if err != nil {
			return dst, err
		}
	}
	return r.form.write(dst, k, parts[0], parts[1]), r.close(']')
}

// close reads the end of an array or object.
func (r *exactReader) close(end json.Delim) *DataError {
	token, err := r.next()
	if err == nil && token != end {
		err = wants("the end", token)
	}
	return err
}

// text parses a string that begins with the given token: a JSON string or {"base64": "…"}.
func (r *exactReader) text(token json.Token) (string, *DataError) {
	if s, ok := token.(string); ok {
		return s, nil
	}
	if token != json.Delim('{') {
		return "", wants("string", token)
	}
	if name, err := r.next(); err != nil || name != "base64" {
		return "", cmp.Or(err, wants(`"base64"`, name))
	}
	token, err := r.next()
	if err != nil {
		return "", err
	}
	content, err := decodeBase64(token)
	if err != nil {
		return "", err
	}
	return string(content), r.close('}')
}

func decodeBase64(token json.Token) ([]byte, *DataError) {
	s, ok := token.(string)
	content, err := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil {
		return nil, wants("bytes in base64", token)
	}
	return content, nil
}

// fieldHint returns the end of the error text for an unknown field called name. It lists the fields
// of t that have similar names. If there are none, it lists up to eight fields of t.
func (t *Type) fieldHint(name string) string {
	const most = 8
	names := t.fieldNames()
	hint := near.Hint(name, names)
	switch {
	case hint != "" || len(names) == 0:
		return hint
	case len(names) > most:
		return "; the fields are " + strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return "; the fields are " + strings.Join(names, ", ")
}

// fields parses and appends a struct. The slice before is the old value, or nil for the zero value.
func (r *exactReader) fields(t *Type, dst, before []byte, token json.Token) ([]byte, *DataError) {
	if token != json.Delim('{') {
		return dst, wants("an object", token)
	}
	old := r.split(t, before)
	values := make([][]byte, len(t.Fields))
	for r.d.More() {
		token, err := r.next()
		if err != nil {
			return dst, err
		}
		name, _ := token.(string)
		i := t.fieldIndex(name)
		switch {
		case i < 0:
			return dst, bad(fmt.Sprintf("no field %.60q%s", name, t.fieldHint(name)))
		case values[i] != nil:
			return dst, bad("member occurs twice").in("." + name)
		}
		if values[i], err = r.value(t.Fields[i].Type, []byte{}, old[i]); err != nil {
			return dst, err.in("." + name)
		}
	}
	if err := r.close('}'); err != nil {
		return dst, err
	}
	if !r.form.toPacked {
		dst = appendLength(dst, &mapForm, len(t.Fields))
	}
	for i, f := range t.Fields {
		if !r.form.toPacked {
			dst = appendString(dst, f.Name)
		}
		switch {
		case values[i] != nil:
			dst = append(dst, values[i]...)
		case !r.patch:
			return dst, bad("member is missing").in("." + f.Name)
		case old[i] != nil:
			dst = append(dst, old[i]...)
		default:
			dst = r.form.zero(dst, f.Type)
		}
	}
	return dst, nil
}

// split returns the encoded fields of the struct in the given row, which must be valid. If the row
// is nil, all elements of the result are nil.
func (r *exactReader) split(t *Type, row []byte) [][]byte {
	parts := make([][]byte, len(t.Fields))
	if row == nil {
		return parts
	}
	in := reader{src: row}
	if !r.form.toPacked {
		_ = in.exactly(&mapForm, len(t.Fields))
	}
	for i, f := range t.Fields {
		n := f.Type.Width()
		if !r.form.toPacked {
			_, _ = in.bytes(&strForm)
			field := reader{src: in.src}
			_ = field.value(f.Type, nil)
			n = len(in.src) - len(field.src)
		}
		parts[i], in.src = in.src[:n:n], in.src[n:]
	}
	return parts
}

// elements parses and appends an array, slice or pointer.
func (r *exactReader) elements(t *Type, dst []byte, token json.Token) ([]byte, *DataError) {
	if token != json.Delim('[') {
		return dst, wants("an array", token)
	}
	want := map[Kind]int{Array: t.Len, Slice: -1, Pointer: 1}[t.Kind]
	var body []byte
	n := 0
	for ; r.d.More() && n != want; n++ {
		var err *DataError
		if body, err = r.value(t.Elem, body, nil); err != nil {
			return dst, err.in(index(n))
		}
	}
	if r.d.More() || want >= 0 && n < want {
		return dst, bad(fmt.Sprintf("want %d elements", want))
	}
	if !r.form.toPacked {
		dst = appendLength(dst, &arrayForm, n)
	}
	return append(dst, body...), r.close(']')
}

// entries parses and appends a map.
func (r *exactReader) entries(t *Type, dst []byte, token json.Token) ([]byte, *DataError) {
	if token != json.Delim('{') && token != json.Delim('[') {
		return dst, wants("an object or an array of [key, value]", token)
	}
	var body []byte
	var entries []entry
	for r.d.More() {
		e := entry{key: len(body)}
		var err *DataError
		if body, err = r.key(t, body, token == json.Delim('[')); err != nil {
			return dst, err.in(keyPart(len(entries)))
		}
		e.value = len(body)
		body, err = r.value(t.Elem, body, nil)
		if err == nil && token == json.Delim('[') {
			err = r.close(']')
		}
		if err != nil {
			return dst, err.in(valuePart(len(entries)))
		}
		e.end = len(body)
		entries = append(entries, e)
	}
	if _, err := r.next(); err != nil {
		return dst, err
	}
	return appendEntries(dst, body, entries)
}

// key parses and appends the key of an entry. If paired is set, the entry is an array [key, value].
// Otherwise, the key is the name of a JSON member.
func (r *exactReader) key(t *Type, dst []byte, paired bool) ([]byte, *DataError) {
	if paired {
		token, err := r.next()
		if err != nil || token != json.Delim('[') {
			return dst, cmp.Or(err, wants("[key, value]", token))
		}
		return r.value(t.Key, dst, nil)
	}
	token, err := r.next()
	if err != nil {
		return dst, err
	}
	name, _ := token.(string)
	switch k := t.Key.Kind; {
	case k == Struct || k == Array:
		return dst, bad("want an array of [key, value], found an object")
	case k == Bool && (name == "true" || name == "false"):
		token = name == "true"
	case k.signed() || k.unsigned():
		token = json.Number(name)
	}
	return r.rest(t.Key, dst, token)
}

// appendEntries appends a map with the entries in body, sorted by key.
func appendEntries(dst, body []byte, entries []entry) ([]byte, *DataError) {
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(body[a.key:a.value], body[b.key:b.value]) })
	dst = appendLength(dst, &mapForm, len(entries))
	for i, e := range entries {
		if i > 0 && bytes.Equal(body[e.key:e.value], body[entries[i-1].key:entries[i-1].value]) {
			return dst, bad("map has a key twice")
		}
		dst = append(dst, body[e.key:e.end]...)
	}
	return dst, nil
}
