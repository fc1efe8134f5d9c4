package ecs_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

type (
	at      struct{ X, Y int }
	speed   struct{ X, Y int }
	height  struct{ M int }
	armour  struct{ N int }
	hp      struct{ N int }
	frozen  struct{}
	inside  struct{ Chest ecs.Entity }
	score   struct{ Points []int }
	weather struct{ Rain bool }
	hit     struct{ N int }
	noise   struct{ N int }
)

type motion struct {
	Positions *ecs.Storage[at]
	Speeds    *ecs.Storage[speed]
	Moving    *ecs.Query2[at, speed]
	built     int
}

func (m *motion) Build(*ecs.World) error {
	m.Moving = ecs.NewQuery2(ecs.Write(m.Positions), ecs.Read(m.Speeds))
	m.built++
	return nil
}

// bound is a struct with 20 handles. Bind makes most of them, and the method Build makes the
// others.
type bound struct {
	Motion  motion
	Heights *ecs.Storage[height] `ecs:"ground,indexed,masked"`
	Armour  *ecs.Storage[armour] `ecs:",hashed,norewind"`
	Health  *ecs.Storage[hp]     `ecs:", ordered"`
	Frozen  *ecs.Storage[frozen]
	Inside  *ecs.Storage[inside]
	Old     *ecs.Storage[hp] `ecs:"old health,nopersist"`
	Score   *ecs.Resource[score]
	Weather *ecs.Resource[weather] `ecs:"sky,norewind"`
	Hits    *ecs.Events[hit]
	Noise   *ecs.Events[noise] `ecs:"noises,nopersist"`
	Dice    *ecs.Rand
	Coins   *ecs.Rand `ecs:"coins"`

	contents *ecs.Relation[inside]
	byHeight *ecs.Index[height, int]
	troops   *ecs.Bundle2[at, hp]
	packed   *ecs.Group
	later    *ecs.Commands `ecs:"-"`
	plain    int
}

func (b *bound) Build(w *ecs.World) (err error) {
	b.contents = ecs.NewRelation(b.Inside, func(i inside) ecs.Entity { return i.Chest }, ecs.RelationOptions{Tree: true})
	b.byHeight = ecs.NewIndex(b.Heights, func(h height) int { return h.M })
	b.troops = ecs.NewBundle2(b.Motion.Positions, b.Health)
	b.packed, err = w.NewGroup(b.Motion.Positions, b.Motion.Speeds)
	return err
}

func newBound(t *testing.T) (*ecs.World, *bound) {
	w := ecs.NewWorld(ecs.Options{History: 3})
	ecs.Must(ecs.RegisterRand(w, 1, 2))
	ecs.Must(ecs.RegisterRand(w, 3, 4, ecs.Component[ecs.Rand]{Name: "coins"}))
	var b bound
	require.NoError(t, ecs.Bind(w, &b))
	return w, &b
}

func TestBind_AllHandles(t *testing.T) {
	w, b := newBound(t)
	var names []string
	for _, s := range w.Storages() {
		names = append(names, s.Name())
	}
	assert.Equal(t, []string{"at", "speed", "ground", "armour", "hp", "frozen", "inside", "old health",
		"Rand", "coins", "score", "sky", "hit", "noises"}, names)
	assert.Equal(t, []ecs.Kind{ecs.Indexed, ecs.Hashed, ecs.Ordered, ecs.Tag, ecs.Sparse},
		[]ecs.Kind{b.Heights.Kind(), b.Armour.Kind(), b.Health.Kind(), b.Frozen.Kind(), b.Old.Kind()})
	assert.NotNil(t, b.Heights.Mask())
	assert.True(t, b.Armour.Raw().Rewinds() == false && b.Heights.Raw().Rewinds() && !b.Weather.Raw().Rewinds())
	assert.True(t, !b.Old.Raw().Persistent() && b.Health.Raw().Persistent())
	assert.Equal(t, 1, b.Motion.built)
	assert.NotEqual(t, b.Dice.Uint64(), b.Coins.Uint64())
	e := b.troops.Create(at{1, 2}, hp{3})
	b.Motion.Speeds.Set(e, speed{1, 1})
	assert.Equal(t, 1, b.Motion.Moving.Count())
	b.Hits.Send(hit{1})
	assert.Equal(t, 1, b.Hits.Len())
}

