package ecs

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

type (
	canvas struct{ Cells [1 << 16]byte }
	region struct{ Cells [1 << 12]byte }
)

// For large rows, a history stores only the pieces that changed. It must still be able to seek to
// every tick in both directions. The test also reverts some of the writes within a tick.
func TestLargeRow_HistoryStoresChangedPieces(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 0x6c))
		w := NewWorld(Options{History: 60})
		land := Must(RegisterResource(w, canvas{}))
		regions := MustRegister[region](w)
		for range 20 {
			regions.Set(w.Create(), region{})
		}
		w.Commit()
		h := w.History()
		type state struct {
			land    canvas
			regions []region
		}
		of := func() state { return state{*land.Read(), append([]region(nil), regions.Values()...)} }
		states := map[uint64]state{0: {regions: make([]region, 20)}, w.Tick(): of()}
		much := seed%2 == 1
		write := func() {
			land.Mut().Cells[rng.IntN(1<<16)]++
			for i := rng.IntN(1 << 17); much && i < 1<<16; i++ {
				land.Mut().Cells[i]++
			}
			for _, e := range w.Entities()[:10] {
				regions.Mut(e).Cells[rng.IntN(1<<12)]++
			}
		}
		past, err := h.At(w.Tick())
		require.NoError(t, err)
		look := func() {
			if rng.IntN(5) == 0 || !past.Valid() {
				require.NoError(t, past.At(h.Oldest()+rng.Uint64N(h.Newest()-h.Oldest()+1)))
			}
			want := states[past.Tick()]
			if land.At(past) != want.land {
				t.Fatalf("seed %d: at tick %d the Past of tick %d differs", seed, w.Tick(), past.Tick())
			}
			for i, e := range w.Entities() {
				if v, _ := regions.At(past).Get(e); v != want.regions[i] {
					t.Fatalf("seed %d: at tick %d the Past of tick %d has a different row %d", seed, w.Tick(), past.Tick(), i)
				}
			}
		}
		for range 60 {
			for did := 0; did != 3; { // Repeat until the action was a write.
				switch did = rng.IntN(4); did {
				case 0:
					// These writes are reverted.
					_ = w.Try(func() error { write(); return errTooFar })
				case 1:
					_ = w.Try(func() error { write(); return nil })
				default:
					write()
					look()
				}
			}
			w.Commit()
			states[w.Tick()] = of()
		}
		// Full copies of the rows that a tick writes would take 105 KB.
		for tick := h.Oldest(); tick < h.Newest() && !much; tick++ {
			require.Less(t, h.TickBytes(tick), int64(64<<10), "seed %d, tick %d", seed, tick)
			require.Greater(t, h.TickBytes(tick), int64(11*64), "seed %d, tick %d", seed, tick)
		}
		for range 100 {
			look()
			to := h.Oldest() + rng.Uint64N(h.Newest()-h.Oldest()+1)
			require.NoError(t, h.Seek(to))
			if got := of(); got.land != states[to].land || !slices.Equal(got.regions, states[to].regions) {
				t.Fatalf("seed %d: the restored tick %d differs", seed, to)
			}
		}
	}
}

// If all bytes of a large row change, the history stores the old row once.
func TestLargeRow_SavedOnceIfAllBytesChange(t *testing.T) {
	w := NewWorld(Options{History: 4})
	land := Must(RegisterResource(w, canvas{}))
	w.Commit()
	for tick := range byte(8) {
		for i := range land.Mut().Cells {
			land.Mut().Cells[i] = tick + 1
		}
		w.Commit()
	}
	require.Less(t, w.History().Bytes(), int64(4*(1<<16+1<<10)))
	require.NoError(t, w.History().Rewind(3))
	require.Equal(t, byte(5), land.Read().Cells[1<<16-1])
}

// A pointer to a large row stays valid until its tick ends, even if a checkpoint is released in
// between.
func TestLargeRow_PointerAfterRelease(t *testing.T) {
	w := NewWorld(Options{})
	land := Must(RegisterResource(w, canvas{}))
	first := w.Checkpoint()
	second := w.Checkpoint()
	p := land.Mut()
	p.Cells[0]++
	w.Release(second)
	land.Mut().Cells[1]++
	p.Cells[9999]++
	w.Restore(first)
	require.Equal(t, canvas{}, *land.Read())
}
