package ecs_test

import (
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

type (
	place struct{ X, Y int }
	pace  struct{ X, Y int }
	iced  struct{}
)

// pond has handles that Bind makes without a Build.
type pond struct {
	Place  *ecs.Storage[place]
	Pace   *ecs.Storage[pace]
	Frozen *ecs.Storage[iced]

	Movers *ecs.Query2[place, pace]       `ecs:"write,read"`
	All    *ecs.Query3[place, pace, iced] `ecs:"read, write?, read?"`
	Fish   *ecs.Bundle2[place, pace]
}

func TestBind_MakesQueriesAndBundles(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	var p pond
	if err := ecs.Bind(w, &p); err != nil {
		t.Fatal(err)
	}
	fish := p.Fish.Create(place{1, 2}, pace{3, 4})
	stone := w.Create()
	p.Place.Set(stone, place{9, 9})
	for _, r := range p.Movers.All() {
		r.A.X += r.B.X
	}
	if got, _ := p.Place.Get(fish); got != (place{4, 2}) {
		t.Errorf("the fish is at %v", got)
	}
	if p.Movers.Count() != 1 || p.All.Count() != 2 {
		t.Errorf("%d movers, %d in all", p.Movers.Count(), p.All.Count())
	}

	// Bind with a clone makes queries over the storages of the clone.
	clone := w.Clone()
	var q pond
	if err := ecs.Bind(clone, &q); err != nil {
		t.Fatal(err)
	}
	q.Fish.Create(place{}, pace{})
	if p.Movers.Count() != 1 || q.Movers.Count() != 2 {
		t.Errorf("%d movers, %d in the clone", p.Movers.Count(), q.Movers.Count())
	}
}

// builds is a struct whose Build makes the bundle and the query that Bind leaves nil.
type builds struct {
	Place  *ecs.Storage[place]
	Second *ecs.Storage[place] `ecs:"second"`
	Twice  *ecs.Bundle2[place, place]
	Mine   *ecs.Query1[place]
}

func (b *builds) Build(*ecs.World) error {
	b.Twice = ecs.NewBundle2(b.Place, b.Second)
	b.Mine = ecs.NewQuery1(ecs.Read(b.Second))
	return nil
}

func TestBind_BuildMakesOtherQueries(t *testing.T) {
	var b builds
	if err := ecs.Bind(ecs.NewWorld(ecs.Options{}), &b); err != nil {
		t.Fatal(err)
	}
	b.Twice.Create(place{1, 1}, place{2, 2})
	for _, p := range b.Mine.All() {
		if *p != (place{2, 2}) {
			t.Errorf("the query returns %v", *p)
		}
	}
}

func TestBind_QueryErrors(t *testing.T) {
	for want, bad := range map[string]any{
		"Movers: the world has no component of type ecs_test.pace; add a field of type *ecs.Storage[ecs_test.pace]": new(struct {
			Place  *ecs.Storage[place]
			Movers *ecs.Query2[place, pace] `ecs:"write,read"`
		}),
		`Movers: its tag has the unknown word "wr"; the words are write, read, write? and read?`: new(struct {
			Place  *ecs.Storage[place]
			Movers *ecs.Query1[place] `ecs:"wr"`
		}),
		"Movers: its tag has 1 words; give each component one of the words": new(struct {
			Place  *ecs.Storage[place]
			Pace   *ecs.Storage[pace]
			Movers *ecs.Query2[place, pace] `ecs:"write"`
		}),
		"Movers: its tag has 2 words; give each component one of the words": new(struct {
			Place  *ecs.Storage[place]
			Movers *ecs.Query1[place] `ecs:"write,read"`
		}),
		"Movers: it is nil; create it in Build": new(struct {
			Place  *ecs.Storage[place]
			Movers *ecs.Query1[place]
		}),
		"Movers: ecs_test.place: the world has first, second of this type; create it in Build": new(struct {
			Place  *ecs.Storage[place] `ecs:"first"`
			Second *ecs.Storage[place] `ecs:"second"`
			Movers *ecs.Query1[place]  `ecs:"write"`
		}),
		"Movers: it has place twice": new(struct {
			Place  *ecs.Storage[place]
			Movers *ecs.Query2[place, place] `ecs:"write,read"`
		}),
		"Fish: the world has no component of type ecs_test.pace; add a field of type *ecs.Storage[ecs_test.pace]; or create it in Build": new(struct {
			Place *ecs.Storage[place]
			Fish  *ecs.Bundle2[place, pace]
		}),
		"Fish: a bundle takes no tag": new(struct {
			Place *ecs.Storage[place]
			Fish  *ecs.Bundle1[place] `ecs:"write"`
		}),
		"movers: a tag is for an exported field": new(struct {
			Place  *ecs.Storage[place]
			movers *ecs.Query1[place] `ecs:"write"`
		}),
	} {
		if err := ecs.Bind(ecs.NewWorld(ecs.Options{}), bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Bind = %v, want %q", err, want)
		}
	}
}
