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

// The first value of a tick's payload.
const (
	tickFormat = 1
	notedTick  = 2 // It has marks or inputs.
	editedTick = 3 // It gives rows by edits.
)

// A TickEncoder writes the payload of a journal record, part by part in their order:
// Begin, Registry, Storages and each Storage, the operations, End. It keeps its buffers;
// in the steady state it allocates nothing.
//
//	payload   [format, parent, tick, time, registry, storages, operations]; in place of
//	          the operations of a noted or edited tick: [operations, marks, inputs]
//	parent    [epoch, seq, crc]
//	registry  nil, or [alive, free, total, ranges, rows]
//	storage   [number, rows before, rows, entity ranges, entities, value ranges, values]; in
//	          an edited tick with two more: edit ranges, edits
//
// Ranges are a bin of varints: rows skipped since the last range, rows in it. Rows 2 to 4 and 9 are
// 2 3 4 1.
type TickEncoder struct {
	*Encoder
	scratch []byte // Ranges, which stand behind their length.
	cut     rangeCutter
	given   []raw.Range // Rows that are encoded whole, not as edits.
	form    uint64
	Ops     opEncoder   // Told of operations at any time between Begin and End.
	Sum     journal.Sum // Of what is encoded and will stay as it is.
}

// NewTickEncoder returns an encoder whose buffers are empty.
func NewTickEncoder() *TickEncoder { return &TickEncoder{Encoder: NewEncoder()} }

// Begin begins a payload behind what is in buf, in the oldest format that holds it: noted says
// whether notes follow the operations, edited whether rows are given by edits. Both must be known
// now, since the format stands first.
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

// CheckTime returns an error unless a tick can keep t: it has nanoseconds since 1970, of 64
// bits.
func CheckTime(t time.Time) error {
	if ns := t.UnixNano(); !time.Unix(0, ns).Equal(t) {
		return fmt.Errorf("a tick at %s: the clock of a store shows times from %d to %d", t.UTC().Format(time.RFC3339),
			time.Unix(0, math.MinInt64).UTC().Year()+1, time.Unix(0, math.MaxInt64).UTC().Year()-1)
	}
	return nil
}

// End writes the operations, which come last, and the notes of a noted tick. The
// payload is valid until the next Begin. It lies in what Begin was given, unless that was too small.
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

// encodeID writes the identity of a record.
func encodeID(e *Encoder, id journal.ID) {
	e.array(3)
	e.Uint(id.Epoch)
	e.Uint(id.Seq)
	e.Uint(uint64(id.CRC))
}

// id reads the identity of a record.
func (d *decoder) id() journal.ID {
	d.array(3)
	return journal.ID{Epoch: d.uint(), Seq: d.uint(), CRC: d.uint32("crc")}
}

// Registry writes what changed in the registry, whose rows are those given.
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

// Storages says how many storages follow.
func (t *TickEncoder) Storages(n int) { t.array(n) }

// Storage writes what changed in a storage or resource, which has that number, and returns how
// many bytes the rows take that it gives whole. The edited ones are among those that changed;
// nil: there are none.
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

// isEdited returns 1 for the format in which storages have edits, else 0: how often two more values
// follow.
func isEdited(form uint64) int {
	if form == editedTick {
		return 1
	}
	return 0
}

// without returns ranges without those of out, which lie in them. Both ascend, and so does what is
// left. It is valid until the next call.
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

// values writes the values in ranges of rows, and returns how many bytes they take. These stand
// behind their length, which is known before if rows have a fixed width.
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
	maxBinHead = 5 // The size of the longest head of a bin.

	// firstRows is how many rows whose width varies are encoded before their size is looked at.
	firstRows = 16
)

// varyingValues is values of rows whose width varies. They are encoded behind room for the longest head, and
// move down if it is shorter, which it is for less than 64 KiB.
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

// sumBytes is how much is encoded before it is summed: what the cache holds.
const sumBytes = 64 << 10

// pieces encodes the rows of ranges and sums every few of them: the sum that the journal
// wants of the payload then reads what the cache still has, not all of the tick again.
// Small ranges are encoded together, large ones are cut.
func (t *TickEncoder) pieces(s raw.Storage, ranges []raw.Range, rows int) {
	t.cut = rangeCutter{ranges: ranges}
	for piece := t.cut.next(rows); piece != nil; piece = t.cut.next(rows) {
		t.Buf = s.AppendRanges(t.Buf, piece)
		t.Sum.Add(t.Buf)
	}
}

