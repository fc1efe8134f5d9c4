package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// A producer records commands. It also stores the direct calls that have the same effect.
type producer struct {
	commands Commands
	// For each command, a direct call that returns whether its entity was alive. It is nil for a
	// Create.
	direct  []func(w *referenceWorld, name func(Entity) Entity) bool
	created []Entity // The placeholders of created entities.
}

// record records n random commands for entities. It must not read the world, because it runs in a
// goroutine.
func (p *producer) record(random *rand.Rand, f *referenceWorld, n int, entities []Entity) {
	p.direct, p.created = nil, nil
	do := func(d func(f *referenceWorld, name func(Entity) Entity) bool) { p.direct = append(p.direct, d) }
	for range n {
		all := append(p.created, entities...)
		e, other := all[random.IntN(len(all))], all[random.IntN(len(all))]
		v := random.Int32N(1000)
		switch random.IntN(8) {
		case 0, 1:
			p.created = append(p.created, p.commands.Create())
			do(nil)
		case 2:
			p.commands.Destroy(e)
			do(func(f *referenceWorld, name func(Entity) Entity) bool { return f.w.Destroy(name(e)) })
		case 3:
			f.plains.Later(&p.commands).Set(e, plain{v, 0})
			do(func(f *referenceWorld, name func(Entity) Entity) bool { return f.plains.Set(name(e), plain{v, 0}) })
		case 4:
			f.links.Later(&p.commands).Set(e, other)
			do(func(f *referenceWorld, name func(Entity) Entity) bool { return f.links.Set(name(e), name(other)) })
		case 5:
			f.kins.Later(&p.commands).Set(e, kin{Friends: []Entity{other, e}})
			do(func(f *referenceWorld, name func(Entity) Entity) bool {
				return f.kins.Set(name(e), kin{Friends: []Entity{name(other), name(e)}})
			})
		case 6:
			f.plains.Later(&p.commands).Remove(e)
			do(func(f *referenceWorld, name func(Entity) Entity) bool {
				return f.plains.Remove(name(e)) || f.w.Alive(name(e))
			})
		case 7:
			p.commands.Do(func(w *World) { f.plains.In(w).SetAll(w.Entities(), plain{v, v}) })
			do(func(f *referenceWorld, _ func(Entity) Entity) bool {
				f.plains.SetAll(f.w.Entities(), plain{v, v})
				return true
			})
		}
	}
}

// replay makes the direct calls, and returns the number of calls whose entity was not alive.
func (p *producer) replay(f *referenceWorld) (skipped int) {
	var made []Entity
	name := func(e Entity) Entity {
		if k := slices.Index(p.created, e); k >= 0 {
			return append(made, make([]Entity, len(p.created))...)[k]
		}
		return e
	}
	for _, d := range p.direct {
		if d == nil {
			made = append(made, f.w.Create())
		} else if !d(f, name) {
			skipped++
		}
	}
	return skipped
}

func TestCommands_FromSeveralGoroutines(t *testing.T) {
	for seed := range uint64(20) {
		var fs [2]*referenceWorld
		for i := range fs {
			fs[i] = newReferenceWorld(Options{History: 3})
			fs[i].grow(rand.New(rand.NewPCG(seed, 4)), 10)
			checkAtEnd(t, fs[i].w)
		}
		producers := make([]producer, 4)
		buffers := []*Commands{&producers[2].commands, &producers[0].commands, &producers[3].commands, &producers[1].commands}
		var before Digest
		for tick := range 5 {
			entities := slices.Clone(fs[0].w.Entities())
			entities = append(entities, 0, NewEntity(3, 77), 1<<31)
			var wait sync.WaitGroup
			for i := range producers {
				wait.Go(func() {
					producers[i].record(rand.New(rand.NewPCG(seed, uint64(i*10+tick))), fs[0], 15, entities)
				})
			}
			// Other goroutines may record commands while the world is read.
			for range fs[0].plains.All() {
			}
			wait.Wait()
			cp := fs[0].w.Checkpoint()
			got, want := fs[0].w.Apply(buffers...), 0
			for _, i := range []int{2, 0, 3, 1} {
				want += producers[i].replay(fs[1])
			}
			if got != want || fs[0].w.Digest() != fs[1].w.Digest() {
				t.Fatalf("seed %d: Apply = %d, want %d; digest %v, want %v", seed, got, want, fs[0].w.Digest(), fs[1].w.Digest())
			}
			for _, c := range buffers {
				if c.Len() != 0 {
					t.Fatalf("%d commands are left", c.Len())
				}
			}
			if tick > 0 && seed%2 == 0 {
				fs[0].w.Restore(cp)
				if fs[0].w.Digest() != before {
					t.Fatalf("seed %d: Restore is not exact", seed)
				}
				for _, i := range []int{2, 0, 3, 1} {
					producers[i].replay(fs[0])
				}
			}
			fs[0].w.Release(cp)
			for _, f := range fs {
				f.w.Commit()
			}
			if before = fs[0].w.Digest(); before != fs[1].w.Digest() {
				t.Fatalf("seed %d: the worlds differ after tick %d", seed, tick)
			}
		}
	}
}

