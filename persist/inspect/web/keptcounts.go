package web

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A keptCounts is a cache directory with a file of counts per world; "" means no cache. If a file
// is missing, damaged, of another version or of another store, the ticks are counted again. These
// are the parts of a file, with their sizes in bytes:
//
//	head       magic 7, version 1, world 16, seq of the first tick 8
//	per tick   checksum 4, rows 4, inputs 4
//	end        CRC-32C 4
type keptCounts string

const (
	countsMagic   = "STETROW\x01"
	countsHead    = len(countsMagic) + 16 + 8
	countedSize   = 12
	countsSuffix  = ".rows"
	maxCountsFile = countsHead + countedSize*maxCounted + 4
	maxCountsDir  = 256 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// append appends the encoding of c to b.
func (c *counts) append(b []byte) []byte {
	le, start := binary.LittleEndian, len(b)
	b = slices.Grow(b, countsHead+countedSize*len(c.ticks)+4)
	b = le.AppendUint64(append(append(b, countsMagic...), c.world[:]...), c.begin)
	for _, t := range c.ticks {
		b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, t.sum), t.written), t.inputs)
	}
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// decodeCounts decodes b. ok is false if b is invalid. The length of b is checked before memory
// for the ticks is allocated.
func decodeCounts(b []byte) (c counts, ok bool) {
	le, n := binary.LittleEndian, len(b)-countsHead-4
	if n < 0 || n%countedSize != 0 || n/countedSize > maxCounted || string(b[:len(countsMagic)]) != countsMagic ||
		crc32.Checksum(b[:len(b)-4], castagnoli) != le.Uint32(b[len(b)-4:]) {
		return counts{}, false
	}
	c = counts{[16]byte(b[len(countsMagic):]), le.Uint64(b[countsHead-8:]), make([]counted, n/countedSize)}
	for i := range c.ticks {
		t := b[countsHead+countedSize*i:]
		c.ticks[i] = counted{le.Uint32(t), le.Uint32(t[4:]), le.Uint32(t[8:])}
	}
	return c, true
}

// file returns the file name for a world. Two copies of a store have the same world, so they share
// a file. If the ticks of the two copies differ, matchLog removes the counts of the other copy.
func (k keptCounts) file(world [16]byte) string {
	return filepath.Join(string(k), hex.EncodeToString(world[:])+countsSuffix)
}

// read returns the stored counts of a world.
func (k keptCounts) read(world [16]byte) counts {
	if k == "" || world == [16]byte{} {
		return counts{}
	}
	name := k.file(world)
	// Any program may have written the file, so check its size before reading it.
	if at, err := os.Stat(name); err != nil || at.Size() > int64(maxCountsFile) {
		return counts{}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return counts{}
	}
	c, ok := decodeCounts(b)
	if !ok || c.world != world {
		return counts{}
	}
	now := time.Now()
	// Mark the file as recently used, because prune() removes the least recently used file first.
	_ = os.Chtimes(name, now, now)
	return c
}

// write stores c, and ignores errors. It writes a new file and renames it, so a reader finds either
// the old or the new file. The file is not synced. If a crash damages the file, its checksum is
// wrong. prune() also removes unfinished files.
func (k keptCounts) write(c *counts) {
	if k == "" || c.world == [16]byte{} || os.MkdirAll(string(k), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(string(k), "*"+countsSuffix)
	if err != nil {
		return
	}
	_, err = f.Write(c.append(nil))
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), k.file(c.world))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	k.prune(maxCountsDir)
}

// prune removes the least recently used files with counts until the others have at most the given
// number of bytes. It leaves other kinds of files alone.
func (k keptCounts) prune(most int64) {
	entries, err := os.ReadDir(string(k))
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), countsSuffix) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, f := range files {
		if most -= f.Size(); most < 0 {
			_ = os.Remove(filepath.Join(string(k), f.Name()))
		}
	}
}
