package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/parquet-go/parquet-go"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/dump"
	"github.com/stet-ecs/stet/persist"
)

// TestMain runs the program instead of the tests if ECSDUMP_TABLES_TEST is set.
func TestMain(m *testing.M) {
	if os.Getenv("ECSDUMP_TABLES_TEST") != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// ecsdumpTables runs the program. It returns the standard output and the standard error as one
// text, and the exit status.
func ecsdumpTables(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), "ECSDUMP_TABLES_TEST=1")
	out, err := c.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// These component types have columns of all kinds.
type (
	Mood  uint8
	Point struct{ X, Y float64 }
	Mixed struct {
		Tick, INDEX int8 // Named like columns that every table has.
		Small       int16
		Int         int32
		Long        int64
		Byte        uint8
		Word        uint16
		Whole       uint32
		Large       uint64
		Half        float32
		Yes         bool
		Mood        Mood
		Wait        time.Duration
		Slots       [2]int32
		Many        [20]uint8
	}
	Link struct {
		Of   ecs.Entity
		Info struct{ Note string }
		List []int32
		Ages map[string]int32
		Far  *int32
	}
	Frozen struct{}
)

func (m Mood) String() string {
	if m > 1 {
		return fmt.Sprintf("Mood(%d)", uint8(m))
	}
	return [...]string{"Calm", "Angry"}[m]
}

// A table is an expected table: its columns, the Arrow types of the columns, and its rows ordered
// by tick and index.
type table struct {
	Columns []string
	Types   []string
	Rows    [][]any
}

