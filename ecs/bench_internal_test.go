package ecs

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// The benchmarks compare masks with a flat []uint64 that does the same work. The slice tracks no
// changes, has no upper levels, and is cleared word by word.

const benchIndices = 1 << 20

// shuffled returns n different indices below benchIndices.
func shuffled(n int) []uint32 {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]uint32, n)
	for i, x := range r.Perm(benchIndices)[:n] {
		all[i] = uint32(x)
	}
	return all
}

func benchMask(w *World, indices []uint32) *Mask {
	m := w.NewMask()
	for _, i := range indices {
		m.Add(i)
	}
	return m
}

func benchFlat(indices []uint32) []uint64 {
	flat := make([]uint64, benchIndices/64)
	for _, i := range indices {
		flat[i>>6] |= 1 << (i & 63)
	}
	return flat
}

// perIndex reports the time per index. Each iteration of b handles n indices.
func perIndex(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/index")
}

func BenchmarkMaskHas(b *testing.B) {
	indices := shuffled(100_000)
	m, flat := benchMask(NewWorld(Options{}), indices[:50_000]), benchFlat(indices[:50_000])
	n := 0
	b.Run("mask", func(b *testing.B) {
		for b.Loop() {
			n += countHas(m, indices)
		}
		perIndex(b, len(indices))
	})
	b.Run("flat", func(b *testing.B) {
		for b.Loop() {
			n += countFlat(flat, indices)
		}
		perIndex(b, len(indices))
	})
}

func countHas(m *Mask, indices []uint32) (n int) {
	for _, i := range indices {
		if m.Has(i) {
			n++
		}
	}
	return n
}

func countFlat(flat []uint64, indices []uint32) (n int) {
	for _, i := range indices {
		if flat[i>>6]>>(i&63)&1 != 0 {
			n++
		}
	}
	return n
}

func BenchmarkMaskAddRemove(b *testing.B) {
	for name, indices := range map[string][]uint32{"few": shuffled(100), "many": shuffled(100_000)} {
		w := NewWorld(Options{})
		m, flat := w.NewMask(), benchFlat(nil)
		pair := func() {
			for _, i := range indices {
				m.Add(i)
			}
			for _, i := range indices {
				m.Remove(i)
			}
		}
		b.Run(name+"/mask", func(b *testing.B) {
			for b.Loop() {
				pair()
			}
			perIndex(b, len(indices))
		})
		b.Run(name+"/checkpoint", func(b *testing.B) {
			for b.Loop() {
				cp := w.Checkpoint()
				pair()
				w.Release(cp)
			}
			perIndex(b, len(indices))
		})
		b.Run(name+"/flat", func(b *testing.B) {
			for b.Loop() {
				for _, i := range indices {
					flat[i>>6] |= 1 << (i & 63)
				}
				for _, i := range indices {
					flat[i>>6] &^= 1 << (i & 63)
				}
			}
			perIndex(b, len(indices))
		})
	}
}

func BenchmarkMaskIterate(b *testing.B) {
	for _, bench := range []struct {
		name string
		n    int
	}{{"dense", benchIndices}, {"half", benchIndices / 2}, {"one of 1000", benchIndices / 1000}, {"100", 100}} {
		indices := shuffled(bench.n)
		m, flat := benchMask(NewWorld(Options{}), indices), benchFlat(indices)
		sum := uint32(0)
		b.Run(bench.name+"/mask", func(b *testing.B) {
			for b.Loop() {
				sum += sumMask(m)
			}
			perIndex(b, bench.n)
		})
		b.Run(bench.name+"/flat", func(b *testing.B) {
			for b.Loop() {
				sum += sumFlat(flat)
			}
			perIndex(b, bench.n)
		})
	}
}

func sumMask(m *Mask) (sum uint32) {
	for i := range m.Indices() {
		sum += i
	}
	return sum
}

