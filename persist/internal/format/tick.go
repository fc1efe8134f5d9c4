package format

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/grow"
	"github.com/stet-ecs/stet/journal"
)

// The format of a tick: the first value of its payload.
const (
	tickFormat = 1
	notedTick  = 2 // The tick has marks or inputs.
	editedTick = 3 // The tick has rows stored as edits.
)

// A TickEncoder writes the payload of a journal record. Its methods are called in the order of the
// parts: Begin, Registry, Storages and each Storage, the operations, End. It reuses its buffers, so
// it allocates nothing in the steady state.
//
//	payload   [format, parent, tick, time, registry, storages, operations]
//	          The last value of a noted or edited tick is [operations, marks, inputs].
//	parent    [epoch, seq, crc]
//	registry  nil, or [alive, free, total, ranges, rows]
//	storage   [number, rows before, rows, entity ranges, entities, value ranges, values]
//	          A storage in an edited tick has two more values: edit ranges, edits.
//
// Ranges are a bin of varints: rows skipped since the last range, rows in it. For example, rows
// 2 to 4 and row 9 are encoded as 2 3 4 1.
type TickEncoder struct {
	*Encoder
	scratch []byte // Encoded ranges. Their length is written first.
	cut     rangeCutter
	given   []raw.Range // Rows that are encoded as whole values, not as edits.
	form    uint64
	Ops     opEncoder   // The caller may add operations from Begin to End.
	Sum     journal.Sum // Checksum of the encoded bytes that no longer change.
}

// NewTickEncoder returns an encoder with empty buffers.
func NewTickEncoder() *TickEncoder { return &TickEncoder{Encoder: NewEncoder()} }

// Begin begins a payload after the bytes in buf. The parameter noted says whether the tick has
// notes, and edited whether rows are stored as edits. The format, which is written first, depends
// on both: it is the oldest one that can hold the tick.
func (t *TickEncoder) Begin(buf []byte, noted, edited bool, parent journal.ID, tick uint64, now time.Time) {
	t.Buf, t.Sum = buf, journal.Sum{}
	t.Ops.begin()
	t.array(7)
	switch t.form = tickFormat; {
	case edited:
		t.form = editedTick
	case noted:
		t.form = notedTick
	}
	t.Uint(t.form)
	encodeID(t.Encoder, parent)
	t.Uint(tick)
	t.int(now.UnixNano())
}

// CheckTime returns an error if a tick cannot store t. A tick stores nanoseconds since 1970 in 64
// bits.
func CheckTime(t time.Time) error {
	if ns := t.UnixNano(); !time.Unix(0, ns).Equal(t) {
		return fmt.Errorf("a tick at %s: the clock of a store shows times from %d to %d", t.UTC().Format(time.RFC3339),
			time.Unix(0, math.MinInt64).UTC().Year()+1, time.Unix(0, math.MaxInt64).UTC().Year()-1)
	}
	return nil
}

// End writes the operations, and the notes of a noted tick. The payload is valid until the next
// Begin. It is in the buffer passed to Begin, or in a new buffer if that buffer was too small.
func (t *TickEncoder) End(n *Notes) []byte {
	if t.form > tickFormat {
		t.array(3)
	}
	t.bin(t.Ops.end())
	if t.form > tickFormat {
		n.encode(t.Encoder)
	}
	buf := t.Buf
	t.Buf, t.scratch = nil, grow.Keep(t.scratch)
	return buf
}

// encodeID writes the ID of a record.
func encodeID(e *Encoder, id journal.ID) {
	e.array(3)
	e.Uint(id.Epoch)
	e.Uint(id.Seq)
	e.Uint(uint64(id.CRC))
}

// id reads the ID of a record.
func (d *decoder) id() journal.ID {
	d.array(3)
	return journal.ID{Epoch: d.uint(), Seq: d.uint(), CRC: d.uint32("crc")}
}

// Registry writes the changes of the registry. rows are all rows of the registry.
func (t *TickEncoder) Registry(c raw.EntityChange, rows []ecs.Entity) {
	if !c.Changed {
		t.nil()
		return
	}
	t.array(5)
	t.Uint(uint64(c.Alive))
	t.Uint(uint64(c.Free))
	t.Uint(uint64(c.Total))
	t.ranges(c.Rows)
	t.entities(rows, c.Rows)
}

// Storages writes the number of storages that follow.
func (t *TickEncoder) Storages(n int) { t.array(n) }

