package ecs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// thinnedWorld is a world of n entities. Tick i writes some of the entities and commits.
type thinnedWorld struct {
	w        *World
	values   *Storage[extra]
	entities []Entity
	digests  map[uint64]Digest // The digest after the latest commit of each tick.
}

func newThinnedWorld(t *testing.T, n int, options Options) *thinnedWorld {
	a := &thinnedWorld{w: NewWorld(options), digests: map[uint64]Digest{}}
	checkAtEnd(t, a.w)
	a.values = MustRegister[extra](a.w)
	a.entities = a.w.CreateN(nil, n)
	a.values.SetAll(a.entities, extra{})
	return a
}

func (a *thinnedWorld) tick() {
	next := a.w.Tick() + 1
	for i := range a.entities {
		if uint64(i)%7 == next%7 {
			a.values.Mut(a.entities[i]).V = int64(next)
		}
	}
	if e := a.entities[next%uint64(len(a.entities))]; next%3 == 0 && a.values.Remove(e) {
		a.values.Set(e, extra{-int64(next)})
	}
	a.w.Commit()
	a.digests[next] = a.w.Digest()
}

// visit seeks to every retained tick in a fixed order, and then back to the current tick.
func (a *thinnedWorld) visit(t *testing.T) {
	t.Helper()
	h, present := a.w.History(), a.w.Tick()
	ticks := slices.Collect(h.Ticks())
	for i := range ticks {
		tick := ticks[(i*5+3)%len(ticks)]
		if err := h.Seek(tick); err != nil {
			t.Fatal(err)
		}
		if want, known := a.digests[tick]; known && a.w.Digest() != want {
			t.Fatalf("tick %d differs after a Seek from tick %d", tick, present)
		}
		if !slices.Equal(slices.Collect(h.Ticks()), ticks) {
			t.Fatalf("Seek(%d) changed the retained ticks", tick)
		}
	}
	if err := h.Seek(present); err != nil {
		t.Fatal(err)
	}
}

func TestHistoryDense_FirstTickKept(t *testing.T) {
	for _, o := range []Options{
		{History: 40, HistoryDense: 8},
		{History: 10_000, HistoryBytes: 60_000, HistoryDense: 8},
		{History: 7, HistoryDense: 5},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			a := newThinnedWorld(t, 100, o)
			h := a.w.History()
			for tick := range uint64(1000) {
				a.tick()
				if o.HistoryBytes > 0 && h.Bytes() > o.HistoryBytes {
					t.Fatalf("tick %d: the history has %d bytes, at most %d are allowed", tick, h.Bytes(), o.HistoryBytes)
				}
			}
			ticks := slices.Collect(h.Ticks())
			if len(ticks) > o.History+1 || len(ticks) < 7 || ticks[0] != 0 || h.Oldest() != 0 {
				t.Errorf("%d ticks are retained: %v", len(ticks), ticks)
			}
			for age := range uint64(o.HistoryDense + 1) {
				if !slices.Contains(ticks, 1000-age) {
					t.Errorf("tick %d is not retained: %v", 1000-age, ticks)
				}
			}
			a.visit(t)
		})
	}
}

// The distance between retained ticks grows in proportion to their age, once there are enough
// ticks.
func TestHistoryDense_DistancesGrow(t *testing.T) {
	w := NewWorld(Options{History: 100, HistoryDense: 10})
	for range 5000 {
		w.Commit()
	}
	ticks := slices.Collect(w.History().Ticks())
	if len(ticks) != 101 {
		t.Errorf("%d ticks are retained, want 101", len(ticks))
	}
	for i := range ticks[1:] {
		if age, distance := 5000-ticks[i], ticks[i+1]-ticks[i]; distance > 1+age/4 {
			t.Errorf("no tick is retained between tick %d and %d: %v", ticks[i], ticks[i+1], ticks)
		}
	}
}

