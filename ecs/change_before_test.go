package ecs

import (
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
)

// Change.Before passes each large row that was written in the tick, with its values before and
// after the tick. Rows come once each, in ascending order. Rows that no longer exist are omitted.
func TestChangeBefore_ReturnsLargeRows(t *testing.T) {
	w := NewWorld(Options{History: 4})
	regions := MustRegister[region](w)
	all := w.CreateN(nil, 6)
	for i, e := range all {
		v := region{}
		v.Cells[7] = byte(10 + i)
		regions.Set(e, v)
	}
	type seen struct {
		row       int
		then, now byte
	}
	var got []seen
	r := recorderFunc(func(c *raw.Change) uint64 {
		for _, st := range c.Storages {
			c.Before(st, func(row int, then, now []byte) {
				if size := len(region{}.Cells); len(then) != size || len(now) != size {
					t.Fatalf("row %d: %d and %d bytes, want %d", row, len(then), len(now), size)
				}
				got = append(got, seen{row, then[7], now[7]})
			})
		}
		return 1
	})
	w.Commit()
	if err := w.Raw().Attach(r, 1); err != nil {
		t.Fatal(err)
	}
	for _, tick := range []struct {
		write   []int
		destroy bool // Set if the case destroys the last entity.
		want    []seen
	}{
		{write: []int{4, 1, 2, 1, 5}, destroy: true, want: []seen{{1, 11, 91}, {2, 12, 92}, {4, 14, 94}}},
		{write: []int{3}, want: []seen{{3, 13, 93}}},
		{},
	} {
		got = nil
		for _, i := range tick.write {
			regions.Mut(all[i]).Cells[7] = byte(90 + i)
		}
		if tick.destroy {
			w.Destroy(all[len(all)-1])
		}
		w.Commit()
		if !slices.Equal(got, tick.want) {
			t.Errorf("written %v: rows %v, want %v", tick.write, got, tick.want)
		}
	}
}