// Bind of a clone finds the storages of the clone, and does not change the original world.
func TestBind_CloneOfWorld(t *testing.T) {
	w, b := newBound(t)
	chest := b.troops.Create(at{1, 2}, hp{3})
	item := w.Create()
	require.NoError(t, b.contents.Set(item, inside{chest}))
	b.Heights.Set(item, height{7})
	b.Score.Mut().Points = []int{5}
	b.Hits.Send(hit{1})
	w.Commit()
	before := w.Digest()

	c := w.Clone()
	var twin bound
	require.NoError(t, ecs.Bind(c, &twin))
	assert.Equal(t, before, c.Digest())
	assert.Same(t, b.packed.In(c), twin.packed)
	assert.Len(t, c.Storages(), len(w.Storages()))
	assert.Equal(t, []int{5}, twin.Score.Get().Points)
	assert.Equal(t, []hit{{1}}, slices.Collect(twin.Hits.All()))
	assert.Equal(t, b.Dice.Uint64(), twin.Dice.Uint64())
	require.NoError(t, w.History().Rewind(0))
	first, ok := twin.byHeight.First(7)
	assert.True(t, ok && first == item)
	assert.True(t, c.Destroy(chest))
	assert.False(t, c.Alive(item))
	assert.True(t, w.Alive(item) && w.Alive(chest))
	assert.Equal(t, before, w.Digest())

	err := ecs.Bind(c, b)
	assert.EqualError(t, err, "ecs: bind bound.Motion.Positions: it belongs to another world; bind an empty struct")
}

func TestBind_ComponentRegisteredBefore(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	named := ecs.MustRegister(w, ecs.Component[at]{Name: "where"})
	old, now := ecs.MustRegister(w, ecs.Component[hp]{Name: "before"}), ecs.MustRegister[hp](w)
	own := ecs.MustRegister(w, ecs.Component[height]{Name: "own", Kind: ecs.Indexed, Default: height{-1}})
	g := struct {
		Positions *ecs.Storage[at]
		Now       *ecs.Storage[hp]
		Before    *ecs.Storage[hp] `ecs:"before"`
		Heights   *ecs.Storage[height]
		Others    *ecs.Storage[height] `ecs:"others"`
	}{Heights: own}
	require.NoError(t, ecs.Bind(w, &g))
	assert.Same(t, named, g.Positions)
	assert.Same(t, now, g.Now)
	assert.Same(t, old, g.Before)
	assert.Same(t, own, g.Heights)
	assert.Equal(t, "others", g.Others.Name())
}

// WithBuild is exported so that Bind can call its Build method when it is embedded.
type WithBuild struct {
	Positions *ecs.Storage[at]
	calls     int
	fails     error
}

func (b *WithBuild) Build(*ecs.World) error { b.calls++; return b.fails }

type embeds struct {
	WithBuild
	Speeds *ecs.Storage[speed]
}

type wraps struct {
	embeds
	mine int
}

func (b *wraps) Build(w *ecs.World) error { b.mine++; return b.WithBuild.Build(w) }

func TestBind_EmbeddedBuildMethod(t *testing.T) {
	var e embeds
	require.NoError(t, ecs.Bind(ecs.NewWorld(ecs.Options{}), &e))
	assert.Equal(t, 1, e.calls)
	var b wraps
	require.NoError(t, ecs.Bind(ecs.NewWorld(ecs.Options{}), &b))
	assert.True(t, b.mine == 1 && b.calls == 1 && b.Speeds != nil && b.Positions != nil)
}

type badBuild struct{ Positions *ecs.Storage[at] }

func (*badBuild) Build(*ecs.World) {}

type lacks struct {
	In struct {
		Speeds *ecs.Storage[speed]
		moving *ecs.Query1[speed]
	}
}

// A field whose type is a struct of package ecs is not a struct of handles.
func TestBind_IgnoresStructsOfPackageEcs(t *testing.T) {
	var game struct {
		Positions *ecs.Storage[at]
		before    ecs.Checkpoint
		history   ecs.History
		later     ecs.Commands
	}
	w := ecs.NewWorld(ecs.Options{History: 1})
	require.NoError(t, ecs.Bind(w, &game))
	require.NotNil(t, game.Positions)
	require.Zero(t, game.before)
	require.Zero(t, game.history)
	require.Zero(t, game.later.Len())
}

