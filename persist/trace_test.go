package persist

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
)

// A hearsay is what the events of a trace have hearsay of an entity so far.
type hearsay struct {
	t     testing.TB
	alive bool
	rows  map[int]int // By component.
	value map[int]string
}

func newHearsay(t testing.TB) *hearsay {
	return &hearsay{t: t, rows: map[int]int{}, value: map[int]string{}}
}

// hear takes an event, which must continue what was hearsay.
func (o *hearsay) hear(e *TraceEvent) {
	row, has := o.rows[e.Number]
	switch e.Kind {
	case TraceCreated, TraceAlive:
		require.False(o.t, o.alive)
		o.alive = true
		return
	case TraceDestroyed:
		require.True(o.t, o.alive)
		*o = *newHearsay(o.t)
		return
	case TraceAdded, TracePresent:
		require.False(o.t, has, "%+v", e)
		require.Equal(o.t, layout.Value{}, e.Old)
		require.Equal(o.t, -1, e.Was)
	case TraceRemoved:
		require.Equal(o.t, layout.Value{}, e.New)
		require.Equal(o.t, -1, e.Row)
		delete(o.rows, e.Number)
		return
	default:
		require.True(o.t, has)
		require.Equal(o.t, row, e.Was, "%+v", e)
		require.Equal(o.t, o.value[e.Number], e.Old.String())
		if e.Kind == TraceConverted {
			break
		}
		changed := e.Old.String() != e.New.String()
		require.Equal(o.t, e.Kind == TraceSet, changed)
		if !changed {
			require.Equal(o.t, e.Kind == TraceMoved, e.Was != e.Row)
		}
	}
	o.rows[e.Number], o.value[e.Number] = e.Row, e.New.String()
}

// requireState compares what was hearsay with a state.
func (o *hearsay) requireState(im *Image, e ecs.Entity) {
	o.t.Helper()
	require.Equal(o.t, im.IsAlive(e), o.alive)
	for n, c := range im.Components {
		if c.Resource || !c.Rewinds { // At has that from the nearest snapshot, whatever ticks say.
			continue
		}
		row, ok := o.rows[n]
		require.Equal(o.t, c.Find(e) >= 0, ok, c.Name)
		if ok {
			require.Equal(o.t, c.Find(e), row, c.Name)
			require.Equal(o.t, valueOf(o.t, c, row).String(), o.value[n])
		}
	}
}

// traced compares all that is told of the entities of v with the states on the way
// to its head, and counts the events by kind.
func traced(t testing.TB, v *View, kinds map[TraceKind]int) {
	t.Helper()
	var states []*Image // On the way to the head.
	for e := range v.Log().Ancestors(v.Head()) {
		states = append([]*Image{imageAt(t, v, e.ID.Seq)}, states...)
	}
	for _, e := range lives(t, v) {
		o, left := newHearsay(t), states
		upTo := func(seq uint64) { // The states before record seq.
			for len(left) > 0 && left[0].ID.Seq < seq {
				o.requireState(left[0], e)
				left = left[1:]
			}
		}
		err := v.Trace(background, e, 0, v.Head(), func(event *TraceEvent) error {
			upTo(event.Seq)
			o.hear(event)
			kinds[event.Kind]++
			return nil
		})
		require.NoError(t, err)
		upTo(v.Head() + 1)
		require.Empty(t, left)
	}
}

func TestATraceTellsAllThatHappensToAnEntity(t *testing.T) {
	kinds := map[TraceKind]int{}
	for seed := range uint64(2) {
		traced(t, wildView(t, seed), kinds)
	}
	for kind := TraceCreated; kind < TraceConverted; kind++ {
		if kind != TraceAlive && kind != TracePresent {
			require.Positive(t, kinds[kind], "no entity was %v", kind)
		}
	}
}

func TestATraceBackHasTheSameEventsAsATrace(t *testing.T) {
	v := wildView(t, 5)
	most := 0
	for _, e := range lives(t, v) {
		var want, got []TraceEvent
		require.NoError(t, v.Trace(background, e, 0, v.Head(), func(event *TraceEvent) error {
			want = append(want, *event)
			return nil
		}))
		stretches, first := 0, (*EntityState)(nil)
		require.NoError(t, v.TraceBack(background, e, v.Head(), func(s *Stretch) bool {
			if stretches++; first == nil {
				peeked, err := v.Peek(background, e, v.Head())
				require.NoError(t, err)
				require.Equal(t, peeked, s.Last)
			} else {
				require.Equal(t, first.Seq, s.Last.Seq)
			}
			got = append(s.Events, without(got, TraceAlive, TracePresent)...)
			first = s.First
			return true
		}))
		require.Zero(t, first.Seq)
		require.Equal(t, rewinding(want), rewinding(got), e)
		most = max(most, stretches)
	}
	require.Greater(t, most, 2)
}

func without(events []TraceEvent, kinds ...TraceKind) (rest []TraceEvent) {
	for _, e := range events {
		if e.Kind != kinds[0] && e.Kind != kinds[1] {
			rest = append(rest, e)
		}
	}
	return rest
}

