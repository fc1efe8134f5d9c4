package layout

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// benchRows is the number of rows. The rows exceed the first- and second-level caches.
const benchRows = 10_000

// gappy has padding between its fields, so rows are copied field by field.
type gappy struct {
	Kind  uint8
	HP    int64
	Team  uint16
	Speed float32
	Owner id
	Alive bool
}

func BenchmarkCodec(b *testing.B) {
	b.Run("plain, 3 fields", func(b *testing.B) { benchmarkCodec[struct{ X, Y, Z float64 }](b) })
	b.Run("padded, 6 fields", func(b *testing.B) { benchmarkCodec[gappy](b) })
	b.Run("string, 3 fields", func(b *testing.B) {
		benchmarkCodec[struct {
			Name string
			X, Y float64
		}](b)
	})
	b.Run("map, slice, pointer", func(b *testing.B) {
		benchmarkCodec[struct {
			Stock map[string]int
			Items []int32
			At    *position
		}](b)
	})
}

// benchmarkCodec measures encoding and decoding of rows of type T.
func benchmarkCodec[T any](b *testing.B) {
	c := newCodec(b, reflect.TypeFor[T]())
	rows := rowsOf(rand.New(rand.NewPCG(1, 1)), c.gotype, benchRows).Interface().([]T)
	data := Append(c, nil, rows)
	run := func(name string, work func()) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				work()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
	run("Append", func() { data = Append(c, data[:0], rows) })
	run("Decode", func() {
		if err := Decode(c, data, rows); err != nil {
			b.Fatal(err)
		}
	})
	run("Check", func() {
		if err := c.typ.Check(data, len(rows)); err != nil {
			b.Fatal(err)
		}
	})
	if c.Plain() {
		memory := make([]byte, len(data))
		run("copy", func() { copy(memory, data) })
	}
}
