package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// saveHerd saves a world of 10,000 animals. Every third animal is sick.
func saveHerd(ctx context.Context, file string) {
	w := ecs.NewWorld(ecs.Options{})
	ages := ecs.MustRegister(w, ecs.Component[uint8]{Name: "Age"})
	sick := ecs.MustRegister(w, ecs.Component[struct{}]{Name: "Sick"})
	for i := range 10_000 {
		e := w.Create()
		ages.Set(e, uint8(i%20))
		if i%3 == 0 {
			sick.Set(e, struct{}{})
		}
	}
	check(persist.Save(ctx, file, w))
}

// Sweep reads all entities of a big state, on all processors. Here it adds the ages of the sick
// animals. Each span of entities returns a sum, and the last function adds these sums in order.
func ExampleState_Sweep() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	file := filepath.Join(dir, "herd.save")
	saveHerd(ctx, file)
	view, err := inspect.OpenReadOnly(ctx, file)
	check(err)
	defer view.Close()

	var total uint64
	check(view.Read(ctx, view.Head(), func(s *inspect.State) error {
		total = 0
		ages, sick := s.Outline().Find("Age"), s.Outline().Find("Sick")
		// Each goroutine calls this function once.
		newSum := func() func(*inspect.Span) (any, error) {
			return func(span *inspect.Span) (any, error) {
				var sum uint64
				for i := range span.Entities {
					if !span.Has(1, i) { // 1 is the position of sick in the list below.
						continue
					}
					encoded, _, err := span.Row(0, i)
					if err != nil {
						return nil, err
					}
					age, err := ages.Layout.Value(encoded)
					if err != nil {
						return nil, err
					}
					sum += age.Uint()
				}
				return sum, nil
			}
		}
		return s.Sweep(ctx, 0, []*inspect.Component{ages, sick}, newSum, func(sum any) error {
			total += sum.(uint64)
			return nil
		})
	}))
	fmt.Println("ages of sick animals:", total)
	// Output:
	// ages of sick animals: 31673
}

// Skip begins a sweep in the middle, for example to show page 100 of a long list of entities.
func ExampleState_Skip() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	file := filepath.Join(dir, "herd.save")
	saveHerd(ctx, file)
	view, err := inspect.OpenReadOnly(ctx, file)
	check(err)
	defer view.Close()

	const offset, limit = 5000, 3
	enough := errors.New("enough")
	var shown []ecs.Entity
	err = view.Read(ctx, view.Head(), func(s *inspect.State) error {
		shown = nil
		from, skipped, err := s.Skip(ctx, offset)
		if err != nil {
			return err
		}
		entitiesOf := func() func(*inspect.Span) (any, error) {
			return func(span *inspect.Span) (any, error) { return slices.Clone(span.Entities), nil }
		}
		return s.Sweep(ctx, from, nil, entitiesOf, func(entities any) error {
			shown = append(shown, entities.([]ecs.Entity)...)
			if len(shown) < offset-skipped+limit {
				return nil // Too few entities: read the next span.
			}
			shown = shown[offset-skipped:][:limit]
			return enough
		})
	})
	fmt.Println(shown, errors.Is(err, enough))
	// Output:
	// [5000v1 5001v1 5002v1] true
}

// Row and Holder read a component row by row, and Has reads single values of an entity. Here they
// find the first sick animal that is older than 18.
func ExampleState_Row() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	file := filepath.Join(dir, "herd.save")
	saveHerd(ctx, file)
	view, err := inspect.OpenReadOnly(ctx, file)
	check(err)
	defer view.Close()

	var found ecs.Entity
	check(view.Read(ctx, view.Head(), func(s *inspect.State) error {
		ages, sick := s.Outline().Find("Age"), s.Outline().Find("Sick")
		for row := range ages.Len() {
			encoded, err := s.Row(ages, row)
			if err != nil {
				return err
			}
			age, err := ages.Layout.Value(encoded)
			if err != nil {
				return err
			}
			if age.Uint() <= 18 {
				continue
			}
			e, err := s.Holder(ages, row)
			if err != nil {
				return err
			}
			if _, has, err := s.Has(sick, e); err != nil || has {
				found = e
				return err
			}
		}
		return nil
	}))
	fmt.Println("first:", found)
	// Output:
	// first: 39v1
}
