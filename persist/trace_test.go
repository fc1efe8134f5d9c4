package persist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A hearsay is the state of an entity, derived only from trace events.
type hearsay struct {
	t     testing.TB
	alive bool
	rows  map[int]int // Row by component.
	value map[int]string
}

func newHearsay(t testing.TB) *hearsay {
	return &hearsay{t: t, rows: map[int]int{}, value: map[int]string{}}
}

// hear applies an event, which must continue the derived state.
func (o *hearsay) hear(e *inspect.TraceEvent) {
	row, has := o.rows[e.Number]
	switch e.Kind {
	case inspect.TraceCreated, inspect.TraceAlive:
		require.False(o.t, o.alive)
		o.alive = true
		return
	case inspect.TraceDestroyed:
		require.True(o.t, o.alive)
		*o = *newHearsay(o.t)
		return
	case inspect.TraceAdded, inspect.TracePresent:
		require.False(o.t, has, "%+v", e)
		require.Equal(o.t, layout.Value{}, e.Old)
		require.Equal(o.t, -1, e.Was)
	case inspect.TraceRemoved:
		require.Equal(o.t, layout.Value{}, e.New)
		require.Equal(o.t, -1, e.Row)
		delete(o.rows, e.Number)
		return
	default:
		require.True(o.t, has)
		require.Equal(o.t, row, e.Was, "%+v", e)
		require.Equal(o.t, o.value[e.Number], e.Old.String())
		if e.Kind == inspect.TraceConverted {
			break
		}
		changed := e.Old.String() != e.New.String()
		require.Equal(o.t, e.Kind == inspect.TraceSet, changed)
		if !changed {
			require.Equal(o.t, e.Kind == inspect.TraceMoved, e.Was != e.Row)
		}
	}
	o.rows[e.Number], o.value[e.Number] = e.Row, e.New.String()
}

// requireState compares the derived state with a state of the store.
func (o *hearsay) requireState(im *image.Image, e ecs.Entity) {
	o.t.Helper()
	require.Equal(o.t, im.IsAlive(e), o.alive)
	for n, c := range im.Components {
		// The NoRewind values of an image depend on the snapshot that was read. Do not compare
		// them.
		if !c.Rewinds {
			continue
		}
		row, ok := o.rows[n]
		at := c.Find(e)
		if c.Resource && (e == ecs.None || e == ecs.Vacant) {
			at = c.Len() - 1
		}
		require.Equal(o.t, at >= 0, ok, c.Name)
		if ok {
			require.Equal(o.t, at, row, c.Name)
			require.Equal(o.t, storetest.ValueOf(o.t, c, row).String(), o.value[n])
		}
	}
}

// requireTraced requires that a trace of an entity succeeded. It accepts ErrNotFound without
// events, because an entity of another branch never existed on the traced path.
func requireTraced(t testing.TB, err error, events int) {
	t.Helper()
	if events > 0 || !errors.Is(err, persist.ErrNotFound) {
		require.NoError(t, err)
	}
}

// traced compares the traces of all entities of v with the states on the path to its head, and
// counts the events by kind.
func traced(t testing.TB, v *inspect.View, kinds map[inspect.TraceKind]int) {
	t.Helper()
	var states []*image.Image // The states on the path to the head.
	for e := range v.Log().Ancestors(v.Head()) {
		states = append([]*image.Image{storetest.ImageAt(t, v, e.ID.Seq)}, states...)
	}
	for _, e := range storetest.Lives(t, v) {
		o, left, events := newHearsay(t), states, 0
		upTo := func(seq uint64) { // Checks the states before record seq.
			for len(left) > 0 && left[0].ID.Seq < seq {
				o.requireState(left[0], e)
				left = left[1:]
			}
		}
		err := v.Trace(storetest.Background, e, 0, v.Head(), func(event *inspect.TraceEvent) error {
			upTo(event.Seq)
			o.hear(event)
			kinds[event.Kind]++
			events++
			return nil
		})
		requireTraced(t, err, events)
		upTo(v.Head() + 1)
		require.Empty(t, left)
	}
}

