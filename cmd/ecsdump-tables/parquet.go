package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/dump"
)

// A parquetDir is a directory with one file for each table.
type parquetDir struct {
	path  string
	files []*parquetFile
	names map[string]bool // The used table names, in lower case: some file systems ignore case.
}

// createParquet implements [dump.Format].
func createParquet(path string) (dump.Tables, error) {
	if err := os.Mkdir(path, 0o777); err != nil {
		return nil, err
	}
	return &parquetDir{path: path, names: map[string]bool{}}, nil
}

// groupRows is the number of rows that are compressed together. Until a group is full, its rows are
// in memory.
const groupRows = 128 << 10

func (d *parquetDir) Begin(name string, columns []dump.Column) (dump.Table, error) {
	file := dump.FileName(name)
	for d.names[strings.ToLower(file)] {
		file += "_"
	}
	d.names[strings.ToLower(file)] = true
	f, err := os.OpenFile(filepath.Join(d.path, file+".parquet"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	p := &parquetFile{file: f, columns: columns, out: parquet.NewGenericWriter[any](f, parquet.NewSchema(name, schemaOf(columns)), parquet.Compression(&parquet.Zstd))}
	d.files = append(d.files, p)
	return p, nil
}

func (d *parquetDir) Close() (err error) {
	for _, f := range d.files {
		err = cmp.Or(err, f.out.Close(), f.file.Close())
	}
	return err
}

// A parquetFile is the file of one table.
type parquetFile struct {
	file    *os.File
	out     *parquet.GenericWriter[any]
	columns []dump.Column
	rows    []parquet.Row // A buffer that each Write reuses.
	grouped int
}

func (f *parquetFile) Write(rows *dump.Rows) error {
	for len(f.rows) < rows.N {
		f.rows = append(f.rows, nil)
	}
	for i := range rows.N {
		row := f.rows[i][:0]
		for n := range f.columns {
			row = append(row, cell(&f.columns[n], &rows.Columns[n], i).Level(0, defined(&f.columns[n], &rows.Columns[n], i), n))
		}
		f.rows[i] = row
	}
	if _, err := f.out.WriteRows(f.rows[:rows.N]); err != nil {
		return err
	}
	if f.grouped += rows.N; f.grouped < groupRows {
		return nil
	}
	f.grouped = 0
	return f.out.Flush()
}

// defined returns the definition level of a cell: 1 for a value in a nullable column, else 0.
func defined(c *dump.Column, cells *dump.Cells, i int) int {
	if c.Nullable && !cells.Null[i] {
		return 1
	}
	return 0
}

// cell returns the value of row i in a column.
func cell(c *dump.Column, cells *dump.Cells, i int) parquet.Value {
	if c.Nullable && cells.Null[i] {
		return parquet.NullValue()
	}
	switch c.Kind {
	case layout.String:
		return parquet.ByteArrayValue([]byte(cells.Texts[i]))
	case layout.Bool:
		return parquet.BooleanValue(cells.Bits[i] != 0)
	case layout.Float32:
		return parquet.FloatValue(float32(math.Float64frombits(cells.Bits[i])))
	case layout.Float64:
		return parquet.DoubleValue(math.Float64frombits(cells.Bits[i]))
	case layout.Int64, layout.Uint64:
		return parquet.Int64Value(int64(cells.Bits[i]))
	}
	return parquet.Int32Value(int32(cells.Bits[i]))
}

// node returns the Parquet type of a column.
func node(c dump.Column) parquet.Node {
	n := parquet.String()
	switch c.Kind {
	case layout.String:
	case layout.Bool:
		n = parquet.Leaf(parquet.BooleanType)
	case layout.Float32:
		n = parquet.Leaf(parquet.FloatType)
	case layout.Float64:
		n = parquet.Leaf(parquet.DoubleType)
	case layout.Int8, layout.Int16, layout.Int32, layout.Int64:
		n = parquet.Int(8 << (c.Kind - layout.Int8))
	case layout.Uint8, layout.Uint16, layout.Uint32, layout.Uint64:
		n = parquet.Uint(8 << (c.Kind - layout.Uint8))
	default:
		panic(fmt.Sprintf("a column of kind %v", c.Kind)) // This case is unreachable.
	}
	if c.Nullable {
		n = parquet.Optional(n)
	}
	return n
}

// The type ordered is a Parquet group that keeps the order of its fields. A parquet.Group orders
// its fields by name.
type ordered struct {
	parquet.Group
	fields []parquet.Field
}

func (o ordered) Fields() []parquet.Field { return o.fields }

// schemaOf returns the row type of a table.
func schemaOf(columns []dump.Column) parquet.Node {
	o := ordered{Group: parquet.Group{}}
	for _, c := range columns {
		o.Group[c.Name] = node(c)
	}
	byName := map[string]parquet.Field{}
	for _, f := range o.Group.Fields() {
		byName[f.Name()] = f
	}
	for _, c := range columns {
		o.fields = append(o.fields, byName[c.Name])
	}
	return o
}
