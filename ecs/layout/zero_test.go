package layout

import (
	"bytes"
	"reflect"
	"testing"
)

func zeroRow[T any](t *testing.T) {
	t.Helper()
	c, err := NewCodec(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	var zero T
	got, want := c.Type().AppendZero(nil), Append(c, nil, []T{zero})
	if !bytes.Equal(got, want) {
		t.Errorf("AppendZero for %T is % x, the codec writes % x", zero, got, want)
	}
}

func TestAppendZero_EachKindOfType(t *testing.T) {
	zeroRow[position](t)
	zeroRow[nothing](t)
	zeroRow[label](t)
	zeroRow[blob](t)
	zeroRow[numbers](t)
	zeroRow[struct {
		Name string
		N    numbers
		P    *position
		M    map[string]int
		S    []position
		A    [20]bool
		E    id
	}](t)
}
