package storetest

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// ImageOf returns the image of w.
func ImageOf(t testing.TB, w *World) *inspect.Image {
	t.Helper()
	im := image.New(format.SchemaOf(w.World))
	im.Schema = format.SchemaOf(w.World)
	rows, alive, free := w.Raw().Registry()
	registry := &format.RegistryPatch{Alive: alive, Free: free, Total: len(rows), Rows: EntityBytes(raw.As[ecs.Entity](rows)...), Ranges: All(len(rows))}
	require.NoError(t, im.ApplyRegistry(registry))
	for n, st := range persistentOf(w.World) {
		p := format.StoragePatch{Number: n, After: st.Rows(), ValueRanges: All(st.Rows()), Values: st.AppendRows(nil, 0, st.Rows())}
		if !st.IsResource() {
			p.EntityRanges, p.Entities = All(st.Rows()), EntityBytes(raw.As[ecs.Entity](st.Entities())...)
		}
		require.NoError(t, im.ApplyStorage(&p))
	}
	require.Equal(t, Persistent(w.World), im.Digest())
	return im
}

func persistentOf(w *ecs.World) []raw.Storage {
	return slices.DeleteFunc(w.Raw().Storages(), func(st raw.Storage) bool { return !st.Persistent() })
}

// All returns the range of all n rows.
func All(n int) []raw.Range {
	if n == 0 {
		return nil
	}
	return []raw.Range{{First: 0, N: n}}
}

// EntityBytes returns entities as pages and patches hold them.
func EntityBytes(entities ...ecs.Entity) (b []byte) {
	for _, e := range entities {
		b = binary.LittleEndian.AppendUint64(b, uint64(e))
	}
	return b
}

// HostileBase is the state that hostile ticks continue.
func HostileBase(t testing.TB) *World {
	t.Helper()
	w := New(0)
	w.Fill(8)
	w.Destroy(w.Entities()[2])
	return w
}

// Payload encodes t as it is, whatever it says.
func Payload(t *format.Tick) []byte {
	e := &format.TickEncoder{Encoder: format.NewEncoder()}
	e.Array(7)
	if len(t.Marks)+len(t.Inputs) == 0 {
		e.Uint(format.TickFormat)
	} else {
		e.Uint(format.NotedTick)
	}
	format.EncodeID(e.Encoder, t.Parent)
	e.Uint(t.Tick)
	e.Int(0)
	if p := t.Registry; p == nil {
		e.Nil()
	} else {
		e.Array(5)
		e.Uint(uint64(p.Alive))
		e.Uint(uint64(p.Free))
		e.Uint(uint64(p.Total))
		e.Ranges(p.Ranges)
		e.Bin(p.Rows)
	}
	e.Array(len(t.Storages))
	for _, p := range t.Storages {
		e.Array(7)
		e.Uint(uint64(p.Number))
		e.Uint(uint64(p.Before))
		e.Uint(uint64(p.After))
		e.Ranges(p.EntityRanges)
		e.Bin(p.Entities)
		e.Ranges(p.ValueRanges)
		e.Bin(p.Values)
	}
	if len(t.Marks)+len(t.Inputs) == 0 {
		e.Bin(t.Ops)
		return e.Buf
	}
	e.Array(3)
	e.Bin(t.Ops)
	n := format.Notes{Marks: t.Marks, Inputs: format.NewEncoder(), Count: len(t.Inputs)}
	for _, in := range t.Inputs {
		n.Inputs.Array(2)
		n.Inputs.Str(in.Name)
		n.Inputs.Bin(in.Data)
	}
	n.Encode(e.Encoder)
	return e.Buf
}

// Bounded runs f, which reads size bytes from outside, and fails if it allocates
// out of proportion. What a world and a few views take comes on top.
func Bounded(t testing.TB, size int, f func()) {
	t.Helper()
	boundedBy(t, uint64(64<<20+64*size), size, f)
}

// BoundedTightly is bounded for what needs no world.
func BoundedTightly(t testing.TB, size int, f func()) {
	t.Helper()
	boundedBy(t, uint64(256<<10+200*size), size, f)
}

func boundedBy(t testing.TB, limit uint64, size int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > limit {
		t.Fatalf("%d bytes of input made it allocate %d, at most %d", size, used, limit)
	}
}

// Payloads returns the ticks of the sample store.
func Payloads(t testing.TB) (payloads [][]byte) {
	v := Verified(t, NewSample(t).Dir)
	for _, e := range v.Log().Entries {
		payload, err := v.Log().Payload(e, nil)
		require.NoError(t, err)
		payloads = append(payloads, payload)
	}
	require.NotEmpty(t, payloads)
	return payloads
}
