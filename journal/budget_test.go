package journal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/journal/budget"
)

// All journals of a budget are stuck. Each journal accepts records up to the floor of its share. If
// the floor is less than a record, it accepts one record. Then it refuses.
func TestAppend_BudgetUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory, record = 100_000, 1000
		b := budget.New(memory)
		var journals []*journal.Journal
		var releases []func()
		for range 50 {
			fs, release := hanging()
			journals = append(journals, open(t, fs, journal.Options{RefuseWhenFull: true, Budget: b}))
			releases = append(releases, release)
		}
		taken := make([]int, len(journals))
		// Fill the queue of the first journal.
		for tryAppendBytes(journals[0], record) == nil {
			taken[0]++
		}
		for range 10 {
			for i, j := range journals[1:] {
				if tryAppendBytes(j, record) == nil {
					taken[1+i]++
				}
			}
		}
		most := int64(memory + len(journals)*(record+200))
		if used := b.Used(); used < memory || used > most {
			t.Errorf("%d bytes are used of %d, at most %d", used, memory, most)
		}
		for i, n := range taken {
			if n == 0 {
				t.Errorf("journal %d accepted no record", i)
			}
			if journals[i].Reserve() {
				t.Errorf("journal %d reserves a record", i)
			}
		}
		releases[0]() // One writer continues, so the pool is free again.
		synctest.Wait()
		if !journals[0].Reserve() || tryAppendBytes(journals[0], record) != nil {
			t.Error("a journal that has written all refuses a record")
		}
		for i, j := range journals[1:30] {
			if !j.Reserve() {
				t.Errorf("journal %d refuses a record, although the pool is free", 1+i)
				break
			}
			if err := tryAppendBytes(j, record); err != nil {
				t.Errorf("Append after Reserve = %v", err)
			}
		}
		for _, release := range releases[1:] {
			release()
		}
		for i, j := range journals {
			if i%2 == 0 {
				j.Abandon()
			} else if err := j.Close(context.Background(), 0); err != nil {
				t.Error(err)
			}
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes are used by journals that are closed", b.Used())
		}
	})
}

// Append accepts a reserved record even if another journal has used up the budget since Reserve.
func TestReserve_BudgetUsedUpAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(4000)
		fs, release := hanging()
		other, letGo := hanging()
		j := open(t, fs, journal.Options{RefuseWhenFull: true, Budget: b})
		k := open(t, other, journal.Options{RefuseWhenFull: true, Budget: b})
		if err := tryAppendBytes(j, 1200); err != nil || !j.Reserve() {
			t.Fatalf("%v; the journal has no room", err)
		}
		for tryAppendBytes(k, 500) == nil {
		}
		if !j.Reserve() {
			t.Error("a second Reserve returned false")
		}
		if err := tryAppendBytes(j, 500); err != nil {
			t.Errorf("Append after Reserve = %v", err)
		}
		if j.Reserve() || !errors.Is(tryAppendBytes(j, 500), journal.ErrBacklog) {
			t.Error("a second record was accepted")
		}
		release()
		letGo()
		closeJournal(t, j, 0)
		closeJournal(t, k, 0)
	})
}

func tryAppendBytes(j *journal.Journal, n int) error {
	_, err := j.Append(0, 0, 0, append(j.Buffer(), make([]byte, n)...))
	return err
}

// A journal that waits for the budget continues when other journals release bytes, fail or close.
// In the end the budget is empty.
func TestAppend_WaitsForBudget(t *testing.T) {
	waited := atomic.Int64{}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			b := budget.New(20_000)
			var all sync.WaitGroup
			for n := range 12 {
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(n)))
					fs := disktest.New()
					fs.OnCall(func(_ int, call string) {
						if strings.HasPrefix(call, "write") || strings.HasPrefix(call, "sync") {
							time.Sleep(time.Duration(1+n) * time.Millisecond)
						}
					})
					j := open(t, fs, journal.Options{Budget: b, SegmentSize: 9000, Sync: time.Duration(n) * time.Millisecond})
					ends := r.IntN(200)
					for i := range 200 {
						if i == ends && n%3 == 0 {
							fs.FailFrom(fs.Calls(), fmt.Errorf("no space"))
						}
						begun := time.Now()
						err := tryAppendBytes(j, r.IntN(1500))
						if time.Since(begun) > 0 {
							waited.Add(1)
						}
						if err != nil {
							if n%3 != 0 {
								t.Errorf("seed %d: Append = %v", seed, err)
							}
							break
						}
						if used := b.Used(); used > 20_000+12*(2*1500+200) {
							t.Errorf("seed %d: %d bytes are used", seed, used)
						}
					}
					if n%3 == 1 {
						j.Abandon()
					} else {
						_ = j.Close(context.Background(), 0)
					}
				})
			}
			all.Wait()
			if b.Used() != 0 {
				t.Errorf("seed %d: %d bytes are used by journals that are closed", seed, b.Used())
			}
		})
	}
	if waited.Load() < 100 {
		t.Errorf("%d calls waited: the test covered no waiting call", waited.Load())
	}
}

// A journal that failed to open holds no share.
func TestOpen_FailureReleasesShare(t *testing.T) {
	b := budget.New(1000)
	for n := range 6 {
		fs := disktest.New()
		fs.FailFrom(n, errors.New("no space"))
		if j, err := journal.Open(fs, scan(t, disktest.New()), journal.Options{Budget: b}); err == nil {
			j.Abandon()
		}
	}
	s := b.Open(nil)
	if spare := s.Add(0); spare != 500 {
		t.Errorf("the only share has a floor of %d of 1000", spare)
	}
}

// After a burst, the journal releases memory and keeps enough for small records.
func TestJournal_ReleasesMemoryAfterBurst(t *testing.T) {
	for name, after := range map[string]int{"no records": 0, "small records": 100} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs, release := hanging()
				j := open(t, fs, journal.Options{})
				for range 2000 {
					if err := tryAppendBytes(j, 1000); err != nil {
						t.Fatal(err)
					}
				}
				release()
				synctest.Wait()
				if buffers, items := j.Idle(); buffers < 2_000_000 || items <= 256 {
					t.Errorf("%d bytes and %d items are allocated directly after the burst", buffers, items)
				}
				for range after {
					time.Sleep(50 * time.Millisecond)
					if err := tryAppendBytes(j, 1000); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if buffers, items := j.Idle(); buffers > 64<<10 || items > 256 {
					t.Errorf("%d bytes and %d items were not released", buffers, items)
				}
				closeJournal(t, j, 0)
			})
		})
	}
}

// The journal keeps buffers that are in constant use. Each round needs 200 buffers at the same
// time, because the first write blocks until the end of the round.
func TestJournal_KeepsBuffersInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := disktest.New()
		var blocked sync.Mutex // Locked during a round.
		fs.OnCall(func(_ int, call string) {
			if call == "write 00000001.seg" {
				blocked.Lock()
				blocked.Unlock() //nolint:staticcheck // Wait for the end of the round.
			}
		})
		j := open(t, fs, journal.Options{})
		for i := range 100 {
			blocked.Lock()
			for range 200 {
				b := j.Buffer()
				if i > 0 && b == nil {
					t.Errorf("round %d has no buffer", i)
				}
				if _, err := j.Append(0, 0, 0, append(b, make([]byte, 1000)...)); err != nil {
					t.Error(err)
				}
			}
			blocked.Unlock()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		closeJournal(t, j, 0)
	})
}
