//go:build stetdebug

package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// A system of a debug build panics if it uses something that its access does not name.
func TestDebug_UseMissingInAccessPanics(t *testing.T) {
	l := newArena(ecs.Options{History: 2})
	reading, writing := ecs.NewQuery1(ecs.Read(l.places)), ecs.NewQuery1(ecs.Write(l.places))
	lives := ecs.NewQuery1(ecs.Read(l.lives))
	byX := ecs.NewIndex(l.places, func(p place) int32 { return p.X })
	hits := ecs.Must(ecs.RegisterEvent[string](l.w, ecs.Component[string]{Name: "hits"}))
	e := l.entities[0]
	none := schedule.Uses()
	for _, tt := range []struct {
		access schedule.Access
		run    func()
		want   string // "" if the access names the use.
	}{
		{none, func() { l.places.Get(e) }, `reads place, which its access does not name (by Get of place); add ecs.Read of the storage`},
		{none, func() { l.places.Has(e) }, `reads place`},
		{none, func() { l.places.Values() }, `reads place`},
		{none, func() { l.places.Mut(e).X++ }, `writes place, which its access does not name (by Mut of place of`},
		{none, func() { l.score.Get() }, `reads the resource score`},
		{none, func() { *l.score.Mut()++ }, `writes the resource score`},
		{none, func() { hits.Send("a") }, `writes the resource hits`},
		{none, func() { hits.Len() }, `reads the resource hits`},
		{none, func() { byX.Len(3) }, `reads place`},
		{none, func() { reading.Count() }, `reads place`},
		{none, func() { reading.Has(e) }, `reads place`},
		{none, func() { l.w.Create() }, `writes the entities of the world, which its access does not name (by World.Create); add schedule.Creates`},
		{none, func() { l.w.Alive(e) }, ""},
		{ecs.Read(l.places), func() { l.places.Get(e) }, ""},
		{ecs.Read(l.places), func() { reading.Count(); byX.Len(3) }, ""},
		{ecs.Read(l.places), func() { l.places.Mut(e).X++ }, `writes place`},
		{ecs.Read(l.places), func() { writing.Get(e) }, `writes place`},
		{ecs.Read(l.places), func() { lives.Get(e) }, `reads life`},
		{ecs.Write(l.places), func() { l.places.Mut(e).X++; l.places.Set(e, place{}); l.places.MutValues() }, ""},
		{ecs.Write(l.places), func() { l.places.Remove(e) }, `writes the members of place, which its access does not name (by Remove of place of`},
		{ecs.Write(l.places), func() { l.places.Clear() }, `writes the members of place`},
		{ecs.Write(l.places), func() { l.places.SortFunc(func(a, b place) int { return 0 }) }, `writes the members of place`},
		{l.places, func() { l.places.Remove(e); l.places.Set(e, place{}) }, ""},
		{writing, func() {
			for range writing.All() {
			}
		}, ""},
		{reading, func() {
			for range writing.All() {
			}
		}, `writes place`},
		{ecs.NewQuery1(ecs.Read(l.lives)).With(l.places), func() { l.places.Has(e) }, ""},
		{ecs.NewQuery1(ecs.Read(l.lives)).With(l.places), func() { l.places.Get(e) }, `reads place`},
		{schedule.Reads(l.score), func() { l.score.Get() }, ""},
		{schedule.Reads(l.score), func() { *l.score.Mut()++ }, `writes the resource score`},
		{l.score, func() { *l.score.Mut()++ }, ""},
		{schedule.Creates, func() { l.w.Destroy(l.w.Create()) }, ""},
		{schedule.Creates, func() { l.w.Digest() }, `uses the whole world, which its access does not name (by Digest); use schedule.Alone`},
		{none, func() { l.w.Release(l.w.Checkpoint()) }, `uses the whole world, which its access does not name (by Checkpoint)`},
		{nil, func() { l.w.Digest() }, ""},
		{nil, func() { l.w.Destroy(l.w.Create()); l.places.Mut(e).X++ }, ""},
	} {
		s := schedule.New[int](l.w).Workers(4)
		s.Add("suspect", tt.access, func(*schedule.Tick[int]) { tt.run() })
		cp := l.w.Checkpoint()
		if tt.want == "" {
			require.NotPanics(t, func() { s.Step(0) })
		} else {
			mustPanic(t, `ecs: the system "suspect" `+tt.want, func() { s.Step(0) })
		}
		l.w.Restore(cp)
		l.w.Release(cp)
		tt.run() // Outside of systems, everything is allowed.
		l.w.Commit()
	}
}
