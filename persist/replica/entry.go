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

// An entry has this format:
//
//	magic       "STRP"
//	crc         CRC-32C of all bytes after it, 4 bytes
//	writer      random number of the sender, 8 bytes
//	number      number of the entry, counted by the sender, 8 bytes
//	after       position of the previous entry, 8 bytes
//	its writer  writer of the previous entry, 8 bytes
//	its number  number of the previous entry, 8 bytes
//	operations  for each: the kind, then the fields that are listed below
//
// The integers before the operations are little-endian. Integers in operations are varints. Readers
// reject an entry in any other format.
//
// Writer and number identify an entry. Each entry identifies the previous entry, so a reader
// notices trimmed and lost entries.
const (
	// term, name, logInfo: the sender owns the store from this entry on.
	opClaim opKind = iota + 1
	// term, logInfo: the entries up to opComplete have all files of the store.
	opBegin
	opPart     // file, offset, bytes: a part of an unpublished file.
	opWhole    // file, size: the file has all its parts, and is published.
	opWrite    // file, offset, bytes.
	opRemove   // file.
	opComplete // No fields: the log has all files.
	opOffer    // name: the machine that may claim now.
)

// An opKind is the kind of an op. Its numbers are part of the format.
type opKind byte

// An op is one operation of an entry.
type op struct {
	kind   opKind
	name   string // The name of a file or a machine.
	number uint64 // Offset, size or term.
	data   []byte
}

// An entryID identifies an entry.
type entryID struct{ Writer, Number uint64 }

// A link is the position and the identity of an entry. The zero link is before the first entry.
type link struct {
	Position Position
	ID       entryID
}

// A header is an entry without its operations.
type header struct {
	id     entryID
	before link // The previous entry, which this entry continues.
}

const (
	entryMagic  = "STRP"
	entryHeader = 4 + 4 + 5*8
	maxName     = 255
	// maxData is the size limit of the data of an operation. The remaining bytes of an entry have
	// room for its other fields.
	maxData = MaxEntry - entryHeader - 64 - maxName
)

// castagnoli is the CRC-32C table, for the checksums of entries and of the file state.
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

// sizeOf returns an upper bound of the encoded size of operations.
func sizeOf(ops []op) (n int) {
	for i := range ops {
		n += 1 + 3*binary.MaxVarintLen64 + len(ops[i].name) + len(ops[i].data)
	}
	return n
}

// append appends the encoding of o to b. All kinds have the same fields; most kinds leave some
// empty.
func (o *op) append(b []byte) []byte {
	b = append(b, byte(o.kind))
	b = binary.AppendUvarint(b, uint64(len(o.name)))
	b = append(b, o.name...)
	b = binary.AppendUvarint(b, o.number)
	b = binary.AppendUvarint(b, uint64(len(o.data)))
	return append(b, o.data...)
}

// errEntry reports an entry that cannot be decoded: it is damaged, or not from this package.
var errEntry = errors.New("replica: an entry of the log is damaged, or was written by another program")

// decodeEntry decodes an entry. The data of the operations aliases b. If a newer program wrote the
// operations, decodeEntry returns the header and [persist.ErrNewer].
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

// decodeHeader decodes the header of an entry, without the operations. It verifies the checksum of
// the whole entry.
func decodeHeader(b []byte) (h header, err error) {
	if len(b) < entryHeader || len(b) > MaxEntry || string(b[:4]) != entryMagic || crc32.Checksum(b[8:], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return h, errEntry
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	return header{entryID{at(0), at(1)}, link{Position(at(2)), entryID{at(3), at(4)}}}, nil
}

// decode decodes an operation at the beginning of b, which must not be empty. It returns the bytes
// after the operation. It accepts only the file names of a store, so that an entry cannot write
// other files of the machine.
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
		return nil, fmt.Errorf("replica: %w: the log has an unknown operation %d", persist.ErrNewer, o.kind)
	case o.kind >= opPart && o.kind <= opRemove && !replicated(o.name), o.number > 1<<62:
		return nil, fmt.Errorf("%w: operation %d of %q at %d", errEntry, o.kind, o.name, o.number)
	}
	return b, nil
}

// cutBytes decodes a length n and the n bytes after it. It returns these bytes and the remaining
// bytes of b. It checks the length against the size of b.
func cutBytes(b []byte) (part, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}

// tempSuffix ends the names of files that are not published yet. Readers ignore such files.
const tempSuffix = ".tmp"

// replicated reports whether a file of a store is sent to the log. Only files of the journal and
// snapshots are sent.
func replicated(name string) bool {
	dir, file := path.Split(name)
	return (dir == journalDir+"/" || dir == snapshotDir+"/") && file != "" && len(name) <= maxName &&
		!strings.HasSuffix(file, tempSuffix) && file != "." && file != ".." && !strings.ContainsAny(file, "\\\x00")
}

// Directories of a store.
const (
	journalDir  = "journal"
	snapshotDir = "snapshots"
)
