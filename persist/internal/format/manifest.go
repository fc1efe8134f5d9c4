package format

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
)

// The formats of a manifest. A manifest is written in the oldest format that can hold its contents.
const (
	saveManifest    = 1 // Without time and name, so that equal worlds have equal saves.
	storeManifest   = 2 // With time and name.
	featureManifest = 3 // Also lists the features that the file uses.
	// Has pages of fewer than minPageRows rows, because the rows are very large. Older programs do
	// not accept such pages.
	largeManifest = 4
)

// A Feature names an addition to the first two manifest formats that the file uses. The features
// that this program supports are fields of [Manifest].
type Feature struct {
	Name     string
	Required bool // A program without support for the feature must refuse the file.
}

// A Manifest is the first page of a snapshot file. It describes the state and how its arrays are
// split into pages. Encode writes a msgpack array in one of four formats, whose number comes first;
// "…" stands for the values of the first format:
//
//	[1, world, number, identity, tick, schema, digest, alive, free, total, components, files]
//	[2, …, files, time, name]
//	[3, …, files, time, name, features]
//	[4, …, files, time, name, features]
//
// A component is [rows, rows in a page]. A file is [number, checksum]. A feature is [name,
// required].
type Manifest struct {
	World  [16]byte   // Zero in a save.
	Number uint32     // Number of the file. 0 means a save.
	ID     journal.ID // ID of the state.
	Tick   uint64
	Schema *Schema
	Digest ecs.Digest

	Alive, Free, Total int
	Components         []ComponentSize // In the order of component numbers.
	Files              []FileRef       // Other files with pages of this snapshot.

	Time time.Time // Commit time of the tick. Zero if unknown.
	Name string    // Name that the program gave the snapshot, or "".

	// Required features that the file uses.
	Repeats    bool // Pages may repeat pages of other columns.
	Compressed bool // Pages may be compressed.

	Features []Feature // Optional features of a later version.
}

// The name of an optional feature can hold a text: the name is one of these prefixes, and then the
// text.
const (
	buildFeature = "build: " // The program and the machine that wrote the file.
	noteFeature  = "note: "  // The note of a slot.
)

// MaxNote is the maximum size of a note in bytes.
const MaxNote = 4096

// CheckNote returns an error if a slot cannot have the note.
func CheckNote(note string) error {
	switch {
	case len(note) > MaxNote:
		return fmt.Errorf("%w: a note of %d bytes, at most %d are possible", ErrName, len(note), MaxNote)
	case !utf8.ValidString(note):
		return fmt.Errorf("%w: a note that is not valid UTF-8", ErrName)
	}
	return nil
}

// SetNote adds the note of a slot to m. An empty note adds nothing.
func (m *Manifest) SetNote(note string) {
	if note != "" {
		m.Features = append(m.Features, Feature{Name: noteFeature + note})
	}
}

// Note returns the text of SetNote, or "".
func (m *Manifest) Note() string {
	for _, f := range m.Features {
		if text, ok := strings.CutPrefix(f.Name, noteFeature); ok && CheckNote(text) == nil {
			return text
		}
	}
	return ""
}

// SetBuild adds the writing program and machine to m as an optional feature.
func (m *Manifest) SetBuild(text string) {
	m.Features = append(m.Features, Feature{Name: buildFeature + text})
}

// Build returns the text of SetBuild, or "" if it is unknown.
func (m *Manifest) Build() string {
	for _, f := range m.Features {
		if text, ok := strings.CutPrefix(f.Name, buildFeature); ok && build.Check(text) == nil {
			return text
		}
	}
	return ""
}

// known maps the name of each required feature that this program supports to its field in m.
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

// format returns the oldest format that can hold m, so that older programs can read it.
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

// manifestLen returns the number of values in a manifest of this format.
func manifestLen(format uint64) int {
	switch format {
	case featureManifest, largeManifest:
		return 15
	case storeManifest:
		return 14
	}
	return 12
}

// A ComponentSize is the number of rows that a component has, in total and in a page.
type ComponentSize struct{ Rows, PageRows int }

// A FileRef names another snapshot file with shared pages, and its checksum.
type FileRef struct {
	Number uint32
	CRC    uint32 // Checksum of the file: [pagefile.Info.CRC].
}

// Encode returns the encoding of m. Equal manifests have equal encodings.
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

// nanoseconds returns the nanoseconds from 1970 to t, or 0 for the zero time.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// DecodeManifest decodes the output of [Manifest.Encode].
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
	// A program that does not support a required feature may misread the other values. So a missing
	// feature is reported before any other error, if the bytes are a manifest at all.
	err := d.end()
	for _, f := range m.Features {
		if err == nil && f.Required {
			return nil, fmt.Errorf("%w: it needs the feature %q, which this program does not support", ErrNewer, f.Name)
		}
	}
	if err == nil { // Even the format of the schema may be unknown before.
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

// Room returns how many bytes of state can be in files of this total size. If pages may be
// compressed, that is more than the size. Readers allocate at most that many bytes, whatever sizes
// a manifest claims.
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
