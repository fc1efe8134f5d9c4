package persist

import (
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

const (
	saveManifest  = 1 // Says nothing of when it was made, so that equal worlds have equal saves.
	storeManifest = 2 // Has a time and a name.
)

// A manifest is the first page of a snapshot file: what state it holds and how
// its pages are cut.
type manifest struct {
	world  [16]byte   // Zero in a save.
	number uint32     // Of the file; 0: a save.
	id     journal.ID // Of the state.
	tick   uint64
	schema *schema
	digest ecs.Digest

	alive, free, total int
	components         []componentSize // By number.
	files              []fileRef       // Those that references name.

	time time.Time // When its tick was committed; zero: not known.
	name string    // What the program calls it; "": nothing.
}

// format returns the oldest format that can hold m.
func (m *manifest) format() uint64 {
	if m.time.IsZero() && m.name == "" {
		return saveManifest
	}
	return storeManifest
}

// manifestLen returns how many values a manifest has.
func manifestLen(format uint64) int {
	if format == storeManifest {
		return 14
	}
	return 12
}

type componentSize struct{ rows, pageRows int }

type fileRef struct {
	number uint32
	crc    uint32 // Of the whole file, as [pagefile.Info] has it.
}

func (m *manifest) encode() []byte {
	e := newEncoder()
	format := m.format()
	e.array(manifestLen(format))
	e.uint(format)
	e.bin(m.world[:])
	e.uint(uint64(m.number))
	encodeID(e, m.id)
	e.uint(m.tick)
	e.bin(m.schema.encode())
	e.uint(uint64(m.digest))
	e.uint(uint64(m.alive))
	e.uint(uint64(m.free))
	e.uint(uint64(m.total))
	e.array(len(m.components))
	for _, c := range m.components {
		e.array(2)
		e.uint(uint64(c.rows))
		e.uint(uint64(c.pageRows))
	}
	e.array(len(m.files))
	for _, f := range m.files {
		e.array(2)
		e.uint(uint64(f.number))
		e.uint(uint64(f.crc))
	}
	if format == storeManifest {
		e.int(nanoseconds(m.time))
		e.string(m.name)
	}
	return e.buf
}

// nanoseconds returns t since 1970; 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func decodeManifest(src []byte) (*manifest, error) {
	d := decoder{src: src}
	values := d.arrayLen()
	format := d.uint()
	if d.err == nil && format != saveManifest && format != storeManifest {
		return nil, fmt.Errorf("%w: manifest format %d", ErrNewer, format)
	}
	if d.err == nil && values != manifestLen(format) {
		d.fail("manifest of %d values", values)
	}
	m := new(manifest)
	world := d.bin()
	if d.err == nil && len(world) != len(m.world) {
		d.fail("world id of %d bytes", len(world))
	}
	copy(m.world[:], world)
	m.number = uint32(d.count("file number", 1<<32-1))
	m.id = d.id()
	m.tick = d.uint()
	described := d.bin()
	m.digest = ecs.Digest(d.uint())
	m.alive = d.count("alive", maxRows)
	m.free = d.count("free", maxRows)
	m.total = d.count("total", maxRows)
	for range d.arrayLen() {
		d.array(2)
		c := componentSize{d.count("rows", maxRows), d.count("rows in a page", pageRows)}
		if d.err == nil && c.pageRows < minPageRows {
			d.fail("%d rows in a page", c.pageRows)
		}
		m.components = append(m.components, c)
	}
	for range d.arrayLen() {
		d.array(2)
		m.files = append(m.files, fileRef{uint32(d.count("file number", 1<<32-1)), uint32(d.count("file checksum", 1<<32-1))})
	}
	if format == storeManifest {
		if ns := d.int(); ns != 0 {
			m.time = time.Unix(0, ns).UTC()
		}
		m.name = d.string()
	}
	err := d.end()
	if err == nil {
		m.schema, err = decodeSchema(described)
	}
	if err == nil && len(m.components) != len(m.schema.components) {
		err = fmt.Errorf("%d components, %d in the schema", len(m.components), len(m.schema.components))
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// allRewind reports whether all components rewind.
func (m *manifest) allRewind() bool {
	return !slices.ContainsFunc(m.schema.components, func(c schemaEntry) bool { return !c.Rewinds })
}
