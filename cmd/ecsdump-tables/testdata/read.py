"""Reads tables as pandas, DuckDB and sqlite3 do, and compares them with those on standard input."""
import json, math, os, sqlite3, sys

import duckdb, pandas, pyarrow.parquet

directory, file = sys.argv[1:]
want = json.load(sys.stdin)
special = {"NaN": math.nan, "-Inf": -math.inf}


def same(got, value, column):
    if value is None:
        return pandas.isna(got)
    if value == "NaN" and column != "Info.Note":
        return isinstance(got, float) and math.isnan(got)
    value = special.get(value, value)
    return got == value and isinstance(got, str) == isinstance(value, str)


def compare(who, name, columns, rows, table):
    assert list(columns) == table["Columns"], (who, name, columns)
    assert len(rows) == len(table["Rows"]), (who, name, len(rows), len(table["Rows"]))
    for got, row in zip(rows, table["Rows"]):
        for column, g, value in zip(table["Columns"], got, row):
            assert same(g, value, column), (who, name, column, g, value)


ducks = {"uint64": "UBIGINT", "uint32": "UINTEGER", "uint16": "USMALLINT", "uint8": "UTINYINT", "int64": "BIGINT", "int32": "INTEGER",
         "int16": "SMALLINT", "int8": "TINYINT", "double": "DOUBLE", "float": "FLOAT", "string": "VARCHAR", "bool": "BOOLEAN"}
assert sorted(os.listdir(directory)) == sorted(name + ".parquet" for name in want["files"])
for name, table in want["files"].items():
    path = os.path.join(directory, name + ".parquet")
    types = [str(t) for t in pyarrow.parquet.read_schema(path).types]
    assert types == table["Types"], (name, types)
    order = table["Columns"][:2]

    frame = pandas.read_parquet(path).sort_values(order)
    compare("pandas", name, frame.columns, frame.astype(object).values.tolist(), table)
    for column, kind in zip(table["Columns"], table["Types"]):
        if kind not in ("string",) and not frame[column].isna().any():
            assert str(frame[column].dtype) == {"double": "float64", "float": "float32"}.get(kind, kind), (name, column, frame[column].dtype)

    found = duckdb.sql(f"SELECT * FROM '{path}' ORDER BY 1, 2")
    compare("duckdb", name, found.columns, found.fetchall(), table)
    assert [str(t) for t in found.types] == [ducks[t] for t in table["Types"]], (name, found.types)

db = sqlite3.connect(file)
assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
assert {n for n, in db.execute("SELECT name FROM sqlite_master")} == set(want["tables"])
for name, table in want["tables"].items():
    found = db.execute(f'SELECT * FROM "{name}" ORDER BY 1, 2')
    rows = [[None if v == "NaN" else str(v) if isinstance(v, int) and v >= 1 << 63 else v for v in row] for row in table["Rows"]]
    compare("sqlite3", name, [c[0] for c in found.description], found.fetchall(), {**table, "Rows": rows})
print("pandas", pandas.__version__, "DuckDB", duckdb.__version__, "sqlite3", sqlite3.sqlite_version, "read", len(want["tables"]), "tables")
