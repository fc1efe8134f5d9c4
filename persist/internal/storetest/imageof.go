package storetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// ImageOf returns the image of w.
func ImageOf(t testing.TB, w *World) *image.Image {
	t.Helper()
	im := image.New(format.SchemaOf(w.World))
	im.Schema = format.SchemaOf(w.World)
	rows, alive, free := w.Raw().Registry()
	registry := &format.RegistryPatch{Alive: alive, Free: free, Total: len(rows), Rows: EntityBytes(raw.As[ecs.Entity](rows)...), Ranges: All(len(rows))}
	patches := &format.Tick{Registry: registry}
	for n, st := range persistentOf(w.World) {
		p := format.StoragePatch{Number: n, After: st.Rows(), ValueRanges: All(st.Rows()), Values: st.AppendRows(nil, 0, st.Rows())}
		if !st.IsResource() {
			p.EntityRanges, p.Entities = All(st.Rows()), EntityBytes(raw.As[ecs.Entity](st.Entities())...)
		}
		patches.Storages = append(patches.Storages, p)
	}
	require.NoError(t, im.Patch(patches))
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

// EntityBytes returns entities in the encoding of pages and patches.
func EntityBytes(entities ...ecs.Entity) (b []byte) {
	for _, e := range entities {
		b = binary.LittleEndian.AppendUint64(b, uint64(e))
	}
	return b
}

// HostileBase returns the world to which tests apply hostile ticks.
func HostileBase(t testing.TB) *World {
	t.Helper()
	w := New(0)
	w.Fill(8)
	w.Destroy(w.Entities()[2])
	return w
}

// Payload encodes t without checks.
func Payload(t *format.Tick) []byte {
	noted := len(t.Marks)+len(t.Inputs) > 0
	edited := slices.ContainsFunc(t.Storages, func(p format.StoragePatch) bool { return p.EditRanges != nil })
	form := 1 + btoi(noted)
	if edited {
		form = 3
	}
	payload := Pack(Array(7), form, Array(3), t.Parent.Epoch, t.Parent.Seq, uint64(t.Parent.CRC), t.Tick, 0)
	if p := t.Registry; p == nil {
		payload = append(payload, Pack(nil)...)
	} else {
		payload = append(payload, Pack(Array(5), p.Alive, p.Free, p.Total, rangeBytes(p.Ranges), p.Rows)...)
	}
	payload = append(payload, Pack(Array(len(t.Storages)))...)
	for _, p := range t.Storages {
		payload = append(payload, Pack(Array(7+2*btoi(edited)), p.Number, p.Before, p.After, rangeBytes(p.EntityRanges), p.Entities, rangeBytes(p.ValueRanges), p.Values)...)
		if edited {
			payload = append(payload, Pack(rangeBytes(p.EditRanges), p.Edits)...)
		}
	}
	if form == 1 {
		return append(payload, Pack(t.Ops)...)
	}
	payload = append(payload, Pack(Array(3), t.Ops, Array(len(t.Marks)))...)
	for _, name := range t.Marks {
		payload = append(payload, Pack(name)...)
	}
	payload = append(payload, Pack(Array(len(t.Inputs)))...)
	for _, in := range t.Inputs {
		payload = append(payload, Pack(Array(2), in.Name, in.Data)...)
	}
	return payload
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rangeBytes encodes ranges of rows: for each the number of skipped rows, and the number of rows in
// it.
func rangeBytes(ranges []raw.Range) (b []byte) {
	next := 0
	for _, r := range ranges {
		b = binary.AppendUvarint(b, uint64(r.First-next))
		b = binary.AppendUvarint(b, uint64(r.N))
		next = r.First + r.N
	}
	return b
}

type (
	Array int // The head of an array of that length. The next values of [Pack] are its elements.
	Cut   int // Writes the head of a byte string of that length, but no bytes.
)

// Pack encodes values in msgpack, one after the other: an Array, a Cut, texts, bytes, bools,
// numbers and nil. It does not check whether the values are valid together.
func Pack(values ...any) []byte {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			_ = e.EncodeNil()
		case Array:
			_ = e.EncodeArrayLen(int(v))
		case Cut:
			_ = e.EncodeBytesLen(int(v))
		case string:
			_ = e.EncodeString(v)
		case []byte:
			_ = e.EncodeBytesLen(len(v)) // An empty slice is an empty bin, not nil.
			b.Write(v)
		case bool:
			_ = e.EncodeBool(v)
		case int:
			_ = e.EncodeInt(int64(v))
		case uint64:
			_ = e.EncodeUint(v)
		default:
			panic(fmt.Sprintf("storetest: packs no %T", v))
		}
	}
	return b.Bytes()
}

// Bounded runs f, which reads size bytes of input, and fails if f allocates out of proportion to
// size. The limit has room for a world and a few views.
func Bounded(t testing.TB, size int, f func()) {
	t.Helper()
	BoundedBy(t, uint64(64<<20+64*size), size, f)
}

// BoundedTightly is Bounded for functions that need no world.
func BoundedTightly(t testing.TB, size int, f func()) {
	t.Helper()
	BoundedBy(t, uint64(256<<10+200*size), size, f)
}

// BoundedBy fails if f, whose input has size bytes, allocates more than limit.
func BoundedBy(t testing.TB, limit uint64, size int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > limit {
		t.Fatalf("for %d bytes of input it allocated %d, at most %d", size, used, limit)
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
