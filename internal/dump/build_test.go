package dump

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// These types are the components of the test stores.
type (
	Position struct{ X, Y float64 }
	Label    struct {
		Text string
		Tags []string
	}
	Frozen struct{}
	Target struct {
		Of   ecs.Entity
		Info struct{ Range int32 }
	}
	Health int32
)

// A sample is a world with every kind of component.
type sample struct {
	world    *ecs.World
	position *ecs.Storage[Position]
	label    *ecs.Storage[Label]
	frozen   *ecs.Storage[Frozen]
	target   *ecs.Storage[Target]
	health   *ecs.Storage[Health]
	score    *ecs.Resource[int64]
}

func newSample() *sample {
	w := ecs.NewWorld(ecs.Options{History: 10})
	return &sample{
		world:    w,
		position: ecs.MustRegister[Position](w),
		label: ecs.MustRegister(w, ecs.Component[Label]{Clone: func(l Label) Label {
			l.Tags = slices.Clone(l.Tags)
			return l
		}}),
		frozen: ecs.MustRegister[Frozen](w),
		target: ecs.MustRegister[Target](w),
		health: ecs.MustRegister[Health](w),
		score:  ecs.Must(ecs.RegisterResource(w, 0, ecs.Component[int64]{Name: "score"})),
	}
}

// clock returns a clock that advances one second per call, from a fixed time.
func clock() func() time.Time {
	now := time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

// buildStore creates a closed store. Each column is a record with its tick and the number of its
// snapshot:
//
//	record     1   2   3   4   5   6    7    8
//	tick       1   2   3   4   5   4'   5'   6'
//	snapshot           2                3
//
// Record 6 is a child of record 3, so records 4 and 5 were rewound. Snapshot 3 has the name
// "milestone".
func buildStore(dir string) error {
	closeIt, err := buildOpenStore(dir)
	if err != nil {
		return err
	}
	return closeIt()
}

func buildOpenStore(dir string) (closeIt func() error, err error) {
	s := newSample()
	store, err := persist.Open(context.Background(), dir, s.world, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	for _, step := range []func() error{
		s.begin, store.Commit,
		s.move, store.Commit,
		s.destroy, store.Commit,
		func() error { _, err := store.Snapshot(ctx); return err },
		s.move, store.Commit,
		s.move, store.Commit,
		func() error { return s.world.History().Rewind(2) },
		s.recycle, store.Commit,
		s.move, store.Commit,
		func() error { _, err := store.SaveSlot(ctx, "milestone", ""); return err },
		s.relabel, store.Commit,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, store.Close(ctx))
		}
	}
	if err := store.Sync(ctx); err != nil {
		return nil, err
	}
	return func() error { return store.Close(ctx) }, nil
}

// buildConverted creates a store of three records, which two programs wrote. The first program
// wrote two records, with an int16 in Health. The second program wrote the third record, with an
// int64 and a maximum in Health.
func buildConverted(dir string) error {
	type before struct{ Now int16 }
	type after struct {
		Max int32
		Now int64
	}
	now := clock()
	if err := continueWith(dir, now, before{70}, 2); err != nil {
		return err
	}
	return continueWith(dir, now, after{100, 80}, 1)
}

// continueWith opens a store and commits ticks. Each tick creates an entity with health h.
func continueWith[T any](dir string, now func() time.Time, h T, ticks int) error {
	w := ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister(w, ecs.Component[T]{Name: "Health"})
	store, err := persist.Open(context.Background(), dir, w, persist.Options{Now: now})
	if err != nil {
		return err
	}
	for range ticks {
		health.Set(w.Create(), h)
		if err := store.Commit(); err != nil {
			return errors.Join(err, store.Close(context.Background()))
		}
	}
	return store.Close(context.Background())
}

// buildSave writes a save of the state after the first ticks of buildStore.
func buildSave(file string) error {
	s := newSample()
	for _, step := range []func() error{s.begin, s.move, s.destroy} {
		if err := step(); err != nil {
			return err
		}
		s.world.Commit()
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return persist.Save(context.Background(), file, s.world)
}

// begin creates the entities 0v1 to 7v1.
func (s *sample) begin() error {
	for i := range 8 {
		e := s.world.Create()
		s.position.Set(e, Position{float64(i), 0.5})
		if i%2 == 0 {
			s.health.Set(e, Health(10*i))
		}
		if i%3 == 0 {
			s.label.Set(e, Label{Text: "orc", Tags: []string{"big", "green"}})
		}
		if i%4 == 0 {
			s.frozen.Set(e, Frozen{})
		}
	}
	return nil
}

// move changes components and the resource.
func (s *sample) move() error {
	for _, e := range s.frozen.Entities() {
		s.position.Mut(e).X += 100
	}
	*s.score.Mut() += 7
	return nil
}

// destroy destroys 1v1 and 6v1, and removes a component.
func (s *sample) destroy() error {
	s.world.Destroy(ecs.NewEntity(1, 1))
	s.world.Destroy(ecs.NewEntity(6, 1))
	s.health.Remove(ecs.NewEntity(2, 1))
	return nil
}

// recycle creates one entity. After destroy, the new entity is 6v2.
func (s *sample) recycle() error {
	e := s.world.Create()
	var t Target
	t.Of, t.Info.Range = ecs.NewEntity(0, 1), 12
	s.target.Set(e, t)
	return nil
}

// relabel clears all labels and then sets one.
func (s *sample) relabel() error {
	s.label.Clear()
	s.label.Set(ecs.NewEntity(7, 1), Label{Text: "a \"quoted\"\nname"})
	return nil
}