// Storage writes the changes of the storage or resource that has this component number. edited has
// the changed rows that are stored as edits, or is nil. Storage returns the size in bytes of the
// rows that are stored as whole values.
func (t *TickEncoder) Storage(number int, c raw.StorageChange, edited *EditedRows) (size int) {
	t.array(7 + 2*isEdited(t.form))
	t.Uint(uint64(number))
	t.Uint(uint64(c.Before))
	t.Uint(uint64(c.Storage.Rows()))
	t.ranges(c.Entities)
	t.entities(raw.As[ecs.Entity](c.Storage.Entities()), c.Entities)
	values := c.Values
	if edited != nil {
		values = t.without(values, edited.Ranges)
	}
	t.ranges(values)
	size = t.values(c.Storage, values)
	if t.form < editedTick {
		return size
	}
	if edited == nil {
		edited = new(EditedRows)
	}
	t.ranges(edited.Ranges)
	t.bin(edited.Edits)
	return size
}

// isEdited returns 1 if form is the format of an edited tick, otherwise 0. With 1, each storage has
// one more pair of values, for its edits.
func isEdited(form uint64) int {
	if form == editedTick {
		return 1
	}
	return 0
}

// without returns ranges without the rows in the parameter out, which is a subset of ranges. All
// lists are ascending. The result is valid until the next call.
func (t *TickEncoder) without(ranges, out []raw.Range) []raw.Range {
	t.given = t.given[:0]
	for _, r := range ranges {
		for len(out) > 0 && out[0].First < r.First+r.N {
			if n := out[0].First - r.First; n > 0 {
				t.given = append(t.given, raw.Range{First: r.First, N: n})
			}
			behind := out[0].First + out[0].N
			r, out = raw.Range{First: behind, N: r.First + r.N - behind}, out[1:]
		}
		if r.N > 0 {
			t.given = append(t.given, r)
		}
	}
	return t.given
}

// ranges writes ranges of rows as a bin of varints.
func (t *TickEncoder) ranges(ranges []raw.Range) {
	t.scratch = t.scratch[:0]
	next := 0
	for _, r := range ranges {
		t.scratch = binary.AppendUvarint(t.scratch, uint64(r.First-next))
		t.scratch = binary.AppendUvarint(t.scratch, uint64(r.N))
		next = r.First + r.N
	}
	t.bin(t.scratch)
}

// entities writes the entities in ranges of rows.
func (t *TickEncoder) entities(rows []ecs.Entity, ranges []raw.Range) {
	t.binLen(8 * CountRows(ranges))
	for _, r := range ranges {
		t.Buf = digest.AppendEntities(t.Buf, rows[r.First:r.First+r.N])
	}
}

// values writes the values in ranges of rows and returns their size in bytes. The size precedes the
// values. For rows of fixed width, the size is known in advance.
func (t *TickEncoder) values(s raw.Storage, ranges []raw.Range) (size int) {
	if width := s.Layout().Width(); width >= 0 {
		n := width * CountRows(ranges)
		t.binLen(n)
		t.Buf = slices.Grow(t.Buf, n)
		t.pieces(s, ranges, max(1, sumBytes/max(1, width)))
		return n
	}
	return t.varyingValues(s, ranges)
}

const (
	maxBinHead = 5 // Maximum size of a bin head, in bytes.

	// firstRows is the number of rows of varying width that are encoded before their size is
	// estimated.
	firstRows = 16
)

// varyingValues implements values for rows of varying width. The head, which precedes the rows,
// contains their size. The size is known only after the rows are encoded. So varyingValues first
// leaves room for the longest head. If the rows have less than 64 KiB, the head is shorter, and
// varyingValues moves the rows.
func (t *TickEncoder) varyingValues(s raw.Storage, ranges []raw.Range) (size int) {
	head := len(t.Buf)
	start := head + maxBinHead
	t.Buf = append(t.Buf, make([]byte, maxBinHead)...)
	n, done, rows := CountRows(ranges), 0, firstRows
	t.cut = rangeCutter{ranges: ranges}
	for piece := t.cut.next(rows); piece != nil; piece = t.cut.next(rows) {
		t.Buf = s.AppendRanges(t.Buf, piece)
		done += CountRows(piece)
		t.Buf = grow.For(t.Buf, start, done, n)
		rows = max(1, min(grow.Elements, grow.Bytes/max(1, (len(t.Buf)-start)/done)))
	}
	buf := t.Buf
	size = len(buf) - start
	t.Buf = t.scratch[:0]
	t.binLen(size)
	behind := head + copy(buf[head:], t.Buf)
	if behind < start {
		buf = append(buf[:behind], buf[start:]...)
	}
	t.scratch, t.Buf = t.Buf, buf
	return size
}

