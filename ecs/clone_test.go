package ecs

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bag has slices, maps and pointers at several depths. Components of this type are registered
// without a Clone.
type bag struct {
	Name  string
	Items [][]int
	Count map[string]*int
}

func newBag(n int) bag {
	return bag{fmt.Sprint(n), [][]int{{n}, nil, {n, n}}, map[string]*int{"n": &n}}
}

func (b *bag) increase() {
	b.Items[0][0]++
	b.Items[2][1]++
	*b.Count["n"]++
	b.Count[fmt.Sprint(len(b.Count))] = new(int)
}

// The world derives a deep copy function from the type bag. It must call this function wherever it
// copies rows. Examples are checkpoints, histories, pins, batches, default values of gaps, and
// clones of worlds and of entities.
func TestDerivedClone_UsedForEveryCopy(t *testing.T) {
	for _, kind := range []Kind{Sparse, Indexed, Hashed, Ordered} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			c := Component[bag]{Kind: kind}
			if kind == Indexed {
				c.Default = newBag(7)
			}
			w := NewWorld(Options{History: 3})
			s := MustRegister(w, c)
			r := Must(RegisterResource(w, newBag(1), Component[bag]{Name: "resource"}))
			es := w.CreateN(nil, 8)
			s.SetAll(es[:6], newBag(2))
			s.Remove(es[1])
			w.Commit()
			before, clone := w.Digest(), w.Clone()
			p, err := pin(w)
			require.NoError(t, err)
			write := func() {
				for _, e := range s.Entities() {
					if b := s.Mut(e); b != nil {
						b.increase()
					}
				}
				r.Mut().increase()
				for i := range s.MutValues() {
					s.MutValues()[i].increase()
				}
				s.Remove(es[0])
				if e, ok := w.CloneEntity(es[3]); ok {
					s.Mut(e).increase()
				}
			}
			cp := w.Checkpoint()
			write()
			w.Restore(cp)
			require.Equal(t, before, w.Digest())
			write()
			w.Release(cp)
			w.Commit()
			after := w.Digest()
			require.NotEqual(t, before, after)
			p.check(1)
			require.NoError(t, w.History().Rewind(1))
			require.Equal(t, before, w.Digest())
			require.NoError(t, w.History().Seek(2))
			require.Equal(t, after, w.Digest())
			p.check(1)
			require.Equal(t, before, clone.Digest())
		})
	}
}

// If a Clone panics while a row is saved, the world passes the panic on, and the row does not count
// as saved.
func TestComponentClone_PanicWhileSaving(t *testing.T) {
	fail := false
	w := NewWorld(Options{History: 2})
	s := MustRegister(w, Component[bag]{Clone: func(b bag) bag {
		if fail && b.Name == "3" {
			panic("no copy today")
		}
		b.Items, b.Count = slices.Clone(b.Items), maps.Clone(b.Count)
		for i := range b.Items {
			b.Items[i] = slices.Clone(b.Items[i])
		}
		for key, n := range b.Count {
			v := *n
			b.Count[key] = &v
		}
		return b
	}})
	es := w.CreateN(nil, 6)
	for i, e := range es {
		s.Set(e, newBag(i))
	}
	w.Commit()
	before := w.Digest()
	for name, write := range map[string]func(){
		"Mut":       func() { s.Mut(es[3]).increase() },
		"Set":       func() { s.Set(es[3], newBag(9)) },
		"MutValues": func() { s.MutValues()[3].increase() },
		"Remove":    func() { s.Remove(es[3]) },
		"Destroy":   func() { w.Destroy(es[3]) },
		"SortFunc":  func() { s.SortFunc(func(a, b bag) int { return b.Items[0][0] - a.Items[0][0] }) },
		"SetEach":   func() { s.SetEach(es[2:5], []bag{newBag(7), newBag(8), newBag(9)}) },
		"Clear":     func() { s.Clear(); s.SetAll(es, newBag(5)) },
	} {
		t.Run(name, func(t *testing.T) {
			cp := w.Checkpoint()
			fail = true
			if caught := caughtIn(write); name != "Clear" || caught != nil {
				require.Equal(t, "no copy today", caught)
			}
			fail = false
			write()
			for i := range s.MutValues() {
				s.MutValues()[i].increase()
			}
			w.Restore(cp)
			require.Equal(t, before, w.Digest())
			w.Release(cp)
		})
	}
}

// caughtIn calls f and returns the value that f panics with, or nil.
func caughtIn(f func()) (caught any) {
	defer func() { caught = recover() }()
	f()
	return nil
}

func TestComponentClone_PanicWithPin(t *testing.T) {
	fail := false
	w := NewWorld(Options{History: 2})
	s := MustRegister(w, Component[list]{Clone: func(l list) list {
		if fail && len(l.Items) > 0 && l.Items[0] == 2 {
			panic("no copy today")
		}
		return cloneList(l)
	}})
	es := w.CreateN(nil, 4)
	for i, e := range es {
		s.Set(e, list{[]int{i}})
	}
	w.Commit()
	p, err := pin(w)
	require.NoError(t, err)
	s.MutValues()
	for _, l := range s.Values() {
		l.Items[0] += 10
	}
	fail = true
	require.Equal(t, "no copy today", caughtIn(func() { p.Stage(p.storages[0], 0, 4) }))
	fail = false
	p.check(1)
}

// A branching type contains itself, so the world cannot derive a copy.
type branching struct{ Branches []branching }
