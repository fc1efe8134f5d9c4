package ecs

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/internal/digest"
)

// A pinned is a pin together with the data that it must read.
type pinned struct {
	*rawPin
	tick     uint64
	gone     bool // Set if the world went back to a state from before the pin.
	registry []byte
	lengths  track.Lengths
	storages []raw.Storage
	entities [][]byte
	rows     [][]byte
	begins   [][]int // For each storage, the offset of each row in rows.
	// For each storage, the number of rows that will not be read again. The key -1 stands for the
	// registry.
	done map[int]int
}

func pin(w *World) (*pinned, error) {
	p, err := w.Raw().Pin()
	if err != nil {
		return nil, err
	}
	rows, alive, free := w.Raw().Registry()
	d := &pinned{rawPin: p.(*rawPin), tick: w.Tick(), registry: digest.AppendEntities(nil, rows), lengths: track.Lengths{N: alive, Extra: free, Total: len(rows)}, done: map[int]int{}}
	for _, s := range w.Raw().Storages() {
		if s.Rewinds() && s.Layout() != nil {
			d.storages = append(d.storages, s)
			d.entities = append(d.entities, digest.AppendEntities(nil, s.Entities()))
			var rows []byte
			begins := []int{0}
			for row := range s.Rows() {
				rows = s.AppendRows(rows, row, row+1)
				begins = append(begins, len(rows))
			}
			d.rows, d.begins = append(d.rows, rows), append(d.begins, begins)
		}
	}
	return d, nil
}

// check compares the data that the pin reads with the expected data. It reads step rows at a time.
func (d *pinned) check(step int) {
	if got := d.Valid(); got == d.gone {
		failf("Valid() = %v, gone: %v", got, d.gone)
	}
	if d.gone {
		return
	}
	alive, free, total := d.Registry()
	if got := (track.Lengths{N: alive, Extra: free, Total: total}); got != d.lengths {
		failf("pinned at tick %d: lengths %v, want %v", d.tick, got, d.lengths)
	}
	var entities []byte
	for lo := d.done[-1]; lo < total; lo += step {
		d.Stage(nil, lo, min(lo+step, total))
		entities = d.AppendEntities(entities, lo, min(lo+step, total))
	}
	if string(entities) != string(d.registry[8*d.done[-1]:]) {
		failf("pinned at tick %d: registry\n%v, want\n%v", d.tick, entities, d.registry)
	}
	for i, s := range d.storages {
		var entities, rows []byte
		for lo := d.done[i]; lo < d.Len(s); lo += step {
			hi := min(lo+step, d.Len(s))
			d.Stage(s, lo, hi)
			for ; lo < hi; lo++ {
				entities, rows = d.AppendEntities(entities, lo, lo+1), d.AppendRows(rows, lo, lo+1)
			}
			lo -= step
		}
		// For a resource, this is empty.
		wantEntities := d.entities[i][min(8*d.done[i], len(d.entities[i])):]
		wantRows := d.rows[i][d.begins[i][d.done[i]]:]
		if string(entities) != string(wantEntities) || string(rows) != string(wantRows) {
			failf("pinned at tick %d: %s from row %d\n%.1000v\n%.1000v, want\n%.1000v\n%.1000v", d.tick, s.Name(), d.done[i], entities, rows, wantEntities, wantRows)
		}
	}
}

// A pinProgram is a program that uses up to three pins.
type pinProgram struct {
	programRunner
	pins []*pinned
}

func (r *pinProgram) pin() {
	d, err := pin(r.w)
	switch {
	case (err == nil) != (r.w.newestBoundary() >= 0 && !r.w.Raw().Dirty()):
		failf("Pin() = %v, dirty: %v", err, r.w.Raw().Dirty())
	case err != nil && !errors.Is(err, raw.ErrDirty):
		failf("Pin() = %v", err)
	case err == nil && len(r.pins) < 3:
		r.pins = append(r.pins, d)
	case err == nil:
		d.Release()
	}
}

func (r *pinProgram) release(arg int) {
	if len(r.pins) > 0 {
		k := arg % len(r.pins)
		r.pins[k].Release()
		if r.pins[k].Valid() {
			failf("a pin that was released is valid")
		}
		r.pins = slices.Delete(r.pins, k, k+1)
	}
}

// finish marks all rows of the registry or of a storage as read.
func (r *pinProgram) finish(arg int) {
	if len(r.pins) == 0 {
		return
	}
	d := r.pins[arg%len(r.pins)]
	d.read(arg/len(r.pins)%(len(d.storages)+1)-1, never)
}

// read marks the first remaining rows of storage i as read. It marks the given number of groups of
// 4096 rows, or all rows if fewer remain. Storage -1 is the registry.
func (d *pinned) read(i int, groups uint64) {
	s, rows := raw.Storage(nil), d.lengths.Total
	if i >= 0 {
		s, rows = d.storages[i], len(d.begins[i])-1
	}
	to := rows
	if left := (rows - d.done[i]) / 4096; groups <= uint64(left) {
		to = d.done[i] + int(groups)*4096
	}
	d.Done(s, d.done[i], to)
	d.done[i] = to
}