// buildStore makes a store of three ticks. It returns the tables of its last state, and the tables
// of all states from tick 1 on.
func buildStore(t *testing.T, dir string) (last, all map[string]table) {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{History: 5})
	points, mixed := ecs.MustRegister[Point](w), ecs.MustRegister[Mixed](w)
	links, frozen := ecs.MustRegister[Link](w), ecs.MustRegister[Frozen](w)
	odd := ecs.MustRegister(w, ecs.Component[int32]{Name: "a/b c"})
	score := ecs.Must(ecs.RegisterResource(w, int64(7), ecs.Component[int64]{Name: "score"}))
	store, err := persist.Open(t.Context(), dir, w, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	commit := func() {
		if err := store.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := w.Create(), w.Create()
	points.Set(a, Point{1.5, math.Inf(-1)})
	points.Set(b, Point{math.NaN(), -0.25})
	commit()
	w.Destroy(a)
	c := w.Create() // Entity c reuses the index of the destroyed entity a.
	points.Set(c, Point{3, 4})
	mixed.Set(b, Mixed{-1, -2, -300, -70000, -1 << 40, 255, 65535, 1<<32 - 1, 1<<64 - 1, 0.5, true, 1, 1500 * time.Millisecond, [2]int32{8, -9}, [20]uint8{19: 1}})
	far := int32(5)
	link := Link{Of: c, List: []int32{1, 2}, Ages: map[string]int32{"ann": 3}, Far: &far}
	link.Info.Note = "a, \"b\"\n\x00ü"
	links.Set(b, link)
	links.Set(c, Link{})
	commit()
	frozen.Set(b, Frozen{})
	odd.Set(c, 3)
	*score.Mut() = 9
	commit()
	if err := store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	point := table{Columns: []string{"tick", "index", "generation", "X", "Y"}, Types: []string{"uint64", "uint32", "uint32", "double", "double"}}
	first := [][]any{{1, 0, 1, 1.5, "-Inf"}, {1, 1, 1, "NaN", -0.25}}
	later := func(tick int) [][]any { return [][]any{{tick, 0, 2, 3.0, 4.0}, {tick, 1, 1, "NaN", -0.25}} }
	mixedTable := table{
		Columns: []string{"tick", "index", "generation", "Tick_", "INDEX_", "Small", "Int", "Long", "Byte", "Word", "Whole", "Large", "Half", "Yes", "Mood", "Wait", "Slots[0]", "Slots[1]", "Many"},
		Types:   []string{"uint64", "uint32", "uint32", "int8", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float", "bool", "string", "int64", "int32", "int32", "string"},
	}
	mixedRow := func(tick int) []any {
		return []any{tick, 1, 1, -1, -2, -300, -70000, -1 << 40, 255, 65535, uint32(math.MaxUint32), uint64(math.MaxUint64), 0.5, true, "Angry", 1500000000, 8, -9, "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1]"}
	}
	linkTable := table{
		Columns: []string{"tick", "index", "generation", "Of.index", "Of.generation", "Info.Note", "List", "Ages", "Far"},
		Types:   []string{"uint64", "uint32", "uint32", "uint32", "uint32", "string", "string", "string", "int32"},
	}
	linkRows := func(tick int) [][]any {
		return [][]any{{tick, 0, 2, nil, nil, "", nil, nil, nil}, {tick, 1, 1, 0, 2, link.Info.Note, "[1,2]", `{"ann":3}`, 5}}
	}
	tag := table{Columns: []string{"tick", "index", "generation"}, Types: []string{"uint64", "uint32", "uint32"}, Rows: [][]any{{3, 1, 1}}}
	oddTable := table{Columns: []string{"tick", "index", "generation", "value"}, Types: []string{"uint64", "uint32", "uint32", "int32"}, Rows: [][]any{{3, 0, 2, 3}}}
	scores := table{Columns: []string{"tick", "value"}, Types: []string{"uint64", "int64"}}
	with := func(t table, rows ...[]any) table { t.Rows = rows; return t }
	last = map[string]table{
		"Point": with(point, later(3)...), "Mixed": with(mixedTable, mixedRow(3)), "Link": with(linkTable, linkRows(3)...), "Frozen": tag, "a/b c": oddTable,
		"score": with(scores, []any{3, 9}),
	}
	all = map[string]table{
		"Point": with(point, slices.Concat(first, later(2), later(3))...), "Mixed": with(mixedTable, mixedRow(2), mixedRow(3)),
		"Link": with(linkTable, slices.Concat(linkRows(2), linkRows(3))...), "Frozen": tag, "a/b c": oddTable,
		"score": with(scores, []any{1, 7}, []any{2, 7}, []any{3, 9}),
	}
	return last, all
}

// exported exports a store in both formats. dir has the Parquet files, and file is the SQLite
// database.
func exported(t *testing.T, store string, args ...string) (dir, file string) {
	t.Helper()
	dir, file = filepath.Join(t.TempDir(), "tables"), filepath.Join(t.TempDir(), "game.db")
	for format, out := range map[string]string{"parquet": dir, "sqlite": file} {
		text, code := ecsdumpTables(t, append([]string{"export", store, "--format", format, "-o", out}, args...)...)
		if code != 0 || text != "" {
			t.Fatalf("export --format %s exits with %d: %s", format, code, text)
		}
	}
	return dir, file
}

// shown returns rows as text; equal rows give equal text.
func shown(rows [][]any) string {
	var b strings.Builder
	for _, row := range rows {
		for _, v := range row {
			if v == nil {
				b.WriteString("null\t")
			} else {
				fmt.Fprintf(&b, "%q\t", fmt.Sprint(v))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readParquet returns the contents of a Parquet file.
func readParquet(t *testing.T, file string) (columns []string, rows [][]any) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := parquet.NewReader(f)
	defer r.Close()
	fields := r.Schema().Fields()
	for _, c := range fields {
		columns = append(columns, c.Name())
	}
	buffer := make([]parquet.Row, 7)
	for {
		n, err := r.ReadRows(buffer)
		for _, row := range buffer[:n] {
			cells := make([]any, len(columns))
			for i, v := range row {
				cells[i] = goValue(v, fields[i])
			}
			rows = append(rows, cells)
		}
		if errors.Is(err, io.EOF) {
			return columns, rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// goValue converts v to a Go value of the logical type of its column.
func goValue(v parquet.Value, of parquet.Field) any {
	logical := of.Type().LogicalType()
	unsigned := logical != nil && strings.HasPrefix(logical.String(), "INT(") && strings.HasSuffix(logical.String(), ",false)")
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.ByteArray:
		return string(v.ByteArray())
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Double:
		return v.Double()
	case v.Kind() == parquet.Float:
		return v.Float()
	case v.Kind() == parquet.Int32 && unsigned:
		return uint32(v.Int32())
	case v.Kind() == parquet.Int32:
		return v.Int32()
	case unsigned:
		return uint64(v.Int64())
	}
	return v.Int64()
}

// readSQLite returns the contents of a table in an SQLite file.
func readSQLite(t *testing.T, file, name string) (columns []string, rows [][]any) {
	t.Helper()
	db, err := sqlite3.OpenFlags(file, sqlite3.OPEN_READONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, _, err := db.Prepare("SELECT * FROM " + sqlite3.QuoteIdentifier(name))
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for i := range all.ColumnCount() {
		columns = append(columns, all.ColumnName(i))
	}
	for all.Step() {
		row := make([]any, len(columns))
		for i := range row {
			switch all.ColumnType(i) {
			case sqlite3.INTEGER:
				row[i] = all.ColumnInt64(i)
			case sqlite3.FLOAT:
				row[i] = all.ColumnFloat(i)
			case sqlite3.TEXT:
				row[i] = all.ColumnText(i)
			}
		}
		rows = append(rows, row)
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return columns, rows
}

// inSQLite converts a value to its form in SQLite, which has no NaN, no booleans, and no numbers
// above the largest int64.
func inSQLite(v any) any {
	switch v {
	case "NaN":
		return nil
	case true:
		return 1
	case false:
		return 0
	}
	return v
}

// byTick sorts rows by their first two columns.
func byTick(rows [][]any) [][]any {
	number := func(row []any, i int) int { n, _ := strconv.Atoi(fmt.Sprint(row[min(i, len(row)-1)])); return n }
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Or(number(a, 0)-number(b, 0), number(a, 1)-number(b, 1)) })
	return rows
}

// check compares the output in both formats with want. It reads the files with the libraries of
// this program.
func check(t *testing.T, dir, file string, want map[string]table) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != len(want) {
		t.Errorf("there are %q, want %d", files, len(want))
	}
	for name, w := range want {
		columns, rows := readParquet(t, filepath.Join(dir, dump.FileName(name)+".parquet"))
		if !slices.Equal(columns, w.Columns) || shown(byTick(rows)) != shown(w.Rows) {
			t.Errorf("the file of %s has\n%q\n%s\nwant\n%q\n%s", name, columns, shown(rows), w.Columns, shown(w.Rows))
		}
		columns, rows = readSQLite(t, file, name)
		expected := make([][]any, len(w.Rows))
		for i, row := range w.Rows {
			for _, v := range row {
				expected[i] = append(expected[i], inSQLite(v))
			}
		}
		if !slices.Equal(columns, w.Columns) || shown(byTick(rows)) != shown(expected) {
			t.Errorf("the table of %s has\n%q\n%s\nwant\n%q\n%s", name, columns, shown(rows), w.Columns, shown(expected))
		}
	}
}

func TestExport_StateReadBack(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	last, _ := buildStore(t, store)
	dir, file := exported(t, store)
	check(t, dir, file, last)
	dir, file = exported(t, store, "--component", "Mixed,score")
	check(t, dir, file, map[string]table{"Mixed": last["Mixed"], "score": last["score"]})
}

func TestExport_RangeReadBack(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	_, all := buildStore(t, store)
	dir, file := exported(t, store, "1..3")
	check(t, dir, file, all)
	without := func(ticks ...any) map[string]table {
		rest := map[string]table{}
		for name, of := range all {
			of.Rows = slices.DeleteFunc(slices.Clone(of.Rows), func(row []any) bool { return slices.Contains(ticks, row[0]) })
			rest[name] = of
		}
		return rest
	}
	dir, file = exported(t, store, "1..", "--every", "2")
	check(t, dir, file, without(2))
	dir, file = exported(t, store, "2..", "--every", "2") // State 2 and the last state.
	check(t, dir, file, without(1))
	// With --every 2, the range 1..2 has every second state, here state 1, and always its last
	// state, 2.
	dir, file = exported(t, store, "1..2", "--every", "2")
	check(t, dir, file, without(3))
	dir, file = exported(t, store, "1..", "--every", "18446744073709551615")
	check(t, dir, file, without(2))
}

// TestExport_ReadByOtherPrograms reads the output with pandas, DuckDB and Python's sqlite3 module.
// It compares values, types and nulls. STET_PYTHON names a Python with these packages; see make
// tables.
func TestExport_ReadByOtherPrograms(t *testing.T) {
	python := os.Getenv("STET_PYTHON")
	if python == "" {
		t.Skip("skipped: STET_PYTHON names no Python with pandas, pyarrow and duckdb; make tables has one")
	}
	store := filepath.Join(t.TempDir(), "D")
	last, all := buildStore(t, store)
	for _, of := range []struct {
		want map[string]table
		args []string
	}{{last, nil}, {all, []string{"1..3"}}} {
		dir, file := exported(t, store, of.args...)
		files := map[string]table{}
		for name, w := range of.want {
			files[dump.FileName(name)] = w
		}
		want, err := json.Marshal(map[string]any{"tables": of.want, "files": files})
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(python, "testdata/read.py", dir, file)
		c.Stdin = strings.NewReader(string(want))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		} else {
			t.Log(string(out))
		}
	}
}

func TestExport_KeepsExistingFiles(t *testing.T) {
	temp := t.TempDir()
	store := filepath.Join(temp, "D")
	buildStore(t, store)
	for _, format := range []string{"parquet", "sqlite"} {
		out := filepath.Join(temp, format)
		for _, wrong := range []struct {
			args []string
			code int
			want string
		}{
			{nil, 2, "give the output with -o"},
			{[]string{"-o", out, "--component", "Nothing"}, 3, `no component "Nothing"`},
			{[]string{"-o", out, "--every", "2"}, 2, "--every is for a range"},
			{[]string{"-o", out, "1..3", "--every", "0"}, 2, "--every must be at least 1"},
			{[]string{"-o", out, "1..3", "--at", "2"}, 2, "give either --at or a range"},
			{[]string{"-o", out, "3..1"}, 3, "does not lead to"},
			{[]string{"-o", filepath.Join(temp, "no", "where")}, 5, "no such file or directory"},
		} {
			text, code := ecsdumpTables(t, append([]string{"export", store, "--format", format}, wrong.args...)...)
			if code != wrong.code || !strings.Contains(text, wrong.want) {
				t.Errorf("%s %v exits with %d: %s", format, wrong.args, code, text)
			}
			if _, err := os.Stat(out); err == nil {
				t.Fatalf("%s %v left %s", format, wrong.args, out)
			}
		}
		if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		text, code := ecsdumpTables(t, "export", store, "--format", format, "-o", out)
		if content, err := os.ReadFile(out); code != 2 || !strings.Contains(text, "nothing is overwritten") || string(content) != "mine" || err != nil {
			t.Errorf("%s over a file exits with %d: %s", format, code, text)
		}
	}
}

// A failed export removes its files. Here, a conversion fails after some files were written.
func TestExport_FailureRemovesFiles(t *testing.T) {
	temp := t.TempDir()
	store := filepath.Join(temp, "D")
	type before struct{ N int16 }
	type after struct{ N int32 }
	w := ecs.NewWorld(ecs.Options{})
	b := ecs.MustRegister(w, ecs.Component[before]{Name: "Health"})
	s, err := persist.Open(t.Context(), store, w, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.Set(w.Create(), before{1})
	if err := errors.Join(s.Commit(), s.Commit(), s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	w = ecs.NewWorld(ecs.Options{})
	a := ecs.MustRegister(w, ecs.Component[after]{Name: "Health"})
	if s, err = persist.Open(t.Context(), store, w, persist.Options{}); err != nil {
		t.Fatal(err)
	}
	a.Set(w.Create(), after{1})
	if err := errors.Join(s.Commit(), s.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"parquet", "sqlite"} {
		out := filepath.Join(temp, format)
		text, code := ecsdumpTables(t, "export", store, "1..3", "--format", format, "-o", out)
		if code != 2 || !strings.Contains(text, "the fields of Health changed at tick 3, record 3") {
			t.Errorf("%s exits with %d: %s", format, code, text)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s left %s: %v", format, out, err)
		}
	}
}
