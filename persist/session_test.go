package persist

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A session runs one program on a world kept in a directory and on a twin that
// never leaves memory, and remembers what every commit looked like.
type session struct {
	t       rapid.TB
	dir     string
	history int
	build   func(history int) *testWorld
	world   *testWorld
	twin    *testWorld
	store   *Store
	states  map[uint64]committed // By seq.
	opened  int
	loose   bool // A snapshot has what does not rewind as no commit had it.
}

func (s *session) open() {
	s.world = s.build(s.history)
	store, err := Open(background, s.dir, s.world.World, Options{Sync: journal.SyncNever(), SnapshotBytes: 4000})
	require.NoError(s.t, err)
	s.store, s.opened = store, s.opened+1
}

func (s *session) remember() {
	s.states[s.world.Mark()] = s.look()
}

func (s *session) look() committed {
	return committed{
		s.world.Tick(), persistent(s.world.World),
		fmt.Sprint(s.world.heat.Entities(), s.world.heat.Values(), s.world.mood.Entities(), s.world.mood.Values(), s.world.clock.Get()),
	}
}

// do does the same to both worlds.
func (s *session) do(list ...action) {
	s.world.do(list...)
	s.twin.do(list...)
}

func (s *session) commit() {
	s.twin.Commit()
	require.NoError(s.t, s.store.Commit())
	s.equal("commit")
	_, twice := s.states[s.world.Mark()]
	require.False(s.t, twice, "seq %d given out twice", s.world.Mark())
	s.remember()
}

func (s *session) equal(after string) {
	if got, want := s.world.Digest(), s.twin.Digest(); got != want {
		s.t.Fatalf("after %s, tick %d: digest %v, the twin has %v\n%+v\n%+v",
			after, s.world.Tick(), got, want, s.world.Digests(nil), s.twin.Digests(nil))
	}
}

// seek goes to a tick if the world can; the twin always can.
func (s *session) seek(tick uint64) {
	if err := s.world.History().Seek(tick); err != nil {
		require.ErrorIs(s.t, err, ecs.ErrNotHeld)
		return
	}
	require.NoError(s.t, s.twin.History().Seek(tick))
	s.equal("seek")
}

func (s *session) snapshot() {
	r, err := s.store.Snapshot(background)
	if s.world.Dirty() {
		require.ErrorIs(s.t, err, ErrUncommitted)
		return
	}
	require.NoError(s.t, err)
	require.Equal(s.t, s.world.Tick(), r.Tick)
	if now := s.look(); s.states[s.world.Mark()] != now {
		s.loose = true // What does not rewind changed since the commit.
		s.states[s.world.Mark()] = now
	}
}

// reopen closes the store and opens it with a new world. What was not committed
// is gone, and so is what is not persistent.
func (s *session) reopen() {
	for _, w := range []*testWorld{s.world, s.twin} {
		w.releaseAll()
	}
	head := s.world.Mark()
	require.NoError(s.t, s.store.Close(background))
	if s.world.Dirty() || s.twin.Dirty() {
		require.NoError(s.t, s.twin.History().Seek(s.twin.Tick()))
	}
	s.open()
	s.twin = s.twin.independent()
	s.equal("reopening")
	got, want := s.look(), s.states[head]
	if s.loose {
		got.heat = want.heat
	}
	require.Equal(s.t, want, got)

	r := s.store.Report()
	require.False(s.t, r.Fresh)
	require.True(s.t, r.Clean)
	require.NoError(s.t, r.Torn)
	require.Empty(s.t, r.Skipped)
	require.Empty(s.t, r.Unknown)
	require.Zero(s.t, r.Disowned)
	require.Equal(s.t, want.tick, r.Tick)
	require.Equal(s.t, head, s.world.Mark())
}

// finish closes the store and reads the state after every record, those on
// abandoned branches too.
func (s *session) finish() {
	s.world.releaseAll()
	head := s.world.Mark()
	require.NoError(s.t, s.store.Close(background))
	v, err := OpenReadOnly(background, s.dir)
	require.NoError(s.t, err)
	defer v.Close()
	r, err := v.Verify(background)
	require.NoError(s.t, err)
	require.Empty(s.t, r.Problems)
	require.Equal(s.t, head, v.Head())
	require.Len(s.t, v.Log().Entries, len(s.states)-1)
	for seq, want := range s.states {
		im, err := v.At(background, seq)
		require.NoError(s.t, err, "record %d", seq)
		require.Equal(s.t, want.tick, im.Tick, "record %d", seq)
		require.Equal(s.t, want.digest, im.Digest(), "record %d", seq)
		if heat := heatOf(s.t, im); !s.loose {
			require.Equal(s.t, want.heat, heat, "record %d", seq)
		}
	}
}

func (s *session) step(rt *rapid.T) {
	switch kind := rapid.IntRange(0, 19).Draw(rt, "step"); {
	case kind < 8:
		s.do(rapid.SliceOfN(anyAction, 1, 12).Draw(rt, "actions")...)
	case kind < 14:
		s.commit()
	case kind < 17:
		newest := s.world.History().Newest()
		s.seek(newest - min(newest, rapid.Uint64Range(0, 6).Draw(rt, "back")))
	case kind < 18:
		s.snapshot()
	case s.opened < 4:
		s.reopen()
	}
}

// committed is what was seen at the end of a tick.
type committed struct {
	tick   uint64
	digest ecs.Digest
	heat   string // The rows of what does not rewind: the digest leaves them out.
}

func newSession(t rapid.TB, dir string, history int) *session {
	return newSessionOf(t, dir, history, newTestWorld)
}

func newSessionOf(t rapid.TB, dir string, history int, build func(history int) *testWorld) *session {
	s := &session{t: t, dir: dir, history: history, build: build, states: map[uint64]committed{}}
	s.twin = build(200)
	s.open()
	s.remember()
	return s
}

// heatOf reads from an image what [session.look] reads from a world.
func heatOf(t require.TestingT, im *Image) string {
	w := newTestWorld(0)
	require.NoError(t, w.Load(im.state()))
	return fmt.Sprint(w.heat.Entities(), w.heat.Values(), w.mood.Entities(), w.mood.Values(), w.clock.Get())
}

var histories = []int{0, 1, 3, 40}

var anyAction = rapid.Custom(func(t *rapid.T) action {
	return action{rapid.IntRange(0, actions-1).Draw(t, "kind"), rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b"), rapid.Uint32().Draw(t, "c")}
})

// independent returns a copy of w as far as w is persistent. The history starts
// anew, as that of an opened world does.
func (w *testWorld) independent() *testWorld {
	c := w.clone()
	c.sprite.Clear()
	return c.clone()
}

func (w *testWorld) clone() *testWorld {
	c := w.World.Clone()
	return &testWorld{
		World: c, position: w.position.In(c), body: w.body.In(c), bag: w.bag.In(c), frozen: w.frozen.In(c),
		chase: w.chase.In(c), heat: w.heat.In(c), sprite: w.sprite.In(c),
		armor: w.armor.In(c), trail: w.trail.In(c), mood: w.mood.In(c), crown: w.crown.In(c), rank: w.rank.In(c),
		rules: w.rules.In(c), seed: w.seed.In(c), clock: w.clock.In(c),
	}
}
