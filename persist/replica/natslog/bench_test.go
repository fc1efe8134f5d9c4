package natslog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
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
