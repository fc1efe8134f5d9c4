package image_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// replayed applies a payload to the image of a small world and loads the result, if any. It returns
// the first error.
func replayed(t testing.TB, payload []byte) error {
	t.Helper()
	im := storetest.ImageOf(t, storetest.HostileBase(t))
	var err error
	storetest.Bounded(t, len(payload), func() {
		var decoded *format.Tick
		if decoded, err = format.DecodeTick(payload); err != nil {
			return
		}
		decoded.Parent = im.ID
		if err = im.Apply(decoded, journal.ID{Epoch: 1, Seq: 1}); err != nil {
			return
		}
		im.Digest()
		w := storetest.New(0)
		if err = im.Fill(w.World, "payload"); err == nil {
			require.Equal(t, im.Digest(), storetest.Persistent(w.World))
		}
	})
	return err
}

func TestApply_InvalidTicks(t *testing.T) {
	w := storetest.HostileBase(t)
	numbers, alive, free := w.Raw().Registry()
	rows := raw.As[ecs.Entity](numbers)
	n, total := w.Position.Len(), len(rows)
	const positions, bags, heats, rulesNumber, landNumber = 0, 2, 5, 13, 16
	e := rows[0]
	registry := func(change func(*format.RegistryPatch)) *format.Tick {
		p := &format.RegistryPatch{Alive: alive, Free: free, Total: total, Ranges: storetest.All(total), Rows: storetest.EntityBytes(rows...)}
		change(p)
		return &format.Tick{Registry: p}
	}
	storage := func(p format.StoragePatch) *format.Tick { return &format.Tick{Storages: []format.StoragePatch{p}} }
	row := w.Position.Raw().AppendRows(nil, 0, 1)
	ops := func(kind raw.OpKind, component int, count uint64, entities ...int64) *format.Tick {
		b := binary.AppendUvarint(nil, uint64(int(kind)+8*(component+1)))
		b = binary.AppendUvarint(b, count)
		for _, v := range entities {
			b = binary.AppendVarint(b, v)
		}
		return &format.Tick{Ops: b}
	}
	edits := func(number, before, after, row int, edits ...byte) format.StoragePatch {
		return format.StoragePatch{Number: number, Before: before, After: after, EditRanges: []raw.Range{{First: row, N: 1}}, Edits: edits}
	}
	// A valid tick.
	require.NoError(t, replayed(t, storetest.Payload(storage(edits(landNumber, 1, 1, 0, 1, 5, 1, 1, 9)))))
	given, taken := edits(positions, n, n, 0, 1, 0, 1, 1, 9), edits(positions, n, n, 0, 1, 0, 1, 1, 9)
	given.ValueRanges, given.Values = storetest.All(1), row
	taken.EntityRanges, taken.Entities = storetest.All(1), storetest.EntityBytes(e)
	for name, lie := range map[string]*format.Tick{
		"more alive than there are":             registry(func(p *format.RegistryPatch) { p.Alive = total + 1 }),
		"more free than there are":              registry(func(p *format.RegistryPatch) { p.Free = total + 1 }),
		"fewer alive than after the operations": registry(func(p *format.RegistryPatch) { p.Alive-- }),
		"a registry that grows without rows": registry(func(p *format.RegistryPatch) {
			p.Total, p.Free, p.Ranges, p.Rows = math.MaxInt32, math.MaxInt32, nil, nil
		}),
		"a registry that shrinks":         registry(func(p *format.RegistryPatch) { p.Total, p.Free, p.Alive, p.Ranges, p.Rows = 1, 1, 1, nil, nil }),
		"rows that are not in the ranges": registry(func(p *format.RegistryPatch) { p.Ranges = storetest.All(2) }),
		"ranges past the end":             registry(func(p *format.RegistryPatch) { p.Ranges = storetest.All(total + 1) }),
		"an entity past the end": registry(func(p *format.RegistryPatch) {
			p.Rows = storetest.EntityBytes(slices.Concat(rows[1:], []ecs.Entity{1 << 20})...)
		}),
		"a registry with an index twice": registry(func(p *format.RegistryPatch) {
			p.Rows = storetest.EntityBytes(slices.Concat(rows[:total-1], rows[:1])...)
		}),
		"a generation of zero": registry(func(p *format.RegistryPatch) {
			p.Rows = storetest.EntityBytes(slices.Concat([]ecs.Entity{ecs.NewEntity(e.Index(), 0)}, rows[1:])...)
		}),
		"a component without a number":         storage(format.StoragePatch{Number: 1000}),
		"wrong number of rows before":          storage(format.StoragePatch{Before: n + 1, After: n}),
		"more rows than values":                storage(format.StoragePatch{Before: n, After: math.MaxInt32}),
		"an entity twice":                      storage(format.StoragePatch{Before: n, After: n, EntityRanges: storetest.All(1), Entities: storetest.EntityBytes(rows[1])}),
		"an entity that is dead":               storage(format.StoragePatch{Before: n, After: n, EntityRanges: storetest.All(1), Entities: storetest.EntityBytes(rows[total-1])}),
		"an entity that is not in the world":   storage(format.StoragePatch{Before: n, After: n, EntityRanges: storetest.All(1), Entities: storetest.EntityBytes(1 << 30)}),
		"entities without a range":             storage(format.StoragePatch{Before: n, After: n, Entities: storetest.EntityBytes(e)}),
		"half an entity":                       storage(format.StoragePatch{Before: n, After: n, EntityRanges: storetest.All(1), Entities: []byte{1, 2, 3, 4}}),
		"values that are short":                storage(format.StoragePatch{Before: n, After: n, ValueRanges: storetest.All(2), Values: row}),
		"values that are long":                 storage(format.StoragePatch{Before: n, After: n, ValueRanges: storetest.All(1), Values: append(row, 0)}),
		"values without a range":               storage(format.StoragePatch{Before: n, After: n, Values: row}),
		"a bool of 2":                          storage(format.StoragePatch{Number: 1, Before: w.Body.Len(), After: w.Body.Len(), ValueRanges: storetest.All(1), Values: bytes.Repeat([]byte{2}, 16)}),
		"a string longer than all":             storage(format.StoragePatch{Number: bags, Before: w.Bag.Len(), After: w.Bag.Len(), ValueRanges: storetest.All(1), Values: []byte{0x83, 0xa4, 'N', 'a', 'm', 'e', 0xdb, 0xff, 0xff, 0xff, 0xff}}),
		"a resource without a row":             storage(format.StoragePatch{Number: rulesNumber, Before: 1}),
		"a resource of two rows":               storage(format.StoragePatch{Number: rulesNumber, Before: 1, After: 2}),
		"a resource with an entity":            storage(format.StoragePatch{Number: rulesNumber, Before: 1, After: 1, EntityRanges: storetest.All(1), Entities: storetest.EntityBytes(e)}),
		"edits past the rows":                  storage(edits(positions, n+1, n+1, n, 1, 0, 1, 1, 9)),
		"edits of no row":                      storage(edits(landNumber, 1, 1, 0)),
		"edits that are cut short":             storage(edits(landNumber, 1, 1, 0, 1, 5, 1, 1)),
		"edits of one byte too many":           storage(edits(landNumber, 1, 1, 0, 1, 5, 1, 2, 8, 9)),
		"edits past the end of a row":          storage(edits(landNumber, 1, 1, 0, 1, 200, 8, 1, 1, 9)),
		"edits of equal bytes":                 storage(edits(landNumber, 1, 1, 0, 1, 5, 1, 1, 0)),
		"edits with an invalid row":            storage(edits(1, w.Body.Len(), w.Body.Len(), 0, 1, 0, 1, 1, 2)),
		"edits of a no-rewind component":       storage(edits(heats, w.Heat.Len(), w.Heat.Len(), 0, 1, 0, 1, 1, 99)),
		"a row with edits and a value":         storage(given),
		"an edited row of another entity":      storage(taken),
		"edits of a resource without a row":    storage(edits(landNumber, 0, 1, 0, 1, 5, 1, 1, 9)),
		"more rows than operations add":        storage(format.StoragePatch{Before: n, After: n - 1}),
		"a no-rewind row of a dead entity":     storage(format.StoragePatch{Number: heats, After: 1, EntityRanges: storetest.All(1), Entities: storetest.EntityBytes(rows[total-1]), ValueRanges: storetest.All(1), Values: []byte{1, 0, 0, 0}}),
		"created without a row":                ops(raw.OpCreate, format.NoComponent, 1, 90, 1),
		"destroyed but still alive":            ops(raw.OpDestroy, format.NoComponent, 1, int64(e.Index()), 1),
		"added but without a row":              ops(raw.OpAdd, bags, 1, int64(e.Index()), 1),
		"removed but with a row":               ops(raw.OpRemove, positions, 1, int64(e.Index()), 1),
		"cleared but with rows":                ops(raw.OpClear, positions, 1),
		"world cleared but with entities":      ops(raw.OpClear, format.NoComponent, 1),
		"an operation that does not exist":     ops(7, positions, 1, 1, 1),
		"an operation on a resource":           ops(raw.OpAdd, rulesNumber, 1, int64(e.Index()), 1),
		"operations of no entity":              ops(raw.OpAdd, positions, 0),
		"operations of more entities than fit": ops(raw.OpCreate, format.NoComponent, 1<<40, 1, 1),
		"clears without end":                   ops(raw.OpClear, positions, 1<<20),
		"an entity before the first":           ops(raw.OpCreate, format.NoComponent, 1, -1, 1),
		"a generation past the last":           ops(raw.OpCreate, format.NoComponent, 1, 1, 1<<32),
	} {
		t.Run(name, func(t *testing.T) {
			payload := storetest.Payload(lie)
			err := replayed(t, payload)
			if name == "a no-rewind row of a dead entity" {
				require.ErrorIs(t, err, format.ErrCorrupt) // The world refuses the state.
				return
			}
			require.Error(t, err)
		})
	}
	require.NoError(t, replayed(t, storetest.Payload(new(format.Tick))))
	require.NoError(t, replayed(t, storetest.Payload(registry(func(*format.RegistryPatch) {}))))
}

