package persist

import (
	"maps"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/grow"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// varyingRows keeps large rows whose size varies as they were journaled last, so that a tick
// can give what changed in them. The undo logs do not say what they were: who gets a value with
// a slice, writes through the slice and sets the value, has changed the row before it is saved.
//
// A storage is large while the rows that a tick writes take more than raw.LargeRow bytes on
// average: rows of others are encoded once, and nothing of them is kept.
type varyingRows struct {
	storages map[raw.Storage]*varyingStorage
	newest   uint64 // The record that was encoded last.
	size     int    // Bytes of all rows.
	scratch  []byte
}

// A varyingStorage is one that is large.
type varyingStorage struct{ rows map[int]varyingRow }

// A varyingRow is a row as record seq gave it.
type varyingRow struct {
	seq     uint64
	encoded []byte
}

// maxVarying bounds how many bytes are kept: further rows are given whole.
const maxVarying = 64 << 20

// begin readies v for record seq, which continues parent: of what was journaled since parent,
// on another branch, nothing is true any more.
func (v *varyingRows) begin(seq, parent uint64) {
	if parent < v.newest {
		for _, s := range v.storages {
			v.drop(s, func(_ int, r varyingRow) bool { return r.seq > parent })
		}
	}
	v.newest = seq
}

// drop forgets the rows of s for which gone returns true.
func (v *varyingRows) drop(s *varyingStorage, gone func(row int, r varyingRow) bool) {
	maps.DeleteFunc(s.rows, func(row int, r varyingRow) bool {
		if gone(row, r) {
			v.size -= len(r.encoded)
			return true
		}
		return false
	})
}

// forget forgets all rows of st: its record does not tell v what they are.
func (v *varyingRows) forget(st raw.Storage) {
	if s := v.storages[st]; s != nil {
		v.drop(s, func(int, varyingRow) bool { return true })
		delete(v.storages, st)
	}
}

// saw notes that the rows of st that a tick wrote take so many bytes.
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

// isLarge reports whether st is.
func (v *varyingRows) isLarge(st raw.Storage) bool { return v.storages[st] != nil }

// find adds to edited the rows of c, whose storage is large, that are edited, and keeps all that
// were written.
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

// keep keeps a row as it is, if it is large.
func (v *varyingRows) keep(s *varyingStorage, row int, encoded []byte) {
	was := s.rows[row].encoded
	v.size -= len(was)
	if len(encoded) <= raw.LargeRow || v.size+len(encoded) > maxVarying {
		delete(s.rows, row)
		return
	}
	v.size += len(encoded)
	if cap(was) > 2*len(encoded) {
		was = nil // Only what a row has is counted.
	}
	s.rows[row] = varyingRow{v.newest, append(was[:0], encoded...)}
}

// among returns what says of rows, which are asked for in ascending order, whether they lie in
// ranges.
func among(ranges []raw.Range) func(row int) bool {
	return func(row int) bool {
		for len(ranges) > 0 && ranges[0].First+ranges[0].N <= row {
			ranges = ranges[1:]
		}
		return len(ranges) > 0 && row >= ranges[0].First
	}
}
