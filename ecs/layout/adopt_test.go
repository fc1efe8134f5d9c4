package layout

import (
	"reflect"
	"slices"
	"testing"
)

func TestAdopt_AcceptsPlainRows(t *testing.T) {
	type flagged struct {
		A uint32
		B bool
		C [3]uint8
	}
	c, err := NewCodec(reflect.TypeFor[flagged]())
	if err != nil {
		t.Fatal(err)
	}
	rows := []flagged{{1, true, [3]uint8{2, 3, 4}}, {5, false, [3]uint8{}}}
	src := Append(c, nil, rows)
	got, ok := Adopt[flagged](c, src, 2)
	if ok != littleEndian || ok && !slices.Equal(got, rows) {
		t.Fatalf("Adopt = %v, %v, want %v", got, ok, rows)
	}
	if src[0] = 9; ok && got[0].A != 9 {
		t.Error("Adopt copied the rows")
	}
	for name, n := range map[string]int{"too few": 3, "too many": 1} {
		if _, ok := Adopt[flagged](c, src, n); ok {
			t.Errorf("%s bytes were adopted", name)
		}
	}
	if _, ok := Adopt[flagged](c, append([]byte{0}, src...)[1:], 2); ok {
		t.Error("rows at an odd address were adopted")
	}
	if src[4] = 2; true {
		if _, ok := Adopt[flagged](c, src, 2); ok {
			t.Error("a bool of 2 was adopted")
		}
	}
}

func TestAdopt_RefusesPaddedRows(t *testing.T) {
	type padded struct {
		A uint8
		B uint32
	}
	c, err := NewCodec(reflect.TypeFor[padded]())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := Adopt[padded](c, Append(c, nil, make([]padded, 2)), 2); ok {
		t.Error("padded rows were adopted")
	}
	text, err := NewCodec(reflect.TypeFor[string]())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := Adopt[string](text, make([]byte, 16), 1); ok {
		t.Error("strings were adopted")
	}
}
