package play

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys_Has(t *testing.T) {
	require.True(t, Keys("left space").Has("space"))
	require.False(t, Keys("left space").Has("lef"))
	require.False(t, Keys("").Has(""))
}

func TestLine_DelayAndLoss(t *testing.T) {
	line := Line[int]{Delay: 2, Loss: 25}
	var received [][]int
	for i := range 6 {
		received = append(received, slices.Collect(line.Receive()))
		line.Send(i)
	}
	require.Equal(t, [][]int{nil, nil, {0}, {1}, {2}, nil}, received, "message 3 is lost")
}

func TestColumns_AlignsRightText(t *testing.T) {
	require.Equal(t, "a                                      c\nb\n", Columns("a\nb", "c"))
}
