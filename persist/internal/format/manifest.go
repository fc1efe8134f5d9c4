package format

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
)

// The formats of a manifest. Which one is written follows from what it has to hold, not
// from who writes it.
const (
	saveManifest    = 1 // Says nothing of when it was made, so that equal worlds have equal saves.
	storeManifest   = 2 // Has a time and a name.
	featureManifest = 3 // Names what the file uses beyond that as well.
	largeManifest   = 4 // Has pages of fewer rows than older programs take, since more do not fit.
)

// A Feature is something that a file uses beyond the first two formats of a manifest. Those that
// this program knows are fields of [Manifest].
type Feature struct {
	Name     string
	Required bool // Who does not know it must not read on.
}

// A Manifest is the first page of a snapshot file: what state it holds and how
// its pages are cut.
//
//	[1, world, number, identity, tick, schema, digest, alive, free, total, components, files]
//	[2, …, files, time, name]
//	[3, …, files, time, name, features]
//	[4, …, files, time, name, features]
//
// Components are [rows, rows in a page], files [number, checksum], features [name, required].
type Manifest struct {
	World  [16]byte   // Zero in a save.
	Number uint32     // Of the file; 0: a save.
	ID     journal.ID // Of the state.
	Tick   uint64
	Schema *Schema
	Digest ecs.Digest

	Alive, Free, Total int
	Components         []ComponentSize // By number.
	Files              []FileRef       // Those that references name.

	Time time.Time // When its tick was committed; zero: not known.
	Name string    // What the program calls it; "": nothing.

	// Features that must be known.
	Repeats    bool // Pages repeat other columns'.
	Compressed bool // Pages may be compressed.

	Features []Feature // Those of a later version that need not be known.
}

// buildFeature begins the name of the feature that says which program wrote the file.
const buildFeature = "build: "

// SetBuild says in m, for those who care, which program on which machine writes the file.
func (m *Manifest) SetBuild(text string) {
	m.Features = append(m.Features, Feature{Name: buildFeature + text})
}

// Build returns what SetBuild said, or "" if that is unknown.
func (m *Manifest) Build() string {
	for _, f := range m.Features {
		if text, ok := strings.CutPrefix(f.Name, buildFeature); ok && build.Check(text) == nil {
			return text
		}
	}
	return ""
}

// known returns the features that must be known and that this program knows, by name: to be read and
// to be set.
func (m *Manifest) known() map[string]*bool {
	return map[string]*bool{"repeats": &m.Repeats, "zstd": &m.Compressed}
}

// features returns all features that m names.
func (m *Manifest) features() (all []Feature) {
	known := m.known()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if *known[name] {
			all = append(all, Feature{name, true})
		}
	}
	return append(all, m.Features...)
}

// format returns the oldest format that can hold m, so that programs of before read all they can.
func (m *Manifest) format() uint64 {
	if slices.ContainsFunc(m.Components, func(c ComponentSize) bool { return c.PageRows < minPageRows }) {
		return largeManifest
	}
	if m.Repeats || m.Compressed || len(m.Features) > 0 {
		return featureManifest
	}
	if m.Time.IsZero() && m.Name == "" {
		return saveManifest
	}
	return storeManifest
}

// manifestLen returns how many values a manifest of that format has.
func manifestLen(format uint64) int {
	switch format {
	case featureManifest, largeManifest:
		return 15
	case storeManifest:
		return 14
	}
	return 12
}

// A ComponentSize is how many rows a component has, and how many lie in a page.
type ComponentSize struct{ Rows, PageRows int }

// A FileRef names another snapshot file whose pages are shared, and its checksum.
type FileRef struct {
	Number uint32
	CRC    uint32 // Of the file, as [pagefile.Info] has it.
}

