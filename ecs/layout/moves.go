package layout

import (
	"encoding/binary"
	"reflect"
	"slices"
)

// littleEndian reports whether this machine has the byte order of packed numbers.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// A move copies some bytes of a row between Go memory and packed form. The moves of a fixed type
// are compiled once. Each move runs for all rows of a block before the next move runs. So in most
// cases, the switch on its kind runs once for each block, and not for each row.
type move struct {
	op   op
	mem  int // Offset of the copied bytes in a row in memory.
	pack int // Offset of the copied bytes in a packed row.
	size int // Size in packed bytes. For a loop, the size of one element.

	// The fields below are for opLoop: body runs for count elements.
	count  int
	stride int // Distance between elements in memory.
	body   []move
}

// An op is the kind of a move.
type op uint8

const (
	opBytes op = iota // Copies size bytes unchanged.
	// opOne to opEight copy a number of 1, 2, 4 or 8 bytes.
	opOne
	opTwo
	opFour
	opEight
	opBool    // Copies one byte, which must be 0 or 1 when it is unpacked.
	opWiden   // A signed number: 4 bytes in memory, 8 packed bytes.
	opWidenUn // An unsigned number: 4 bytes in memory, 8 packed bytes.
	opLoop
)

// blockRows is the number of rows in a block. All moves run for one block before the next block, so
// that its rows stay in the first-level cache.
const blockRows = 64

// compileMoves returns the moves for rows of the fixed type t. If checked is set, bools are moved
// one by one so that they can be checked.
func compileMoves(t reflect.Type, checked bool) []move {
	return split(collect(nil, t, 0, 0, checked))
}

// isPlain reports whether the moves are a single copy of a whole row, given the size of the row in
// bytes.
func isPlain(moves []move, size int) bool {
	if len(moves) == 0 {
		return size == 0
	}
	m := moves[0]
	return len(moves) == 1 && m.op <= opEight && m.mem == 0 && m.pack == 0 && m.size == size
}

// collect appends the moves for a value of type t. The parameters mem and pack are the value's
// offsets in memory and in packed form. collect merges adjacent moves.
func collect(moves []move, t reflect.Type, mem, pack int, checked bool) []move {
	switch kindOf(t) {
	case Struct:
		for f := range t.Fields() {
			if f.Name == "_" {
				continue
			}
			moves = collect(moves, f.Type, mem+int(f.Offset), pack, checked)
			pack += packedSize(f.Type)
		}
		return moves
	case Array:
		return collectArray(moves, t, mem, pack, checked)
	}
	for _, m := range scalarMoves(t, checked) {
		m.mem, m.pack = m.mem+mem, m.pack+pack
		if m.op == opBytes && !littleEndian {
			m.op, _ = opFor(m.size)
		}
		moves = add(moves, m)
	}
	return moves
}

// scalarMoves returns the moves for a type other than a struct or array.
func scalarMoves(t reflect.Type, checked bool) []move {
	kind, size := kindOf(t), int(t.Size())
	switch {
	case kind == Bool && checked:
		return []move{{op: opBool, size: 1}}
	case size < kinds[kind].width && kind.signed():
		return []move{{op: opWiden, size: 8}}
	case size < kinds[kind].width:
		return []move{{op: opWidenUn, size: 8}}
	case kind == Complex64 || kind == Complex128:
		half := size / 2
		return []move{{size: half}, {mem: half, pack: half, size: half}}
	}
	return []move{{size: size}}
}

// collectArray implements collect() for arrays. If the elements are the same bytes in memory and in
// packed form, the whole array is one move. A short array gets the moves of every element. A long
// array becomes a loop.
func collectArray(moves []move, t reflect.Type, mem, pack int, checked bool) []move {
	const fewMoves = 32
	elem, n := t.Elem(), t.Len()
	body := collect(nil, elem, 0, 0, checked)
	size, stride := packedSize(elem), int(elem.Size())
	switch {
	case n == 0 || len(body) == 0:
		return moves
	case isPlain(body, stride) && (littleEndian || stride == 1):
		return add(moves, move{mem: mem, pack: pack, size: n * size})
	case n*len(body) > fewMoves || hasLoop(body):
		return append(moves, move{op: opLoop, mem: mem, pack: pack, size: size, count: n, stride: stride, body: split(body)})
	}
	for i := range n {
		for _, m := range body {
			m.mem, m.pack = m.mem+mem+i*stride, m.pack+pack+i*size
			moves = add(moves, m)
		}
	}
	return moves
}

// hasLoop reports whether one of moves is a loop.
func hasLoop(moves []move) bool {
	return slices.ContainsFunc(moves, func(m move) bool { return m.op == opLoop })
}

// add appends m. If the bytes of m follow those of the last move, add makes the last move longer
// instead. It compares only the offsets in memory: the packed bytes of consecutive moves always
// follow each other.
func add(moves []move, m move) []move {
	if n := len(moves); n > 0 && littleEndian {
		last := &moves[n-1]
		if last.op == opBytes && m.op == opBytes && last.mem+last.size == m.mem {
			last.size += m.size
			return moves
		}
	}
	return append(moves, m)
}

// split replaces each short copy by moves of 8, 4, 2 or 1 bytes, which are faster. On big-endian
// machines it returns moves unchanged.
func split(moves []move) []move {
	if !littleEndian {
		return moves
	}
	// longest is the maximum number of bytes to split. For more bytes, the function copy is faster.
	const longest = 32
	var out []move
	for _, m := range moves {
		if m.op != opBytes || m.size > longest {
			out = append(out, m)
			continue
		}
		for m.size > 0 {
			part := m
			part.op, part.size = opFor(m.size)
			out = append(out, part)
			m.mem, m.pack, m.size = m.mem+part.size, m.pack+part.size, m.size-part.size
		}
	}
	return out
}