func sumFlat(flat []uint64) (sum uint32) {
	for k, word := range flat {
		for ; word != 0; word &= word - 1 {
			sum += uint32(k<<6 + bits.TrailingZeros64(word))
		}
	}
	return sum
}

// The benchmark intersects two sets of 100 000 of a million indices. They share 100 indices. The
// sets are scattered, or in separate regions.
func BenchmarkMaskAnd(b *testing.B) {
	scattered := shuffled(199_900)
	regions := make([]uint32, 199_900)
	for i := range regions {
		regions[i] = uint32(i * 5)
	}
	for name, all := range map[string][]uint32{"scattered": scattered, "regions": regions} {
		x, y := all[:100_000], all[99_900:]
		w := NewWorld(Options{})
		both := benchMask(w, x).And(benchMask(w, y).Bits)
		flatX, flatY := benchFlat(x), benchFlat(y)
		sum := uint32(0)
		b.Run(name+"/mask", func(b *testing.B) {
			for b.Loop() {
				for i := range both.Indices() {
					sum += i
				}
			}
		})
		b.Run(name+"/flat", func(b *testing.B) {
			for b.Loop() {
				for k, word := range flatX {
					for word &= flatY[k]; word != 0; word &= word - 1 {
						sum += uint32(k<<6 + bits.TrailingZeros64(word))
					}
				}
			}
		})
	}
}

func BenchmarkMaskClear(b *testing.B) {
	m := benchMask(NewWorld(Options{}), shuffled(benchIndices))
	for b.Loop() {
		m.Clear()
		m.Add(5)
	}
}

// The benchmark measures the cost of a mask for its storage. A component is added to every entity
// and removed again.
func BenchmarkMaskedStorage(b *testing.B) {
	for name, masked := range map[string]bool{"masked": true, "plain": false} {
		w := NewWorld(Options{})
		s := MustRegister(w, Component[plain]{Masked: masked})
		for range 10_000 {
			w.Create()
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for _, e := range w.Entities() {
					s.Set(e, plain{})
				}
				for _, e := range w.Entities() {
					s.Remove(e)
				}
			}
			perIndex(b, 10_000)
		})
	}
}

// A tick writes n random rows in each of four storages of 100 000 rows. The history is full, so
// each tick also drops a tick. This is the oldest one, or the one that Options.HistoryDense
// selects. The cases with history=0 show the time without a history.
func BenchmarkHistory(b *testing.B) {
	for _, written := range []int{10, 1000} {
		for _, history := range []int{0, 64, 1024, 8192} {
			for _, dense := range []int{0, 32} {
				if history == 0 && dense > 0 {
					continue
				}
				b.Run(fmt.Sprintf("rows=%d/history=%d/dense=%d", written, history, dense), func(b *testing.B) {
					tick := scatteredTick(written, Options{History: history, HistoryDense: dense})
					for range history + 1000 {
						tick()
					}
					b.ReportAllocs()
					for b.Loop() {
						tick()
					}
				})
			}
		}
	}
}

// scatteredTick returns a function that writes rows of four storages and commits a tick.
func scatteredTick(written int, o Options) (tick func()) {
	const n = 100_000
	w := NewWorld(o)
	entities := w.CreateN(nil, n)
	var storages []*Storage[extra]
	for i := range 4 {
		s := MustRegister(w, Component[extra]{Name: fmt.Sprint("extra", i)})
		s.SetAll(entities, extra{})
		storages = append(storages, s)
	}
	w.Commit()
	row := uint32(1)
	return func() {
		for range written {
			row = row*1664525 + 1013904223
			for _, s := range storages {
				s.Mut(entities[row>>8%n]).V++
			}
		}
		w.Commit()
	}
}

// Unclear reverts a Clear of n rows. Nothing may have changed since the Clear. Benchmarks use
// Unclear to measure Clear alone.
func (s *Storage[T]) Unclear(n int) { s.rows.N = n }
