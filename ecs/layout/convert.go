package layout

import (
	"cmp"
	"errors"
)

// ErrConversion reports two layouts between which no conversion by name leads.
var ErrConversion = errors.New("layout: rows cannot be converted")

// A ConversionError names the field that keeps rows from being converted. It
// wraps [ErrConversion].
type ConversionError struct {
	Path   string // The field: "Unit.HP".
	Reason string // "stored int64, program has int32"
}

func (e *ConversionError) Error() string {
	text := ErrConversion.Error()
	if e.Path != "" {
		text += ": " + e.Path
	}
	return text + ": " + e.Reason
}

func (e *ConversionError) Unwrap() error { return ErrConversion }

// A Conversion turns rows of one layout into rows of another. It is worked out
// once and then runs over any number of rows. It never changes and is safe for
// concurrent use. [NewConversion] makes it.
type Conversion struct {
	from, to   *Type
	fromWidth  int
	toWidth    int
	same       bool
	changes    []Change
	shifts     []shift   // Between rows of fixed width.
	converting converter // Otherwise.
}

// NewConversion returns the conversion of rows of stored into rows of current.
// Struct fields are matched by name, and those of current that are not stored by
// their former names.
//
//	field added                          zero
//	field dropped                        left out; its Change is Dropped, for the caller to judge
//	fields in another order              by name
//	int8 → int16 → int32 → int64         widened; likewise uint8 → … → uint64
//	uint8 → int16, uint16 → int32, …     widened, to a signed integer of more bits
//	float32 → float64                    widened; likewise complex64 → complex128
//	integer → float                      if all its values are exact: 16 bits in float32, 32 in float64
//	[n]T → [m]T                          new elements are zero; those behind m are dropped like a field, "At[m:]"
//	[]byte → []T                         if T is a wider integer or a float
//	constants in another order           the numbers stay as they are; reported
//
// Elements, keys and what pointers point to are converted likewise. Everything
// else is a [*ConversionError] that names the field: a narrower number, another
// kind, a field or element dropped from the key of a map.
func NewConversion(stored, current *Type) (*Conversion, error) {
	c := &Conversion{from: stored, to: current, fromWidth: stored.Width(), toWidth: current.Width()}
	c.same = stored.Equal(current)
	var m matcher
	pair, err := m.match(stored, current, cmp.Or(current.Name, stored.Name))
	if err != nil {
		return nil, err
	}
	c.changes = m.changes
	if c.same {
		return c, nil
	}
	if c.fromWidth != varies && c.toWidth != varies {
		c.shifts = collectShifts(nil, pair, 0, 0)
	} else {
		c.converting = conversion{c.fromWidth != varies, c.toWidth != varies}.compile(pair)
	}
	return c, nil
}

// Same reports whether the two layouts are equal, so that rows stay as they are. Even
// then there is a Change for each integer whose constants have other numbers now.
func (c *Conversion) Same() bool { return c.same }

// Changes lists the differences, in the order of the program's fields; behind
// them, struct by struct, what is dropped. It is nil if there are none.
func (c *Conversion) Changes() []Change { return c.changes }

// Append appends the converted form of src, which must be n rows, to dst. The
// error is a [*DataError] naming the row and the field; dst then comes back as it
// was.
//
// Rows of fixed width are converted column by column. The memory it takes is that
// of the result: as many rows as src has, as wide as the new layout makes them.
func (c *Conversion) Append(dst, src []byte, n int) ([]byte, error) {
	if c.same {
		if err := c.from.Check(src, n); err != nil {
			return dst, err
		}
		return append(dst, src...), nil
	}
	out, err := c.append(dst, src, n)
	if err != nil {
		return dst, err.of(c.from)
	}
	return out, nil
}

// append is Append with the concrete error.
func (c *Conversion) append(dst, src []byte, n int) ([]byte, *DataError) {
	if c.fromWidth != varies {
		if err := fixedLength(src, n, c.fromWidth); err != nil {
			return nil, err
		}
		if err := c.from.check(src, n); err != nil {
			return nil, err
		}
		if c.toWidth != varies {
			return c.shift(dst, src, n), nil
		}
	}
	if n < 0 {
		return nil, bad("rows wanted are less than none")
	}
	r := reader{src: src}
	var err *DataError
	for i := range n {
		if dst, err = c.converting(&r, dst); err != nil {
			return nil, err.row(i)
		}
	}
	return dst, r.end()
}
