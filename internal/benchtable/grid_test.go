package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGrid_ColumnForEachSize(t *testing.T) {
	in := strings.NewReader(`cpu: fast
BenchmarkGo/get/free/1-2     10  20 ns/entity
BenchmarkGo/get/free/16k-2   10  1.5 ns/entity
BenchmarkGo/make/free/16k-2  10  30 ns/entity
BenchmarkRust/make/free-2    10  4 µs/op
PASS
`)
	var out strings.Builder
	_, err := run(options{grid: true}, in, &out, nil)
	require.NoError(t, err)
	assert.Equal(t, `cpu: fast
PASS
| ns/entity | 1 | 16k |
| --- | ---:| ---:|
| Go/get/free | 20 | 1.5 |
| Go/make/free |  | 30 |

| µs/op | free |
| --- | ---:|
| Rust/make | 4 |
`, out.String())
}

func TestGrid_CellIsMedian(t *testing.T) {
	g := newGrid("ns/entity")
	for _, v := range []float64{9, 1, 5, 7, 3} {
		g.add("Go/get/1", v)
	}
	assert.Equal(t, "5", g.cell("Go/get", "1"))
	assert.Equal(t, "", g.cell("Go/get", "2"))
}

func TestGrid_NameWithoutSlash(t *testing.T) {
	g := newGrid("ns/entity")
	g.add("Get", 1)
	assert.Equal(t, []string{"Get"}, g.rows)
	assert.Equal(t, "1", g.cell("Get", ""))
}
