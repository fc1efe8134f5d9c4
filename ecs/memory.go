package ecs

import (
	"iter"
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// Memory is what a world holds, in bytes. It counts what the slices of the world
// have room for, not only what is in use. Not counted are: what components point
// to (strings, slices, maps), the runs that queries remember, masks of [World.NewMask],
// headers of some dozens of bytes for a log, the description of a component's type,
// and what the allocator rounds up, 1 KiB for a page of 17.
type Memory struct {
	Registry StorageMemory
	Storages []StorageMemory // As [World.Storages] returns them: resources last.
	Headers  int64           // What a storage or resource takes without a row: 1 KiB, and with a mask 2.
	Shared   int64           // The sparse array of all Indexed storages.
	Frames   int64           // The list of frames, with what each of them touched.
	Ops      int64           // Operations noted for a recorder.
	Scratch  int64           // Work space.

	// Checkpoints is how much of Undo was saved for checkpoints. [World.Checkpoints]
	// says for which.
	Checkpoints int64
}

// StorageMemory is what a storage, a resource or the registry of entities holds,
// in bytes.
type StorageMemory struct {
	Name   string // "" for the registry.
	Sparse int64  // Entity index to row.
	Dense  int64  // Row to entity.
	Data   int64  // Row to component.
	Mask   int64  // Of a Masked or Ordered storage.
	Stamps int64  // By row: when it was saved; of some rows: who moved last, for queries.
	Undo   int64  // Saved rows: the storage's part of [History.Bytes].
	Spare  int64  // Recycled memory that waits for rows to save.

	Indexes int64 // Each [Index] of the storage: rows, lists and, about, the map of keys.
}

// Total returns the sum of all parts.
func (m *Memory) Total() int64 {
	sum := m.Registry.Total() + m.Headers + m.Shared + m.Frames + m.Ops + m.Scratch
	for i := range m.Storages {
		sum += m.Storages[i].Total()
	}
	return sum
}

// Total returns the sum of all parts.
func (m *StorageMemory) Total() int64 {
	return m.Sparse + m.Dense + m.Data + m.Mask + m.Stamps + m.Undo + m.Spare + m.Indexes
}

// Checkpoints iterates over the checkpoints that are held, oldest first. A program that
// takes more and more memory may have forgotten to release some: give them names. The
// world must not change meanwhile.
func (w *World) Checkpoints() iter.Seq[Checkpoint] {
	return func(yield func(Checkpoint) bool) {
		for i := range w.frames {
			if f := &w.frames[i]; !f.removed && !f.tick && !yield(Checkpoint{w, f.ID}) {
				return
			}
		}
	}
}

// CheckpointAs is Checkpoint with a name that says to people what it is for:
// [World.Checkpoints] shows it. Names need not differ.
func (w *World) CheckpointAs(name string) Checkpoint {
	cp := w.Checkpoint()
	w.frames[len(w.frames)-1].name = name
	return cp
}

// Name returns the name that [World.CheckpointAs] gave cp; "" if there is none, or cp is
// not valid.
func (cp Checkpoint) Name() string {
	if f := cp.frame(); f != nil {
		return f.name
	}
	return ""
}

// Tick returns the tick that the world was at when cp was made; 0 if cp is not valid.
func (cp Checkpoint) Tick() uint64 {
	if f := cp.frame(); f != nil {
		return f.at
	}
	return 0
}

// Bytes returns how many bytes were saved between cp and the next checkpoint or end of
// a tick that is held: a part of [History.Bytes]. It costs O(storages written since).
func (cp Checkpoint) Bytes() (n int64) {
	if f := cp.frame(); f != nil {
		n = f.saved()
	}
	return n
}

// TickBytes returns how many bytes are held for what was written between the end of tick and
// that of the next tick held: what it costs to have tick to go to, a part of
// [History.Bytes]. It is 0 for a tick that is not held. It costs O(ticks held, storages
// written).
func (h History) TickBytes(tick uint64) (n int64) {
	w := h.w
	if k := w.lastBoundary(tick); k >= 0 && w.frames[k].held() {
		n = w.frames[k].saved()
		for k = w.younger(k); k < len(w.frames) && !w.frames[k].tick; k = w.younger(k) {
			n += w.frames[k].saved()
		}
	}
	for i, begin := len(w.forward)-1, w.tick; i >= 0; i-- {
		if begin == tick {
			n += w.forward[i].saved()
		}
		begin = w.forward[i].at
	}
	return n
}

// saved returns how many bytes were saved in f.
func (f *frame) saved() (n int64) {
	for _, t := range f.Touched {
		n += t.SavedIn(f.ID)
	}
	return n
}

// room returns what k takes.
func (k *ranking[V]) room() int64 { return room(k.rows) + room(k.half) }

// memory returns what l, which may be nil, takes.
func (l *listing) memory() (n int64) {
	if l == nil {
		return 0
	}
	for _, rows := range l.rows {
		n += room(rows)
	}
	return n + int64(unsafe.Sizeof(*l))
}

// MemoryUsage returns what w holds. It costs O(storages, sparse pages, chunks of
// saved rows), whatever is in them.
func (w *World) MemoryUsage() Memory {
	m := Memory{
		Registry: w.entities.memory(),
		Shared:   room(w.identityPages) + pageMemory(w.identityPages),
		Scratch:  w.clock.Seen.Bytes() + room(w.batch) + room(w.hands) + w.finding.memory() + w.change.memory(),
	}
	for _, s := range w.sets {
		if s.sorting != nil {
			m.Scratch += s.sorting.room()
		}
	}
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			of, header := s.(interface {
				memory() (StorageMemory, uintptr)
			}).memory()
			m.Storages, m.Headers = append(m.Storages, of), m.Headers+int64(header)
		}
	}
	for _, list := range [2][]frame{w.frames, w.forward} {
		m.Frames += room(list)
		for _, f := range list {
			m.Frames += room(f.Touched)
			m.Ops += room(f.ops)
		}
	}
	m.Frames += room(w.lists)
	for _, l := range w.lists {
		m.Frames += room(l.touched)
		m.Ops += room(l.ops)
	}
	for cp := range w.Checkpoints() {
		m.Checkpoints += cp.Bytes()
	}
	return m
}

