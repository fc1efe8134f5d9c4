package ecs

import "unsafe"

// Memory is what a world holds, in bytes. It counts what the slices of the world
// have room for, not only what is in use. Not counted are: what components point
// to (strings, slices, maps), the runs that queries remember, masks of [NewMask],
// and headers of fixed size, some dozens of bytes for a log or a storage.
type Memory struct {
	Registry StorageMemory
	Storages []StorageMemory // As [World.Storages] returns them: resources last.
	Shared   int64           // The sparse array of all Indexed storages.
	Frames   int64           // The list of frames, with what each of them touched.
	Ops      int64           // Operations noted for a recorder.
	Scratch  int64           // Work space.
}

// StorageMemory is what a storage, a resource or the registry of entities holds,
// in bytes.
type StorageMemory struct {
	Name   string // "" for the registry.
	Sparse int64  // Entity index to row.
	Dense  int64  // Row to entity.
	Data   int64  // Row to component.
	Mask   int64  // Of a Masked or Ordered storage.
	Marks  int64  // Which rows are saved, and the order of rows that queries watch.
	Undo   int64  // Saved rows: the storage's part of [History.Bytes].
	Spare  int64  // Recycled memory that waits for rows to save.
}

// Total returns the sum of all parts.
func (m *Memory) Total() int64 {
	sum := m.Registry.Total() + m.Shared + m.Frames + m.Ops + m.Scratch
	for i := range m.Storages {
		sum += m.Storages[i].Total()
	}
	return sum
}

// Total returns the sum of all parts.
func (m *StorageMemory) Total() int64 {
	return m.Sparse + m.Dense + m.Data + m.Mask + m.Marks + m.Undo + m.Spare
}

// MemoryUsage returns what w holds. It costs O(storages, sparse pages, chunks of
// saved rows), whatever is in them.
func (w *World) MemoryUsage() Memory {
	m := Memory{
		Registry: w.entities.memory(),
		Shared:   room(w.identityPages) + pageMemory(w.identityPages),
		Scratch:  room(w.seen.words) + room(w.batch) + room(w.change.entities) + room(w.change.values),
	}
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			m.Storages = append(m.Storages, s.memory())
		}
	}
	for _, list := range [2][]frame{w.frames, w.forward} {
		m.Frames += room(list)
		for _, f := range list[:cap(list)] { // Those behind the last one keep their slices.
			m.Frames += room(f.touched)
			m.Ops += room(f.ops)
		}
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
	r.dense.addTo(&m, &m.Dense)
	return m
}

func (s *Storage[T]) memory() StorageMemory {
	m := StorageMemory{Name: s.name, Marks: room(s.order)}
	switch s.set.kind {
	case Indexed: // Its sparse array is the world's.
	case Hashed:
		m.Sparse = room(s.sparse.pages) + room(s.shared) + pageMemory(s.shared)
	default:
		s.sparse.addTo(&m)
	}
	if s.mask != nil {
		s.mask.addTo(&m)
	}
	s.dense.addTo(&m, &m.Dense)
	s.data.addTo(&m, &m.Data)
	return m
}

func (r *Resource[T]) memory() StorageMemory {
	m := StorageMemory{Name: r.name}
	r.data.addTo(&m, &m.Data)
	return m
}

// addTo adds what c holds to m, its rows to live.
func (c *column[T]) addTo(m *StorageMemory, live *int64) {
	*live += room(c.live)
	m.Marks += room(c.marks)
	c.undoStack.addTo(m)
}

// pageMemory returns what pages take whose marks are not used.
func pageMemory(pages []*sparsePage) int64 {
	return int64(len(pages)) * int64(unsafe.Sizeof(sparsePage{}))
}

func (m *Mask) addTo(sum *StorageMemory) {
	sum.Mask += room(m.pages)
	m.words.addTo(sum, &sum.Mask)
	m.upper.addTo(sum, &sum.Mask)
}

func (s *sparseArray) addTo(m *StorageMemory) {
	m.Sparse += room(s.pages)
	for _, p := range s.pages {
		if p != nil {
			m.Sparse += int64(unsafe.Sizeof(p.rows))
			m.Marks += int64(unsafe.Sizeof(p.marks))
		}
	}
	s.undoStack.addTo(m)
}

func (u *undoStack[T]) addTo(m *StorageMemory) {
	for _, list := range [2][]*undoLog[T]{u.logs, u.forward} {
		for _, l := range list {
			for _, c := range l.chunks {
				m.Undo += c.bytes()
			}
		}
	}
	for _, list := range [2][]*chunk[T]{u.spares, u.bare} {
		for _, c := range list {
			m.Spare += c.bytes()
		}
	}
}
