package inspect_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Read is for big states of which a tool needs little. If a snapshot has the state, Read reads only
// the pages that the function uses. The function may run twice, so it prints nothing.
func ExampleView_Read() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	camp, err := view.Resolve("snap:camp")
	check(err)

	var gold, scout layout.Value
	var inMemory bool
	check(view.Read(ctx, camp, func(s *inspect.State) error {
		inMemory = s.Whole()
		outline := s.Outline() // The components, without their rows.
		if gold, err = s.Value(outline.Find("Gold"), 0); err != nil {
			return err
		}
		units := outline.Find("Unit")
		row, err := s.Find(units, b.scout)
		if err != nil {
			return err
		}
		scout, err = s.Value(units, row)
		return err
	}))
	fmt.Println("all in memory:", inMemory)
	fmt.Println("gold:", gold)
	fmt.Println("scout:", scout)
	// Output:
	// all in memory: false
	// gold: 10
	// scout: {HP:15 Leader:0v1}
}

// A function that needs most of a state can ask for all of it. Read then loads the state and calls
// the function again.
func ExampleState_NeedWhole() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	camp, err := view.Resolve("snap:camp")
	check(err)

	var recorded ecs.Digest
	var living []ecs.Entity
	check(view.Read(ctx, camp, func(s *inspect.State) error {
		recorded = s.Digest() // Needs no page.
		if err := s.NeedWhole(); err != nil {
			return err
		}
		living = s.Outline().Entities()
		return nil
	}))
	im, err := view.At(ctx, camp)
	check(err)
	fmt.Println(living, "same state:", recorded == im.Digest())
	// Output:
	// [0v1 1v1 2v1] same state: true
}

// Lookup follows references from one entity to another, here from each unit to its leader.
func ExampleState_Lookup() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()

	var lines []string
	check(view.Read(ctx, view.Head(), func(s *inspect.State) error {
		lines = nil
		if err := s.Count(ctx); err != nil { // Count loads what IsAlive needs.
			return err
		}
		units := s.Outline().Find("Unit")
		leaders := s.Lookup(units)
		for row := range units.Len() {
			value, err := s.Value(units, row)
			if err != nil {
				return err
			}
			field, _ := value.Field("Leader")
			leader := ecs.Entity(field.Uint())
			switch {
			case leader == ecs.None:
				lines = append(lines, "no leader")
			case !s.IsAlive(leader):
				lines = append(lines, "a dead leader")
			default:
				encoded, _, err := leaders(leader)
				if err != nil {
					return err
				}
				if value, err = units.Layout.Value(encoded); err != nil {
					return err
				}
				lines = append(lines, fmt.Sprint("the leader ", value))
			}
		}
		return nil
	}))
	fmt.Println(strings.Join(lines, "\n"))
	// Output:
	// no leader
	// the leader {HP:100 Leader:0v0}
	// a dead leader
}

// Sparse, Span, Gaps and RowBytes show how a component is stored. In an indexed component the row
// of an entity is its index, so rows without an entity are gaps.
func ExampleState_Sparse() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	w := ecs.NewWorld(ecs.Options{})
	heights := ecs.MustRegister(w, ecs.Component[uint16]{Name: "Height", Kind: ecs.Indexed})
	colors := ecs.MustRegister(w, ecs.Component[string]{Name: "Color"})
	var tiles []ecs.Entity
	for range 5 {
		tiles = append(tiles, w.Create())
	}
	heights.Set(tiles[1], 200)
	heights.Set(tiles[3], 400)
	colors.Set(tiles[3], "green")
	colors.Set(tiles[1], "blue")
	file := filepath.Join(dir, "map.save")
	check(persist.Save(ctx, file, w))

	view, err := inspect.OpenReadOnly(ctx, file)
	check(err)
	defer view.Close()
	check(view.Read(ctx, view.Head(), func(s *inspect.State) error {
		fmt.Println("indices:", s.Indices())
		for _, c := range s.Outline().Components {
			span, err := s.Span(c)
			if err != nil {
				return err
			}
			rows, err := s.Sparse(c, 0, span)
			if err != nil {
				return err
			}
			gaps, err := s.Gaps(c)
			if err != nil {
				return err
			}
			size, err := s.RowBytes(c)
			if err != nil {
				return err
			}
			fmt.Println(c.Name, "rows by index:", rows, "gaps:", gaps, "of", c.Len(), "bytes:", size)
		}
		return nil
	}))
	// Output:
	// indices: 5
	// Height rows by index: [-1 1 -1 3] gaps: 2 of 4 bytes: 8
	// Color rows by index: [-1 1 -1 0] gaps: 0 of 2 bytes: 11
}