func TestTrace_AllEvents(t *testing.T) {
	t.Parallel()
	kinds := map[inspect.TraceKind]int{}
	for seed := range uint64(2) {
		traced(t, storetest.WildView(t, seed), kinds)
	}
	for kind := inspect.TraceCreated; kind < inspect.TraceConverted; kind++ {
		if kind != inspect.TraceAlive && kind != inspect.TracePresent {
			require.Positive(t, kinds[kind], "no entity was %v", kind)
		}
	}
}

func TestTrace_Backwards(t *testing.T) {
	t.Parallel()
	v := storetest.WildView(t, 5)
	most := 0
	for _, e := range storetest.Lives(t, v) {
		var want, got []inspect.TraceEvent
		err := v.Trace(storetest.Background, e, 0, v.Head(), func(event *inspect.TraceEvent) error {
			want = append(want, *event)
			return nil
		})
		requireTraced(t, err, len(want))
		stretches, first := 0, (*inspect.EntityState)(nil)
		require.NoError(t, v.TraceBack(storetest.Background, e, v.Head(), func(s *inspect.Stretch) bool {
			if stretches++; first == nil {
				peeked, err := v.Peek(storetest.Background, e, v.Head())
				require.NoError(t, err)
				require.Equal(t, peeked, s.Last)
			} else {
				require.Equal(t, first.Seq, s.Last.Seq)
			}
			got = append(s.Events, without(got, inspect.TraceAlive, inspect.TracePresent)...)
			first = s.First
			return true
		}))
		require.Zero(t, first.Seq)
		require.Equal(t, rewinding(want), rewinding(got), e)
		most = max(most, stretches)
	}
	require.Greater(t, most, 2)
}

func without(events []inspect.TraceEvent, kinds ...inspect.TraceKind) (rest []inspect.TraceEvent) {
	for _, e := range events {
		if e.Kind != kinds[0] && e.Kind != kinds[1] {
			rest = append(rest, e)
		}
	}
	return rest
}

// rewinding returns the events of components that rewind. Events of NoRewind components depend on
// the snapshot that was read, so they are left out.
func rewinding(events []inspect.TraceEvent) (rest []inspect.TraceEvent) {
	for _, e := range events {
		if e.Component != "heat" && e.Component != "mood" {
			rest = append(rest, e)
		}
	}
	return rest
}

func TestTrace_FromOlderRecord(t *testing.T) {
	t.Parallel()
	v := storetest.WildView(t, 7)
	head := v.Head()
	for _, e := range storetest.Lives(t, v) {
		for entry := range v.Log().Ancestors(head) {
			if entry.ID.Seq%3 > 0 {
				continue
			}
			from, o := entry.ID.Seq, newHearsay(t)
			compared := false
			compare := func() {
				if !compared {
					o.requireState(storetest.ImageAt(t, v, from), e)
					compared = true
				}
			}
			require.NoError(t, v.Trace(storetest.Background, e, from, head, func(event *inspect.TraceEvent) error {
				if event.Seq > from {
					compare()
				}
				o.hear(event)
				return nil
			}))
			compare()
			o.requireState(storetest.ImageAt(t, v, head), e)
		}
	}
}

