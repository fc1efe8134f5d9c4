package query

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkBudgetCondition: a comparison of a field with a number, and whether there is the
// component, asked of the rows of an image, against the same written by hand for the bytes of the
// row. The program that other expressions need is beside it.
func BenchmarkBudgetCondition(b *testing.B) {
	im := testImage(b)
	x, err := Compile(im, "test", "Unit.HP < 5 && has(Unit)", WantCondition)
	require.NoError(b, err)
	e, c := im.Registry[0], im.Find("Unit")
	rows := rowsIn(x, e)
	const asked, rounds = 20_000, 15
	holding := 0
	count := func(holds bool, err error) {
		if holds && err == nil {
			holding++
		}
	}
	least := func(f func()) time.Duration {
		shortest := time.Duration(math.MaxInt64)
		for range rounds {
			start := time.Now()
			for range asked {
				f()
			}
			shortest = min(shortest, time.Since(start))
		}
		return shortest
	}
	ours := least(func() { count(x.HoldsRows(e, rows)) })
	program := least(func() { count(x.Holds(e)) })
	limit := least(func() {
		row, has, err := rows(0)
		count(has && int32(binary.LittleEndian.Uint32(row)) < 5, err)
	})
	require.Equal(b, 3*asked*rounds, holding, "%v", c.Row(0))
	b.ReportMetric(float64(ours)/float64(limit), "x/limit")
	b.ReportMetric(20, "x/budget")
	b.ReportMetric(float64(ours.Nanoseconds())/asked, "ns/op")
	b.ReportMetric(float64(program)/float64(ours), "x/program")
}