// Encode returns the canonical bytes of m.
func (m *Manifest) Encode() []byte {
	e := NewEncoder()
	format := m.format()
	e.array(manifestLen(format))
	e.Uint(format)
	e.bin(m.World[:])
	e.Uint(uint64(m.Number))
	encodeID(e, m.ID)
	e.Uint(m.Tick)
	e.bin(m.Schema.Encode())
	e.Uint(uint64(m.Digest))
	e.Uint(uint64(m.Alive))
	e.Uint(uint64(m.Free))
	e.Uint(uint64(m.Total))
	e.array(len(m.Components))
	for _, c := range m.Components {
		e.array(2)
		e.Uint(uint64(c.Rows))
		e.Uint(uint64(c.PageRows))
	}
	e.array(len(m.Files))
	for _, f := range m.Files {
		e.array(2)
		e.Uint(uint64(f.Number))
		e.Uint(uint64(f.CRC))
	}
	if format >= storeManifest {
		e.int(nanoseconds(m.Time))
		e.str(m.Name)
	}
	if format >= featureManifest {
		features := m.features()
		e.array(len(features))
		for _, f := range features {
			e.array(2)
			e.str(f.Name)
			e.bool(f.Required)
		}
	}
	return e.Buf
}

// nanoseconds returns t since 1970; 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// DecodeManifest reads what [Manifest.Encode] wrote.
func DecodeManifest(src []byte) (*Manifest, error) {
	d := decoder{src: src}
	values := d.arrayLen()
	format := d.uint()
	if d.err == nil && (format < saveManifest || format > largeManifest) {
		return nil, fmt.Errorf("%w: manifest format %d", ErrNewer, format)
	}
	if d.err == nil && values != manifestLen(format) {
		d.fail("manifest of %d values", values)
	}
	m := new(Manifest)
	world := d.bin()
	if d.err == nil && len(world) != len(m.World) {
		d.fail("world id of %d bytes", len(world))
	}
	copy(m.World[:], world)
	m.Number = d.uint32("file number")
	m.ID = d.id()
	m.Tick = d.uint()
	described := d.bin()
	m.Digest = ecs.Digest(d.uint())
	m.Alive = d.count("alive", maxRows)
	m.Free = d.count("free", maxRows)
	m.Total = d.count("total", maxRows)
	for range d.arrayLen() {
		d.array(2)
		c := ComponentSize{d.count("rows", maxRows), d.count("rows in a page", PageRows)}
		if d.err == nil && (c.PageRows == 0 || c.PageRows < minPageRows && format < largeManifest) {
			d.fail("%d rows in a page", c.PageRows)
		}
		m.Components = append(m.Components, c)
	}
	for range d.arrayLen() {
		d.array(2)
		m.Files = append(m.Files, FileRef{d.uint32("file number"), d.uint32("file checksum")})
	}
	if format >= storeManifest {
		if ns := d.int(); ns != 0 {
			m.Time = time.Unix(0, ns).UTC()
		}
		m.Name = d.str()
	}
	if format >= featureManifest {
		known := m.known()
		for range d.arrayLen() {
			d.array(2)
			if f := (Feature{d.str(), d.bool()}); f.Required && known[f.Name] != nil {
				*known[f.Name] = true
			} else {
				m.Features = append(m.Features, f)
			}
		}
	}
	// Who lacks a feature may misread the rest, so this comes before all other errors but one: that
	// the bytes are no manifest.
	err := d.end()
	for _, f := range m.Features {
		if err == nil && f.Required {
			return nil, fmt.Errorf("%w: it needs the feature %q, which this program does not know", ErrNewer, f.Name)
		}
	}
	if err == nil { // A schema can be of a later format than the manifest that has it.
		m.Schema, err = DecodeSchema(described)
	}
	if err == nil && len(m.Components) != len(m.Schema.Components) {
		err = fmt.Errorf("%d components, %d in the schema", len(m.Components), len(m.Schema.Components))
	}
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// Room returns how many bytes of state files of size bytes can hold at most, if m says truly whether
// their pages are compressed. What a manifest claims beyond is not allocated.
func (m *Manifest) Room(size int64) int64 {
	if m.Compressed {
		return mostShrunk * min(size, math.MaxInt64/mostShrunk)
	}
	return size
}

// AllRewind reports whether all components rewind.
func (m *Manifest) AllRewind() bool {
	return !slices.ContainsFunc(m.Schema.Components, func(c Entry) bool { return !c.Rewinds })
}
