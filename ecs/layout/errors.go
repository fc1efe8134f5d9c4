package layout

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

var (
	// ErrUnsupported reports a Go type that cannot be stored.
	ErrUnsupported = errors.New("layout: type cannot be stored")

	// ErrInvalid reports bytes that this package does not write, or an invalid description.
	ErrInvalid = errors.New("layout: invalid data")

	// ErrIntSize reports an integer that does not fit into the 32-bit int, uint or uintptr of this
	// program. The data is valid: a 64-bit program can read it. A field of type int64 or uint64 can
	// hold the integer too.
	ErrIntSize = errors.New("layout: integer does not fit into 32 bits")

	// ErrNewer reports a description with a kind that this version of the package does not support.
	ErrNewer = errors.New("layout: written by a newer version")
)

// A TypeError names the field that prevents a Go type from being stored. It wraps [ErrUnsupported].
type TypeError struct {
	// The type passed to the function.
	Type   reflect.Type
	Path   string // The field: "Sprite.Image", "Bag.Items[].Owner".
	Reason string // "interface values cannot be stored"
}

func (e *TypeError) Error() string { return "layout: " + e.Path + ": " + e.Reason }

func (e *TypeError) Unwrap() error { return ErrUnsupported }

// A DataError describes an error in rows or in a description. It wraps [ErrInvalid], [ErrIntSize]
// or [ErrNewer].
type DataError struct {
	// The row with the error. It is -1 if only one row was checked, or if the error belongs to no
	// row.
	Row int
	// The field inside the row, like "Bag.Items[3]". "" means the whole row.
	Path   string
	Reason string // The fault, in lower case.
	Err    error  // ErrInvalid, ErrIntSize or ErrNewer.
}

func (e *DataError) Error() string {
	text := e.Err.Error()
	if e.Row >= 0 {
		text += ": row " + strconv.Itoa(e.Row)
	}
	if e.Path != "" {
		text += ": " + e.Path
	}
	return text + ": " + e.Reason
}

func (e *DataError) Unwrap() error { return e.Err }

// bad returns a DataError with a reason. Callers add the row and the path.
func bad(reason string) *DataError {
	return &DataError{Row: -1, Reason: reason, Err: ErrInvalid}
}

// narrow returns the error for a valid integer that does not fit into this program's int.
func narrow(x any) *DataError {
	return &DataError{Row: -1, Reason: fmt.Sprintf("%d; read it with a program of 64 bits, or declare the field with 64 bits", x), Err: ErrIntSize}
}

// in prepends a field or element to the path of e. part starts with "." or "[".
func (e *DataError) in(part string) *DataError {
	e.Path = part + e.Path
	return e
}

// of prepends the name of the outermost type to the path of e.
func (e *DataError) of(t *Type) *DataError {
	e.Path = join(t.Name, e.Path)
	return e
}

// row adds the number of the row to e.
func (e *DataError) row(i int) *DataError {
	e.Row = i
	return e
}

// index returns the path of element i within its array or slice.
func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// keyPart returns the path of the key of entry i within a map.
func keyPart(i int) string { return "[key " + strconv.Itoa(i) + "]" }

// valuePart returns the path of the value of entry i within a map.
func valuePart(i int) string { return "[value " + strconv.Itoa(i) + "]" }

// join prepends the name of a type, which may be empty, to a path.
func join(name, path string) string {
	if name == "" && path != "" && path[0] == '.' {
		return path[1:]
	}
	return name + path
}
