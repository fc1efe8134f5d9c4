package dump

import "github.com/stet-ecs/stet/ecs/layout"

// A Format writes tables for other programs. The flag --format of export selects it by Name. The
// function [Main] receives the formats of a program.
type Format struct {
	Name string

	// Create creates the output at path. If path exists, the error wraps [fs.ErrExist]. The caller
	// removes the output if a later call fails.
	Create func(path string) (Tables, error)
}

// Tables is an open output of a format.
type Tables interface {
	Begin(name string, columns []Column) (Table, error)
	Close() error // Completes all tables. After an error, they may be incomplete.
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

// Cells is one column of a batch. Texts has strings. Bits has numbers: integers sign-extended to 64
// bits, floats as the bits of a float64, and booleans as 0 and 1.
type Cells struct {
	Bits  []uint64
	Texts []string
	Null  []bool
}

// A facet says what a column contains: a whole value, or one property of it.
type facet uint8

const (
	facetWhole facet = iota
	facetName        // Name of a constant.
	facetJSON        // A value as JSON, because it is not split into columns.
	facetIndex       // Index of an entity.
	facetGeneration
)