func TestTrace_AcrossConversions(t *testing.T) {
	dir, _, second, mark := twiceConverted(t)
	v := storetest.ViewOf(t, dir)
	kinds := map[inspect.TraceKind]int{}
	traced(t, v, kinds)
	require.Positive(t, kinds[inspect.TraceConverted])
	require.Positive(t, kinds[inspect.TraceSet])

	names := map[string]bool{}
	err := v.Trace(storetest.Background, second.Entities()[0], mark-1, v.Head(), func(e *inspect.TraceEvent) error {
		if e.Number == 1 || e.Component == "vigour" || e.Component == "vitality" {
			names[e.Kind.String()+" "+e.Component] = true
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, names, "present vitality")
	require.Contains(t, names, "converted vigour")

	// A trace continues across a conversion, and has an event for it.
	converted := 0
	require.NoError(t, v.TraceBack(storetest.Background, second.Entities()[0], v.Head(), func(s *inspect.Stretch) bool {
		for _, e := range s.Events {
			if e.Kind == inspect.TraceConverted {
				converted++
			}
		}
		return true
	}))
	want := 0
	require.NoError(t, v.Trace(storetest.Background, second.Entities()[0], 0, v.Head(), func(e *inspect.TraceEvent) error {
		if e.Kind == inspect.TraceConverted {
			want++
		}
		return nil
	}))
	require.Positive(t, want)
	require.Equal(t, want, converted)
}

func TestTrace_ChangeUndoneWithinTick(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	e := w.Create()
	w.Position.Set(e, storetest.Position{X: 1, Y: 1})
	brief := w.Create()
	w.Position.Set(brief, storetest.Position{X: 2, Y: 2})
	w.Destroy(brief)
	require.NoError(t, s.Commit())
	w.Position.Remove(e)
	w.Position.Set(e, storetest.Position{X: 1, Y: 1})
	w.Frozen.Set(e, storetest.Frozen{})
	w.Frozen.Clear()
	require.NoError(t, s.Commit())
	w.Position.Set(e, storetest.Position{X: 1, Y: 1})
	require.NoError(t, s.Commit())
	w.World.Clear()
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)
	for of, want := range map[ecs.Entity][]string{
		e: {
			"1 created  ", "1 added position {X:1 Y:1}", "2 removed position ", "2 added position {X:1 Y:1}",
			"2 added frozen ", "2 removed frozen ", "3 written position {X:1 Y:1}", "4 destroyed  ",
		},
		brief: {"1 created  ", "1 destroyed  "},
	} {
		var got []string
		require.NoError(t, v.Trace(storetest.Background, of, 0, 4, func(e *inspect.TraceEvent) error {
			text := ""
			if e.New.Kind() != 0 {
				text = e.New.String()
			}
			got = append(got, fmt.Sprint(e.Tick, " ", e.Kind, " ", e.Component, " ", text))
			return nil
		}))
		require.Equal(t, want, got)
	}
}

func TestTrace_DamagedRecord(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	v := storetest.ViewOf(t, s.Dir)
	entries := slices.Collect(v.Log().Ancestors(v.Head()))
	last, e := entries[0], storetest.ImageAt(t, v, 1).Registry[0]
	d := s.Damaged(t)
	name := "journal/" + v.Log().Segments[last.Segment].Name
	data := []byte(d.Tree[name])
	data[last.Offset+60] ^= 1
	var before []string
	require.NoError(t, v.Trace(storetest.Background, e, 0, v.Head(), func(e *inspect.TraceEvent) error {
		if e.Seq < last.ID.Seq {
			before = append(before, fmt.Sprint(e.Seq, e.Kind, e.Component, e.New))
		}
		return nil
	}))
	d.With(name, string(data), func() {
		v := storetest.ViewOf(t, d.Dir)
		var told []string
		err := v.Trace(storetest.Background, e, 0, last.ID.Seq, func(e *inspect.TraceEvent) error {
			told = append(told, fmt.Sprint(e.Seq, e.Kind, e.Component, e.New))
			return nil
		})
		require.ErrorIs(t, err, persist.ErrCorrupt)
		require.NotEmpty(t, told)
		require.Equal(t, before, told)
	})
	require.ErrorIs(t, v.Trace(storetest.Background, e, 0, v.Head(), func(*inspect.TraceEvent) error { return fs.ErrInvalid }), fs.ErrInvalid)
	require.ErrorIs(t, v.Trace(storetest.Background, e, 0, 99, func(*inspect.TraceEvent) error { return nil }), persist.ErrNotFound)
	require.Error(t, v.Trace(storetest.Background, e, 4, 2, func(*inspect.TraceEvent) error { return nil }))
	ctx, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, v.Trace(ctx, e, 0, v.Head(), func(*inspect.TraceEvent) error { return nil }), context.Canceled)
}
