package dump

import "github.com/stet-ecs/stet/ecs/layout"

// A Format writes tables for other programs; export --format selects a Format by name. Formats with
// large libraries are in a separate program, see [Main].
type Format struct {
	Name string

	// Create creates the output at path. If path exists, the error wraps [fs.ErrExist]. After a
	// later error the caller removes the output.
	Create func(path string) (Tables, error)
}

// Tables is an open output of a format.
type Tables interface {
	Begin(name string, columns []Column) (Table, error)
	Close() error // Completes all tables. After an error they may be incomplete.
}

// A Table receives batches of rows. Rows are valid only until Write returns, so a Table must copy
// them.
type Table interface{ Write(rows *Rows) error }

// A Column is a column of a table.
type Column struct {
	Name     string      // Unique within the table, ignoring letter case.
	Kind     layout.Kind // Bool, an integer kind, Float32, Float64 or String.
	Nullable bool

	facet facet
}

// Rows is a batch of rows, column by column.
type Rows struct {
	N       int
	Columns []Cells
}

// Cells is one column of a batch: Texts, or numbers in Bits. Bits has integers sign-extended to
// 64 bits, floats as the bits of a float64, and booleans as 0 and 1.
type Cells struct {
	Bits  []uint64
	Texts []string
	Null  []bool
}

// A facet is the part of a value that a column contains.
type facet uint8

const (
	facetWhole facet = iota
	facetName        // Name of a constant.
	facetJSON        // JSON of a value whose parts have no columns.
	facetIndex       // Index of an entity.
	facetGeneration
)
