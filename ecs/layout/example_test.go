package layout_test

import (
	"fmt"
	"reflect"

	"github.com/stet-ecs/stet/ecs/layout"
)

type Position struct{ X, Y float32 }

type Sprite struct {
	Position
	Visible bool
	Image   string
}

// The bytes and the description are enough to print a row.
func ExampleType_Value() {
	codec, err := layout.NewCodec(reflect.TypeFor[Sprite]())
	if err != nil {
		fmt.Println(err)
		return
	}
	row := layout.Append(codec, nil, []Sprite{{Position{1, 2.5}, true, "orc.png"}})
	description := codec.Type().Append(nil)

	// Another program, which does not have the Go types:
	stored, err := layout.Parse(description)
	if err != nil {
		fmt.Println(err)
		return
	}
	value, err := stored.Value(row)
	fmt.Println(stored)
	fmt.Println(value, err)
	// Output:
	// struct{Position struct{X float32; Y float32}; Visible bool; Image string}
	// {Position:{X:1 Y:2.5} Visible:true Image:"orc.png"} <nil>
}

// Rows of plain numbers have a fixed width.
func ExampleAppend() {
	codec, err := layout.NewCodec(reflect.TypeFor[Position]())
	if err != nil {
		fmt.Println(err)
		return
	}
	data := layout.Append(codec, nil, []Position{{1, 2}, {3, 4}})
	fmt.Println(codec.Type().Width(), len(data))

	rows := make([]Position, 2)
	fmt.Println(layout.Decode(codec, data, rows), rows)
	fmt.Println(layout.Decode(codec, data[:15], rows))
	// Output:
	// 8 16
	// <nil> [{1 2} {3 4}]
	// layout: invalid data: Position: 15 bytes, want 2 rows of 8
}

// An error names the field that cannot be stored.
func ExampleOf() {
	type Door struct {
		Open bool
		Bell struct{ Ring func() }
	}
	_, err := layout.Of(reflect.TypeFor[Door]())
	fmt.Println(err)
	// Output: layout: Door.Bell.Ring: func values cannot be stored
}

func ExampleDiff() {
	type Old struct{ X, Y, Z float64 }
	type New struct{ X, Y float64 }
	stored, _ := layout.Of(reflect.TypeFor[Old]())
	current, _ := layout.Of(reflect.TypeFor[New]())
	fmt.Println(layout.Diff(stored, current))
	// Output: New.Z: stored float64, program has none
}
