package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// An oracleBits is a Bits together with the set of indices that the Bits should contain.
type oracleBits struct {
	Bits
	name string
	// in[i] is true if the Bits should contain index i. The length of in is bitsLimit.
	in []bool
}

// bitsLimit is greater than all indices in these tests. A word of level 2 of a mask stands for
// 1<<18 indices, so the masks have two such words.
const bitsLimit = 1<<18 + 5000

// randomMask returns a mask with random regions of several sizes, some sparse and some dense.
func randomMask(w *World, r *rand.Rand) oracleBits {
	m := w.NewMask()
	in := make([]bool, bitsLimit)
	for range r.IntN(6) {
		size := uint32(1) << (3 + r.IntN(13))
		from := r.Uint32N(bitsLimit)
		step := []uint32{1, 2, 64, 65, 4096}[r.IntN(5)]
		for i := from; i < min(from+size, bitsLimit); i += step {
			m.Add(i)
			in[i] = true
		}
	}
	return oracleBits{m.Bits, "mask", in}
}

// randomBits returns a random combination of the sets.
func randomBits(sets []oracleBits, depth int, r *rand.Rand) oracleBits {
	if depth == 0 {
		return sets[r.IntN(len(sets))]
	}
	first := randomBits(sets, r.IntN(depth), r)
	name, in := first.name, slices.Clone(first.in)
	var more []Bits
	kind := r.IntN(3)
	for range r.IntN(3) {
		b := randomBits(sets, r.IntN(depth), r)
		more = append(more, b.Bits)
		name += ", " + b.name
		for i := range in {
			switch kind {
			case 0:
				in[i] = in[i] && b.in[i]
			case 1:
				in[i] = in[i] || b.in[i]
			case 2:
				in[i] = in[i] && !b.in[i]
			}
		}
	}
	switch kind {
	case 0:
		return oracleBits{first.And(more...), "And(" + name + ")", in}
	case 1:
		return oracleBits{first.Or(more...), "Or(" + name + ")", in}
	}
	return oracleBits{first.AndNot(more...), "AndNot(" + name + ")", in}
}

// check compares the results of b's methods with b.in.
func (b oracleBits) check() error {
	var words [bitsLimit>>6 + 100]uint64
	var want []uint32
	for i, in := range b.in {
		if in {
			want = append(want, uint32(i))
			words[i>>6] |= 1 << (i & 63)
		}
	}
	if got := slices.Collect(b.Bits.Indices()); !slices.Equal(got, want) {
		return fmt.Errorf("%d indices, want %d", len(got), len(want))
	}
	if got := b.Bits.Len(); got != len(want) {
		return fmt.Errorf("Len = %d, want %d", got, len(want))
	}
	if got := b.Bits.Any(); got != (len(want) > 0) {
		return fmt.Errorf("Any = %v with %d indices", got, len(want))
	}
	next := -1 // The next block that contains an index.
	for block := len(words) - 1; block >= 0; block-- {
		if b.word(block) != words[block] {
			return fmt.Errorf("word(%d) = %#x, want %#x", block, b.word(block), words[block])
		}
		if words[block] != 0 {
			next = block
		}
		if got := b.nextWord(block); got >= 0 && got < block || next >= 0 && (got < 0 || got > next) {
			return fmt.Errorf("nextWord(%d) = %d, but word %d is not 0", block, got, next)
		}
	}
	return nil
}

func TestBits_RandomCombinations(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := NewWorld(Options{})
		var sets []oracleBits
		for range 4 {
			sets = append(sets, randomMask(w, r))
		}
		sets = append(sets, aliveBits(w, r))
		for range 3 {
			b := randomBits(sets, 1+r.IntN(3), r)
			if err := b.check(); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, b.name, err)
			}
		}
	}
}

