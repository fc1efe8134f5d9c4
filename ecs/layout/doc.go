// Package layout describes Go component types as fields with kinds. It converts rows of their
// values to canonical bytes and back. A tool without the Go types can read the bytes with the
// description alone. In this picture, an arrow is a function or method, and leads from its input to
// its result:
//
//	reflect.Type ──Of──▶ Type ──Type.Append──▶ description bytes ──Parse──▶ Type
//	     │                                                                   │
//	 NewCodec                                                    Next, Check, Value
//	     ▼                                                                   │
//	[]T ──Append──▶ rows of bytes ───────────────────────────────────────────┘
//	[]T ◀──Decode── rows of bytes
//
// Equal values have equal bytes, on every run and on every machine. So the bytes can be compared
// and hashed. Bytes that decode without error encode again to the same bytes.
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
// A bool is one byte, 0 or 1. A complex number is its real part, followed by its imaginary part. An
// entity is 8 bytes: index, then generation. The Go types int, uint and uintptr take 8 bytes. Rows
// of types without values have width 0.
//
// # Rows of variable size
//
// A row of any other type is one msgpack value, so its end can be found without an index. msgpack
// has several forms for a value. Only the shortest is written and accepted.
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
// A nil slice differs from an empty slice, and a nil map differs from an empty map. Two pointers to
// one value become two values.
//
// # What is stored of a Go type
//
// Unexported fields are stored too, because a save without them would be incomplete. Fields named _
// are not stored, and decoding leaves them unchanged. A field embedded in a struct is stored under
// the name of its type.
//
// Interfaces, funcs, channels, unsafe pointers and recursive types cannot be stored. [Of] names the
// field that contains one. Keys of maps are compared by their bytes. So they must not contain
// floats or pointers: 0 equals -0, and NaN does not equal itself.
//
// # Names of fields
//
// A struct tag changes the stored name of a field and lists its former names:
//
//	Life int `stet:"hp"`              // stored as hp
//	Life int `stet:",was=HP"`         // stored as Life, earlier as HP
//	Life int `stet:"hp,was=HP,was=L"` // stored as hp, earlier as HP or L
//
// [NewConversion] uses these names to convert rows of an earlier layout.
package layout