func TestApply_WideRowsWithoutValuesRefused(t *testing.T) {
	wide := &layout.Type{Kind: layout.Array, Len: 1 << 30, Elem: &layout.Type{Kind: layout.Uint8}}
	for _, asResource := range []bool{false, true} {
		im := storetest.ImageOf(t, storetest.HostileBase(t))
		im.Components = append(im.Components, &image.Component{Entry: format.Entry{Name: "wide", Layout: wide, Resource: asResource, Rewinds: true}, Width: wide.Width()})
		p := format.StoragePatch{Number: len(im.Components) - 1, After: 1}
		if !asResource {
			p.After, p.EntityRanges, p.Entities = im.Alive, storetest.All(im.Alive), storetest.EntityBytes(im.Registry[:im.Alive]...)
		}
		storetest.Bounded(t, 0, func() {
			require.ErrorContains(t, im.Patch(&format.Tick{Storages: []format.StoragePatch{p}}), "but the values have 0 bytes")
		})
	}
}

func TestApply_WrongParentRefused(t *testing.T) {
	im := storetest.ImageOf(t, storetest.HostileBase(t))
	err := im.Apply(&format.Tick{Parent: journal.ID{Epoch: 1, Seq: 7, CRC: 9}}, journal.ID{Seq: 8})
	require.ErrorContains(t, err, "continues state 1/7/00000009")
}

func TestApply_ManyClearsWithoutPatchRefused(t *testing.T) {
	w := storetest.HostileBase(t)
	im := storetest.ImageOf(t, w)
	var b []byte
	for range 200_000 {
		b = binary.AppendUvarint(b, uint64(raw.OpClear)+8)
		b = binary.AppendUvarint(b, 1)
	}
	err := im.Apply(&format.Tick{Ops: b}, journal.ID{})
	require.ErrorContains(t, err, "component position: operations lead to 0, patches to 7")
}
