package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/golden"
)

func TestRun_PrintsTableOfRecordedOutput(t *testing.T) {
	in, err := os.Open("testdata/recorded.txt")
	require.NoError(t, err)
	defer in.Close()
	var out strings.Builder
	_, err = run(options{noise: 0.3}, in, &out, nil)
	require.NoError(t, err)
	golden.Check(t, "testdata/recorded.golden", out.String())
}

func TestParseResult_RejectsOtherLines(t *testing.T) {
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

func TestParseResult_TrimsName(t *testing.T) {
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

func TestJudge_ComparesMetricWithBudget(t *testing.T) {
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

func TestRun_ReadOrWriteFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := run(options{}, brokenStream{broken}, &strings.Builder{}, nil)
	assert.ErrorIs(t, err, broken)
	_, err = run(options{}, strings.NewReader("PASS\n"), brokenStream{broken}, nil)
	assert.ErrorIs(t, err, broken)
	_, err = run(options{}, strings.NewReader("BenchmarkName 1 10 ns/op\n"), brokenStream{broken}, nil)
	assert.ErrorIs(t, err, broken)
}

// A brokenStream fails on its first use.
type brokenStream struct{ err error }

func (s brokenStream) Read([]byte) (int, error)  { return 0, s.err }
func (s brokenStream) Write([]byte) (int, error) { return 0, s.err }

func TestNumber_ThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.03333: "0.0333", 1.5: "1.5", 13.42: "13.4", 239: "239", 12345.6: "12346"} {
		assert.Equal(t, want, number(v))
	}
}

const threeResults = `pkg: example.com/a
BenchmarkBudgetGood-2 1 10 ns/op 1.1 x/limit 1.2 x/budget
BenchmarkBudgetListed/16k-2 1 10 ns/op 2.9 x/limit 1.2 x/budget
BenchmarkBudgetBad/a_b-2 1 10 ns/op 1.7 x/limit 1.2 x/budget
`

func TestRun_LimitsFromFile(t *testing.T) {
	list := filepath.Join(t.TempDir(), "limits.txt")
	require.NoError(t, os.WriteFile(list, []byte("# Comment\nListed/16k\t3\tits rows miss the cache\n"), 0o644))
	var out strings.Builder
	ok, err := run(options{limits: list, noise: 0.3}, strings.NewReader(threeResults), &out, nil)
	require.NoError(t, err)
	assert.False(t, ok)
	assert.Contains(t, out.String(), "1 of 3 within budget\nover: Bad/a_b")
	assert.Regexp(t, `Listed/16k +2.9 x/limit +1.2 +listed`, out.String())

	out.Reset()
	ok, err = run(options{limits: list, noise: 0.5}, strings.NewReader(threeResults), &out, nil)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Regexp(t, `Bad/a_b +1.7 x/limit +1.2 +noise`, out.String())

	for text, want := range map[string]string{
		"Listed\t3\n":                 ":1: want name, limit and reason",
		"Listed\tthree\treason\n":     ":1: strconv",
		"A\t1\tb\nA\t2\tb\n":          ":2: A is listed twice",
		"# Comment\n\nListed\t3\t \n": ":3: want name",
	} {
		require.NoError(t, os.WriteFile(list, []byte(text), 0o644))
		_, err = run(options{limits: list}, strings.NewReader(""), &out, nil)
		assert.ErrorContains(t, err, want)
	}
}

func TestRun_RepeatsBenchmarkOverLimit(t *testing.T) {
	values := []string{"1.9", "1.5"}
	var asked []string
	bench := func(r result) (result, error) {
		asked = append(asked, r.pkg+" "+r.benchmark)
		again, ok := parseResult(r.benchmark + "-2 1 10 ns/op " + values[0] + " x/limit 1.2 x/budget")
		require.True(t, ok)
		values = values[1:]
		return again, nil
	}
	var out strings.Builder
	list := filepath.Join(t.TempDir(), "limits.txt")
	require.NoError(t, os.WriteFile(list, []byte("Listed/16k\t3\tits rows miss the cache\n"), 0o644))
	ok, err := run(options{limits: list, noise: 0.3, retry: 3}, strings.NewReader(threeResults), &out, bench)
	require.NoError(t, err)
	assert.True(t, ok, out.String())
	assert.Equal(t, []string{"example.com/a BenchmarkBudgetBad/a_b", "example.com/a BenchmarkBudgetBad/a_b"}, asked)
	assert.Regexp(t, `Bad/a_b +1.5 x/limit +1.2 +noise`, out.String())

	broken := errors.New("broken")
	_, err = run(options{noise: 0.3, retry: 1}, strings.NewReader(threeResults), &out, func(result) (result, error) { return result{}, broken })
	assert.ErrorIs(t, err, broken)
}

func TestRunAgain_MeasuresBenchmark(t *testing.T) {
	r, err := runAgain(result{name: "OfThisTest/a_b", benchmark: "BenchmarkOfThisTest/a_b", pkg: "github.com/stet-ecs/stet/internal/benchtable"})
	require.NoError(t, err)
	assert.Equal(t, "3 x/limit", r.metrics[len(r.metrics)-1].String())
	r, err = runAgain(result{name: "x", pkg: "example.com/missing"})
	require.NoError(t, err)
	assert.Equal(t, "x", r.name)
	_, err = runAgain(result{name: "Missing", benchmark: "BenchmarkMissing", pkg: "github.com/stet-ecs/stet/internal/benchtable"})
	assert.ErrorContains(t, err, "BenchmarkMissing in github.com/stet-ecs/stet/internal/benchtable prints no result")
}

// BenchmarkOfThisTest is run by TestRunAgain_MeasuresBenchmark.
func BenchmarkOfThisTest(b *testing.B) {
	b.Run("a b", func(b *testing.B) { b.ReportMetric(3, "x/limit") })
	b.Run("a b c", func(b *testing.B) { b.ReportMetric(4, "x/limit") })
}
