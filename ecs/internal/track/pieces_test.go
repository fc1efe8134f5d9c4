package track

import (
	"slices"
	"testing"
)

// wholeRuns returns each row once, even if several runs have pieces of the row.
func TestWholeRuns_ReturnsEachRowOnce(t *testing.T) {
	for _, c := range []struct {
		pieces     int
		runs, want []Run
	}{
		{4, nil, nil},
		{4, []Run{{0, 1}}, []Run{{0, 1}}},
		{4, []Run{{3, 2}}, []Run{{0, 2}}},
		{4, []Run{{0, 2}, {2, 2}}, []Run{{0, 1}}},
		{4, []Run{{0, 2}, {3, 2}}, []Run{{0, 1}, {1, 1}}},
		{4, []Run{{0, 2}, {2, 1}, {3, 6}}, []Run{{0, 1}, {1, 2}}},
		{4, []Run{{4, 4}, {8, 1}, {0, 1}}, []Run{{1, 1}, {2, 1}, {0, 1}}},
		{1, []Run{{4, 4}, {8, 1}}, []Run{{4, 4}, {8, 1}}},
	} {
		u := undoStack{pieces: c.pieces}
		if got := u.wholeRuns(c.runs); !slices.Equal(got, c.want) {
			t.Errorf("rows of %v in %d pieces each: %v, want %v", c.runs, c.pieces, got, c.want)
		}
	}
}
