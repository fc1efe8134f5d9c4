package persist

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/journal"
)

// The first value of a tick's payload.
const (
	tickFormat = 1
	notedTick  = 2 // It has marks or inputs.
)

// A tickEncoder turns what a tick changed into the payload of a journal record.
// It keeps its buffers; in the steady state it allocates nothing.
//
//	payload   [format, parent, tick, time, registry, storages, operations]; in place of
//	          the operations of a noted tick: [operations, marks, inputs]
//	parent    [epoch, seq, crc]
//	registry  nil, or [alive, free, total, ranges, rows]
//	storage   [number, rows before, rows, entity ranges, entities, value ranges, values]
//
// Ranges are a bin of varints: rows skipped since the last range, rows in it.
type tickEncoder struct {
	*encoder
	schema  *schema
	seq     uint64    // Of the record.
	whole   wholeList // What a tick may have to give though it did not change.
	scratch []byte
	rows    []ecs.Range
	piece   [1]ecs.Range
	ops     opEncoder
	notes   *notes      // Of the tick; nil: none.
	dirty   *dirty      // Told what changed; nil: nobody is.
	sum     journal.Sum // Of what is encoded and will stay as it is.
}

func newTickEncoder(s *schema) *tickEncoder {
	return &tickEncoder{encoder: newEncoder(), schema: s}
}

// encode appends the payload of c to buf.
func (t *tickEncoder) encode(buf []byte, c *ecs.Change, parent journal.ID, now time.Time) []byte {
	t.buf, t.sum = buf, journal.Sum{}
	t.array(7)
	t.uint(t.notes.format())
	encodeID(t.encoder, parent)
	t.uint(c.Tick)
	t.int(now.UnixNano())
	t.registry(c)
	t.storages(c)
	t.operations(c)
	buf, t.buf = t.buf, nil
	return buf
}

// operations encodes what was called and, if there is any, what was noted.
func (t *tickEncoder) operations(c *ecs.Change) {
	noted := !t.notes.none()
	if noted {
		t.array(3)
	}
	t.bin(t.ops.encode(c, t.schema, t.dirty))
	if noted {
		t.notes.encode(t.encoder)
	}
}

func encodeID(e *encoder, id journal.ID) {
	e.array(3)
	e.uint(id.Epoch)
	e.uint(id.Seq)
	e.uint(uint64(id.CRC))
}

func (d *decoder) id() journal.ID {
	d.array(3)
	return journal.ID{Epoch: d.uint(), Seq: d.uint(), CRC: uint32(d.count("crc", 1<<32-1))}
}

func (t *tickEncoder) registry(c *ecs.Change) {
	change := c.Entities(t.rows[:0])
	t.rows = change.Rows
	if !change.Changed {
		t.nil()
		return
	}
	if t.dirty != nil {
		t.dirty.setRegistry(change)
	}
	rows, _, _ := c.World().Registry()
	t.array(5)
	t.uint(uint64(change.Alive))
	t.uint(uint64(change.Free))
	t.uint(uint64(change.Total))
	t.ranges(change.Rows)
	t.entities(rows, change.Rows)
}

func (t *tickEncoder) storages(c *ecs.Change) {
	t.array(t.count(c))
	for s := range c.Storages() {
		if s.Storage.Persistent() {
			t.storage(t.complete(s, c.Parent))
		}
	}
	for i := range t.whole {
		if w := &t.whole[i]; w.seq != t.seq && w.owed(c.Parent) {
			t.storage(w.change(0))
			w.gave(t.seq, c.Parent)
		}
	}
}

// count returns how many storages and resources the tick gives.
func (t *tickEncoder) count(c *ecs.Change) (n int) {
	for i := range t.whole {
		if t.whole[i].owed(c.Parent) {
			n++
		}
	}
	for s := range c.Changed() {
		if w := t.whole.find(s); s.Persistent() && (w == nil || !w.owed(c.Parent)) {
			n++
		}
	}
	return n
}

// complete returns c, or all of the storage if the tick must give it whole.
func (t *tickEncoder) complete(c ecs.StorageChange, parent uint64) ecs.StorageChange {
	if _, numbered := t.schema.numbers[c.Storage.Name()]; !numbered {
		t.whole.add(c.Storage, neverGiven)
	}
	if w := t.whole.find(c.Storage); w != nil {
		if w.owed(parent) {
			c = w.change(c.Before)
		}
		w.gave(t.seq, parent)
	}
	return c
}

func (t *tickEncoder) storage(c ecs.StorageChange) {
	number := t.schema.number(c.Storage)
	if t.dirty != nil {
		t.dirty.setStorage(number, c)
	}
	t.array(7)
	t.uint(uint64(number))
	t.uint(uint64(c.Before))
	t.uint(uint64(c.Storage.Rows()))
	t.ranges(c.Entities)
	t.entities(c.Storage.Entities(), c.Entities)
	t.ranges(c.Values)
	t.values(c.Storage, c.Values)
}

func (t *tickEncoder) ranges(ranges []ecs.Range) {
	t.scratch = t.scratch[:0]
	next := 0
	for _, r := range ranges {
		t.scratch = binary.AppendUvarint(t.scratch, uint64(r.First-next))
		t.scratch = binary.AppendUvarint(t.scratch, uint64(r.N))
		next = r.First + r.N
	}
	t.bin(t.scratch)
}

