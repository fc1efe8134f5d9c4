package play

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClock_Due(t *testing.T) {
	start := time.Now()
	c := clock{100 * time.Millisecond, start}
	for _, at := range []struct{ milliseconds, due int }{{40, 0}, {99, 0}, {100, 1}, {150, 0}, {410, 3}, {5000, maxDue}, {5050, 0}, {5100, 1}} {
		require.Equal(t, at.due, c.due(start.Add(time.Duration(at.milliseconds)*time.Millisecond)), "after %d ms", at.milliseconds)
	}
}

func TestKeys_Has(t *testing.T) {
	require.True(t, Keys("left space").Has("space"))
	require.False(t, Keys("left space").Has("lef"))
	require.False(t, Keys("").Has(""))
}

func TestLine_DelayAndLoss(t *testing.T) {
	line := Line[int]{Delay: 2, Loss: 25}
	var received [][]int
	for i := range 7 {
		received = append(received, slices.Collect(line.Receive()))
		line.Send(i)
	}
	require.Equal(t, [][]int{nil, nil, nil, {0}, {1}, {2}, nil}, received, "message 3 is lost")
}

func TestColumns_Lines(t *testing.T) {
	require.Equal(t, "a                                      c\nb\n", Columns("a\nb", "c"))
}