func TestHistoryDense_SeekToDroppedTick(t *testing.T) {
	a := newThinnedWorld(t, 20, Options{History: 12, HistoryDense: 4})
	for range 100 {
		a.tick()
	}
	h, before := a.w.History(), a.w.Digest()
	ticks := slices.Collect(h.Ticks())
	missing := ticks[5] + 1
	for what, err := range map[string]error{
		"Seek":   h.Seek(missing),
		"Rewind": h.Rewind(int(100 - missing)),
		"Since":  func() error { _, err := a.values.Since(missing); return err }(),
		"filter": a.values.Changed().Since(missing),
	} {
		want := fmt.Sprintf("the nearest retained ticks are %d and %d", ticks[5], ticks[6])
		if !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s of tick %d = %v, want ErrNotHeld and %q", what, missing, err, want)
		}
	}
	if err := h.Seek(101); !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), "the oldest retained tick is 0, the newest 100") {
		t.Errorf("Seek(101) = %v", err)
	}
	if a.w.Digest() != before {
		t.Error("the world changed")
	}
	// A delta reports the changes of all merged ticks together.
	d, err := a.values.Since(ticks[5])
	if err != nil {
		t.Fatal(err)
	}
	now := slices.Collect(func(yield func(Entity) bool) {
		for e := range d.Changed() {
			yield(e)
		}
	})
	if len(now) != 20 {
		t.Errorf("%d entities changed since tick %d, want all 20", len(now), ticks[5])
	}
}

// parentCheck is a recorder whose sequence numbers are the ticks, so it can check the parent of
// each tick.
type parentCheck struct{ t *testing.T }

func (r parentCheck) Record(c *raw.Change) uint64 {
	if c.Parent != c.Tick-1 {
		r.t.Errorf("tick %d continues tick %d", c.Tick, c.Parent)
	}
	return c.Tick
}

func TestHistoryDense_NewTicksAfterSeekBack(t *testing.T) {
	a := newThinnedWorld(t, 50, Options{History: 30, HistoryDense: 6})
	if err := a.w.Raw().Attach(parentCheck{t}, 0); err != nil {
		t.Fatal(err)
	}
	h := a.w.History()
	for _, ticks := range []int{200, 90, 400} {
		for range ticks {
			a.tick()
		}
		a.visit(t)
		held := slices.Collect(h.Ticks())
		if err := h.Seek(held[len(held)/3]); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			a.tick()
		}
		a.visit(t)
	}
	if ticks := slices.Collect(h.Ticks()); ticks[0] != 0 || len(ticks) != 31 {
		t.Errorf("%d ticks are retained: %v", len(ticks), ticks)
	}
}

// Ticks before a checkpoint are thinned after the checkpoint is released.
func TestHistoryDense_CheckpointsReleased(t *testing.T) {
	a := newThinnedWorld(t, 10, Options{History: 20, HistoryDense: 3})
	var held []Checkpoint
	for i := range 600 {
		if i%4 == 0 {
			held = append(held, a.w.Checkpoint())
		}
		if len(held) > 5 {
			a.w.Release(held[0])
			held = held[1:]
		}
		a.tick()
	}
	if n := len(slices.Collect(a.w.History().Ticks())); n != 21 {
		t.Errorf("%d ticks are retained, want 21", n)
	}
	for _, cp := range held {
		a.w.Release(cp)
	}
	a.tick()
	ticks := slices.Collect(a.w.History().Ticks())
	for i := range ticks[1:] {
		if age, distance := 601-ticks[i], ticks[i+1]-ticks[i]; distance > 1+age {
			t.Errorf("no tick is retained between ticks %d and %d: %v", ticks[i], ticks[i+1], ticks)
		}
	}
	a.visit(t)
}

// The first tick of a history may have a high number.
func TestHistoryDense_FirstTickHasHighNumber(t *testing.T) {
	w := NewWorld(Options{History: 16, HistoryDense: 2})
	s := &raw.State{Tick: 1<<40 + 3}
	if err := w.Raw().Load(s); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		w.Commit()
	}
	ticks := slices.Collect(w.History().Ticks())
	if len(ticks) != 17 || ticks[0] != s.Tick {
		t.Errorf("ticks %v are retained", ticks)
	}
}

