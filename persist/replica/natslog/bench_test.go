package natslog_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
)

type place struct{ X, Y float64 }

// An arena is a store whose owner moves some of its entities each tick. Its log is on three servers
// in this process, which sync every message.
type arena struct {
	places   *ecs.Storage[place]
	entities []ecs.Entity
	store    *persist.Store

	ended []time.Time     // The time at which Commit returned, by tick.
	spent []time.Duration // The duration of Commit, by tick.
	known chan time.Time  // Receives the time at which a tick was confirmed.
}

func newArena(b *testing.B, entities int) *arena {
	js := newCluster(b, 3, nil).create("WORLDS", 3)
	files, err := disk.Open(b.TempDir())
	require.NoError(b, err)
	f, err := replica.Follow(background, open(b, js, "WORLDS", "one"), files, replica.Options{})
	require.NoError(b, err)
	o, err := f.Claim(background)
	require.NoError(b, err)
	a := &arena{known: make(chan time.Time, 1<<20)}
	w := ecs.NewWorld(ecs.Options{})
	a.places = ecs.MustRegister[place](w)
	a.store, err = o.Open(background, w, persist.Options{
		Sync: journal.SyncAlways, SnapshotBytes: -1, OnDurable: func(uint64) { a.known <- time.Now() },
	})
	require.NoError(b, err)
	a.entities = w.CreateN(nil, entities)
	a.places.SetAll(a.entities, place{})
	require.NoError(b, a.store.Commit())
	require.NoError(b, a.store.Sync(background))
	<-a.known
	b.Cleanup(func() {
		require.NoError(b, a.store.Close(background))
		require.NoError(b, o.Close())
		require.NoError(b, files.Close())
	})
	return a
}

// tick moves some entities. Consecutive ticks move different entities.
func (a *arena) tick(b *testing.B, i, rows int) {
	begin := i * rows % len(a.entities)
	for k, p := range a.places.MutEach(a.entities[begin : begin+rows]) {
		p.X += float64(k)
		p.Y -= float64(i)
	}
	start := time.Now()
	err := a.store.Commit()
	for ; errors.Is(err, persist.ErrBacklog); err = a.store.Commit() {
		time.Sleep(time.Millisecond)
	}
	require.NoError(b, err)
	now := time.Now()
	a.ended, a.spent = append(a.ended, now), append(a.spent, now.Sub(start))
}

