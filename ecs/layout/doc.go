// Package layout describes Go component types as fields with kinds, and turns
// rows of their values into canonical bytes and back. Bytes written by one
// program can be read by a tool that has no Go types at all, only the
// description.
//
//	reflect.Type ──Of──▶ Type ──Type.Append──▶ description bytes ──Parse──▶ Type
//	     │                                                                   │
//	 NewCodec                                                    Next, Check, Value
//	     ▼                                                                   │
//	[]T ──Append──▶ rows of bytes ───────────────────────────────────────────┘
//	[]T ◀──Decode── rows of bytes
//
// Equal values have equal bytes, on every run and on every machine: the bytes
// serve as digests and can be compared. Bytes that are accepted encode again to
// the same bytes.
//
// # Fixed rows
//
// A [Type] without [String], [Bytes], [Slice], [Map] and [Pointer] inside is
// fixed: every row has the same width. Fields are packed, little-endian, in
// declared order:
//
//	struct{ Alive bool; HP int32; At [2]float32 }
//
//	0       1        5           9           13
//	+-------+--------+-----------+-----------+
//	| Alive | HP     | At[0]     | At[1]     |
//	+-------+--------+-----------+-----------+
//
// A bool is one byte, 0 or 1. A complex number is its real part, then its
// imaginary part. An entity is 8 bytes: index, then generation. The Go types int,
// uint and uintptr take 8 bytes. Rows of types that hold nothing have width 0.
//
// # Rows that vary in size
//
// A row of any other type is one msgpack value, so that rows say themselves
// where they end. Of the forms msgpack has for a value, only the shortest is
// written and accepted.
//
//	bool, integers     bool, the shortest integer form
//	floats             float 32 or float 64, bit for bit
//	complex            array of two floats
//	entity             integer, generation<<32 | index
//	string             str (any bytes)
//	[]byte             nil or bin
//	struct             map from field name to value, in declared order
//	array              array
//	slice              nil or array
//	map                nil or map, sorted by the bytes of the encoded keys
//	pointer            nil or array of one
//
// A nil slice is not an empty one, and neither are maps. Two pointers to one
// value become two values.
//
// # What is stored of a Go type
//
// Unexported fields are stored like the others: a save that lost them would not
// be one. Fields named _ are not stored, and decoding leaves them alone. A field
// embedded in a struct is stored under the name of its type. Interfaces, funcs,
// channels, unsafe pointers and recursive types cannot be stored, and [Of] names
// the field that holds one. Keys of maps are compared by their bytes and so hold
// no floats (0 equals -0, NaN not even itself) and no pointers.
//
// # Names of fields
//
// A struct tag gives a field another stored name, and the names it had before:
//
//	Life int `stet:"hp"`              // stored as hp
//	Life int `stet:",was=HP"`         // stored as Life, earlier as HP
//	Life int `stet:"hp,was=HP,was=L"` // stored as hp, earlier as HP or L
//
// [NewConversion] converts rows of an earlier layout by these names.
package layout
