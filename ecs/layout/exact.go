package layout

import (
	"bytes"
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
)

// AppendRow appends the row of t that src says, which is JSON as
// [Value.AppendExact] writes it. The members of an object may be in any order, none
// may be missing or there twice; a map may be an object or an array of [key, value]
// in any order.
//
// Anything else is a [*DataError] that names the field. It allocates a small
// multiple of len(src).
func (t *Type) AppendRow(dst, src []byte) ([]byte, error) {
	start := len(dst)
	if !utf8.Valid(src) {
		return dst, bad("JSON is not UTF-8").of(t)
	}
	r := exactReader{d: json.NewDecoder(bytes.NewReader(src)), form: conversion{toPacked: t.Width() != varies}}
	r.d.UseNumber()
	dst, err := r.value(t, dst)
	if err != nil {
		return dst[:start], err.of(t)
	}
	if _, e := r.d.Token(); !errors.Is(e, io.EOF) {
		return dst[:start], bad("more than one JSON value").of(t)
	}
	return dst, nil
}

// An exactReader makes rows of JSON.
type exactReader struct {
	d    *json.Decoder
	form conversion // Says whether rows are packed.
}

// next reads a token.
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

// value appends a value of type t.
func (r *exactReader) value(t *Type, dst []byte) ([]byte, *DataError) {
	token, err := r.next()
	if err != nil {
		return dst, err
	}
	return r.rest(t, dst, token)
}

// rest is value for one that begins with token.
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
		return r.fields(t, dst, token)
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

// wants says that token is not what a kind is written as.
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
	if len(found) > 60 {
		found = found[:60] + "…"
	}
	return bad("want " + what + ", found " + strings.ToValidUTF8(found, ""))
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
	return 0, wants(k.String(), token)
}

// parseEntity reads index, "v", generation.
func parseEntity(s string) (uint64, bool) {
	index, generation, ok := strings.Cut(s, "v")
	i, err1 := strconv.ParseUint(index, 10, 32)
	g, err2 := strconv.ParseUint(generation, 10, 32)
	return g<<32 | i, ok && err1 == nil && err2 == nil
}

// parseFloat returns the bits of a float: of a number, or of what stands in quotes.
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

// complex appends a complex number.
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

// text returns the string that begins with token.
func (r *exactReader) text(token json.Token) (string, *DataError) {
	if s, ok := token.(string); ok {
		return s, nil
	}
	if token != json.Delim('{') {
		return "", wants("string", token)
	}
	if name, err := r.next(); err != nil || name != "base64" {
		return "", orElse(err, wants(`"base64"`, name))
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

// orElse returns err, or otherwise if there is none.
func orElse(err, otherwise *DataError) *DataError {
	if err != nil {
		return err
	}
	return otherwise
}

func decodeBase64(token json.Token) ([]byte, *DataError) {
	s, ok := token.(string)
	content, err := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil {
		return nil, wants("bytes in base64", token)
	}
	return content, nil
}

// fields appends a struct.
func (r *exactReader) fields(t *Type, dst []byte, token json.Token) ([]byte, *DataError) {
	if token != json.Delim('{') {
		return dst, wants("an object", token)
	}
	values := make([][]byte, len(t.Fields))
	for r.d.More() {
		token, err := r.next()
		if err != nil {
			return dst, err
		}
		name, _ := token.(string)
		i := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Name == name })
		switch {
		case i < 0:
			return dst, bad(fmt.Sprintf("no field %.60q", name))
		case values[i] != nil:
			return dst, bad("it is there twice").in("." + name)
		}
		if values[i], err = r.value(t.Fields[i].Type, []byte{}); err != nil {
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
		if values[i] == nil {
			return dst, bad("it is missing").in("." + f.Name)
		}
		if !r.form.toPacked {
			dst = appendString(dst, f.Name)
		}
		dst = append(dst, values[i]...)
	}
	return dst, nil
}

// elements appends an array, slice or pointer.
func (r *exactReader) elements(t *Type, dst []byte, token json.Token) ([]byte, *DataError) {
	if token != json.Delim('[') {
		return dst, wants("an array", token)
	}
	want := map[Kind]int{Array: t.Len, Slice: -1, Pointer: 1}[t.Kind]
	var body []byte
	n := 0
	for ; r.d.More() && n != want; n++ {
		var err *DataError
		if body, err = r.value(t.Elem, body); err != nil {
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

// entries appends a map.
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
		body, err = r.value(t.Elem, body)
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

// key appends the key of an entry.
func (r *exactReader) key(t *Type, dst []byte, paired bool) ([]byte, *DataError) {
	if paired {
		token, err := r.next()
		if err != nil || token != json.Delim('[') {
			return dst, orElse(err, wants("[key, value]", token))
		}
		return r.value(t.Key, dst)
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

// appendEntries appends a map of entries in body, in the order of their keys.
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
