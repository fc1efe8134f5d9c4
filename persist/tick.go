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

// A tickEncoder writes the payload of a journal record, part by part in their order:
// begin, registry, storages and each storage, the operations, end. It keeps its buffers;
// in the steady state it allocates nothing.
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
	scratch []byte
	piece   [1]ecs.Range
	ops     opEncoder
	sum     journal.Sum // Of what is encoded and will stay as it is.
}

func newTickEncoder() *tickEncoder { return &tickEncoder{encoder: newEncoder()} }

// begin begins a payload behind what is in buf. noted says whether notes follow the
// operations.
func (t *tickEncoder) begin(buf []byte, noted bool, parent journal.ID, tick uint64, now time.Time) {
	t.buf, t.sum = buf, journal.Sum{}
	t.ops.begin()
	t.array(7)
	if noted {
		t.uint(notedTick)
	} else {
		t.uint(tickFormat)
	}
	encodeID(t.encoder, parent)
	t.uint(tick)
	t.int(now.UnixNano())
}

// end writes the operations, which come last, and the notes of a noted tick. The
// payload is valid until the next begin.
func (t *tickEncoder) end(n *notes) []byte {
	if !n.none() {
		t.array(3)
	}
	t.bin(t.ops.end())
	if !n.none() {
		n.encode(t.encoder)
	}
	buf := t.buf
	t.buf = nil
	return buf
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

// registry writes what changed in the registry, whose rows are those given.
func (t *tickEncoder) registry(c ecs.EntityChange, rows []ecs.Entity) {
	if !c.Changed {
		t.nil()
		return
	}
	t.array(5)
	t.uint(uint64(c.Alive))
	t.uint(uint64(c.Free))
	t.uint(uint64(c.Total))
	t.ranges(c.Rows)
	t.entities(rows, c.Rows)
}

// storages says how many storages follow.
func (t *tickEncoder) storages(n int) { t.array(n) }

// storage writes what changed in a storage or resource, which has that number.
func (t *tickEncoder) storage(number int, c ecs.StorageChange) {
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

// reparented appends to buf the payload of a tick that continues another state.
func reparented(buf, payload []byte, parent journal.ID) ([]byte, error) {
	d := decoder{src: payload}
	values, format := d.arrayLen(), d.uint()
	d.id()
	if d.err != nil {
		return nil, d.err
	}
	e := newEncoder()
	e.buf = buf
	e.array(values)
	e.uint(format)
	encodeID(e, parent)
	return append(e.buf, d.src...), nil
}