func TestBind_Errors(t *testing.T) {
	twoOf := func() *ecs.World {
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister(w, ecs.Component[hp]{Name: "a"})
		ecs.MustRegister(w, ecs.Component[hp]{Name: "b"})
		return w
	}
	type hps struct{ Health *ecs.Storage[hp] }
	type tagged struct {
		Health *ecs.Storage[hp] `ecs:"b,hashed"`
	}
	for _, test := range []struct {
		w      *ecs.World
		game   any
		want   string
		before bool // Bind must fail before it registers anything.
	}{
		{nil, &hps{}, "ecs: Bind of a *ecs_test.hps; give it a world and a pointer to a struct of handles", true},
		{twoOf(), hps{}, "ecs: Bind of a ecs_test.hps; give it a world and a pointer to a struct of handles", true},
		{twoOf(), (*hps)(nil), "ecs: Bind of a *ecs_test.hps; give it a world and a pointer to a struct of handles", true},
		{twoOf(), nil, "ecs: Bind of a <nil>; give it a world and a pointer to a struct of handles", true},
		{twoOf(), &hps{}, "ecs: bind hps.Health: the world has a, b of this type; name one in the tag", true},
		{twoOf(), &tagged{}, "ecs: bind tagged.Health: its tag says hashed, but b was registered otherwise", true},
		{twoOf(), &struct {
			At *ecs.Storage[at] `ecs:"a"`
		}{}, "ecs: bind struct.At: a, which the world has, is of another type", true},
		{twoOf(), &struct {
			At, Also *ecs.Storage[at]
		}{}, "ecs: bind struct.Also: struct.At also registers at; give one of them another name", true},
		{twoOf(), &struct {
			One *ecs.Storage[hp] `ecs:"a"`
			Two *ecs.Storage[hp] `ecs:"a"`
		}{}, "ecs: bind struct.Two: struct.One is a too", true},
		{twoOf(), &struct {
			At *ecs.Storage[at] `ecs:"x,fast"`
		}{}, `ecs: bind struct.At: its tag has the unknown word "fast"; the words are sparse, tag, indexed, hashed, ordered, masked, norewind, nopersist`, true},
		{twoOf(), &struct {
			N int `ecs:"x"`
		}{}, "ecs: bind struct.N: a tag is for an exported field that is a Storage, Resource, Events, Rand or query", true},
		{twoOf(), &struct {
			Dice *ecs.Rand
		}{}, "ecs: bind struct.Dice: the world has no such Rand; RegisterRand makes it, with its seeds", true},
		{twoOf(), &struct {
			Score *ecs.Resource[score] `ecs:",indexed"`
		}{}, "ecs: bind struct.Score: its tag has a setting that only storages support", true},
		{twoOf(), &badBuild{}, "ecs: bind badBuild: its method Build is a func(*ecs.World); Bind calls a func(*ecs.World) error", true},
		{twoOf(), &lacks{}, "ecs: bind lacks.In.moving: it is nil; create it in Build, export it and give it a tag with its accesses, such as `ecs:\"write,read\"`, or exclude it by the tag `ecs:\"-\"`", false},
		{twoOf(), &struct{ score *ecs.Resource[string] }{}, "ecs: bind struct.score: it is nil; create it in Build, or export it, or exclude it by the tag `ecs:\"-\"`", false},
		{twoOf(), &struct{ Hits *ecs.EventReader[int] }{}, "ecs: bind struct.Hits: it is nil; create it in Build with Events.Reader, or exclude it by the tag `ecs:\"-\"`", false},
		{twoOf(), &struct{ ByX *ecs.Index[int, int] }{}, "ecs: bind struct.ByX: it is nil; create it in Build with ecs.NewIndex, or exclude it by the tag `ecs:\"-\"`", false},
		{twoOf(), &struct{ Moving *ecs.Query1[int] }{}, "ecs: bind struct.Moving: it is nil; create it in Build, give it a tag with its accesses, such as `ecs:\"write,read\"`, or exclude it by the tag `ecs:\"-\"`", false},
		{twoOf(), &struct {
			Best *ecs.Resource[int] `ecs:"norewind"`
		}{}, `ecs: bind struct.Best: its tag "norewind" would be a name; for the setting, put a comma before it: ",norewind"`, false},
		{twoOf(), &WithBuild{fails: errors.New("no way")}, "ecs: bind WithBuild: no way", false},
	} {
		err := ecs.Bind(test.w, test.game)
		assert.EqualError(t, err, test.want)
		if test.w != nil && test.before {
			assert.Len(t, test.w.Storages(), 2, test.want)
		}
	}
	var registered *ecs.RegisterError
	err := ecs.Bind(twoOf(), &struct{ Ints *ecs.Storage[int] }{})
	assert.ErrorAs(t, err, &registered)
	assert.ErrorContains(t, err, "ecs: bind struct.Ints: ecs: name cannot be used: register int:")
}

func ExampleBind() {
	type Position struct{ X, Y float64 }
	type Game struct {
		Positions *ecs.Storage[Position]
		Score     *ecs.Resource[score] `ecs:"points"`
	}
	w := ecs.NewWorld(ecs.Options{})
	var game, twin Game
	if err := ecs.Bind(w, &game); err != nil {
		panic(err)
	}
	game.Positions.Set(w.Create(), Position{1, 2})
	if err := ecs.Bind(w.Clone(), &twin); err != nil {
		panic(err)
	}
	fmt.Println(twin.Positions.Len(), twin.Score.Name())
	// Output: 1 points
}
