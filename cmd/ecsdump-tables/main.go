// Ecsdump-tables is ecsdump with additional export formats. It exports tables for other programs:
//
//	ecsdump-tables export STORE --format parquet -o DIR     pandas, DuckDB, polars, Spark
//	ecsdump-tables export STORE --format sqlite -o FILE     sqlite3, Datasette, DuckDB
//
// It is a separate module, because the libraries for these formats are as large as all of ecsdump.
package main

import (
	"os"

	"github.com/stet-ecs/stet/internal/dump"
)

func main() { os.Exit(run()) }

func run() int {
	return dump.Main(nil, dump.Format{Name: "parquet", Create: createParquet}, dump.Format{Name: "sqlite", Create: createSQLite})
}
