package track

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A memberTable is a sparse set of plain values. It makes the first write of a row by SaveMember
// and Overwrite.
type memberTable[T comparable] struct {
	rows   Tracker
	dense  Column[uint64]
	data   Column[T]
	sparse Sparse
}

func (a *memberTable[T]) init(c *Clock) {
	a.dense.Init(c, false)
	a.data.Init(c, false)
	a.sparse.Init(c)
	a.rows.Init(c, false, &a.dense.Log, &a.sparse)
	a.rows.Add(&a.data.Log)
}

func (a *memberTable[T]) put(key uint32, row int, v T) {
	p := a.sparse.Grow(key)
	SaveMember(&a.dense.Log, &a.data.Log, &a.sparse, p, key, row)
	p.Rows[key&PageMask] = uint32(row)
	a.dense.Live[row], a.data.Live[row] = uint64(key), v
}

func (a *memberTable[T]) add(key uint32, v T) {
	a.rows.Open()
	n := a.rows.N
	if n == len(a.dense.Live) {
		rows := max(64, 2*n)
		a.dense.Reserve(rows)
		a.data.Reserve(rows)
		a.rows.Reserve(rows)
	}
	a.put(key, n, v)
	a.rows.N++
}

func (a *memberTable[T]) set(row int, v T) {
	a.rows.Open()
	if a.data.Unsaved(row) {
		a.data.Overwrite(row, v)
	} else {
		a.data.Live[row] = v
	}
}

func (a *memberTable[T]) remove(row int) {
	a.rows.Open()
	if last := a.rows.N - 1; row < last {
		a.put(uint32(a.dense.Live[last]), row, a.data.Live[last])
	}
	a.rows.N--
}

// Restoring a frame restores all of its rows, whatever was added and removed since. The test fills
// several chunks of the logs and several pages of sparse entries.
func TestSaveMember_RestoreOfFrame(t *testing.T) {
	testMembersRestored(t, func(i int) uint64 { return uint64(i) })
	testMembersRestored(t, func(i int) [2]uint64 { return [2]uint64{uint64(i), ^uint64(i)} })
	testMembersRestored(t, func(i int) [3]uint32 { return [3]uint32{uint32(i), ^uint32(i), 7} })
	testMembersRestored(t, func(i int) [99]uint32 { return [99]uint32{uint32(i), 50: uint32(i & 1), 98: 1} })
	testMembersRestored(t, func(i int) [257]byte { return [257]byte{byte(i), 100: byte(i & 1), 256: 1} })
	testMembersRestored(t, func(i int) struct{} { return struct{}{} })
}

func testMembersRestored[T comparable](t *testing.T, value func(i int) T) {
	type state struct {
		keys   []uint64
		values []T
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var clock Clock
		var a memberTable[T]
		clock.Span, clock.End = 1, func() {}
		a.init(&clock)
		var frames []*Frame
		var states []state
		renew := func() {
			clock.Span++
			clock.Frame = frames[len(frames)-1]
		}
		for step := range 40 {
			frames = append(frames, &Frame{ID: uint64(step + 1)})
			states = append(states, state{slices.Clone(a.dense.Live[:a.rows.N]), slices.Clone(a.data.Live[:a.rows.N])})
			renew()
			for i := range 1 << rng.IntN(12) {
				switch row := rng.IntN(max(1, a.rows.N)); {
				case a.rows.N > 0 && rng.IntN(2) == 0:
					a.remove(row)
				case a.rows.N > 0 && rng.IntN(4) == 0:
					a.set(row, value(rng.Int()))
				default:
					a.add(uint32(step<<11|i), value(rng.Int())) // Each step adds a new key.
				}
				if rng.IntN(500) == 0 {
					a.rows.Open()
					a.rows.N = 0
				}
			}
			if rng.IntN(4) > 0 {
				continue
			}
			k := rng.IntN(len(frames))
			for _, f := range frames[k:] {
				for _, touched := range f.Touched {
					touched.PutBack(frames[k].ID)
				}
			}
			frames[k].Touched = nil
			want := states[k]
			frames, states = frames[:k+1], states[:k+1]
			renew()
			if !slices.Equal(a.dense.Live[:a.rows.N], want.keys) || !slices.Equal(a.data.Live[:a.rows.N], want.values) {
				t.Fatalf("seed %d, step %d: the restored frame %d differs", seed, step, k)
			}
			for row, key := range a.dense.Live[:a.rows.N] {
				if got := a.sparse.Page(uint32(key)).Rows[key&PageMask]; got != uint32(row) {
					t.Fatalf("seed %d, step %d: key %d is at row %d, want %d", seed, step, key, got, row)
				}
			}
		}
	}
}

// A restore undoes swaps of two rows. Only in some of the cases are the two rows consecutive in the
// log.
func TestColumn_SwappedRowsRestored(t *testing.T) {
	const rows = 500
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		clock := Clock{Span: 1}
		var a Tracker
		var c Column[uint64]
		c.Init(&clock, false)
		a.Init(&clock, false, &c.Log)
		c.Reserve(rows)
		for i := range c.Live {
			c.Live[i] = uint64(i)
		}
		a.N = rows
		for step := range 20 {
			want := slices.Clone(c.Live)
			clock.Span++
			clock.Frame = &Frame{ID: uint64(step + 1)}
			a.Open()
			for i := range rng.IntN(rows) {
				i, k := (i+step)%rows, rng.IntN(rows)
				c.Log.SaveBoth(i, k)
				c.Live[i], c.Live[k] = c.Live[k], c.Live[i]
			}
			if now := slices.Clone(c.Live); rng.IntN(2) == 0 {
				a.PutBack(clock.Frame.ID)
			} else {
				a.Undo(clock.Frame.ID)
				if !slices.Equal(c.Live, want) {
					t.Fatalf("seed %d, step %d: the restored rows differ", seed, step)
				}
				a.Redo(clock.Frame.ID)
				want = now
			}
			if !slices.Equal(c.Live, want) {
				t.Fatalf("seed %d, step %d: the restored rows differ", seed, step)
			}
		}
	}
}

// The DirtySet of a reader contains exactly the written rows, with and without an open frame.
func TestDirtySet_ReportsWrittenRows(t *testing.T) {
	const rows = 300
	clock := Clock{Span: 1}
	var a memberTable[[2]uint64]
	a.init(&clock)
	for i := range uint32(rows) {
		a.add(i, [2]uint64{})
	}
	news := a.rows.Follow(&a.dense.Log)
	rng := rand.New(rand.NewPCG(1, 3))
	for step := range 100 {
		clock.Span++
		if clock.Frame = nil; step%2 == 1 {
			clock.Frame = &Frame{ID: uint64(step)}
		}
		news.Clear()
		written := make([]bool, rows)
		for range rng.IntN(rows) {
			row := rng.IntN(rows)
			a.rows.Open()
			if key := uint32(a.dense.Live[row]); rng.IntN(2) == 0 {
				a.put(key, row, [2]uint64{1})
			} else {
				a.dense.Touch(row)
			}
			written[row] = true
		}
		dirty := make([]bool, rows)
		for i := range news.Len() {
			row, word := news.Word(i)
			for k := range 64 {
				if word>>k&1 == 1 {
					dirty[row+k] = true
				}
			}
		}
		if !slices.Equal(dirty, written) {
			t.Fatalf("step %d: the News has %v, want %v", step, dirty, written)
		}
	}
}
