package ecs

import (
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// typedRows is the rowCodec of a registered type.
type typedRows[T any] struct{ codec *layout.Codec }

func (c typedRows[T]) append(dst []byte, rows []T) []byte { return layout.Append(c.codec, dst, rows) }

func (c typedRows[T]) appendRanges(dst []byte, rows []T, ranges []raw.Range) []byte {
	if encoded, ok := layout.View(c.codec, rows); ok {
		width := c.codec.Type().Width()
		for _, r := range ranges {
			dst = append(dst, encoded[r.First*width:(r.First+r.N)*width]...)
		}
		return dst
	}
	for _, r := range ranges {
		dst = layout.Append(c.codec, dst, rows[r.First:r.First+r.N])
	}
	return dst
}

func (c typedRows[T]) decode(src []byte, rows []T) error { return layout.Decode(c.codec, src, rows) }

func (c typedRows[T]) adopt(src []byte, n int) ([]T, bool) { return layout.Adopt[T](c.codec, src, n) }

// A rawRow is the encoded row of a component that the program has not registered. It is immutable.
type rawRow string

// rawRows is the rowCodec of an unknown component.
type rawRows struct{ layout *layout.Type }

func (rawRows) append(dst []byte, rows []rawRow) []byte {
	for _, r := range rows {
		dst = append(dst, r...)
	}
	return dst
}

func (c rawRows) appendRanges(dst []byte, rows []rawRow, ranges []raw.Range) []byte {
	for _, r := range ranges {
		dst = c.append(dst, rows[r.First:r.First+r.N])
	}
	return dst
}

func (rawRows) adopt([]byte, int) ([]rawRow, bool) { return nil, false }

func (c rawRows) decode(src []byte, rows []rawRow) error {
	if err := c.layout.Check(src, len(rows)); err != nil {
		return err
	}
	for i := range rows {
		row, rest, err := c.layout.Next(src)
		if err != nil {
			return err
		}
		rows[i], src = rawRow(row), rest
	}
	return nil
}