// report waits until all ticks are confirmed. It reports the delays of the confirmations, and the
// durations of Commit.
func (a *arena) report(b *testing.B, start time.Time) {
	require.NoError(b, a.store.Sync(background))
	took := time.Since(start)
	var late []time.Duration
	for _, ended := range a.ended {
		late = append(late, (<-a.known).Sub(ended))
	}
	slices.Sort(late)
	slices.Sort(a.spent)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(ms(late[len(late)/2]), "confirmed-ms")
	b.ReportMetric(ms(late[len(late)*99/100]), "confirmed-p99-ms")
	b.ReportMetric(ms(a.spent[len(a.spent)-1]), "worst-commit-ms")
	b.ReportMetric(float64(len(late))/took.Seconds(), "ticks/s")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTicks runs two phases of five seconds each. The first phase makes 60 ticks a second, and
// measures the time from Commit to the confirmation. The second phase makes ticks as fast as
// possible, and measures how many are confirmed in a second. It repeats Commit while 64 MiB of
// ticks wait.
func BenchmarkTicks(b *testing.B) {
	const long = 5 * time.Second
	for _, size := range []struct{ rows, of int }{{100, 100}, {1000, 100_000}, {100_000, 100_000}} {
		b.Run(fmt.Sprintf("%d-of-%d/60-a-second", size.rows, size.of), func(b *testing.B) {
			a := newArena(b, size.of)
			start := time.Now()
			clock := time.NewTicker(time.Second / 60)
			defer clock.Stop()
			for i := 0; time.Since(start) < long; i++ {
				<-clock.C
				a.tick(b, i, size.rows)
			}
			a.report(b, start)
		})
		b.Run(fmt.Sprintf("%d-of-%d/all", size.rows, size.of), func(b *testing.B) {
			a := newArena(b, size.of)
			start := time.Now()
			for i := 0; time.Since(start) < long; i++ {
				a.tick(b, i, size.rows)
			}
			a.report(b, start)
		})
	}
}

// BenchmarkWorlds measures a process that owns many worlds of one stream. Each world has 100
// entities, makes 10 ticks a second for 10 seconds, and has a standby. Then all owners lose their
// connection at the same time, and every standby claims its world. All owners, standbys and the
// three servers are in this process. The servers sync every message.
func BenchmarkWorlds(b *testing.B) {
	for _, worlds := range []int{10, 100, 500} {
		b.Run(fmt.Sprint(worlds), func(b *testing.B) {
			if b.N == 1 {
				newFleet(b, worlds).run()
			}
		})
	}
}

// A fleet is a number of worlds in one stream.
type fleet struct {
	b        *testing.B
	memory   *budget.Budget
	worlds   []*fleetWorld
	standbys []*replica.Follower
	cut      func() // Closes the connection of the owners.

	made, confirmed atomic.Int64
	mu              sync.Mutex
	late            []time.Duration // Times from Commit to the confirmation.
}

// A fleetWorld is a world with its owner.
type fleetWorld struct {
	owner  *replica.Owner
	store  *persist.Store
	world  *ecs.World
	places *ecs.Storage[place]

	mu    sync.Mutex
	ended map[uint64]time.Time // The time at which Commit returned, by tick.
}

func newFleet(b *testing.B, worlds int) *fleet {
	c := newCluster(b, 3, nil)
	c.create("WORLDS", 3)
	owners := c.connect("owner")
	f := &fleet{b: b, memory: budget.New(256 << 20), cut: owners.Close}
	standbys := c.js(c.connect("owner"))
	f.worlds, f.standbys = make([]*fleetWorld, worlds), make([]*replica.Follower, worlds)
	each(worlds, func(i int) {
		f.worlds[i] = f.own(f.follow(c.js(owners), i))
		f.standbys[i] = f.follow(standbys, i)
	})
	return f
}

// each calls a function for each number below n, in 32 goroutines.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 32 {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

func (f *fleet) follow(js jetstream.JetStream, i int) *replica.Follower {
	files, err := disk.Open(f.b.TempDir())
	require.NoError(f.b, err)
	r, err := replica.Follow(background, open(f.b, js, "WORLDS", fmt.Sprint("w", i)), files, replica.Options{Budget: f.memory})
	require.NoError(f.b, err)
	return r
}

// own claims a world and opens its store.
func (f *fleet) own(r *replica.Follower) *fleetWorld {
	o, err := r.Claim(background)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); o, err = r.Claim(background) {
		time.Sleep(50 * time.Millisecond)
	}
	require.NoError(f.b, err)
	w := ecs.NewWorld(ecs.Options{})
	world := &fleetWorld{owner: o, world: w, places: ecs.MustRegister[place](w), ended: map[uint64]time.Time{}}
	world.store, err = o.Open(background, w, persist.Options{Sync: journal.SyncAlways, Budget: f.memory, OnDurable: func(tick uint64) {
		f.confirmed.Add(1)
		world.mu.Lock()
		ended, ok := world.ended[tick]
		delete(world.ended, tick)
		world.mu.Unlock()
		if late := time.Since(ended); ok {
			f.mu.Lock()
			f.late = append(f.late, late)
			f.mu.Unlock()
		}
	}})
	require.NoError(f.b, err)
	for range 100 - w.Len() {
		world.places.Set(w.Create(), place{})
	}
	return world
}

// tick makes a tick of a world.
func (f *fleet) tick(w *fleetWorld) {
	for i := range w.places.MutValues() {
		w.places.MutValues()[i].X++
	}
	f.made.Add(1)
	w.mu.Lock()
	w.ended[w.world.Tick()+1] = time.Now()
	w.mu.Unlock()
	require.NoError(f.b, w.store.Commit())
}

// run makes ticks, lets the standbys claim the worlds, and reports the measurements.
func (f *fleet) run() {
	const length, every = 10 * time.Second, time.Second / 10
	var all sync.WaitGroup
	for i, w := range f.worlds {
		all.Go(func() {
			time.Sleep(every * time.Duration(i) / time.Duration(len(f.worlds)))
			clock := time.NewTicker(every)
			defer clock.Stop()
			for range length / every {
				f.tick(w)
				<-clock.C
			}
			require.NoError(f.b, w.store.Sync(background))
		})
	}
	all.Wait()
	made, confirmed := f.made.Load(), f.confirmed.Load()
	slices.Sort(f.late)
	p99 := f.late[len(f.late)*99/100]
	memory := resident(f.b)

	f.cut()
	died := time.Now()
	each(len(f.standbys), func(i int) {
		for f.standbys[i].Overdue() < 500*time.Millisecond {
			time.Sleep(10 * time.Millisecond)
		}
		w := f.own(f.standbys[i])
		f.tick(w)
		require.NoError(f.b, w.store.Sync(background))
	})
	f.b.ReportMetric(time.Since(died).Seconds(), "s/taken-over")
	f.b.ReportMetric(float64(made), "made")
	f.b.ReportMetric(float64(confirmed), "confirmed")
	f.b.ReportMetric(float64(p99)/float64(time.Millisecond), "confirmed-p99-ms")
	f.b.ReportMetric(memory, "MB")
	f.b.ReportMetric(0, "ns/op")
}

// resident returns the resident memory of this process, in MB.
func resident(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kB float64
	_, err = fmt.Sscan(rest, &kB)
	require.NoError(b, err)
	return kB / 1024
}
