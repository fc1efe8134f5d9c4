package persist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// A hearsay is what the events of a trace have hearsay of an entity so far.
type hearsay struct {
	t     testing.TB
	alive bool
	rows  map[string]int
	value map[string]string
}

func newHearsay(t testing.TB) *hearsay {
	return &hearsay{t: t, rows: map[string]int{}, value: map[string]string{}}
}

// hear takes an event, which must continue what was hearsay.
func (o *hearsay) hear(e *TraceEvent) {
	row, has := o.rows[e.Component]
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
		delete(o.rows, e.Component)
		return
	default:
		require.True(o.t, has)
		require.Equal(o.t, row, e.Was, "%+v", e)
		require.Equal(o.t, o.value[e.Component], e.Old.String())
		changed := e.Old.String() != e.New.String()
		require.Equal(o.t, e.Kind == TraceSet, changed)
		if !changed {
			require.Equal(o.t, e.Kind == TraceMoved, e.Was != e.Row)
		}
	}
	o.rows[e.Component], o.value[e.Component] = e.Row, e.New.String()
}

// requireState compares what was hearsay with a state.
func (o *hearsay) requireState(im *Image, e ecs.Entity) {
	o.t.Helper()
	require.Equal(o.t, im.IsAlive(e), o.alive)
	for _, c := range im.Components {
		if c.Resource || !c.Rewinds { // At has that from the nearest snapshot, whatever ticks say.
			continue
		}
		row, ok := o.rows[c.Name]
		require.Equal(o.t, c.Find(e) >= 0, ok, c.Name)
		if ok {
			require.Equal(o.t, c.Find(e), row, c.Name)
			require.Equal(o.t, valueOf(o.t, c, row).String(), o.value[c.Name])
		}
	}
}

func TestATraceTellsAllThatHappensToAnEntity(t *testing.T) {
	kinds := map[TraceKind]int{}
	for seed := range uint64(3) {
		v := wildView(t, seed)
		var states []*Image // On the way to the head.
		for e := range v.log.Ancestors(v.Head()) {
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
		for entry := range v.log.Ancestors(head) {
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
