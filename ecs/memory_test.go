package ecs

import (
	"runtime"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// This test is not parallel, because it measures the heap of the process.
func TestMemoryUsage_MatchesHeap(t *testing.T) {
	if debug {
		t.Skip("a debug build remembers all rows once more")
	}
	before := heap()
	w := NewWorld(Options{History: 3})
	a, b := MustRegister[plain](w), MustRegister[padded](w)
	entities := w.CreateN(nil, 200_000)
	a.SetAll(entities, plain{})
	b.SetAll(entities[:100_000], padded{})
	for range 3 {
		w.Commit()
		a.SetAll(entities, plain{})
		for i := 0; i < len(entities); i += 2 {
			b.Remove(entities[i])
		}
		b.SetAll(entities[:100_000], padded{})
	}
	grown := heap() - before - room(entities)
	m := w.MemoryUsage()
	if got := m.Total(); got < grown*9/10 || got > grown*11/10 {
		t.Errorf("MemoryUsage() = %+v, in all %d, the heap grew by %d", m, got, grown)
	}
	runtime.KeepAlive(w)
	runtime.KeepAlive(entities)
}

func TestMemoryUsage_CountsEachPart(t *testing.T) {
	w := NewWorld(Options{})
	a := MustRegister[plain](w)
	tags := MustRegister[label](w)
	Must(RegisterResource(w, list{}, Component[list]{Name: "list", Clone: cloneList}))
	a.data.Live, a.dense.Live = make([]plain, 0, 100), make([]Entity, 0, 50)
	tags.sparse.Grow(track.PageSize)
	m := w.MemoryUsage()
	want := []StorageMemory{
		{Name: "plain", Data: 800, Dense: 400},
		{Name: "label", Sparse: 4*track.PageSize + room(tags.sparse.Pages), Stamps: 16 * track.PageSize / 64},
		{Name: "list", Data: room(make([]list, 1))},
	}
	for i := range want {
		if m.Storages[i] != want[i] {
			t.Errorf("MemoryUsage().Storages[%d] = %+v, want %+v", i, m.Storages[i], want[i])
		}
	}
	before := m.Total()
	w.entities.sparse = make([]uint32, 0, 10)
	w.entities.dense.Live = make([]Entity, 0, 10)
	w.batch = make([]Entity, 0, 10)
	// Adds 16 words of 64 rows each.
	w.clock.Seen.Add(track.Run{N: 16 * 64}, func(uint32, uint32) {})
	w.change.values, w.change.entities = make([]raw.Range, 0, 10), make([]raw.Range, 0, 10)
	a.ring = make([]Entity, 0, 10)
	// Reopen allocates one mark for each 64 rows, so each column gets ten marks.
	for _, t := range []*track.Tracker{&a.rows, &w.entities.rows} {
		t.Protect(track.Lengths{N: 10 * 64})
		t.Reopen()
	}
	w.frames = make([]frame, 0, 1)
	w.lists = []frameLists{{touched: make([]*track.Tracker, 0, 10), ops: make([]raw.Op, 0, 10)}}
	m = w.MemoryUsage()
	if got, want := m.Total()-before, 40+80+160+160+room(w.change.values)+room(w.change.entities)+128+160+160+
		room(w.frames)+room(w.lists)+room(w.lists[0].ops)+room(w.lists[0].touched); got != want {
		t.Errorf("Total() grew by %d, want %d", got, want)
	}
}

// The field Undo equals History.Bytes at any time.
func TestMemoryUsage_UndoEqualsHistoryBytes(t *testing.T) {
	w := newWorldPair(1, Options{History: 3})
	checkAtEnd(t, w.worlds[0])
	spare := int64(0)
	for round := range 60 {
		w.step(round)
		switch round % 7 {
		case 1, 3:
			w.worlds[0].Commit()
		case 5:
			cp := w.worlds[0].Checkpoint()
			w.plains[0].RemoveAll(w.pick())
			w.worlds[0].Restore(cp)
			w.worlds[0].Release(cp)
		case 6:
			_ = w.worlds[0].History().Rewind(1)
		}
		m := w.worlds[0].MemoryUsage()
		undo := m.Registry.Undo
		for _, s := range m.Storages {
			undo += s.Undo
			spare += s.Spare
		}
		if want := w.worlds[0].History().Bytes(); undo != want {
			t.Fatalf("round %d: Undo is %d, History().Bytes() = %d", round, undo, want)
		}
	}
	if spare == 0 {
		t.Error("no memory was ever spare")
	}
}

// This test is not parallel, because it measures the heap of the process.
func TestMemoryUsage_CountsSharedPages(t *testing.T) {
	step := 1001
	if debug {
		// A debug build allocates memory for its checks, which MemoryUsage does not count. With
		// more rows, this memory is a small part of the heap.
		step = 101
	}
	for name, c := range map[string]Component[plain]{
		"hashed":  {Kind: Hashed},
		"indexed": {Kind: Indexed},
		"ordered": {Kind: Ordered},
		"masked":  {Masked: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(Options{})
			entities := w.CreateN(nil, 400_000)
			rest := w.MemoryUsage()
			before := heap()
			for _, c.Name = range []string{"a", "b", "c"} {
				s := MustRegister(w, c)
				for i := 0; i < len(entities); i += step {
					s.Set(entities[i], plain{})
				}
			}
			grown := heap() - before
			runtime.KeepAlive(entities)
			m := w.MemoryUsage()
			if got := m.Total() - rest.Total(); got < grown*9/10 || got > grown*11/10 {
				t.Errorf("MemoryUsage() = %+v, %d more than before, the heap grew by %d", m, got, grown)
			}
			runtime.KeepAlive(w)
		})
	}
}

// MemoryUsage counts the scratch space of sorts, and the operations that are stored for a recorder.
func TestMemoryUsage_CountsSortAndOps(t *testing.T) {
	w := NewWorld(Options{History: 4})
	s := MustRegister[plain](w)
	all := w.CreateN(nil, 2000)
	for i, e := range all {
		s.Set(e, plain{X: int32(-i)})
	}
	w.Commit()
	before := w.MemoryUsage()
	s.SortFunc(func(a, b plain) int { return int(a.X - b.X) })
	if after := w.MemoryUsage(); after.Scratch < before.Scratch+4*int64(len(all)) {
		t.Errorf("%d bytes of scratch space after a sort of %d rows, %d before it", after.Scratch, len(all), before.Scratch)
	}
	seq := uint64(0)
	if err := w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { seq++; return seq }), 0); err != nil {
		t.Fatal(err)
	}
	// Check the open tick, and then the frame after a checkpoint.
	for range 2 {
		before = w.MemoryUsage()
		for _, e := range all[:500] {
			s.Remove(e)
			s.Set(e, plain{})
		}
		if after := w.MemoryUsage(); after.Ops < before.Ops+1000 {
			t.Errorf("%d bytes of operations after 1000 of them, %d before", after.Ops, before.Ops)
		}
		w.Checkpoint()
	}
}