// aliveBits creates entities in w and destroys some of them.
func aliveBits(w *World, r *rand.Rand) oracleBits {
	for range r.IntN(5000) {
		w.Create()
	}
	cp := w.Checkpoint()
	for range r.IntN(1000) {
		w.Create()
	}
	for range r.IntN(w.Len() + 1) {
		w.Destroy(w.Entities()[r.IntN(w.Len())])
	}
	if r.IntN(4) == 0 {
		w.Clear()
	}
	if r.IntN(2) == 0 {
		// The restore removes the newest indices. Their entries in sparse stay, and are stale.
		w.Restore(cp)
	}
	in := make([]bool, bitsLimit)
	for _, e := range w.Entities() {
		in[e.Index()] = true
	}
	return oracleBits{w.AliveBits(), "alive", in}
}

func TestAliveBits_MatchAliveEntities(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := NewWorld(Options{})
		b := aliveBits(w, rand.New(rand.NewPCG(seed, 1)))
		if err := b.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range uint32(7000) {
			e, ok := w.EntityAt(i)
			if ok != b.in[i] || ok != w.Alive(e) || ok && e.Index() != i {
				t.Fatalf("seed %d: EntityAt(%d) = %v, %v", seed, i, e, ok)
			}
		}
		if e, ok := w.EntityAt(1<<32 - 1); ok || e != 0 {
			t.Errorf("EntityAt(4294967295) = %v, %v", e, ok)
		}
	}
}

func TestBits_CombinationsOfEmptySets(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	for _, b := range []Bits{m.Bits, m.Or(), m.And(), m.And(w.AliveBits()), m.AndNot(), m.Or(w.AliveBits()), w.AliveBits()} {
		if b.nextWord(0) != -1 || b.word(0) != 0 || b.Any() {
			t.Errorf("%T is not empty", b.tree)
		}
	}
	w.Create()
	w.Clear()
	if w.AliveBits().nextWord(0) != -1 {
		t.Error("a world that was cleared has entities")
	}
}

// And intersects the upper levels first. So if two masks have no word in common, their words are
// not scanned.
func TestBits_AndSkipsEmptyRegions(t *testing.T) {
	w := NewWorld(Options{})
	even, odd := w.NewMask(), w.NewMask()
	for i := uint32(0); i < 1<<20; i += 128 {
		even.Add(i)
		odd.Add(i + 64)
	}
	if got := even.And(odd.Bits).nextWord(0); got != -1 {
		t.Errorf("nextWord(0) = %d, want -1", got)
	}
	even.Add(1<<19 + 64)
	if got := even.And(odd.Bits).nextWord(0); got != (1<<19+64)/64 {
		t.Errorf("nextWord(0) = %d, want %d", got, (1<<19+64)/64)
	}
}

func TestBits_AndAtStartOfEachLevel(t *testing.T) {
	w := NewWorld(Options{})
	x, y := w.NewMask(), w.NewMask()
	want := []uint32{0, 4096, 8192, 1 << 18, 1 << 24, 1<<24 + 4096}
	for _, i := range want {
		x.Add(i)
		y.Add(i)
		y.Add(i + 100)
	}
	if got := slices.Collect(x.And(y.Bits).Indices()); !slices.Equal(got, want) {
		t.Errorf("Indices = %v, want %v", got, want)
	}
}

func TestMask_ChangedWhileIterating(t *testing.T) {
	w := NewWorld(Options{})
	m := w.NewMask()
	for _, i := range []uint32{1, 2, 70, 5000} {
		m.Add(i)
	}
	cp := w.Checkpoint()
	var visited []uint32
	for i := range m.Indices() {
		visited = append(visited, i)
		switch i {
		case 1:
			m.Remove(2)  // Index 2 is in the current block, so it is still visited.
			m.Remove(70) // Index 70 is in a later block, so it is not visited.
			m.Add(3)     // Index 3 is in the current block, so it is not visited.
			m.Add(300)   // Index 300 is in a later block, so it is visited.
		case 300:
			m.Clear()
			m.Add(1 << 20)
		case 1 << 20:
			w.Restore(cp)
		}
	}
	if want := []uint32{1, 2, 300, 1 << 20}; !slices.Equal(visited, want) {
		t.Errorf("visited %v, want %v", visited, want)
	}
	for i := range m.Indices() {
		if i == 2 {
			break
		}
	}
}
