package ecs

import (
	"cmp"
	"math/bits"
)

// Rand is a source of random numbers whose state belongs to the world. After a restore, Rand draws
// the same numbers again. The state is a resource, so it is journaled, saved and part of the
// digest. [RegisterRand] creates a Rand. A world may have several of them with different names.
//
// The generator is PCG with 128 bits of state and the output function DXSM. Uint64 returns the same
// numbers as the PCG of math/rand/v2 for the same two seeds. The results of all methods are the
// same on every machine and in every version.
//
// A Rand is a Source of math/rand/v2: rand.New(r) has more methods. Their results may depend on the
// Go version, and those of NormFloat64 and ExpFloat64 also on the processor.
//
// Each number counts as a write of the resource. The results differ from run to run if several
// goroutines draw numbers, or if a loop over a Go map does.
type Rand struct {
	state *Resource[randState] // Nil for a Rand of NewRand, whose state is in the field own.
	own   randState
}

type randState struct{ Hi, Lo uint64 }

// RegisterRand adds a source of random numbers with two seeds to w. It is a resource named Rand,
// unless its [Component] has another name. The rules are those of [Register].
func RegisterRand(w *World, seed1, seed2 uint64, c ...Component[Rand]) (*Rand, error) {
	said := optional(c)
	state, err := RegisterResource(w, randState{seed1, seed2}, Component[randState]{
		Name: cmp.Or(said.Name, "Rand"), NoRewind: said.NoRewind, NoPersist: said.NoPersist,
		FormerNames: said.FormerNames, Version: said.Version, Migrations: said.Migrations,
	})
	if err != nil {
		return nil, err
	}
	return &Rand{state: state}, nil
}

// NewRand returns a source of random numbers that belongs to no world. Nothing restores or saves
// its state. Package schedule gives each system such a source.
func NewRand(seed1, seed2 uint64) *Rand { return &Rand{own: randState{seed1, seed2}} }

// In returns the Rand of the same name in another world, or nil.
func (r *Rand) In(w *World) *Rand {
	if state := r.state.In(w); state != nil {
		return &Rand{state: state}
	}
	return nil
}

// Seed restarts the generator with two seeds.
func (r *Rand) Seed(seed1, seed2 uint64) { *r.mut() = randState{seed1, seed2} }

// Uint64 returns a number of 64 random bits.
func (r *Rand) Uint64() uint64 { return r.mut().next() }

func (r *Rand) mut() *randState {
	if r.state == nil {
		return &r.own
	}
	return r.state.Mut()
}

// Uint64N returns a number in [0, n). It panics if n is 0.
func (r *Rand) Uint64N(n uint64) uint64 {
	if n == 0 {
		panic("ecs: Rand.Uint64N(0): there is no number below 0")
	}
	// Lemire 2019: the result is the upper half of the product of a random number and n. Reject the
	// lower halves below 2⁶⁴ mod n, so that all results are equally likely.
	hi, lo := bits.Mul64(r.Uint64(), n)
	if lo < n {
		for uneven := -n % n; lo < uneven; {
			hi, lo = bits.Mul64(r.Uint64(), n)
		}
	}
	return hi
}

// IntN returns a number in [0, n). It panics if n is not positive.
func (r *Rand) IntN(n int) int {
	if n <= 0 {
		panic("ecs: Rand.IntN of a number that is not positive")
	}
	return int(r.Uint64N(uint64(n)))
}

// Float64 returns a number in [0, 1), a multiple of 2⁻⁵³.
func (r *Rand) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Shuffle puts n elements into a random order. swap exchanges elements i and j.
func (r *Rand) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, r.IntN(i+1))
	}
}

// The generator steps to state · mul + inc, modulo 2¹²⁸.
const (
	pcgMulHi, pcgMulLo = 2549297995355413924, 4865540595714422341
	pcgIncHi, pcgIncLo = 6364136223846793005, 1442695040888963407
	pcgMix             = 0xda942042e4dd58b5
)

// next advances the state and returns a number computed from it. (O'Neill: PCG, HMC-CS 2014-0905,
// with the output function DXSM.)
func (s *randState) next() uint64 {
	hi, lo := bits.Mul64(s.Lo, pcgMulLo)
	hi += s.Hi*pcgMulLo + s.Lo*pcgMulHi
	lo, carry := bits.Add64(lo, pcgIncLo, 0)
	hi, _ = bits.Add64(hi, pcgIncHi, carry)
	s.Hi, s.Lo = hi, lo

	hi ^= hi >> 32
	hi *= pcgMix
	hi ^= hi >> 48
	return hi * (lo | 1)
}