// wentBack marks the pins that a restore to frame id, or to a tick, makes invalid.
func (r *pinProgram) wentBack(id, tick uint64) {
	for _, d := range r.pins {
		d.gone = d.gone || d.id > id || d.tick > tick
	}
}

const never = ^uint64(0)

func (r *pinProgram) restore(arg int) {
	if k := r.checkpointAt(arg % 3); k >= 0 {
		r.wentBack(r.oracle.frames[k].cp.id, never)
		r.programRunner.restore(arg % 3)
	}
}

func (r *pinProgram) seek(tick uint64) {
	if r.programRunner.seek(tick) {
		r.wentBack(never, tick)
	}
}

func (r *pinProgram) step(what, arg int) {
	switch {
	case what < structural:
		steps[what](&r.programRunner, arg)
	case what < structural+4:
		r.commit()
	case what < structural+6:
		r.pin()
	case what == structural+6:
		r.release(arg)
	case what == structural+7:
		r.checkpoint()
	case what == structural+8:
		r.restore(arg)
	case what == structural+9:
		r.programRunner.release(arg % 3)
	case what == structural+10:
		r.seek(r.oracle.tick - min(r.oracle.tick, uint64(arg%4)))
	case what == structural+11:
		r.seek(r.oracle.tick + uint64(arg%4))
	case what == structural+12:
		r.tryStep(arg)
	case what == structural+13:
		r.finish(arg)
	case arg%4 == 0:
		if r.checkpointAt(0) < 0 {
			r.wentBack(0, never)
			r.restart(arg / 4 % 4)
		}
	}
}

const pinSteps = structural + 15

// runPins is like run, for programs with pins.
func (p program) runPins(step int) (err error) {
	defer catch(&err)
	shape := int(p[0])
	r := pinProgram{programRunner: programRunner{steps: steps, model: newModel(modelOptions{
		kinds: programKinds, resources: 3, events: true, history: shape % 4, record: shape>>2&1 == 1,
		keepTick: shape>>3&1 == 1, maxGeneration: 3, entities: 8, members: 5,
	})}}
	for p = p[1:]; len(p) >= 2; p = p[2:] {
		r.rest = p[2:]
		r.step(int(p[0])%pinSteps, int(p[1]))
		if err := r.w.check(); err != nil {
			failf("%v", err)
		}
		for _, d := range r.pins {
			// Check only sometimes, because a check also copies the saved rows to the pin.
			if p[1]%4 == 0 || len(p) < 4 {
				d.check(step)
			}
		}
	}
	r.check()
	return nil
}

func TestPin_RandomPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := program(rapid.SliceOfN(rapid.Byte(), 100, 500).Draw(t, "program"))
		if err := p.runPins(rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "step")); err != nil {
			t.Fatal(err)
		}
	})
}

type pinPoint struct{ X, Y float64 }

func TestPin_MemoryAfterRelease(t *testing.T) {
	w := NewWorld(Options{})
	s := MustRegister[pinPoint](w)
	require.NoError(t, w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0))
	for range 1000 {
		s.Set(w.Create(), pinPoint{})
	}
	w.Commit()
	p, err := w.Raw().Pin()
	require.NoError(t, err)
	for range 50 {
		for _, e := range s.Entities() {
			s.Mut(e).X++
		}
		w.Commit()
	}
	require.Less(t, w.clock.Bytes(), int64(5*1000*16), "rows are kept once, not once a tick")
	p.Release()
	w.Commit()
	w.Commit()
	require.Less(t, w.clock.Bytes(), int64(1000))
}

func TestPin_MemoryAfterRead(t *testing.T) {
	w := NewWorld(Options{})
	read, left := MustRegister[pinPoint](w), MustRegister[pinMark](w)
	require.NoError(t, w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0))
	for range 10_000 {
		e := w.Create()
		read.Set(e, pinPoint{})
		left.Set(e, pinMark{})
	}
	w.Commit()
	a, err := pin(w)
	require.NoError(t, err)
	b, err := pin(w)
	require.NoError(t, err)
	held := func() int64 {
		for i := range read.MutValues() {
			read.MutValues()[i].X++
		}
		left.MutValues()[0].N++
		w.Commit() // In this commit, the pins copy the saved rows.
		for i := range read.MutValues() {
			read.MutValues()[i].X++
		}
		return w.clock.Bytes()
	}
	const rows = 10_000 * int64(unsafe.Sizeof(pinPoint{}))
	require.Greater(t, held(), rows, "two pins have not read it")
	a.read(0, never)
	w.Commit()
	require.Greater(t, held(), rows, "one pin has not read it")
	b.read(0, 2)
	w.Commit()
	require.Greater(t, held(), rows, "one pin has not read some of it")
	b.read(0, never)
	w.Commit()
	require.Less(t, held(), rows/10)
	a.check(1000)
	b.check(1000)
}