// sumBytes is the number of encoded bytes between two checksum updates. They fit into the
// processor's cache.
const sumBytes = 64 << 10

// pieces encodes the rows of ranges in pieces and updates the checksum after each piece. So the
// checksum is computed while the bytes are still in the cache. Small ranges are encoded together,
// large ones are split.
func (t *TickEncoder) pieces(s raw.Storage, ranges []raw.Range, rows int) {
	t.cut = rangeCutter{ranges: ranges}
	for piece := t.cut.next(rows); piece != nil; piece = t.cut.next(rows) {
		t.Buf = s.AppendRanges(t.Buf, piece)
		t.Sum.Add(t.Buf)
	}
}

// A rangeCutter splits ranges into pieces of a few rows.
type rangeCutter struct {
	ranges []raw.Range
	taken  int // Number of rows of ranges[0] that next() has already returned.
	piece  [1]raw.Range
}

// next returns the next piece of at most this many rows: several ranges, or a part of a range. It
// returns nil at the end. The piece is valid until the next call.
func (c *rangeCutter) next(rows int) []raw.Range {
	if len(c.ranges) == 0 {
		return nil
	}
	if n, sum := 0, 0; c.taken == 0 {
		for n < len(c.ranges) && sum+c.ranges[n].N <= rows {
			sum += c.ranges[n].N
			n++
		}
		if n > 0 {
			piece := c.ranges[:n]
			c.ranges = c.ranges[n:]
			return piece
		}
	}
	r := c.ranges[0]
	n := min(rows, r.N-c.taken)
	c.piece[0] = raw.Range{First: r.First + c.taken, N: n}
	if c.taken += n; c.taken == r.N {
		c.ranges, c.taken = c.ranges[1:], 0
	}
	return c.piece[:]
}

// CountRows returns the number of rows in ranges. The ranges of a decoded tick are disjoint, so
// they have no more rows than the storage.
func CountRows(ranges []raw.Range) (n int) {
	for _, r := range ranges {
		n += r.N
	}
	return n
}

// A Tick is a decoded payload. Its bytes share memory with the payload.
type Tick struct {
	Parent   journal.ID
	Tick     uint64
	Time     time.Time
	Registry *RegistryPatch
	Storages []StoragePatch
	Ops      []byte // Encoded operations. [EachOp] decodes and checks them.
	Marks    []string
	Inputs   []Input

	RegistrySize, OpsSize int // Sizes of the registry and the operations in the payload, in bytes.
}

// A RegistryPatch contains the changes of the registry in a tick: its sizes after the tick, and the
// rows with a new entity.
type RegistryPatch struct {
	// Rows [0, Alive) are alive, rows [Alive, Free) are free, and rows [Free, Total) are retired.
	Alive, Free, Total int
	Ranges             []raw.Range // Ascending, disjoint, below Total.
	Rows               []byte      // The entities of Ranges, 8 bytes each.
}

// CheckSizes returns an error if the sizes of a registry contradict each other.
func CheckSizes(alive, free, total int) error {
	if alive > free || free > total {
		return fmt.Errorf("%d alive, %d with free ones, %d in all", alive, free, total)
	}
	return nil
}

// A StoragePatch contains the changes of a storage or resource in a tick. New entities and new
// values are in separate lists. A row with a new value may keep its entity. A row with a new entity
// may keep its value.
type StoragePatch struct {
	Number        int         // Number in the schema.
	Before, After int         // Number of rows before and after the tick, gaps included.
	EntityRanges  []raw.Range // Ascending, disjoint, below After. Empty for a resource.
	Entities      []byte      // The entities of EntityRanges, 8 bytes each.
	ValueRanges   []raw.Range // Ascending, disjoint, below After.
	Values        []byte      // The values of ValueRanges, in the format of package layout.
	// EditRanges are existing rows that keep their entity. They are disjoint from EntityRanges and
	// ValueRanges.
	EditRanges []raw.Range
	Edits      []byte // Changes relative to the old values: see [AppendEdited].
	Size       int    // Size in the payload, in bytes.
}

// maxRows is the maximum row count in a payload or snapshot. Entity indices have 32 bits.
const maxRows = 1<<32 - 1

