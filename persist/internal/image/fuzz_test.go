package image_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func FuzzDecodeAndApplyTick(f *testing.F) {
	for _, payload := range storetest.Payloads(f) {
		f.Add(payload)
	}
	f.Add(storetest.Payload(new(format.Tick)))
	f.Add(storetest.Payload((&format.Tick{Marks: []string{"boss", "level 2"}, Inputs: []format.Input{{Name: "left", Data: nil}, {Name: "fire", Data: []byte{1, 2}}}})))
	const land = 16
	f.Add(storetest.Payload(&format.Tick{Storages: []format.StoragePatch{{Number: land, Before: 1, After: 1, EditRanges: storetest.All(1), Edits: []byte{2, 5, 1, 1, 9, 100, 2, 2, 9, 9}}}}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		storetest.BoundedTightly(t, len(payload), func() { _, _ = format.DecodeTick(payload) })
		_ = replayed(t, payload)
	})
}

func FuzzDecodeOps(f *testing.F) {
	for _, payload := range storetest.Payloads(f) {
		t, err := format.DecodeTick(payload)
		require.NoError(f, err)
		f.Add(t.Ops)
	}
	w := storetest.HostileBase(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		storetest.Bounded(t, len(src), func() {
			ops := 0
			err := format.EachOp(src, func(format.Op) { ops++ })
			require.LessOrEqual(t, ops, len(src))
			if err != nil {
				return
			}
			im := storetest.ImageOf(t, w)
			bad, _ := im.CheckOps(src)
			require.NoError(t, bad)
		})
	})
}
