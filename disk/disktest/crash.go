package disktest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
)

// Crash returns the tree after a crash that loses all unsynced changes. m itself continues
// unchanged.
func (m *Mem) Crash() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return after(fmt.Sprintf("crash before call %d, synced bytes only", m.calls), m.durable,
		func(f *inode) []byte { return f.share().disk })
}

// CrashSeed returns the tree after a crash that loses some of the unsynced changes. The seed
// selects which ones.
func (m *Mem) CrashSeed(seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := crasher{rand.New(rand.NewPCG(seed, 0x5eed))}
	return after(fmt.Sprintf("crash before call %d, seed %d", m.calls, seed), c.names(m), c.content)
}

// Clone returns a Mem with the same bytes, all of them durable. This is the tree after a process
// ended without a crash of the system.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return after("clone of "+m.origin, m.names, func(f *inode) []byte { return f.share().cache })
}

// after returns a new Mem with the given files, all of them durable. The function content returns
// the bytes of a file. A file is dropped if its directory is missing.
func after(origin string, names map[string]*inode, content func(*inode) []byte) *Mem {
	m := New()
	m.origin = origin
	// A directory is sorted before its contents.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		switch {
		case !m.isDir(path.Dir(name)):
		case f.dir:
			m.names[name] = &inode{name: name, dir: true}
			m.durable[name] = m.names[name]
		default:
			m.put(name, content(f))
		}
	}
	return m
}

// share prepares f so that another Mem can use the same bytes: each of the two copies the bytes
// before it writes.
func (f *inode) share() *inode {
	f.cache, f.disk, f.kept = slices.Clip(f.cache), slices.Clip(f.disk), true
	return f
}

// A crasher chooses at random what survives a crash.
type crasher struct{ *rand.Rand }

// names returns the durable names with a random subset of the unsynced name changes.
func (c crasher) names(m *Mem) map[string]*inode {
	names := maps.Clone(m.durable)
	for _, change := range m.pending {
		if c.IntN(2) == 0 {
			change.apply(names)
		}
	}
	return names
}

// content returns the bytes of f after the crash. It chooses at random which unsynced bytes
// survive, and where the file ends.
func (c crasher) content(f *inode) []byte {
	sectors := f.unsynced()
	if len(sectors) == 0 {
		return f.share().disk
	}
	data := slices.Clone(f.disk)
	for _, sector := range sectors {
		data = c.sector(f, data, sector)
	}
	if len(data) > len(f.disk) && c.IntN(4) == 0 {
		data = data[:len(f.disk)+c.IntN(len(data)-len(f.disk))]
	}
	return data
}

// sector returns data with the new contents of one sector: the old bytes, the new bytes, or a
// prefix of the new bytes. If nothing in the sector was durable, garbage and zeros are possible,
// too.
func (c crasher) sector(f *inode, data []byte, sector int) []byte {
	start := sector * sectorSize
	end := min(start+sectorSize, len(f.cache))
	fresh := start >= len(f.disk)
	kind := c.IntN(5)
	if kind == 0 || !fresh && kind >= 3 {
		return data
	}
	if len(data) < end {
		data = append(data, make([]byte, end-len(data))...)
	}
	switch kind {
	case 1:
		copy(data[start:end], f.cache[start:end])
	case 2:
		copy(data[start:start+c.IntN(end-start)], f.cache[start:end])
	case 3:
		for i := start; i < end; i++ {
			data[i] = byte(c.Uint32())
		}
	}
	return data
}

// unsynced returns the sectors whose bytes a crash may lose, in order.
func (f *inode) unsynced() []int {
	var sectors []int
	for sector := range f.dirty {
		sectors = append(sectors, sector)
	}
	for sector := range f.lost {
		if !f.dirty[sector] {
			sectors = append(sectors, sector)
		}
	}
	slices.Sort(sectors)
	return sectors
}

// Fork returns a copy of m with the same synced and unsynced bytes. The copy goes on counting calls
// from the same number. So a test can let m crash first and the copy at a later call. The failures
// and the OnCall function are not copied.
func (m *Mem) Fork() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	fork := New()
	fork.origin, fork.calls, fork.changes = m.origin, m.calls, m.changes
	copies := map[*inode]*inode{}
	again := func(f *inode) *inode {
		if f != nil && copies[f] == nil {
			f.share()
			c := *f
			c.dirty, c.lost, c.lock = maps.Clone(f.dirty), maps.Clone(f.lost), nil
			copies[f] = &c
		}
		return copies[f]
	}
	for name, f := range m.names {
		fork.names[name] = again(f)
	}
	for name, f := range m.durable {
		fork.durable[name] = again(f)
	}
	for _, c := range m.pending {
		fork.pending = append(fork.pending, nameChange{c.from, c.to, again(c.file)})
	}
	return fork
}