// DecodeTick decodes a payload. It checks everything that depends on the payload alone: formats,
// lengths, ranges and names. It also checks that the format is the oldest one that can hold the
// tick. Package image checks the state, the layouts of the rows and the operations when it applies
// the tick.
func DecodeTick(payload []byte) (*Tick, error) {
	d := decoder{src: payload}
	d.array(7)
	f := d.uint()
	if d.err == nil && (f < tickFormat || f > editedTick) {
		return nil, fmt.Errorf("%w: tick format %d", ErrNewer, f)
	}
	t := &Tick{Parent: d.id(), Tick: d.uint(), Time: time.Unix(0, d.int()).UTC()}
	start := len(d.src)
	if !d.isNil() {
		d.array(5)
		p := RegistryPatch{
			Alive: d.count("alive", maxRows),
			Free:  d.count("free", maxRows),
			Total: d.count("total", maxRows),
		}
		p.Ranges, p.Rows = d.ranges(p.Total), d.bin()
		t.Registry, t.RegistrySize = &p, start-len(d.src)
	}
	edited, storages := false, d.arrayLen()
	// Allocate at most the usual number of storages, whatever number the payload claims.
	t.Storages = make([]StoragePatch, 0, min(storages, 64))
	for range storages {
		t.Storages = append(t.Storages, StoragePatch{})
		p := &t.Storages[len(t.Storages)-1]
		if d.storage(p, f); d.err != nil {
			break
		}
		edited = edited || len(p.EditRanges) > 0
	}
	if f == editedTick && !edited {
		d.fail("no row is edited")
	}
	if f > tickFormat {
		d.array(3)
	}
	start = len(d.src)
	t.Ops = d.bin()
	t.OpsSize = start - len(d.src)
	if f > tickFormat {
		t.Marks, t.Inputs = d.notes()
	}
	if f == notedTick && len(t.Marks)+len(t.Inputs) == 0 {
		d.fail("neither marks nor inputs")
	}
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("tick: %w", err)
	}
	return t, nil
}

// storage reads the changes of a storage into p. form is the format of the tick.
func (d *decoder) storage(p *StoragePatch, form uint64) {
	start := len(d.src)
	d.array(7 + 2*isEdited(form))
	p.Number = d.count("component number", MaxComponents)
	p.Before = d.count("rows before", maxRows)
	p.After = d.count("rows", maxRows)
	p.EntityRanges, p.Entities = d.ranges(p.After), d.bin()
	p.ValueRanges, p.Values = d.ranges(p.After), d.bin()
	if form == editedTick {
		// Only rows that exist before and after the tick can have edits.
		p.EditRanges = d.ranges(min(p.Before, p.After))
		p.Edits = d.edits(CountRows(p.EditRanges))
		if overlap(p.EditRanges, p.EntityRanges) || overlap(p.EditRanges, p.ValueRanges) {
			d.fail("a row has both edits and a value")
		}
	}
	p.Size = start - len(d.src)
}

// overlap reports whether two lists of ascending ranges have a common row.
func overlap(a, b []raw.Range) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].First+a[0].N <= b[0].First:
			a = a[1:]
		case b[0].First+b[0].N <= a[0].First:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}

// ranges reads ascending, disjoint, non-empty ranges of rows below n. Each range is stored relative
// to the end of the previous range. So ranges may be adjacent, but cannot overlap.
func (d *decoder) ranges(n int) (ranges []raw.Range) {
	v := varints{src: d.bin()}
	ranges = make([]raw.Range, 0, v.count()/2)
	src, next := v.src, 0 // Local variables are faster: a tick may have thousands of ranges.
	for len(src) > 0 {
		skip, n1 := uvarint(src)
		rows, n2 := uvarint(src[n1:])
		if n1 == 0 || n2 == 0 || skip > uint64(n-next) || rows > uint64(n-next)-skip || rows == 0 {
			d.fail("range of %d rows, %d after row %d, of %d", rows, skip, next, n)
			return nil
		}
		first := next + int(skip)
		ranges = append(ranges, raw.Range{First: first, N: int(rows)})
		next, src = first+int(rows), src[n1+n2:]
	}
	return ranges
}

// Reparented appends to buf the payload of a tick with another parent state. It copies all other
// bytes unchanged. The parent is near the beginning, so the bytes after it are not decoded.
func Reparented(buf, payload []byte, parent journal.ID) ([]byte, error) {
	d := decoder{src: payload}
	values, format := d.arrayLen(), d.uint()
	d.id()
	if d.err != nil {
		return nil, d.err
	}
	e := NewEncoder()
	e.Buf = buf
	e.array(values)
	e.Uint(format)
	encodeID(e, parent)
	return append(e.Buf, d.src...), nil
}
