package persist

import (
	"maps"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/grow"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// varyingRows keeps the last journaled bytes of large rows with a variable size. A tick compares a
// row with these bytes, and journals only the changed ones. The undo log does not always have the
// old bytes: a program can write through a slice of the row before it sets the value.
//
// A storage counts as large if the rows of its last tick have more than raw.LargeRow bytes on
// average. The rows of other storages are not kept.
type varyingRows struct {
	storages map[raw.Storage]*varyingStorage
	newest   uint64 // The record that was encoded last.
	size     int    // Bytes of all rows.
	scratch  []byte
}

// A varyingStorage holds the rows of a large storage.
type varyingStorage struct{ rows map[int]varyingRow }

// A varyingRow is the row that record seq wrote.
type varyingRow struct {
	seq     uint64
	encoded []byte
}

// maxVarying bounds the bytes that varyingRows keeps. Further rows are written in full.
const maxVarying = 64 << 20

// begin prepares v for record seq, which continues record parent. If the world went back, it
// removes the rows of records after parent, because these records belong to an abandoned branch.
func (v *varyingRows) begin(seq, parent uint64) {
	if parent < v.newest {
		for _, s := range v.storages {
			v.drop(s, func(_ int, r varyingRow) bool { return r.seq > parent })
		}
	}
	v.newest = seq
}

// drop removes the rows of s for which gone returns true.
func (v *varyingRows) drop(s *varyingStorage, gone func(row int, r varyingRow) bool) {
	maps.DeleteFunc(s.rows, func(row int, r varyingRow) bool {
		if gone(row, r) {
			v.size -= len(r.encoded)
			return true
		}
		return false
	})
}

// forget removes all rows of st from v. The record under way changes st without updating these
// rows, so they become stale.
func (v *varyingRows) forget(st raw.Storage) {
	if s := v.storages[st]; s != nil {
		v.drop(s, func(int, varyingRow) bool { return true })
		delete(v.storages, st)
	}
}

// saw decides whether st counts as large. rows and size are the number and the bytes of the rows
// that a tick wrote.
func (v *varyingRows) saw(st raw.Storage, rows, size int) {
	if size <= raw.LargeRow*rows {
		v.forget(st)
		return
	}
	if v.storages == nil {
		v.storages = make(map[raw.Storage]*varyingStorage)
	}
	if v.storages[st] == nil {
		v.storages[st] = &varyingStorage{rows: make(map[int]varyingRow)}
	}
}

// isLarge reports whether v keeps the rows of st.
func (v *varyingRows) isLarge(st raw.Storage) bool { return v.storages[st] != nil }

// find adds the edited rows of c to the list edited. It also keeps the new bytes of all written
// rows. The storage of c must count as large.
func (v *varyingRows) find(c raw.StorageChange, edited *format.EditedRows) {
	s := v.storages[c.Storage]
	size, isGiven := 0, among(c.Entities)
	for _, r := range c.Values {
		for row := r.First; row < r.First+r.N; row++ {
			v.scratch = c.Storage.AppendRows(v.scratch[:0], row, row+1)
			if then := s.rows[row].encoded; then != nil && !isGiven(row) {
				edited.Add(row, then, v.scratch)
			}
			size += len(v.scratch)
			v.keep(s, row, v.scratch)
		}
	}
	if len(s.rows) > c.Storage.Rows() {
		v.drop(s, func(row int, _ varyingRow) bool { return row >= c.Storage.Rows() })
	}
	v.scratch = grow.Keep(v.scratch)
	v.saw(c.Storage, format.CountRows(c.Values), size)
}

// keep stores a copy of the encoded row in s, if the row is large. The next tick that writes the
// row is compared with that copy.
func (v *varyingRows) keep(s *varyingStorage, row int, encoded []byte) {
	was := s.rows[row].encoded
	v.size -= len(was)
	if len(encoded) <= raw.LargeRow || v.size+len(encoded) > maxVarying {
		delete(s.rows, row)
		return
	}
	v.size += len(encoded)
	if cap(was) > 2*len(encoded) {
		was = nil // v.size counts no unused capacity, so drop a much larger buffer.
	}
	s.rows[row] = varyingRow{v.newest, append(was[:0], encoded...)}
}

// among returns a function that reports whether a row is in ranges. The rows must be in ascending
// order over all calls.
func among(ranges []raw.Range) func(row int) bool {
	return func(row int) bool {
		for len(ranges) > 0 && ranges[0].First+ranges[0].N <= row {
			ranges = ranges[1:]
		}
		return len(ranges) > 0 && row >= ranges[0].First
	}
}
