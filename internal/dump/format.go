package dump

import "github.com/stet-ecs/stet/ecs/layout"

// A Format writes tables for other programs, where export --format names it. Those that take
// large libraries come from a program of their own, see [Main].
type Format struct {
	Name string

	// Create makes what is at path, which must not be there: else its error wraps [fs.ErrExist].
	// If anything fails then, what is there is removed.
	Create func(path string) (Tables, error)
}

// Tables are what a format writes to.
type Tables interface {
	Begin(name string, columns []Column) (Table, error)
	Close() error // Ends all tables. After an error they need not be whole.
}

// A Table takes rows, of which it keeps nothing. Rows are valid until Write returns.
type Table interface{ Write(rows *Rows) error }

// A Column is one of a table.
type Column struct {
	Name     string      // No other column has it, not even in other letter cases.
	Kind     layout.Kind // Bool, one of the integers, Float32, Float64 or String.
	Nullable bool

	facet facet
}

// Rows are some rows, column by column.
type Rows struct {
	N       int
	Columns []Cells
}

// Cells are what some rows have in a column: texts, or else numbers as Bits: of integers with
// their sign in all 64, of floats those of a float64, of booleans 0 and 1.
type Cells struct {
	Bits  []uint64
	Texts []string
	Null  []bool
}

// A facet says what of a value stands in a column.
type facet uint8

const (
	facetWhole facet = iota
	facetName        // What people call a number.
	facetJSON        // It has parts but no columns for them.
	facetIndex       // Of an entity.
	facetGeneration
)