func TestCommands_ResolvePlaceholderEntities(t *testing.T) {
	w, a, _, entities := members(2, Options{})
	checkAtEnd(t, w)
	links := MustRegister(w, Component[Entity]{Name: "link"})
	var c, other Commands
	x, y := c.Create(), c.Create()
	if w.Alive(x) || x == 0 || x == y || c.Resolve(x) != 0 || c.Resolve(entities[0]) != entities[0] || c.Resolve(0) != 0 {
		t.Errorf("placeholders %v and %v", x, y)
	}
	links.Later(&c).Set(x, y)
	links.Later(&c).Set(entities[0], x)
	a.Later(&c).Set(y, plain{X: 5})
	a.Later(&other).Set(x, plain{X: 6}) // x is a placeholder of other commands.
	if n := w.Apply(&c, &other); n != 1 {
		t.Errorf("Apply = %d, want 1", n)
	}
	first, second := c.Resolve(x), c.Resolve(y)
	if got := links.Values(); !slices.Equal(got, []Entity{second, first}) || !w.Alive(first) || !a.Has(second) || a.Len() != 3 {
		t.Errorf("links %v of %v, want %v and %v", got, links.Entities(), second, first)
	}
	z := c.Create()
	if c.Resolve(x) != first || c.Resolve(z) != 0 {
		t.Error("placeholders of the last Apply are no longer resolved while commands are recorded")
	}
	c.Destroy(x) // x is a placeholder from before the last Apply.
	if n := w.Apply(&c); n != 1 || !w.Alive(first) || c.Resolve(x) != 0 || c.Resolve(z) == 0 {
		t.Errorf("Apply = %d: a placeholder of an earlier round stands for an entity", n)
	}
	c.issued, c.applied = 1<<31+1, 1<<31+1
	z = c.Create()
	c.Destroy(z)
	if n := w.Apply(&c); n != 0 || z.Index() > 2 {
		t.Errorf("Apply = %d after %v: placeholders are not numbered from the start", n, z)
	}
}

func TestCommands_RecordedDuringApply(t *testing.T) {
	w, a, _, entities := members(3, Options{})
	checkAtEnd(t, w)
	var c, d Commands
	var order []string
	say := func(s string) func(*World) { return func(*World) { order = append(order, s) } }
	(&hookRecorder{s: &a.set, onAdded: func(e Entity) {
		order = append(order, "hook")
		c.Do(say("from hook"))
		a.Later(&c).Remove(e)
	}}).listen(a)
	a.Remove(entities[0])
	c.Do(func(*World) { c.Do(say("c again")); d.Do(say("d again")) })
	c.Do(say("c"))
	a.Later(&d).Set(entities[0], plain{})
	d.Do(say("d"))
	if n := w.Apply(&c, &d); n != 0 || a.Has(entities[0]) {
		t.Errorf("Apply = %d, members %v", n, a.Entities())
	}
	if want := []string{"c", "hook", "d", "d again", "c again", "from hook"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

func TestCommands_PanicDuringApply(t *testing.T) {
	w, a, _, entities := members(3, Options{})
	checkAtEnd(t, w)
	before := w.Digest()
	var c Commands
	x := c.Create()
	a.Later(&c).Set(x, plain{})
	c.Do(func(*World) { panic("stop") })
	late := c.Create()
	a.Later(&c).Remove(entities[0])
	mustPanic(t, "stop", func() {
		_ = w.Try(func() error { w.Apply(&c); return nil })
	})
	if w.Digest() != before || c.Len() != 0 {
		t.Error("the changes were not reverted, or commands are left")
	}
	y := c.Create()
	a.Later(&c).Set(y, plain{X: 8})
	a.Later(&c).Set(late, plain{})
	if n := w.Apply(&c); n != 1 || w.Len() != 4 || a.Values()[3].X != 8 {
		t.Errorf("Apply = %d, values %v", n, a.Values())
	}
}

func TestCommands_Misuse(t *testing.T) {
	w, a, _, entities := members(1, Options{})
	_, there, _, _ := members(1, Options{})
	var c, d Commands
	a.Later(&c).Remove(entities[0])
	there.Later(&d).Remove(entities[0])
	mustPanic(t, "storage of another world", func() { w.Apply(&c, &d) })
	if a.Len() != 1 || there.Len() != 1 {
		t.Error("a refused Apply changed the world")
	}
	c.Do(func(w *World) { w.Apply(&c) })
	mustPanic(t, "being applied", func() { w.Apply(&c) })
	mustPanic(t, "being applied", func() { w.Apply(&c, &c) })
	c.Do(func(w *World) { there.Later(&c).Set(entities[0], plain{}) })
	mustPanic(t, "storage of another world", func() { w.Apply(&c) })
	if n := w.Apply(); n != 0 {
		t.Errorf("Apply() = %d", n)
	}
}

func TestCommands_Allocations(t *testing.T) {
	w, a, _, entities := members(100, Options{})
	links, words := MustRegister(w, Component[Entity]{Name: "link"}), MustRegister[word](w)
	var c, d Commands
	f := func(*World) {}
	tick := func() {
		for i, e := range entities {
			x := c.Create()
			a.Later(&c).Set(x, plain{1, 1})
			links.Later(&c).Set(e, x)
			words.Later(&d).Set(e, word{"w"})
			words.Later(&d).Remove(entities[99-i])
			c.Destroy(x)
		}
		d.Do(f)
		w.Apply(&c, &d)
	}
	tick()
	if n := allocations(t, 10, tick); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for _, v := range words.Later(&d).values[:10] {
		if v.S != "" {
			t.Errorf("applied commands still refer to %v", v)
		}
	}
	if d.funcs[:1][0] != nil {
		t.Error("applied commands still refer to a function")
	}
	if got := fmt.Sprint(c.Len(), d.Len(), w.Len()); got != "0 0 100" {
		t.Errorf("%s, want 0 0 100", got)
	}
}