type pinMark struct{ N int }

// A pin copies saved rows into chunks of memory. One chunk can contain rows from several groups of
// 4096 rows.
func TestPin_ChunkHasRowsOfManyGroups(t *testing.T) {
	for seed := range uint64(deep.Or(4, 60)) {
		if err := runGroupPins(t, seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func runGroupPins(t *testing.T, seed uint64) (err error) {
	defer catch(&err)
	rng := rand.New(rand.NewPCG(seed, 1))
	w := NewWorld(Options{})
	points := MustRegister[pinPoint](w)
	lists := MustRegister(w, Component[[]int]{Name: "List", Clone: slices.Clone[[]int]})
	require.NoError(t, w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 0 }), 0))
	var entities []Entity
	for i := range 15_000 + rng.IntN(3000) {
		e := w.Create()
		entities = append(entities, e)
		points.Set(e, pinPoint{float64(i), 0})
		lists.Set(e, []int{i})
	}
	w.Commit()
	var pins []*pinned
	for range 30 {
		switch rng.IntN(6) {
		case 0:
			for i, p := range points.MutValues() {
				points.MutValues()[i] = pinPoint{p.X, p.Y + 1}
			}
		case 1:
			at := rng.IntN(len(entities))
			// Start at the row that one of the pins reads next.
			if len(pins) > 0 && rng.IntN(2) == 0 {
				at = min(pins[rng.IntN(len(pins))].done[0], len(entities)-1)
			}
			for _, e := range entities[at:min(at+rng.IntN(6000), len(entities))] {
				points.Mut(e).Y--
				(*lists.Mut(e))[0]++
			}
		case 2:
			for range 500 {
				k := rng.IntN(len(entities))
				w.Destroy(entities[k])
				entities[k] = w.Create()
				lists.Set(entities[k], []int{k, k})
				points.Set(entities[k], pinPoint{})
			}
		default:
			for range rng.IntN(3000) {
				e := entities[rng.IntN(len(entities))]
				points.Mut(e).X++
				*lists.Mut(e) = []int{rng.Int()}
			}
		}
		w.Commit()
		if len(pins) < 3 && rng.IntN(4) == 0 {
			p, err := pin(w)
			require.NoError(t, err)
			pins = append(pins, p)
		}
		for i, p := range pins {
			if p.read(rng.IntN(3)-1, rng.Uint64N(3)); rng.IntN(3) == 0 {
				p.check(1 + rng.IntN(9000))
			}
			if rng.IntN(20) == 0 {
				p.Release()
				pins = slices.Delete(pins, i, i+1)
				break
			}
		}
	}
	for _, p := range pins {
		p.check(4096)
	}
	return nil
}

func TestPin_UncommittedChangesError(t *testing.T) {
	w := NewWorld(Options{})
	_, err := w.Raw().Pin()
	require.ErrorIs(t, err, raw.ErrDirty, "a world that keeps no ticks")
	w = NewWorld(Options{History: 1})
	w.Create()
	_, err = w.Raw().Pin()
	require.ErrorIs(t, err, raw.ErrDirty)
	w.Commit()
	cp := w.Checkpoint()
	p, err := w.Raw().Pin()
	require.NoError(t, err)
	require.True(t, p.Valid())
	w.Create()
	_, err = w.Raw().Pin()
	require.ErrorIs(t, err, raw.ErrDirty)
	w.Restore(cp)
	require.True(t, p.Valid())
}

func TestPin_CreatedAfterRewind(t *testing.T) {
	w := NewWorld(Options{History: 5})
	s := MustRegister[pinPoint](w)
	e := w.Create()
	s.Set(e, pinPoint{1, 1})
	w.Commit()
	*s.Mut(e) = pinPoint{2, 2}
	w.Commit()
	require.NoError(t, w.History().Rewind(1))
	d, err := pin(w)
	require.NoError(t, err)
	require.NoError(t, w.History().Seek(2))
	d.check(1)
}

func TestPin_WritesToRestoredRows(t *testing.T) {
	w := NewWorld(Options{History: 4})
	s := MustRegister(w, Component[[]int]{Name: "List", Clone: slices.Clone[[]int]})
	e := w.Create()
	s.Set(e, []int{1, 2, 3})
	w.Commit()
	p, err := pin(w)
	require.NoError(t, err)
	(*s.Mut(e))[0] = 10
	w.Commit()
	// The rewind makes the saved row the live row.
	require.NoError(t, w.History().Rewind(1))
	(*s.Mut(e))[1] = 20
	p.check(1)
	w.Commit()
	p.check(1)
}
