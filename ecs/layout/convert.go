package layout

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrConversion reports two layouts without a conversion by field names.
var ErrConversion = errors.New("layout: rows cannot be converted")

// A ConversionError lists all fields that cannot be converted. It wraps [ErrConversion].
type ConversionError struct {
	// The differences in the order of [Conversion.Changes]. At least one is Refused.
	Changes []Change
}

// Error returns the refused changes as text, at most 20 of them.
func (e *ConversionError) Error() string {
	const most = 20
	text, n := ErrConversion.Error(), 0
	for _, c := range e.Changes {
		if !c.Refused {
			continue
		}
		if n++; n <= most {
			text += []string{": ", "; "}[min(n-1, 1)] + c.String()
		}
	}
	if n > most {
		text += fmt.Sprintf("; and %d more", n-most)
	}
	return text
}

func (e *ConversionError) Unwrap() error { return ErrConversion }

// A Conversion converts rows of one layout to rows of another. It is compiled once and then used
// for any number of rows. It is immutable and safe for concurrent use. [NewConversion] returns a
// Conversion.
type Conversion struct {
	from, to  *Type
	fromWidth int
	toWidth   int
	same      bool
	changes   []Change
	// The conversion of rows of fixed width.
	shifts []shift
	// The conversion of rows of variable width.
	converting converter
}

// NewConversion returns the conversion of rows from one layout to another. Struct fields are
// matched by name. A current field that has no match by name is matched by its former names.
//
//	field added                          zero
//	field dropped                        omitted; its Change is Dropped, and the caller decides
//	fields in another order              matched by name
//	int8 → int16 → int32 → int64         widened; likewise uint8 → … → uint64
//	uint8 → int16, uint16 → int32, …     widened, to a signed integer of more bits
//	float32 → float64                    widened; likewise complex64 → complex128
//	integer → float                      if exact: up to 16 bits to float32, 32 to float64
//	[n]T → [m]T                          new elements are zero; a Change at "At[m:]" if m < n
//	[]byte → []T                         if T is a wider integer or a float
//	constants in another order           the numbers are unchanged; reported
//
// Elements, keys and pointer targets are converted in the same way. Any other difference is an
// error, for instance a narrower number, another kind, or a field dropped from a map key. The error
// is a [*ConversionError] that names all such fields.
func NewConversion(stored, current *Type) (*Conversion, error) {
	c := &Conversion{from: stored, to: current, fromWidth: stored.Width(), toWidth: current.Width()}
	c.same = stored.Equal(current)
	var m matcher
	pair := m.match(stored, current, cmp.Or(current.Name, stored.Name))
	if slices.ContainsFunc(m.changes, func(c Change) bool { return c.Refused }) {
		return nil, &ConversionError{m.changes}
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

// Same reports whether the two layouts are equal, so that rows need no conversion. Equal layouts
// can still have Changes: the constants of an integer may have other numbers now.
func (c *Conversion) Same() bool { return c.same }

// Changes returns the differences, in the order of the program's fields. Within a struct, dropped
// fields come last. Changes returns nil if the layouts do not differ.
func (c *Conversion) Changes() []Change { return c.changes }

// Append converts src, which must be n rows, and appends the result to dst. The error is a
// [*DataError] that names the row and the field. In case of an error, Append returns dst unchanged.
//
// Rows of fixed width are converted column by column. Append allocates only the result.
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

// append implements Append and returns the error by its concrete type.
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
		return nil, bad("the number of rows is negative")
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
