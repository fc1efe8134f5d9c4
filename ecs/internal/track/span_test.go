package track

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Sort orders spans by row, for every initial order, number of spans and width of row numbers.
// Spans with the same row keep their order.
func TestSpans_SortByRow(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var s Spans
	for _, n := range []int{0, 1, 2, 7, 300, 5000} {
		for _, highest := range []uint32{1, 200, 1<<11 + 5, 1 << 17, 1<<22 - 1, 1<<22 + 1, 1 << 30, math.MaxUint32} {
			for _, order := range []string{"random", "ascending", "falling"} {
				t.Run(fmt.Sprint(n, "/", highest, "/", order), func(t *testing.T) {
					rows := make([]uint32, n)
					for i := range rows {
						if rows[i] = random.Uint32(); highest < math.MaxUint32 {
							rows[i] %= highest + 1
						}
					}
					if n > 2 {
						rows[n/2] = highest
					}
					switch order {
					case "ascending":
						slices.Sort(rows)
					case "falling":
						slices.Sort(rows)
						slices.Reverse(rows)
					}
					expectSorted(t, &s, rows)
				})
			}
		}
	}
}

func expectSorted(t *testing.T, s *Spans, rows []uint32) {
	t.Helper()
	s.Reset()
	want := make([]Span, len(rows))
	for i, row := range rows {
		s.Add(row, uint32(i))
		want[i] = Span{Row: row, N: uint32(i)}
	}
	s.Sort()
	slices.SortStableFunc(want, func(a, b Span) int { return cmp.Compare(a.Row, b.Row) })
	got := make([]Span, s.Len())
	for i := range got {
		got[i] = *s.At(i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sorted %v, want %v", got, want)
	}
}

func TestSpansSeek_FindsSpanOfRow(t *testing.T) {
	var s Spans
	for i := range uint32(100) {
		s.Add(10*(i*37%100), 1+i%10)
	}
	s.Sort()
	for k := range s.Len() + 1 {
		for row := range uint32(1010) {
			want := k
			for want < s.Len() && s.At(want).Row+s.At(want).N <= row {
				want++
			}
			if got := s.Seek(k, row); got != want {
				t.Fatalf("Seek(%d, %d) = %d, want %d", k, row, got, want)
			}
		}
	}
}