// opFor returns the op and size of the largest number that fits into n bytes.
func opFor(n int) (op, int) {
	switch {
	case n >= 8:
		return opEight, 8
	case n >= 4:
		return opFour, 4
	case n >= 2:
		return opTwo, 2
	}
	return opOne, 1
}

// packedSize returns the width of the fixed type t.
func packedSize(t reflect.Type) int {
	switch kind := kindOf(t); kind {
	case Struct:
		sum := 0
		for f := range t.Fields() {
			if f.Name != "_" {
				sum += packedSize(f.Type)
			}
		}
		return sum
	case Array:
		return t.Len() * packedSize(t.Elem())
	default:
		return kinds[kind].width
	}
}

// A span holds the addresses of n rows in memory and in packed form. A stride is the distance
// between two rows in bytes.
type span struct {
	mem        ptr
	memStride  int
	pack       []byte
	packStride int
	n          int
}

// from returns the address in memory of the bytes that move m copies in row i.
func (s *span) from(m *move, i int) ptr { return at(s.mem, m.mem+i*s.memStride) }

// to returns the packed bytes of row i, from those of move m on.
func (s *span) to(m *move, i int) []byte { return s.pack[m.pack+i*s.packStride:] }

// elements returns the elements of row i that the loop m copies.
func (s *span) elements(m *move, i int) span {
	return span{s.from(m, i), m.stride, s.to(m, i), m.size, m.count}
}

// packRows copies the rows of s from memory to packed bytes.
func packRows(moves []move, s *span) {
	for k := range moves {
		m := &moves[k]
		// Keep the fields in local variables, because the loops would load fields again for every
		// row.
		mem, memStride, pack, packStride := at(s.mem, m.mem), s.memStride, s.pack[m.pack:], s.packStride
		switch m.op {
		case opOne, opBool:
			for i, to := 0, 0; i < s.n; i, to = i+1, to+packStride {
				pack[to] = load[uint8](at(mem, i*memStride))
			}
		case opTwo:
			for i, to := 0, 0; i < s.n; i, to = i+1, to+packStride {
				binary.LittleEndian.PutUint16(pack[to:to+2], load[uint16](at(mem, i*memStride)))
			}
		case opFour:
			for i, to := 0, 0; i < s.n; i, to = i+1, to+packStride {
				binary.LittleEndian.PutUint32(pack[to:to+4], load[uint32](at(mem, i*memStride)))
			}
		case opEight:
			for i, to := 0, 0; i < s.n; i, to = i+1, to+packStride {
				binary.LittleEndian.PutUint64(pack[to:to+8], load[uint64](at(mem, i*memStride)))
			}
		default:
			for i := range s.n {
				packOne(m, s, i)
			}
		}
	}
}

// packOne runs a move for row i. packRows calls it for the kinds of moves that it handles row by
// row.
func packOne(m *move, s *span, i int) {
	switch m.op {
	case opBytes:
		copy(s.to(m, i), view(s.from(m, i), m.size))
	case opWiden:
		binary.LittleEndian.PutUint64(s.to(m, i), uint64(load[int32](s.from(m, i))))
	case opWidenUn:
		binary.LittleEndian.PutUint64(s.to(m, i), uint64(load[uint32](s.from(m, i))))
	case opLoop:
		elements := s.elements(m, i)
		packRows(m.body, &elements)
	}
}

// unpackRows copies the rows of s from packed bytes to memory. It returns the index of a row with
// an invalid value, or -1.
func unpackRows(moves []move, s *span) int {
	for k := range moves {
		m := &moves[k]
		mem, memStride, pack, packStride := at(s.mem, m.mem), s.memStride, s.pack[m.pack:], s.packStride
		switch m.op {
		case opOne:
			for i, from := 0, 0; i < s.n; i, from = i+1, from+packStride {
				store(at(mem, i*memStride), pack[from])
			}
		case opTwo:
			for i, from := 0, 0; i < s.n; i, from = i+1, from+packStride {
				store(at(mem, i*memStride), binary.LittleEndian.Uint16(pack[from:from+2]))
			}
		case opFour:
			for i, from := 0, 0; i < s.n; i, from = i+1, from+packStride {
				store(at(mem, i*memStride), binary.LittleEndian.Uint32(pack[from:from+4]))
			}
		case opEight:
			for i, from := 0, 0; i < s.n; i, from = i+1, from+packStride {
				store(at(mem, i*memStride), binary.LittleEndian.Uint64(pack[from:from+8]))
			}
		case opBool:
			for i, from := 0, 0; i < s.n; i, from = i+1, from+packStride {
				if pack[from] > 1 {
					return i
				}
				store(at(mem, i*memStride), pack[from])
			}
		default:
			for i := range s.n {
				if !unpackOne(m, s, i) {
					return i
				}
			}
		}
	}
	return -1
}

// unpackOne runs a move for row i. unpackRows calls it for the kinds of moves that it handles row
// by row. The result is false if the value is invalid, such as an integer that does not fit into 32
// bits.
func unpackOne(m *move, s *span, i int) bool {
	switch m.op {
	case opBytes:
		copy(view(s.from(m, i), m.size), s.to(m, i))
	case opWiden:
		x := int64(binary.LittleEndian.Uint64(s.to(m, i)))
		store(s.from(m, i), int32(x))
		return x == int64(int32(x))
	case opWidenUn:
		x := binary.LittleEndian.Uint64(s.to(m, i))
		store(s.from(m, i), uint32(x))
		return x == uint64(uint32(x))
	case opLoop:
		elements := s.elements(m, i)
		return unpackRows(m.body, &elements) < 0
	}
	return true
}
