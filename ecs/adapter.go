package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// rawWorld implements [raw.World] for a World. Some methods are in other files, for example Pin in
// pin.go.
type rawWorld struct{ *World }

// Registry returns the registry without copying it.
func (w rawWorld) Registry() (rows []uint64, alive, free int) {
	r := &w.entities
	return raw.As[uint64](r.dense.Live[:r.rows.Total]), r.rows.N, r.rows.Extra
}

// Storages returns the storages, followed by the resources.
func (w rawWorld) Storages() []raw.Storage {
	all := make([]raw.Storage, 0, len(w.storages)+len(w.resources))
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			all = append(all, s.Raw())
		}
	}
	return all
}

// Dirty reports whether a system is running, or anything was written since the newest boundary.
func (w rawWorld) Dirty() bool { return w.system != nil || w.written() }

// A rawAdapter implements [raw.Storage] for a storage or resource.
type rawAdapter struct {
	AnyStorage
	rows interface { // A *rowAdapter.
		appendRows(dst []byte, lo, hi int) []byte
		appendRanges(dst []byte, ranges []raw.Range) []byte
		appendDefault(dst []byte) []byte
		eachBefore(o *oldRows, k, limit int, tell func(row int, then, now []byte))
	}
}

func (f *rawAdapter) Layout() *layout.Type { return f.about().layout }
func (f *rawAdapter) Version() uint32      { return f.about().past().version }
func (f *rawAdapter) Persistent() bool     { return !f.about().noPersist }
func (f *rawAdapter) Rewinds() bool        { return !f.about().noRewind }
func (f *rawAdapter) Unknown() bool        { return f.about().unknown }
func (f *rawAdapter) IsResource() bool     { return f.sparseSet() == nil }
func (f *rawAdapter) IsIndexed() bool      { return f.about().kind == Indexed }
func (f *rawAdapter) Rows() int            { return f.tracked().N }

func (f *rawAdapter) Entities() []uint64 {
	if s := f.sparseSet(); s != nil {
		return raw.As[uint64](s.members())
	}
	return nil
}

func (f *rawAdapter) StoredAs(has func(name string) bool) (name string, ok bool) {
	return f.about().storedAs(has)
}

// storedAs returns the name under which the data of s is stored: the current name or a former name.
// has reports whether the stored data contains a name.
func (s *spec) storedAs(has func(name string) bool) (name string, ok bool) {
	if has(s.name) {
		return s.name, true
	}
	for _, name := range s.past().former {
		if has(name) {
			return name, true
		}
	}
	return "", false
}

func (f *rawAdapter) AppendRows(dst []byte, lo, hi int) []byte { return f.rows.appendRows(dst, lo, hi) }

func (f *rawAdapter) AppendRanges(dst []byte, ranges []raw.Range) []byte {
	return f.rows.appendRanges(dst, ranges)
}

func (f *rawAdapter) AppendDefault(dst []byte) []byte { return f.rows.appendDefault(dst) }

// A rowAdapter gives a rawAdapter typed access to its rows.
type rowAdapter[T any] struct {
	data  *track.Column[T]
	codec rowCodec[T]
	gap   *T
}

func (f *rowAdapter[T]) appendRows(dst []byte, lo, hi int) []byte {
	return f.encodeRows(dst, f.data.Live[lo:hi])
}

func (f *rowAdapter[T]) encodeRows(dst []byte, rows []T) []byte { return f.codec.append(dst, rows) }

func (f *rowAdapter[T]) appendRanges(dst []byte, ranges []raw.Range) []byte {
	return f.codec.appendRanges(dst, f.data.Live, ranges)
}

func (f *rowAdapter[T]) appendDefault(dst []byte) []byte {
	if f.gap == nil {
		return dst
	}
	return f.codec.append(dst, []T{*f.gap})
}

// copy returns a deep copy of v.
func (f *rowAdapter[T]) copy(v T) T {
	if f.data.Clone != nil {
		return f.data.Clone(v)
	}
	return v
}

// ofAny returns a copy of v, which must be a T or a pointer to one.
func (f *rowAdapter[T]) ofAny(s *spec, v any) (row T, err error) {
	if s.unknown {
		return row, errNoType
	}
	if row, err = asType[T](v); err == nil {
		row = f.copy(row)
	}
	return row, err
}

// json returns a row as JSON. It returns false if values of T have no JSON form.
func (f *rowAdapter[T]) json(s *spec, row int) ([]byte, bool) {
	if s.layout == nil {
		return nil, false
	}
	v, err := s.layout.Value(f.appendRows(nil, row, row+1))
	return v.AppendExact(nil), err == nil
}

// ofJSON returns a copy of the row, with the values that the JSON src has for its fields. If row is
// -1, it starts with a zero value. [layout.Type.AppendPatched] defines the details.
func (f *rowAdapter[T]) ofJSON(s *spec, row int, src []byte) (v T, err error) {
	if s.layout == nil {
		return v, noJSON[T]()
	}
	var before []byte
	if row >= 0 {
		before = f.appendRows([]byte{}, row, row+1)
	}
	patched, err := s.layout.AppendPatched(nil, before, src)
	if err != nil {
		return v, err
	}
	rows := make([]T, 1)
	err = f.codec.decode(patched, rows)
	return rows[0], err
}
