package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"strings"

	"github.com/stet-ecs/stet/persist"
)

// The bytes of an entry:
//
//	magic "STRP" | crc | writer | number | after | its writer | its number | operation | …
//
// crc is the CRC-32C of all behind it, 4 bytes; the others have 8. Writer is a random number of the
// sender, and number counts its entries. The two tell an entry from all others, so that its writer
// recognizes it. After is the position of the entry before, and which one that is: so a reader
// notices what was trimmed, and a log that went on without what it had acknowledged. Integers are
// little-endian; those of operations are varints. An operation is its kind and what the table below
// says. A log in which something else lies is refused.
const (
	// term, name, logInfo: the machine that appended it owns the store from here on.
	opClaim opKind = iota + 1
	// term, logInfo: what follows, up to opComplete, has all files of the store.
	opBegin
	opPart     // file, offset, bytes: of a file that has no name yet.
	opWhole    // file, size: it has its name now, its parts are all there.
	opWrite    // file, offset, bytes.
	opRemove   // file.
	opComplete // All files were sent.
	opOffer    // name: of the machine that may claim now.
)

// An opKind says which operation an op is. The numbers are those of the bytes.
type opKind byte

// An op is one operation of an entry.
type op struct {
	kind   opKind
	name   string // Of a file, or of a machine.
	number uint64 // Offset, size or term.
	data   []byte
}

// An entryID tells an entry from all others.
type entryID struct{ Writer, Number uint64 }

// A link is an entry and where it lies; the zero link is before the first.
type link struct {
	Position Position
	ID       entryID
}

// A header is what an entry says in addition to its operations.
type header struct {
	id     entryID
	before link // The entry that it continues.
}

const (
	entryMagic  = "STRP"
	entryHeader = 4 + 4 + 5*8
	maxName     = 255
	// Of one operation, with room for its other members.
	maxData = MaxEntry - entryHeader - 64 - maxName
)

// castagnoli is the polynomial of the sums of entries and of the state.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeEntry returns the bytes of an entry.
func encodeEntry(h header, ops []op) []byte {
	b := append(make([]byte, 0, entryHeader+sizeOf(ops)), entryMagic...)
	b = append(b, 0, 0, 0, 0)
	for _, n := range []uint64{h.id.Writer, h.id.Number, uint64(h.before.Position), h.before.ID.Writer, h.before.ID.Number} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	for i := range ops {
		b = ops[i].append(b)
	}
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return b
}

// sizeOf returns at most how many bytes operations take.
func sizeOf(ops []op) (n int) {
	for i := range ops {
		n += 1 + 3*binary.MaxVarintLen64 + len(ops[i].name) + len(ops[i].data)
	}
	return n
}

// append appends the bytes of o: all kinds have the same members, of which most leave some empty.
func (o *op) append(b []byte) []byte {
	b = append(b, byte(o.kind))
	b = binary.AppendUvarint(b, uint64(len(o.name)))
	b = append(b, o.name...)
	b = binary.AppendUvarint(b, o.number)
	b = binary.AppendUvarint(b, uint64(len(o.data)))
	return append(b, o.data...)
}

// errEntry reports bytes in the log that are no entry: the log is not of this package, or the entry
// is damaged.
var errEntry = errors.New("replica: an entry of the log is damaged, or was written by something else")

// decodeEntry returns what lies in the bytes of an entry. Its data is a part of b. Of an entry with
// operations of a newer program, which is [persist.ErrNewer], it returns the header all the same.
func decodeEntry(b []byte) (h header, ops []op, err error) {
	if h, err = decodeHeader(b); err != nil {
		return h, nil, err
	}
	for b = b[entryHeader:]; len(b) > 0; {
		var o op
		if b, err = o.decode(b); err != nil {
			return h, nil, err
		}
		ops = append(ops, o)
	}
	return h, ops, nil
}

// decodeHeader returns the header of an entry, whatever its operations are. The checksum is that of
// all.
func decodeHeader(b []byte) (h header, err error) {
	if len(b) < entryHeader || len(b) > MaxEntry || string(b[:4]) != entryMagic || crc32.Checksum(b[8:], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return h, errEntry
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	return header{entryID{at(0), at(1)}, link{Position(at(2)), entryID{at(3), at(4)}}}, nil
}

// decode reads an operation from the beginning of b, which is not empty. Names of files are bounded
// here to what a store has, so that no entry writes anywhere else on a machine.
func (o *op) decode(b []byte) (rest []byte, err error) {
	o.kind = opKind(b[0])
	name, b, ok := cutBytes(b[1:])
	if ok {
		var n int
		if o.number, n = binary.Uvarint(b); n > 0 {
			b = b[n:]
		} else {
			ok = false
		}
	}
	if ok {
		o.data, b, ok = cutBytes(b)
	}
	o.name = string(name)
	switch {
	case !ok:
		return nil, errEntry
	case o.kind < opClaim || o.kind > opOffer:
		return nil, fmt.Errorf("replica: %w: the log has an operation %d", persist.ErrNewer, o.kind)
	case o.kind >= opPart && o.kind <= opRemove && !replicated(o.name), o.number > 1<<62:
		return nil, fmt.Errorf("%w: operation %d of %q at %d", errEntry, o.kind, o.name, o.number)
	}
	return b, nil
}

// cutBytes returns the bytes that b begins with, behind their number, and what follows. The number
// is compared with what there is before it is believed.
func cutBytes(b []byte) (part, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}

// tempSuffix ends the names of files that are not published yet. They are never read.
const tempSuffix = ".tmp"

// replicated reports whether a file of a store is on all machines: those of its journal and its
// snapshots.
func replicated(name string) bool {
	dir, file := path.Split(name)
	return (dir == journalDir+"/" || dir == snapshotDir+"/") && file != "" && len(name) <= maxName &&
		!strings.HasSuffix(file, tempSuffix) && file != "." && file != ".." && !strings.ContainsAny(file, "\\\x00")
}

// What a store has.
const (
	journalDir  = "journal"
	snapshotDir = "snapshots"
)
