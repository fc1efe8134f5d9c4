package main

import (
	"cmp"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/dump"
)

// A database is an SQLite file with one table for each component.
type database struct {
	*sqlite3.Conn
	tables []*sqliteTable
	names  map[string]bool // The used table names, in lower case, because SQLite ignores case.
}

// createSQLite implements [dump.Format]. The whole export is one transaction without a journal,
// because an unfinished file is removed after a failure.
func createSQLite(path string) (dump.Tables, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	c, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	d := &database{Conn: c, names: map[string]bool{}}
	if err := c.Exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN"); err != nil {
		return nil, errors.Join(err, c.Close(), os.Remove(path))
	}
	return d, nil
}

func (d *database) Begin(name string, columns []dump.Column) (dump.Table, error) {
	// SQLite reserves names with this prefix.
	if strings.HasPrefix(strings.ToLower(name), "sqlite_") {
		name = "_" + name
	}
	for d.names[strings.ToLower(name)] {
		name += "_"
	}
	d.names[strings.ToLower(name)] = true
	declared := make([]string, len(columns))
	for i, c := range columns {
		declared[i] = sqlite3.QuoteIdentifier(c.Name) + " " + affinity(c)
	}
	if err := d.Exec("CREATE TABLE " + sqlite3.QuoteIdentifier(name) + " (" + strings.Join(declared, ", ") + ")"); err != nil {
		return nil, err
	}
	insert, _, err := d.Prepare("INSERT INTO " + sqlite3.QuoteIdentifier(name) + " VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")")
	if err != nil {
		return nil, err
	}
	t := &sqliteTable{insert, columns}
	d.tables = append(d.tables, t)
	return t, nil
}

// affinity returns the declared type of a column.
func affinity(c dump.Column) string {
	kind := "INTEGER"
	switch c.Kind {
	case layout.String:
		kind = "TEXT"
	case layout.Float32, layout.Float64:
		kind = "REAL"
	case layout.Uint64:
		// Leave the column without a type: numbers above the largest int64 are stored as text, and
		// a type would convert this text.
		kind = ""
	}
	if !c.Nullable && kind != "REAL" { // SQLite stores NaN as null.
		kind += " NOT NULL"
	}
	return kind
}

func (d *database) Close() (err error) {
	for _, t := range d.tables {
		err = cmp.Or(err, t.insert.Close())
	}
	err = cmp.Or(err, d.Exec("COMMIT"))
	return cmp.Or(err, d.Conn.Close())
}

// A sqliteTable is a table of a database.
type sqliteTable struct {
	insert  *sqlite3.Stmt
	columns []dump.Column
}

func (t *sqliteTable) Write(rows *dump.Rows) error {
	for i := range rows.N {
		for n := range t.columns {
			if err := t.bind(n, &rows.Columns[n], i); err != nil {
				return err
			}
		}
		if err := t.insert.Exec(); err != nil {
			return err
		}
	}
	return nil
}

// bind sets column n of the next row to the value in row i.
func (t *sqliteTable) bind(n int, cells *dump.Cells, i int) error {
	c := &t.columns[n]
	switch {
	case c.Nullable && cells.Null[i]:
		return t.insert.BindNull(n + 1)
	case c.Kind == layout.String:
		return t.insert.BindText(n+1, cells.Texts[i])
	case c.Kind == layout.Float32 || c.Kind == layout.Float64:
		return t.insert.BindFloat(n+1, math.Float64frombits(cells.Bits[i]))
	case c.Kind == layout.Uint64 && cells.Bits[i] > math.MaxInt64:
		return t.insert.BindText(n+1, strconv.FormatUint(cells.Bits[i], 10))
	}
	return t.insert.BindInt64(n+1, int64(cells.Bits[i]))
}
