package ecs

import (
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// rawWorld is a World behind [raw.World]. Its methods lie where what they do is
// explained: records, pins, loading.
type rawWorld struct{ *World }

// Registry returns the registry as it lies.
func (w rawWorld) Registry() (rows []uint64, alive, free int) {
	r := &w.entities
	return raw.As[uint64](r.dense.Live[:r.rows.Total]), r.rows.N, r.rows.Extra
}

// Storages returns the storages and behind them the resources.
func (w rawWorld) Storages() []raw.Storage {
	all := make([]raw.Storage, 0, len(w.storages)+len(w.resources))
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			all = append(all, s.Raw())
		}
	}
	return all
}

// A rawStorage is a storage or resource behind [raw.Storage].
type rawStorage[T any] struct {
	AnyStorage
	data  *track.Column[T]
	codec rowCodec[T]
	gap   *T
}

func (f *rawStorage[T]) Layout() *layout.Type { return f.about().layout }
func (f *rawStorage[T]) Version() uint32      { return f.about().past().version }
func (f *rawStorage[T]) Persistent() bool     { return !f.about().noPersist }
func (f *rawStorage[T]) Rewinds() bool        { return !f.about().noRewind }
func (f *rawStorage[T]) Unknown() bool        { return f.about().unknown }
func (f *rawStorage[T]) IsResource() bool     { return f.sparseSet() == nil }
func (f *rawStorage[T]) IsIndexed() bool      { return f.about().kind == Indexed }
func (f *rawStorage[T]) Rows() int            { return f.tracked().N }

func (f *rawStorage[T]) Entities() []uint64 {
	if s := f.sparseSet(); s != nil {
		return raw.As[uint64](s.members())
	}
	return nil
}

func (f *rawStorage[T]) StoredAs(has func(name string) bool) (name string, ok bool) {
	return f.about().storedAs(has)
}

func (f *rawStorage[T]) AppendRows(dst []byte, lo, hi int) []byte {
	return f.codec.append(dst, f.data.Live[lo:hi])
}

func (f *rawStorage[T]) AppendRanges(dst []byte, ranges []raw.Range) []byte {
	return f.codec.appendRanges(dst, f.data.Live, ranges)
}

func (f *rawStorage[T]) AppendDefault(dst []byte) []byte {
	if f.gap == nil {
		return dst
	}
	return f.codec.append(dst, []T{*f.gap})
}
