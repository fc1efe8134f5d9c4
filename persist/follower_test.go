package persist_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A crowd is a random program on a store, the traveller, and four followers of that store. Two
// followers have the types of the store, and the second of them has a history. The third has no
// types, and the fourth has another type for positions.
type crowd struct {
	*traveller
	members []*member
	places  map[uint64]string // The positions, by record.
	taken   int               // Number of followers that took the store over.
	kept    int               // Number of takeovers after which the history had older ticks.
	loose   bool              // The owner's lock no longer excludes other processes.
	back    int               // How often a program went back before Advance.
}

type member struct {
	*persist.Follower
	world  *ecs.World
	own    *storetest.World   // The follower's world; nil if it has other types.
	places *ecs.Storage[wide] // Positions of another type; nil if none.
	told   int                // Number of OnRestore calls.
}

// A wide is a position of another type.
type wide struct{ X, Y float64 }

func (c *crowd) follow() {
	for _, m := range c.members {
		if err := m.Close(); err != nil {
			require.ErrorIs(c.t, err, persist.ErrClosed)
		}
	}
	c.members = nil
	for k := range 4 {
		m := new(member)
		switch k {
		case 0, 1:
			m.own = storetest.New(k * 6)
			m.world = m.own.World
		case 2:
			m.world = ecs.NewWorld(ecs.Options{History: 3})
		default:
			m.world = ecs.NewWorld(ecs.Options{})
			m.places = ecs.MustRegister(m.world, ecs.Component[wide]{Name: "position"})
		}
		m.world.OnRestore(func() { m.told++ })
		var err error
		m.Follower, err = persist.Follow(storetest.Background, ".", m.world, persist.FileOptions{Files: c.mem})
		require.NoError(c.t, err)
		c.members = append(c.members, m)
		c.compare(m)
	}
}

// seen returns the positions of a world as text.
func seen[T storetest.Position | wide](s *ecs.Storage[T]) (text string) {
	for e, v := range s.All() {
		text += fmt.Sprintf("%v %.0f ", e, v)
	}
	return text
}

// compare compares a follower's world with the record that it is at.
func (c *crowd) compare(m *member) {
	seq := m.world.Raw().Seq()
	require.Contains(c.t, c.known, seq)
	require.Equal(c.t, c.ticks[seq], m.world.Tick())
	if m.places != nil {
		require.Equal(c.t, c.places[seq], seen(m.places), "record %d", seq)
		return
	}
	require.Equal(c.t, c.known[seq], storetest.Persistent(m.world), "record %d", seq)
}

// advance advances a follower. If all of the store is durable, it must reach the newest record.
func (c *crowd) advance(m *member, durable bool) {
	before, told := m.world.Raw().Seq(), m.told
	if ticks := slices.Collect(m.world.History().Ticks()); len(ticks) > 1 && c.rng.IntN(3) == 0 {
		require.NoError(c.t, m.world.History().Seek(ticks[c.rng.IntN(len(ticks))]))
		c.compare(m)
		before, told = m.world.Raw().Seq(), m.told
		c.back++
	}
	changed, err := m.Advance(storetest.Background)
	require.NoError(c.t, err)
	c.compare(m)
	require.Equal(c.t, before != m.world.Raw().Seq(), changed)
	require.Equal(c.t, changed, m.told > told)
	if durable {
		require.Equal(c.t, c.last, m.world.Raw().Seq())
	}
}

// takeOver ends the owner and makes a follower the next owner.
func (c *crowd) takeOver() {
	m := c.members[c.rng.IntN(2)]
	if !c.loose {
		_, err := m.Open(storetest.Background, persist.Options{})
		require.ErrorIs(c.t, err, persist.ErrLocked)
	}
	if c.rng.IntN(2) == 0 {
		places := seen(c.w.Position)
		c.close() // The next owner continues where the store was closed.
		c.places[c.last] = places
	} else {
		require.NoError(c.t, c.s.Sync(storetest.Background))
		c.s.Settle()
		// The owner's machine no longer answers, although it still runs.
		c.mem.Loosen("LOCK")
		c.loose = true
		lost := c.s
		defer func() { require.ErrorIs(c.t, lost.Close(storetest.Background), persist.ErrLost) }()
	}
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: []int64{-1, 3000}[c.rng.IntN(2)], SnapshotPace: 500, Retain: persist.Retention{KeepAll: true}}
	plain := storetest.New(0)
	p, err := persist.Open(storetest.Background, ".", plain.World, persist.Options{Files: c.mem.Clone()})
	require.NoError(c.t, err)
	defer p.Close(storetest.Background)
	told := m.told
	s, err := m.Open(storetest.Background, options)
	require.NoError(c.t, err)
	c.s = s
	c.w, c.at = m.own, m.world.Raw().Seq()
	require.Equal(c.t, c.last, c.at)
	c.check("taking over")
	// OnRestore is called at most three times: after going back, after applied ticks, and after a
	// load.
	require.LessOrEqual(c.t, m.told, told+3)
	// A member that went back over its history has other NoRewind values. The first member has no
	// history.
	if m == c.members[0] {
		require.Equal(c.t, exempt(plain), exempt(c.w))
	}
	if ticks := slices.Collect(c.w.History().Ticks()); len(ticks) > 1 {
		c.kept++
	}
	c.taken++
	c.follow()
}

// After each Advance, followers are at a committed state, whatever the owner does. Once all ticks
// are durable, they are at the newest state. A follower that takes the store over continues from
// that state.
func TestFollower_SeesCommittedStates(t *testing.T) {
	t.Parallel()
	taken, kept, back := 0, 0, 0
	for seed := range uint64(deep.Or(6, 16)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &traveller{t: t, rng: rand.New(rand.NewPCG(seed, 0x71)), mem: disktest.New(), known: map[uint64]ecs.Digest{}, ticks: map[uint64]uint64{}}
			c := &crowd{traveller: r, places: map[uint64]string{}}
			r.open("")
			r.note()
			c.places[0] = seen(r.w.Position)
			c.follow()
			for range deep.Or(80, 150) {
				mem := r.mem
				r.step()
				if _, ok := c.places[r.at]; !ok {
					c.places[r.at] = seen(r.w.Position)
				}
				if r.mem != mem { // The owner now runs on another machine.
					c.loose = false
					c.follow()
				}
				durable := r.rng.IntN(3) == 0
				if durable {
					require.NoError(t, r.s.Sync(storetest.Background))
				}
				for _, m := range c.members {
					if r.rng.IntN(2) == 0 {
						c.advance(m, durable)
					}
				}
				if r.rng.IntN(20) == 0 {
					c.takeOver()
				}
			}
			r.finish()
			taken, kept, back = taken+c.taken, kept+c.kept, back+c.back
		})
	}
	require.NotZero(t, taken)
	require.NotZero(t, kept)
	require.NotZero(t, back)
}