// room returns how many bytes the elements of s take when it is full.
func room[T any](s []T) int64 {
	var zero T
	return int64(cap(s)) * int64(unsafe.Sizeof(zero))
}

func (r *registry) memory() (m StorageMemory) {
	m.Sparse = room(r.sparse)
	addColumn(&m, &r.dense, &m.Dense)
	return m
}

// memory returns what s holds, and the size of s itself.
func (s *Storage[T]) memory() (m StorageMemory, header uintptr) {
	m, header = StorageMemory{Name: s.name, Stamps: room(s.ring)}, unsafe.Sizeof(*s)
	for _, x := range s.indexes {
		m.Indexes += x.bytes()
	}
	switch s.set.kind {
	case Indexed: // Its sparse array is the world's.
	case Hashed:
		m.Sparse = room(s.sparse.Pages) + room(s.shared) + pageMemory(s.shared)
	default:
		pages, rest := s.sparse.Memory()
		m.Sparse = pages
		m.add(rest)
	}
	if s.mask != nil {
		s.mask.addTo(&m)
		header += unsafe.Sizeof(*s.mask)
	}
	addColumn(&m, &s.dense, &m.Dense)
	addColumn(&m, &s.data, &m.Data)
	return m, header
}

func (r *Resource[T]) memory() (m StorageMemory, header uintptr) {
	m.Name = r.name
	addColumn(&m, &r.data, &m.Data)
	return m, unsafe.Sizeof(*r)
}

// addColumn adds what c holds to m, its rows to live.
func addColumn[T any](m *StorageMemory, c *track.Column[T], live *int64) {
	*live += c.Bytes()
	m.add(c.Log.Memory())
}

func (m *StorageMemory) add(column track.Memory) {
	m.Stamps += column.Marks
	m.Undo += column.Undo
	m.Spare += column.Spare
}

// pageMemory returns what pages take whose entries are not saved.
func pageMemory(pages []*track.Page) int64 {
	return int64(len(pages)) * int64(unsafe.Sizeof(track.Page{}))
}

// memory returns what c takes beside the frames.
func (c *change) memory() int64 {
	return room(c.Entities.Rows) + room(c.Storages) + room(c.entities) + room(c.values) + room(c.ops)
}

func (m *Mask) addTo(sum *StorageMemory) {
	sum.Mask += room(m.pages)
	addColumn(sum, &m.words.Column, &sum.Mask)
	addColumn(sum, &m.upper.Column, &sum.Mask)
}

// Shrink gives memory back that w does not need at present: room for rows that are not
// there, and what is recycled from tick to tick. [World.MemoryUsage] says how much w
// takes before and after. What a checkpoint, the history or a pin needs stays, so less
// is given back while they are held.
//
// It changes nothing that can be asked of w otherwise. It costs O(rows) for the
// storages that have room to give back, and the ticks that follow allocate again what
// they need, so it is for the end of a level rather than of a tick. Pointers and slices
// that were given out before are no longer valid, as after a Checkpoint.
func (w *World) Shrink() {
	w.verify()
	w.entities.shrink()
	for i, s := range w.sets {
		if s.mask != nil {
			s.mask.rows.Shrink()
			s.mask.pages = track.Fitting(s.mask.pages)
		}
		s.ring, s.sorting = nil, nil
		s.forget()
		w.storages[i].tracked().Shrink()
		w.storages[i].(interface{ shrunkTo() }).shrunkTo()
		if s.rows.Untouched() && !s.special {
			s.dropPages()
		}
	}
	for _, r := range w.resources {
		r.tracked().Shrink()
	}
	w.squeeze()
	w.frames, w.forward = track.Fitting(w.frames), track.Fitting(w.forward)
	w.lists, w.from, w.used, w.batch, w.change = nil, nil, nil, nil, change{}
	w.change.init(w)
	w.clock.Seen.Shrink()
	w.renew()
}

func (r *registry) shrink() {
	r.rows.Shrink()
	r.sparse = track.Fitting(r.sparse[:len(r.dense.Live)])
}

// shrunkTo notes how many rows are left.
func (s *Storage[T]) shrunkTo() { s.top = min(s.top, len(s.data.Live)) }

// dropPages forgets the pages of indices that no member has. Nothing else must need
// them.
func (s *set) dropPages() {
	needed := make([]bool, len(s.sparse.Pages))
	for _, e := range s.dense.Live[:s.rows.N] {
		needed[e.Index()>>pageBits] = true
	}
	last := 0
	for p := range needed {
		if needed[p] {
			last = p + 1
		} else {
			s.sparse.Pages[p] = nil
		}
	}
	s.sparse.Pages = track.Fitting(s.sparse.Pages[:last])
	s.w.paged++
}
