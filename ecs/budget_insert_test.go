package ecs_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A transform has 64 bytes, and a vector has 12 bytes.
type (
	transform [16]float32
	vector    [3]float32
)

// A filledWorld is a world whose entities have a transform and three vectors.
type filledWorld struct {
	w         *ecs.World
	transform *ecs.Storage[transform]
	vectors   [3]*ecs.Storage[vector]
	bundle    *ecs.Bundle4[transform, vector, vector, vector]
}

func newFilledWorld() *filledWorld {
	f := &filledWorld{w: ecs.NewWorld(ecs.Options{})}
	f.transform = ecs.MustRegister[transform](f.w)
	for i, name := range []string{"position", "rotation", "velocity"} {
		f.vectors[i] = ecs.MustRegister(f.w, ecs.Component[vector]{Name: name})
	}
	f.bundle = ecs.NewBundle4(f.transform, f.vectors[0], f.vectors[1], f.vectors[2])
	return f
}

func (f *filledWorld) reserve(n int) {
	f.w.Reserve(n)
	f.transform.Reserve(n)
	for _, s := range f.vectors {
		s.Reserve(n)
	}
}

// Entities with four components are inserted into a new world. The limit inserts the same
// components into hand-written sparse sets, whose slices have their final capacity from the start.
func BenchmarkBudgetInsert(b *testing.B) {
	const n = 10_000
	limit := side{work: func() { insertByHand(n) }}
	for _, form := range []struct {
		name   string
		budget float64
		insert func(f *filledWorld)
	}{
		{"one by one", 3, func(f *filledWorld) { f.insert(n) }},
		{"reserved", 2, func(f *filledWorld) { f.reserve(n); f.insert(n) }},
		{"at once", 1.6, func(f *filledWorld) { f.bundle.CreateN(nil, n, transform{}, vector{}, vector{}, vector{}) }},
	} {
		b.Run(form.name, func(b *testing.B) {
			compare(b, n, form.budget, side{work: func() { form.insert(newFilledWorld()) }}, limit)
		})
	}
}

func (f *filledWorld) insert(n int) {
	for range n {
		f.bundle.Create(transform{}, vector{}, vector{}, vector{})
	}
}

// made returns a limitSet with capacity for n components.
func made[T any](n int) (s limitSet[T]) {
	return limitSet[T]{make([]uint32, n), make([]uint32, 0, n), make([]T, 0, n)}
}

func insertByHand(n int) {
	transforms, positions, rotations, velocities := made[transform](n), made[vector](n), made[vector](n), made[vector](n)
	w := limitWorld{generations: make([]uint32, 0, n)}
	for range n {
		e := w.create()
		transforms.set(e.index, transform{})
		positions.set(e.index, vector{})
		rotations.set(e.index, vector{})
		velocities.set(e.index, vector{})
	}
}
