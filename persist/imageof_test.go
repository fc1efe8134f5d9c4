package persist

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stretchr/testify/require"
)

// imageOf returns the image of w.
func imageOf(t testing.TB, w *testWorld) *Image {
	t.Helper()
	im := newImage(schemaOf(w.World))
	im.schema = schemaOf(w.World)
	rows, alive, free := w.Registry()
	registry := &registryPatch{alive: alive, free: free, total: len(rows), rows: entityBytes(rows...), ranges: all(len(rows))}
	require.NoError(t, im.applyRegistry(registry))
	for n, st := range persistentOf(w.World) {
		p := storagePatch{number: n, after: st.Rows(), valueRanges: all(st.Rows()), values: st.AppendRows(nil, 0, st.Rows())}
		if !st.IsResource() {
			p.entityRanges, p.entities = all(st.Rows()), entityBytes(st.Entities()...)
		}
		require.NoError(t, im.applyStorage(&p))
	}
	require.Equal(t, persistent(w.World), im.Digest())
	return im
}

func persistentOf(w *ecs.World) []ecs.AnyStorage {
	return slices.DeleteFunc(w.Storages(), func(st ecs.AnyStorage) bool { return !st.Persistent() })
}

func all(n int) []ecs.Range {
	if n == 0 {
		return nil
	}
	return []ecs.Range{{First: 0, N: n}}
}

func entityBytes(entities ...ecs.Entity) (b []byte) {
	for _, e := range entities {
		b = binary.LittleEndian.AppendUint64(b, uint64(e))
	}
	return b
}

// hostileBase is the state that hostile ticks continue.
func hostileBase(t testing.TB) *testWorld {
	t.Helper()
	w := newTestWorld(0)
	w.fill(8)
	w.Destroy(w.Entities()[2])
	return w
}

// payload encodes t as it is, whatever it says.
func (t *tick) payload() []byte {
	e := &tickEncoder{encoder: newEncoder()}
	e.array(7)
	if len(t.marks)+len(t.inputs) == 0 {
		e.uint(tickFormat)
	} else {
		e.uint(notedTick)
	}
	encodeID(e.encoder, t.parent)
	e.uint(t.tick)
	e.int(0)
	if p := t.registry; p == nil {
		e.nil()
	} else {
		e.array(5)
		e.uint(uint64(p.alive))
		e.uint(uint64(p.free))
		e.uint(uint64(p.total))
		e.ranges(p.ranges)
		e.bin(p.rows)
	}
	e.array(len(t.storages))
	for _, p := range t.storages {
		e.array(7)
		e.uint(uint64(p.number))
		e.uint(uint64(p.before))
		e.uint(uint64(p.after))
		e.ranges(p.entityRanges)
		e.bin(p.entities)
		e.ranges(p.valueRanges)
		e.bin(p.values)
	}
	if len(t.marks)+len(t.inputs) == 0 {
		e.bin(t.ops)
		return e.buf
	}
	e.array(3)
	e.bin(t.ops)
	n := notes{marks: t.marks, inputs: newEncoder(), count: len(t.inputs)}
	for _, in := range t.inputs {
		n.inputs.array(2)
		n.inputs.string(in.Name)
		n.inputs.bin(in.Data)
	}
	n.encode(e.encoder)
	return e.buf
}

// bounded runs f, which reads size bytes from outside, and fails if it allocates
// out of proportion. What a world and a few views take comes on top.
func bounded(t testing.TB, size int, f func()) {
	t.Helper()
	boundedBy(t, uint64(64<<20+64*size), size, f)
}

// boundedTightly is bounded for what needs no world.
func boundedTightly(t testing.TB, size int, f func()) {
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

// payloads returns the ticks of the sample store.
func payloads(t testing.TB) (payloads [][]byte) {
	v := verified(t, newSample(t).dir)
	for _, e := range v.Log().Entries {
		payload, err := v.Log().Payload(e, nil)
		require.NoError(t, err)
		payloads = append(payloads, payload)
	}
	require.NotEmpty(t, payloads)
	return payloads
}
