package ecs

import (
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// A recorder learns what a large row was before the tick that wrote it.
func TestChangeBefore_LargeRow(t *testing.T) {
	w := NewWorld(Options{History: 4})
	regions := MustRegister[region](w)
	e := w.CreateN(nil, 3)
	for i, e := range e {
		v := region{}
		v.Cells[7] = byte(10 + i)
		regions.Set(e, v)
	}
	var rows []int
	var then, now []byte
	r := recorderFunc(func(c *raw.Change) uint64 {
		for _, st := range c.Storages {
			c.Before(st, func(row int, was, is []byte) {
				rows = append(rows, row)
				then, now = append([]byte(nil), was...), append([]byte(nil), is...)
			})
		}
		return 1
	})
	w.Commit()
	if err := w.Raw().Attach(r, 1); err != nil {
		t.Fatal(err)
	}
	regions.Mut(e[1]).Cells[7] = 99
	w.Commit()
	size := len(region{}.Cells)
	if len(rows) != 1 || rows[0] != 1 || len(then) != size || len(now) != size {
		t.Fatalf("rows %v, of %d and %d bytes, want row 1 of %d", rows, len(then), len(now), size)
	}
	if then[7] != 11 || now[7] != 99 {
		t.Errorf("the row was %d and is %d, want 11 and 99", then[7], now[7])
	}
}
