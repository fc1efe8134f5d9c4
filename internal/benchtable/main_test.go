package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/golden"
)

func TestTableOfRecordedOutput(t *testing.T) {
	in, err := os.Open("testdata/recorded.txt")
	require.NoError(t, err)
	defer in.Close()
	var out strings.Builder
	require.NoError(t, run(in, &out, render))
	golden.Check(t, "testdata/recorded.golden", out.String())
}

func TestLinesThatAreNoResults(t *testing.T) {
	for _, line := range []string{
		"",
		"PASS",
		"ok  	github.com/stet-ecs/stet/ecs	62.995s",
		"BenchmarkName",
		"BenchmarkName-2 	 1",
		"BenchmarkName-2 	 one	 12 ns/op",
		"BenchmarkName-2 	 1	 twelve ns/op",
		"BenchmarkName-2 	 1	 12 ns/op	 3",
		"--- FAIL: BenchmarkName 1 12 ns/op",
	} {
		_, ok := parseResult(line)
		assert.False(t, ok, "parseResult(%q)", line)
	}
}

func TestNameLosesPrefixAndProcessors(t *testing.T) {
	for line, want := range map[string]string{
		"BenchmarkBudgetGet/16k-2": "Get/16k",
		"BenchmarkGet":             "Get",
		"BenchmarkGet/a-b":         "Get/a-b",
		"BenchmarkGet/a-b-16":      "Get/a-b",
	} {
		r, ok := parseResult(line + " 1 12 ns/op")
		require.True(t, ok)
		assert.Equal(t, want, r.name)
	}
}

func TestBudgetBoundsTheMetricOfItsQuantity(t *testing.T) {
	for _, c := range []struct {
		line     string
		measured string // "" if nothing is bounded
		ok       bool
		others   string
	}{
		{"1 10 ns/op 1.1 x/limit 1.2 x/budget", "1.1 x/limit", true, "10 ns/op"},
		{"1 10 ns/op 1.2 x/limit 1.2 x/budget", "1.2 x/limit", true, "10 ns/op"},
		{"1 10 ns/op 1.3 x/limit 1.2 x/budget", "1.3 x/limit", false, "10 ns/op"},
		{"1 10 ns/op 5 ns/more 4 ns/budget", "5 ns/more", false, "10 ns/op"},
		{"1 10 ns/op 100 ns/budget 0 allocs", "10 ns/op", true, "0 allocs"},
		{"1 10 ns/op 100 x/budget", "", false, "10 ns/op"},
		{"1 10 ns/op", "", false, "10 ns/op"},
	} {
		r, ok := parseResult("BenchmarkName " + c.line)
		require.True(t, ok, c.line)
		verdicts, others := r.judge()
		assert.Equal(t, c.others, list(others), c.line)
		if c.measured == "" {
			assert.Empty(t, verdicts, c.line)
			continue
		}
		require.Len(t, verdicts, 1, c.line)
		assert.Equal(t, c.measured, verdicts[0].measured.String(), c.line)
		assert.Equal(t, c.ok, verdicts[0].ok(), c.line)
	}
}

func TestErrorsOfReaderAndWriterAreReported(t *testing.T) {
	broken := errors.New("broken")
	assert.ErrorIs(t, run(brokenStream{broken}, &strings.Builder{}, render), broken)
	assert.ErrorIs(t, run(strings.NewReader("PASS\n"), brokenStream{broken}, render), broken)
	assert.ErrorIs(t, run(strings.NewReader("BenchmarkName 1 10 ns/op\n"), brokenStream{broken}, render), broken)
}

// A brokenStream fails on its first use.
type brokenStream struct{ err error }

func (s brokenStream) Read([]byte) (int, error)  { return 0, s.err }
func (s brokenStream) Write([]byte) (int, error) { return 0, s.err }

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.03333: "0.0333", 1.5: "1.5", 13.42: "13.4", 239: "239", 12345.6: "12346"} {
		assert.Equal(t, want, number(v))
	}
}
