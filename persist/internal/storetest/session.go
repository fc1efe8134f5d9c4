package storetest

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Session runs one program on two worlds. World is kept in a store. Twin stays in memory, and has
// the expected state. The Session records the state after every commit.
type Session struct {
	t       rapid.TB
	files   disk.FS
	history int
	build   func(history int) *World
	World   *World
	Twin    *World
	Store   *persist.Store
	States  map[uint64]committed // The committed states by seq.
	opened  int
	// Set if NoRewind values changed between a commit and its snapshot, so that the snapshot has
	// newer values than the record.
	loose bool
}

func (s *Session) open() {
	s.World = s.build(s.history)
	store, err := persist.Open(Background, ".", s.World.World, persist.Options{Files: s.files, Sync: journal.SyncNever, SnapshotBytes: 4000})
	require.NoError(s.t, err)
	s.Store, s.opened = store, s.opened+1
}

func (s *Session) remember() {
	s.States[s.World.Raw().Seq()] = s.look()
}

func (s *Session) look() committed {
	return committed{
		s.World.Tick(), Persistent(s.World.World),
		fmt.Sprint(s.World.Heat.Entities(), s.World.Heat.Values(), s.World.Mood.Entities(), s.World.Mood.Values(), s.World.Clock.Get()),
	}
}

// Do carries out the actions on both worlds.
func (s *Session) Do(list ...Action) {
	s.World.Do(list...)
	s.Twin.Do(list...)
}

// AnyFill returns up to 12 actions that create entities.
func AnyFill(rt *rapid.T) (list []Action) {
	for range rapid.IntRange(0, 12).Draw(rt, "entities") {
		list = append(list, Action{Kind: 0, A: 0, B: rapid.Uint32().Draw(rt, "b"), C: 7})
	}
	return list
}

func (s *Session) commit() {
	s.Twin.Commit()
	require.NoError(s.t, s.Store.Commit())
	s.equal("commit")
	_, twice := s.States[s.World.Raw().Seq()]
	require.False(s.t, twice, "two records have seq %d", s.World.Raw().Seq())
	s.remember()
}

func (s *Session) equal(after string) {
	if got, want := s.World.Digest(), s.Twin.Digest(); got != want {
		s.t.Fatalf("after %s, tick %d: digest %v, the twin has %v\n%+v\n%+v",
			after, s.World.Tick(), got, want, s.World.Digests(nil), s.Twin.Digests(nil))
	}
}

// seek moves the world to a tick if its history has the tick. Then it moves Twin, whose history has
// every tick.
func (s *Session) seek(tick uint64) {
	if err := s.World.History().Seek(tick); err != nil {
		require.ErrorIs(s.t, err, ecs.ErrNotHeld)
		return
	}
	require.NoError(s.t, s.Twin.History().Seek(tick))
	s.equal("seek")
}

func (s *Session) snapshot() {
	r, err := s.Store.Snapshot(Background)
	if s.World.Raw().Dirty() {
		require.ErrorIs(s.t, err, persist.ErrUncommitted)
		return
	}
	require.NoError(s.t, err)
	require.Equal(s.t, s.World.Tick(), r.Tick)
	if now := s.look(); s.States[s.World.Raw().Seq()] != now {
		s.loose = true // NoRewind values changed after the commit.
		s.States[s.World.Raw().Seq()] = now
	}
}

// reopen closes the store and opens it with a new world. Uncommitted changes and NoPersist values
// are lost.
func (s *Session) reopen() {
	for _, w := range []*World{s.World, s.Twin} {
		w.ReleaseAll()
	}
	closing := s.closing()
	CloseStore(s.t, s.Store)
	if s.World.Raw().Dirty() || s.Twin.Raw().Dirty() {
		require.NoError(s.t, s.Twin.History().Seek(s.Twin.Tick()))
	}
	s.open()
	s.Twin = s.Twin.Independent()
	s.equal("reopening")
	head := closing(s.World.Raw().Seq())
	got, want := s.look(), s.States[head]
	if s.loose {
		got.heat = want.heat
	}
	require.Equal(s.t, want, got)

	r := s.Store.Report()
	require.False(s.t, r.Fresh)
	require.True(s.t, r.Clean)
	require.NoError(s.t, r.Torn)
	require.Empty(s.t, r.Skipped)
	require.Empty(s.t, r.Unknown)
	require.Zero(s.t, r.TornTails)
	require.Equal(s.t, want.tick, r.Tick)
	require.Equal(s.t, head, s.World.Raw().Seq())
}