func (t *tickEncoder) entities(rows []ecs.Entity, ranges []ecs.Range) {
	t.binLen(8 * countRows(ranges))
	for _, r := range ranges {
		t.buf = digest.AppendEntities(t.buf, rows[r.First:r.First+r.N])
	}
}

func (t *tickEncoder) values(s ecs.AnyStorage, ranges []ecs.Range) {
	if width := s.Layout().Width(); width >= 0 {
		n := width * countRows(ranges)
		t.binLen(n)
		t.buf = slices.Grow(t.buf, n)
		t.pieces(s, ranges, max(1, sumBytes/max(1, width)))
		return
	}
	t.scratch = s.AppendRanges(t.scratch[:0], ranges)
	t.bin(t.scratch)
}

// sumBytes is how much is encoded before it is summed: what the cache holds.
const sumBytes = 64 << 10

// pieces encodes the rows of ranges and sums every few of them.
func (t *tickEncoder) pieces(s ecs.AnyStorage, ranges []ecs.Range, rows int) {
	for len(ranges) > 0 {
		n, sum := 0, 0
		for n < len(ranges) && sum+ranges[n].N <= rows {
			sum += ranges[n].N
			n++
		}
		if n > 0 {
			t.buf = s.AppendRanges(t.buf, ranges[:n])
			t.sum.Add(t.buf)
			ranges = ranges[n:]
			continue
		}
		for r := ranges[0]; r.N > 0; {
			n := min(rows, r.N)
			t.piece[0] = ecs.Range{First: r.First, N: n}
			t.buf = s.AppendRanges(t.buf, t.piece[:])
			t.sum.Add(t.buf)
			r.First, r.N = r.First+n, r.N-n
		}
		ranges = ranges[1:]
	}
}

func countRows(ranges []ecs.Range) (n int) {
	for _, r := range ranges {
		n += r.N
	}
	return n
}

// A tick is a decoded payload. Its bytes share memory with the payload.
type tick struct {
	parent   journal.ID
	tick     uint64
	time     time.Time
	registry *registryPatch
	storages []storagePatch
	ops      []byte
	marks    []string
	inputs   []Input

	registrySize, opsSize int // Bytes of the payload.
}

type registryPatch struct {
	alive, free, total int
	ranges             []ecs.Range
	rows               []byte
}

type storagePatch struct {
	number        int
	before, after int
	entityRanges  []ecs.Range
	entities      []byte
	valueRanges   []ecs.Range
	values        []byte
	size          int // Bytes of the payload.
}

// maxRows bounds what a payload or snapshot may claim: entity indices are 32
// bits.
const maxRows = 1<<32 - 1

// decodeTick reads a payload. Whether it fits a state is for [Image.apply] to
// see.
func decodeTick(payload []byte) (*tick, error) {
	d := decoder{src: payload}
	d.array(7)
	f := d.uint()
	if d.err == nil && f != tickFormat && f != notedTick {
		return nil, fmt.Errorf("%w: tick format %d", ErrNewer, f)
	}
	t := &tick{parent: d.id(), tick: d.uint(), time: time.Unix(0, d.int()).UTC()}
	start := len(d.src)
	if !d.isNil() {
		d.array(5)
		p := registryPatch{
			alive: d.count("alive", maxRows),
			free:  d.count("free", maxRows),
			total: d.count("total", maxRows),
		}
		p.ranges, p.rows = d.ranges(p.total), d.bin()
		t.registry, t.registrySize = &p, start-len(d.src)
	}
	for range d.arrayLen() {
		start := len(d.src)
		d.array(7)
		p := storagePatch{
			number: d.count("component number", maxComponents),
			before: d.count("rows before", maxRows),
			after:  d.count("rows", maxRows),
		}
		p.entityRanges, p.entities = d.ranges(p.after), d.bin()
		p.valueRanges, p.values = d.ranges(p.after), d.bin()
		if d.err != nil {
			break
		}
		p.size = start - len(d.src)
		t.storages = append(t.storages, p)
	}
	if f == notedTick {
		d.array(3)
	}
	start = len(d.src)
	t.ops = d.bin()
	t.opsSize = start - len(d.src)
	if f == notedTick {
		t.marks, t.inputs = d.notes()
	}
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("tick: %w", err)
	}
	return t, nil
}

// ranges reads ascending, disjoint ranges of rows below n.
func (d *decoder) ranges(n int) (ranges []ecs.Range) {
	v := varints{src: d.bin()}
	ranges = make([]ecs.Range, 0, v.count()/2)
	next := 0
	for v.more() {
		skip, rows := v.uint(), v.uint()
		if v.bad || skip > uint64(n-next) || rows > uint64(n-next)-skip || rows == 0 {
			d.fail("range of %d rows, %d after row %d, of %d", rows, skip, next, n)
			return nil
		}
		first := next + int(skip)
		ranges = append(ranges, ecs.Range{First: first, N: int(rows)})
		next = first + int(rows)
	}
	return ranges
}
