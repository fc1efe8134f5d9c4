package natslog_test

import (
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

// A post is a machine of the benchmark. It owns the world, or is an up-to-date standby.
type post struct {
	name  string
	log   replica.Log
	files disk.FS

	world    *ecs.World
	places   *ecs.Storage[place]
	entities []ecs.Entity
	follower *replica.Follower
	shown    *persist.Follower
	owner    *replica.Owner
	store    *persist.Store
	known    chan time.Time // Receives the time at which a tick was confirmed.
}

func newPost(b *testing.B, name string, log replica.Log) *post {
	files, err := disk.Open(b.TempDir())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, files.Close()) })
	return &post{name: name, log: log, files: files}
}

func (p *post) options() persist.Options {
	p.known = make(chan time.Time, 1<<16)
	known := p.known
	return persist.Options{Sync: journal.SyncAlways, Epoch: p.owner.Epoch(), OnDurable: func(uint64) { known <- time.Now() }}
}

func (p *post) fresh() {
	p.world = ecs.NewWorld(ecs.Options{})
	p.places = ecs.MustRegister(p.world, ecs.Component[place]{Name: "place"})
}

// found creates the world and its first tick.
func (p *post) found(b *testing.B, entities int) {
	var err error
	p.fresh()
	p.follower, err = replica.Follow(background, p.log, p.files, replica.Options{Name: p.name})
	require.NoError(b, err)
	p.owner, err = p.follower.Claim(background)
	require.NoError(b, err)
	p.store, err = p.owner.Open(background, p.world, p.options())
	require.NoError(b, err)
	p.places.SetAll(p.world.CreateN(nil, entities), place{})
	p.entities = slices.Clone(p.places.Entities())
	require.NoError(b, p.store.Commit())
	require.NoError(b, p.store.Sync(background))
}

// standBy makes the machine follow the world.
func (p *post) standBy(b *testing.B) {
	var err error
	p.fresh()
	p.follower, err = replica.Follow(background, p.log, p.files, replica.Options{Name: p.name})
	require.NoError(b, err)
	p.shown, err = persist.Follow(background, ".", p.world, persist.FileOptions{Files: p.follower.Files()})
	require.NoError(b, err)
	p.entities = slices.Clone(p.places.Entities())
}

// move makes tick i, which moves a hundredth of all entities.
func (p *post) move(b *testing.B, i int) {
	rows := len(p.entities) / 100
	begin := i * rows % len(p.entities)
	for k, at := range p.places.MutEach(p.entities[begin : begin+rows]) {
		at.X += float64(k)
	}
	require.NoError(b, p.store.Commit())
}

// BenchmarkBudgetHandover measures how long a world has no tick during a handover to a warm
// standby. The world has 100,000 rows and makes 60 ticks a second. Each tick writes 1,000 rows. The
// measured time is from the last Commit of the old owner to the first confirmed tick of the new
// owner. The new owner claims when the old owner offers the world.
func BenchmarkBudgetHandover(b *testing.B) {
	logs := map[string]func(b *testing.B) func(name string) replica.Log{
		"memory": func(*testing.B) func(string) replica.Log {
			m := &replica.Memory{}
			return func(string) replica.Log { return m }
		},
		"three-servers": func(b *testing.B) func(string) replica.Log {
			c := newCluster(b, 3, nil)
			c.create("WORLDS", 3)
			return func(string) replica.Log { return open(b, c.js(c.connect("owner")), "WORLDS", "one") }
		},
	}
	for _, name := range []string{"memory", "three-servers"} {
		b.Run(name, func(b *testing.B) {
			const times = 24
			log := logs[name](b)
			owner, next := newPost(b, "a", log("a")), newPost(b, "b", log("b"))
			owner.found(b, 100_000)
			next.standBy(b)
			clock := time.NewTicker(time.Second / 60)
			defer clock.Stop()
			tick := 0
			var committed, confirmed []time.Duration
			for range times {
				for range 30 {
					<-clock.C
					owner.move(b, tick)
					tick++
					_, err := next.shown.Advance(background)
					require.NoError(b, err)
				}
				last := time.Now()
				require.NoError(b, owner.store.Close(background))
				require.NoError(b, owner.owner.Offer(background, next.name))
				ended := make(chan error, 1)
				go func() { ended <- owner.owner.Close() }()

				<-next.follower.Offered()
				var err error
				next.owner, err = next.follower.Claim(background)
				require.NoError(b, err)
				next.store, err = next.shown.Open(background, next.options())
				require.NoError(b, err)
				next.move(b, tick)
				tick++
				committed = append(committed, time.Since(last))
				confirmed = append(confirmed, (<-next.known).Sub(last))
				require.NoError(b, <-ended)
				owner.standBy(b)
				owner, next = next, owner
			}
			slices.Sort(committed)
			slices.Sort(confirmed)
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
			b.ReportMetric(ms(committed[times/2]), "commit-ms")
			b.ReportMetric(ms(committed[times-1]), "worst-commit-ms")
			b.ReportMetric(ms(confirmed[times-1]), "worst-ms")
			b.ReportMetric(float64(confirmed[times/2]), "ns/op")
			b.ReportMetric(float64(100*time.Millisecond), "ns/budget")
			require.NoError(b, owner.store.Close(background))
			require.NoError(b, owner.owner.Close())
			require.NoError(b, next.shown.Close())
			require.NoError(b, next.follower.Close())
		})
	}
}