// closing is called before a close. The returned function is called after the reopening, with the
// new head, and returns the expected head. That is the old head, unless Close has added a record
// for changed NoRewind values. In this case, closing expects the current state after that record.
func (s *Session) closing() func(head uint64) uint64 {
	want, next, state, ended := s.World.Raw().Seq(), uint64(len(s.States)), s.look(), !s.World.Raw().Dirty()
	return func(head uint64) uint64 {
		if ended && head == next {
			s.States[next], want = state, next
		}
		return want
	}
}

// View closes the store and opens it for reading.
func (s *Session) View() *inspect.View {
	s.World.ReleaseAll()
	closing := s.closing()
	CloseStore(s.t, s.Store)
	v, err := inspect.OpenFS(Background, s.files, ".")
	require.NoError(s.t, err)
	require.Equal(s.t, closing(v.Head()), v.Head())
	return v
}

// Finish closes the store and reads the state after every record, including those on abandoned
// branches.
func (s *Session) Finish() {
	v := s.View()
	defer v.Close()
	r, err := v.Verify(Background)
	require.NoError(s.t, err)
	require.Empty(s.t, r.Problems)
	require.Len(s.t, v.Log().Entries, len(s.States)-1)
	for seq, want := range s.States {
		im, err := v.At(Background, seq)
		require.NoError(s.t, err, "record %d", seq)
		require.Equal(s.t, want.tick, im.Tick, "record %d", seq)
		require.Equal(s.t, want.digest, im.Digest(), "record %d", seq)
		if heat := heatOf(s.t, im.Internal()); !s.loose {
			require.Equal(s.t, want.heat, heat, "record %d", seq)
		}
	}
}

func (s *Session) Step(rt *rapid.T) {
	switch kind := rapid.IntRange(0, 19).Draw(rt, "step"); {
	case kind < 8:
		s.Do(rapid.SliceOfN(AnyAction, 1, 12).Draw(rt, "actions")...)
	case kind < 14:
		s.commit()
	case kind < 17:
		newest := s.World.History().Newest()
		s.seek(newest - min(newest, rapid.Uint64Range(0, 6).Draw(rt, "back")))
	case kind < 18:
		s.snapshot()
	case s.opened < 4:
		s.reopen()
	}
}

// committed is the state at the end of a tick.
type committed struct {
	tick   uint64
	digest ecs.Digest
	heat   string // NoRewind rows, which the digest leaves out.
}

// NewSession begins a session with a [World] whose store is in memory. Random programs open many
// stores and test no disk.
func NewSession(t rapid.TB, history int) *Session { return NewSessionOf(t, history, New) }

// NewSessionOf begins a session with the worlds that build returns.
func NewSessionOf(t rapid.TB, history int, build func(history int) *World) *Session {
	s := &Session{t: t, files: disk.Memory(), history: history, build: build, States: map[uint64]committed{}}
	s.Twin = build(200)
	s.open()
	s.remember()
	return s
}

// heatOf returns the NoRewind values of an image as text.
func heatOf(t require.TestingT, im *image.Image) string {
	w := New(0)
	require.NoError(t, w.Raw().Load(im.State()))
	return fmt.Sprint(w.Heat.Entities(), w.Heat.Values(), w.Mood.Entities(), w.Mood.Values(), w.Clock.Get())
}

// Histories are the lengths of histories that tests use.
var Histories = []int{0, 1, 3, 40}

// AnyAction generates a random action.
var AnyAction = rapid.Custom(func(t *rapid.T) Action {
	return Action{rapid.IntRange(0, actions-1).Draw(t, "kind"), rapid.Uint32().Draw(t, "a"), rapid.Uint32().Draw(t, "b"), rapid.Uint32().Draw(t, "c")}
})

// Independent returns a copy of the persistent part of w. Its history begins at the copied state,
// as in an opened world.
func (w *World) Independent() *World {
	c := w.clone()
	c.Sprite.Clear()
	return c.clone()
}

func (w *World) clone() *World {
	c := w.World.Clone()
	return &World{
		World: c, Position: w.Position.In(c), Body: w.Body.In(c), Bag: w.Bag.In(c), Frozen: w.Frozen.In(c),
		Chase: w.Chase.In(c), Heat: w.Heat.In(c), Sprite: w.Sprite.In(c),
		Armor: w.Armor.In(c), Trail: w.Trail.In(c), Mood: w.Mood.In(c), Crown: w.Crown.In(c), Rank: w.Rank.In(c),
		Chunk: w.Chunk.In(c), Scroll: w.Scroll.In(c), Land: w.Land.In(c),
		Rules: w.Rules.In(c), Seed: w.Seed.In(c), Clock: w.Clock.In(c),
	}
}

// In returns o with the given file system.
func In(files disk.FS, o persist.Options) persist.Options {
	o.Files = files
	return o
}
