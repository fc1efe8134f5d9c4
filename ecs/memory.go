package ecs

import (
	"unsafe"

	"github.com/stet-ecs/stet/ecs/internal/track"
)

// Memory is the memory that a world uses, in bytes. It includes the unused capacity of slices. It
// does not include:
//
//   - the strings, slices, maps and other memory that components point to
//   - the matches that queries cache, and the masks of [World.NewMask]
//   - the descriptions of component types, and small headers of logs
//   - the rounding of the allocator, such as 1 KiB for a sparse page of 17 KiB
type Memory struct {
	Registry StorageMemory
	Storages []StorageMemory // In the order of [World.Storages]: resources last.
	// Fixed cost: 1 KiB for each storage or resource, 2 KiB for a storage with a mask.
	Headers int64
	Shared  int64 // The sparse array of all Indexed storages.
	Frames  int64 // The frames, and the list of storages that each frame touched.
	Ops     int64 // Operations recorded for a recorder.
	Scratch int64 // Scratch buffers.

	// Checkpoints is the part of Undo that only checkpoints need. [World.Checkpoints] lists the
	// checkpoints.
	Checkpoints int64
}

// StorageMemory is the memory of a storage, a resource or the registry of entities, in bytes.
type StorageMemory struct {
	Name   string // "" for the registry.
	Sparse int64  // Maps entity indices to rows.
	Dense  int64  // Maps rows to entities.
	Data   int64  // Maps rows to components.
	Mask   int64  // The mask of a Masked or Ordered storage.
	// The marks that tell which rows are saved, and the list of changed entities for queries.
	Stamps int64
	Undo   int64 // Saved rows. [History.Bytes] includes them.
	Spare  int64 // Free memory for later saved rows.

	Indexes int64 // All indexes of the storage: rows, lists, and an estimate for the maps of keys.
}

// Total returns the sum of all fields except Checkpoints.
func (m Memory) Total() int64 {
	sum := m.Registry.Total() + m.Headers + m.Shared + m.Frames + m.Ops + m.Scratch
	for i := range m.Storages {
		sum += m.Storages[i].Total()
	}
	return sum
}

// Total returns the sum of all fields, in bytes.
func (m *StorageMemory) Total() int64 {
	return m.Sparse + m.Dense + m.Data + m.Mask + m.Stamps + m.Undo + m.Spare + m.Indexes
}

// room returns the size of the memory of k in bytes.
func (k *ranking[V]) room() int64 { return room(k.rows) + room(k.half) }

// memory returns the size of the memory of l in bytes. l may be nil.
func (l *listBuffer) memory() (n int64) {
	if l == nil {
		return 0
	}
	for _, rows := range l.rows {
		n += room(rows)
	}
	return n + int64(unsafe.Sizeof(*l))
}

// MemoryUsage returns the memory that w uses. The cost is O(storages, sparse pages, chunks of saved
// rows). It does not depend on the number of rows.
func (w *World) MemoryUsage() Memory {
	m := Memory{
		Registry: w.entities.memory(),
		Shared:   room(w.identityPages) + pageMemory(w.identityPages),
		Scratch:  w.clock.Seen.Bytes() + room(w.batch) + room(w.activeCursors) + w.finding.memory() + w.change.memory(),
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

// room returns the size of s in bytes, including unused capacity.
func room[T any](s []T) int64 {
	var zero T
	return int64(cap(s)) * int64(unsafe.Sizeof(zero))
}

func (r *registry) memory() (m StorageMemory) {
	m.Sparse = room(r.sparse)
	addColumn(&m, &r.dense, &m.Dense)
	return m
}

// memory returns the memory of s, and the size of its struct.
func (s *Storage[T]) memory() (m StorageMemory, header uintptr) {
	m, header = StorageMemory{Name: s.name, Stamps: room(s.ring)}, unsafe.Sizeof(*s)
	for _, x := range s.indexes {
		m.Indexes += x.bytes()
	}
	switch s.set.kind {
	case Indexed: // All Indexed storages share one sparse array.
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

// addColumn adds the memory of the column c: its log to m, and its rows to the sum in live.
func addColumn[T any](m *StorageMemory, c *track.Column[T], live *int64) {
	*live += c.Bytes()
	m.add(c.Log.Memory())
}

func (m *StorageMemory) add(column track.Memory) {
	m.Stamps += column.Marks
	m.Undo += column.Undo
	m.Spare += column.Spare
}

// pageMemory returns the size of the pages in bytes, without their undo logs.
func pageMemory(pages []*track.Page) int64 {
	return int64(len(pages)) * int64(unsafe.Sizeof(track.Page{}))
}

// memory returns the size of the buffers of c in bytes.
func (c *change) memory() int64 {
	return room(c.Entities.Rows) + room(c.Storages) + room(c.entities) + room(c.values) + room(c.ops)
}

func (m *Mask) addTo(sum *StorageMemory) {
	sum.Mask += room(m.pages)
	addColumn(sum, &m.words.Column, &sum.Mask)
	addColumn(sum, &m.upper.Column, &sum.Mask)
}

// Shrink frees memory that w does not need now: unused capacity, and buffers for later ticks.
// [World.MemoryUsage] shows the difference. Checkpoints, the history and pins keep the memory that
// they need.
//
// Shrink has no other visible effect. It costs O(rows) for each storage with unused capacity. The
// next ticks allocate some of the memory again, so call Shrink seldom, for example at the end of a
// level. Earlier pointers and slices are no longer valid.
func (w *World) Shrink() {
	w.verify()
	w.entities.shrink()
	for i, s := range w.sets {
		if s.mask != nil {
			s.mask.rows.Shrink()
			s.mask.pages = track.Fitting(s.mask.pages)
		}
		s.ring, s.sorting = nil, nil
		s.dropNotes()
		w.storages[i].tracked().Shrink()
		w.storages[i].(interface{ shrunkTo() }).shrunkTo()
		if s.rows.Untouched() && !s.special {
			s.dropPages()
		}
	}
	for _, r := range w.resources {
		r.tracked().Shrink()
	}
	w.compactFrames()
	w.frames, w.forward = track.Fitting(w.frames), track.Fitting(w.forward)
	w.lists, w.from, w.used, w.batch, w.change = nil, nil, nil, nil, change{}
	w.clock.Seen.Shrink()
	w.newSpan()
}

func (r *registry) shrink() {
	r.rows.Shrink()
	r.sparse = track.Fitting(r.sparse[:len(r.dense.Live)])
}

func (s *Storage[T]) shrunkTo() { s.top = min(s.top, len(s.data.Live)) }

// dropPages frees the sparse pages without members. No frame may need these pages.
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
