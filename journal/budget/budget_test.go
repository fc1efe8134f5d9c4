package budget

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// modelShare is the expected state of a share.
type modelShare struct {
	*Share
	used    int64
	records []int64 // Records that were added and not released.
	waits   bool
	woken   int
}

// A model computes the expected state of a budget from its shares.
type model struct {
	*Budget
	shares []*modelShare
}

func (m *model) used() (sum int64) {
	for _, s := range m.shares {
		sum += s.used
	}
	return sum
}

// full reports whether a share is full, by the rule in the package comment.
func (m *model) full(s *modelShare) bool {
	if s.used == 0 {
		return false
	}
	floor := m.Bytes() / 2 / int64(len(m.shares))
	pool := m.Bytes() - floor*int64(len(m.shares))
	for _, other := range m.shares {
		pool -= max(0, other.used-floor)
	}
	return m.used() >= m.Bytes() || s.used >= floor && pool <= 0
}

func TestBudget_SameAsModel(t *testing.T) {
	waited, wokenFor := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		const largest = 40
		m := &model{Budget: New(1 + r.Int64N(2000))}
		for step := range 400 {
			var s *modelShare
			if len(m.shares) > 0 {
				s = m.shares[r.IntN(len(m.shares))]
			}
			for _, other := range m.shares {
				other.woken = 0
			}
			released := false
			switch k := r.IntN(20); {
			case k == 0 && len(m.shares) < 12 || s == nil:
				s = &modelShare{}
				s.Share = m.Open(func() { s.waits = false; s.woken++ })
				m.shares = append(m.shares, s)
			case k == 1:
				s.Close()
				s.Close()
				s.Add(5)
				s.Release(3)
				m.shares = slices.DeleteFunc(m.shares, func(o *modelShare) bool { return o == s })
				if s.Full() || s.Wait(1) {
					t.Fatalf("seed %d, step %d: a closed share is full", seed, step)
				}
			case k < 14:
				n := 1 + r.Int64N(largest)
				full := m.full(s)
				if s.Full() != full || s.Share.Wait(n) != full {
					t.Fatalf("seed %d, step %d: a share with %d of %d bytes is full: %v", seed, step, s.used, m.Bytes(), !full)
				}
				if full {
					s.waits = true
					waited++
					continue
				}
				spare := s.Add(n)
				s.used += n
				s.records = append(s.records, n)
				if want := m.Bytes()/2/int64(len(m.shares)) - s.used; spare != want {
					t.Fatalf("seed %d, step %d: spare %d, want %d", seed, step, spare, want)
				}
			case len(s.records) > 0:
				n := s.records[0]
				s.records = s.records[1:]
				s.used -= n
				s.Release(n)
				released = true
			}
			if m.Used() != m.used() {
				t.Fatalf("seed %d, step %d: %d bytes are used, want %d", seed, step, m.Used(), m.used())
			}
			if most := m.Bytes() + int64(len(m.shares))*largest; m.used() > most {
				t.Fatalf("seed %d, step %d: %d bytes are used, at most %d", seed, step, m.used(), most)
			}
			// The pool wakes as many shares as it has room for, in order. A share below its floor
			// is always woken.
			floor := m.Bytes() / 2 / int64(max(len(m.shares), 1))
			poolWakes := 0
			for _, other := range m.shares {
				wokenFor += other.woken
				if other.woken > 0 && m.full(other) {
					t.Fatalf("seed %d, step %d: a share that is full was woken", seed, step)
				}
				if other.used > 0 && other.used >= floor {
					poolWakes += other.woken
				}
				if other.waits && !m.full(other) && (other.used < floor || other.used == 0) {
					t.Fatalf("seed %d, step %d: a share below its floor waits", seed, step)
				}
			}
			for _, other := range m.shares {
				if released && other.waits && !m.full(other) && poolWakes == 0 {
					t.Fatalf("seed %d, step %d: the pool has room, and nothing was woken", seed, step)
				}
			}
		}
		for _, s := range m.shares {
			s.Close()
		}
		if m.Used() != 0 || m.pool != 0 || len(m.waiting) != 0 || len(m.Budget.shares) != 0 {
			t.Fatalf("seed %d: %d bytes, %d of the pool, %d waiting and %d shares are left", seed, m.Used(), m.pool, len(m.waiting), len(m.Budget.shares))
		}
	}
	if waited < 1000 || wokenFor < 100 {
		t.Errorf("%d waited, %d were woken: the test covered no waiting share", waited, wokenFor)
	}
}

// While one share holds the whole pool, the other shares can use their floors.
func TestBudget_StuckShare(t *testing.T) {
	b := New(1000)
	stuck, a, c := b.Open(nil), b.Open(nil), b.Open(nil)
	for !stuck.Full() {
		stuck.Add(10)
	}
	for _, s := range []*Share{a, c} {
		held := 0
		for ; !s.Full(); held += 10 {
			s.Add(10)
		}
		if held < 1000/2/3-3*10 { // Each share may take one Add too much.
			t.Errorf("a share holds %d, and its floor is %d", held, 1000/2/3)
		}
	}
	if b.Used() > 1000+3*10 {
		t.Errorf("%d bytes are used", b.Used())
	}
	late := b.Open(nil)
	if late.Full() {
		t.Error("a share that holds nothing is full")
	}
	late.Add(10)
	if !late.Full() {
		t.Error("a used-up budget accepts a second tick of a share")
	}
}

// Concurrent queues wait, and are closed while they wait. All of them terminate.
func TestBudget_ConcurrentShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(500)
		var all sync.WaitGroup
		for n := range 20 {
			all.Go(func() {
				var mu sync.Mutex
				space := sync.NewCond(&mu)
				s := b.Open(func() {
					mu.Lock()
					space.Broadcast()
					mu.Unlock()
				})
				written := make(chan int64, 1000)
				var writer sync.WaitGroup
				writer.Go(func() {
					for size := range written {
						s.Release(size)
						mu.Lock()
						space.Broadcast()
						mu.Unlock()
					}
				})
				r := rand.New(rand.NewPCG(uint64(n), 1))
				for range 300 {
					size := 1 + r.Int64N(30)
					mu.Lock()
					for s.Wait(size) {
						space.Wait()
					}
					s.Add(size)
					mu.Unlock()
					written <- size
				}
				close(written)
				writer.Wait()
				s.Close()
			})
		}
		all.Wait()
		if b.Used() != 0 || len(b.waiting) != 0 {
			t.Errorf("%d bytes are used, %d wait", b.Used(), len(b.waiting))
		}
	})
}

func TestBudget_NilHasNoLimit(t *testing.T) {
	var b *Budget
	s := b.Open(nil)
	s.Add(1)
	if s.Full() || s.Wait(1) {
		t.Error("a share of no budget is full")
	}
	s.Release(1)
	s.Close()
}

func TestShare_AllocatesNothing(t *testing.T) {
	s := New(1 << 20).Open(func() {})
	if n := testing.AllocsPerRun(100, func() {
		s.Wait(10)
		s.Add(10)
		s.Release(10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShare(b *testing.B) {
	s := New(1 << 20).Open(func() {})
	for b.Loop() {
		s.Wait(10)
		s.Add(10)
		s.Release(10)
	}
}