// rewinding returns the events that are the same from whatever snapshot one looks.
func rewinding(events []TraceEvent) (rest []TraceEvent) {
	for _, e := range events {
		if e.Component != "heat" && e.Component != "mood" {
			rest = append(rest, e)
		}
	}
	return rest
}

func TestATraceOfPartOfALifeBeginsWithWhatWasThere(t *testing.T) {
	v := wildView(t, 7)
	head := v.Head()
	for _, e := range lives(t, v) {
		for entry := range v.Log().Ancestors(head) {
			if entry.ID.Seq%3 > 0 {
				continue
			}
			from, o := entry.ID.Seq, newHearsay(t)
			compared := false
			compare := func() {
				if !compared {
					o.requireState(imageAt(t, v, from), e)
					compared = true
				}
			}
			require.NoError(t, v.Trace(background, e, from, head, func(event *TraceEvent) error {
				if event.Seq > from {
					compare()
				}
				o.hear(event)
				return nil
			}))
			compare()
			o.requireState(imageAt(t, v, head), e)
		}
	}
}

func TestATraceGoesOnAcrossConversions(t *testing.T) {
	dir, _, second, mark := twiceConverted(t)
	v := viewOf(t, dir)
	kinds := map[TraceKind]int{}
	traced(t, v, kinds)
	require.Positive(t, kinds[TraceConverted])
	require.Positive(t, kinds[TraceSet])

	names := map[string]bool{}
	err := v.Trace(background, second.Entities()[0], mark-1, v.Head(), func(e *TraceEvent) error {
		if e.Number == 1 || e.Component == "vigour" || e.Component == "vitality" {
			names[e.Kind.String()+" "+e.Component] = true
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, names, "present vitality")
	require.Contains(t, names, "converted vigour")

	// A stretch does not end at a conversion, so that it is told there as well.
	converted := 0
	require.NoError(t, v.TraceBack(background, second.Entities()[0], v.Head(), func(s *Stretch) bool {
		for _, e := range s.Events {
			if e.Kind == TraceConverted {
				converted++
			}
		}
		return true
	}))
	want := 0
	require.NoError(t, v.Trace(background, second.Entities()[0], 0, v.Head(), func(e *TraceEvent) error {
		if e.Kind == TraceConverted {
			want++
		}
		return nil
	}))
	require.Positive(t, want)
	require.Equal(t, want, converted)
}

func TestWhatIsUndoneWithinATickIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	e := w.Create()
	w.position.Set(e, position{1, 1})
	brief := w.Create()
	w.position.Set(brief, position{2, 2})
	w.Destroy(brief)
	require.NoError(t, s.Commit())
	w.position.Remove(e)
	w.position.Set(e, position{1, 1})
	w.frozen.Set(e, frozen{})
	w.frozen.Clear()
	require.NoError(t, s.Commit())
	w.position.Set(e, position{1, 1})
	require.NoError(t, s.Commit())
	w.World.Clear()
	require.NoError(t, s.Commit())
	closeStore(t, s)
	v := viewOf(t, dir)
	for of, want := range map[ecs.Entity][]string{
		e: {
			"1 created  ", "1 added position {X:1 Y:1}", "2 removed position ", "2 added position {X:1 Y:1}",
			"2 added frozen ", "2 removed frozen ", "3 written position {X:1 Y:1}", "4 destroyed  ",
		},
		brief: {"1 created  ", "1 destroyed  "},
	} {
		var got []string
		require.NoError(t, v.Trace(background, of, 0, 4, func(e *TraceEvent) error {
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

func TestATraceEndsAtDamage(t *testing.T) {
	s := newSample(t)
	v := viewOf(t, s.dir)
	entries := slices.Collect(v.Log().Ancestors(v.Head()))
	last, e := entries[0], imageAt(t, v, 1).Registry[0]
	d := s.damaged(t)
	name := "journal/" + v.Log().Segments[last.Segment].Name
	data := []byte(d.tree[name])
	data[last.Offset+60] ^= 1
	d.with(name, string(data), func() {
		v := viewOf(t, d.dir)
		told := 0
		err := v.Trace(background, e, 0, last.ID.Seq, func(*TraceEvent) error { told++; return nil })
		require.Error(t, err)
		require.Zero(t, told)
	})
	require.NoError(t, v.Trace(background, e, 0, v.Head(), func(*TraceEvent) error { return nil }))
	require.ErrorIs(t, v.Trace(background, e, 0, v.Head(), func(*TraceEvent) error { return fs.ErrInvalid }), fs.ErrInvalid)
	require.ErrorIs(t, v.Trace(background, e, 0, 99, func(*TraceEvent) error { return nil }), ErrNotFound)
	require.Error(t, v.Trace(background, e, 4, 2, func(*TraceEvent) error { return nil }))
	ctx, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, v.Trace(ctx, e, 0, v.Head(), func(*TraceEvent) error { return nil }), context.Canceled)
}