func TestHistoryDense_Allocations(t *testing.T) {
	for _, o := range []Options{{History: 64, HistoryDense: 8}, {History: 1 << 20, HistoryBytes: 200_000, HistoryDense: 8}} {
		w, p, _, entities := members(1000, o)
		next := 0
		tick := func() {
			for range 20 {
				next = (next*5 + 7) % 1000
				p.Mut(entities[next]).X++
			}
			w.Commit()
		}
		for range 3000 {
			tick()
		}
		if n := allocations(t, 2000, tick); n > 0 {
			t.Errorf("%v: %v allocations a tick", o, n)
		}
		if oldest := w.History().Oldest(); oldest != 0 {
			t.Errorf("%v: the oldest tick is %d, want 0", o, oldest)
		}
	}
}

func TestHistoryDense_SameAsModel(t *testing.T) {
	t.Parallel()
	several := operation{"three ticks", func(p *model) bool {
		for i := range 3 {
			p.increase(0, p.handle(i%2))
			p.commit()
		}
		return true
	}}
	for _, s := range []struct {
		modelOptions
		deeper int
	}{
		{modelOptions{history: 2, historyDense: 1, record: true}, 1},
		{modelOptions{history: 4, historyDense: 1}, 0},
		{modelOptions{history: 3, historyDense: 2}, 0},
		{modelOptions{history: 8, historyDense: 1, historyBytes: 1500}, 0},
	} {
		t.Run(fmt.Sprint(s.history, s.historyDense), func(t *testing.T) {
			s.kinds, s.entities, s.members = []kind{listKind}, 2, 2
			back := operation{"rewind 3", func(p *model) bool { return p.rewind(3) }}
			oldest := operation{"seek oldest", func(p *model) bool { return p.seek(p.oracle.oldest()) }}
			explore(t, s.modelOptions, operations(several, back, oldest, removes(0, 1), writes(0, 1), ticks(), checkpoints(2)), *depth+s.deeper)
		})
	}
}

// The test compares Nearest with a search over all retained ticks, some of which are undone.
func TestHistoryNearest_SameAsSearch(t *testing.T) {
	t.Parallel()
	_, ok := NewWorld(Options{}).History().Nearest(0)
	assert.False(t, ok, "nothing is held")
	a := newThinnedWorld(t, 20, Options{History: 12, HistoryDense: 3})
	h := a.w.History()
	check := func() {
		t.Helper()
		held := slices.Collect(h.Ticks())
		for tick := range uint64(320) {
			want := slices.MinFunc(held, func(x, y uint64) int {
				return cmp.Compare(max(x, tick)-min(x, tick), max(y, tick)-min(y, tick))
			})
			got, ok := h.Nearest(tick)
			require.True(t, ok)
			require.Equal(t, want, got, "nearest to %d of %v", tick, held)
			require.NoError(t, h.Seek(got)) // Seek must not drop the later ticks.
		}
		far, ok := h.Nearest(math.MaxUint64)
		assert.True(t, ok)
		assert.Equal(t, h.Newest(), far)
	}
	for range 300 {
		a.tick()
	}
	check()
	require.NoError(t, h.Seek(h.Oldest()))
	check()
}

// The bytes of all ticks add up to the bytes of the history. The test includes undone ticks.
func TestHistoryTickBytes_AddUpToBytes(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{History: 12}, {History: 12, HistoryDense: 3}} {
		a := newThinnedWorld(t, 40, o)
		h := a.w.History()
		same := func() {
			t.Helper()
			sum, ticks := int64(0), 0
			for tick := range h.Ticks() {
				n := h.TickBytes(tick)
				if sum += n; n > 0 {
					ticks++
				}
			}
			assert.Equal(t, h.Bytes(), sum)
			assert.GreaterOrEqual(t, ticks, 12)
		}
		for i := range 200 {
			if a.tick(); i == 195 {
				a.w.Checkpoint() // TickBytes must include the bytes of checkpoints.
			}
		}
		same()
		held := slices.Collect(h.Ticks())
		for _, i := range []int{7, 2, 9, 0, 12} {
			require.NoError(t, h.Seek(held[i]))
			same()
		}
		a.tick() // A new tick drops the undone ticks.
		assert.Zero(t, h.TickBytes(held[0]+1_000_000), "not held")
	}
}