// A rangeCutter cuts ranges into pieces of a few rows.
type rangeCutter struct {
	ranges []raw.Range
	taken  int // Rows of the first of ranges that were in pieces before.
	piece  [1]raw.Range
}

// next returns the next piece, of at most that many rows: several ranges, or a part of one. It is valid until
// the next call; nil: there is none.
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

// CountRows returns how many rows lie in ranges. Those that were decoded are apart from
// each other, so that it is no more than the rows there are.
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
	Ops      []byte // See [EachOp], which finds what is wrong with them.
	Marks    []string
	Inputs   []Input

	RegistrySize, OpsSize int // Bytes of the payload, for those who tell what takes how much.
}

// A RegistryPatch is what a tick says of the registry of entities: its sizes after the
// tick, and the rows that hold another entity than before it.
type RegistryPatch struct {
	Alive, Free, Total int         // Rows [0, Alive) are alive, [Alive, Free) free, the rest retired.
	Ranges             []raw.Range // Ascending, apart from each other, below Total.
	Rows               []byte      // The entities in them, of 8 bytes each.
}

// CheckSizes returns what is wrong with the sizes of a registry.
func CheckSizes(alive, free, total int) error {
	if alive > free || free > total {
		return fmt.Errorf("%d alive, %d with free ones, %d in all", alive, free, total)
	}
	return nil
}

// A StoragePatch is what a tick says of a storage or resource. Entities and values are
// told apart from each other: a row that was written keeps its entity, and one that was
// given to another entity may keep its value.
type StoragePatch struct {
	Number        int         // In the schema.
	Before, After int         // Rows, gaps included.
	EntityRanges  []raw.Range // Ascending, apart from each other, below After; none for a resource.
	Entities      []byte      // Of 8 bytes each.
	ValueRanges   []raw.Range // As EntityRanges.
	Values        []byte      // In the format of package layout, end to end.
	EditRanges    []raw.Range // Rows that were there, and keep their entity: apart from the ranges above.
	Edits         []byte      // What their values are by what they were: see [AppendEdited].
	Size          int         // Bytes of the payload.
}

// maxRows bounds what a payload or snapshot may claim: entity indices are 32
// bits.
const maxRows = 1<<32 - 1

// DecodeTick reads a payload. All that can be told from its bytes alone is checked:
// formats, lengths, ranges, names, and that no older format holds as much, so that every tick is in
// one format. Whether it fits the state that it continues, its rows
// the layouts and its operations the rows is for whoever applies it: package image.
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
	t.Storages = make([]StoragePatch, 0, min(storages, 64)) // As many as there usually are, whatever the payload claims.
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

// storage reads what a tick of that format says of a storage into p.
func (d *decoder) storage(p *StoragePatch, form uint64) {
	start := len(d.src)
	d.array(7 + 2*isEdited(form))
	p.Number = d.count("component number", MaxComponents)
	p.Before = d.count("rows before", maxRows)
	p.After = d.count("rows", maxRows)
	p.EntityRanges, p.Entities = d.ranges(p.After), d.bin()
	p.ValueRanges, p.Values = d.ranges(p.After), d.bin()
	if form == editedTick {
		p.EditRanges = d.ranges(min(p.Before, p.After)) // Of rows that were there, and still are.
		p.Edits = d.edits(CountRows(p.EditRanges))
		if overlap(p.EditRanges, p.EntityRanges) || overlap(p.EditRanges, p.ValueRanges) {
			d.fail("a row is edited and given")
		}
	}
	p.Size = start - len(d.src)
}

// overlap reports whether a row is in both of two lists of ascending ranges.
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

// ranges reads ascending, disjoint ranges of rows below n: each is written as what it skips since the
// one before, so that they cannot overlap. None is empty, though they may touch.
func (d *decoder) ranges(n int) (ranges []raw.Range) {
	v := varints{src: d.bin()}
	ranges = make([]raw.Range, 0, v.count()/2)
	src, next := v.src, 0 // In variables of its own: a tick may have thousands.
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

// Reparented appends to buf the payload of a tick that continues another state: all but
// the parent is copied, byte by byte, whatever it says. The parent stands near the beginning, so
// nothing behind it is decoded.
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
