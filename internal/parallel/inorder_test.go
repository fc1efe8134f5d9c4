package parallel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/parallel"
)

func TestInOrder_KeepsOrder(t *testing.T) {
	busy := make([]atomic.Int32, parallel.Workers())
	for _, n := range []int{0, 1, 2, 1000} {
		var taken []int
		err := parallel.InOrder(t.Context(), n, func(worker, i int) (int, error) {
			if busy[worker].Add(1) != 1 {
				t.Errorf("worker %d runs two calls at once", worker)
			}
			defer busy[worker].Add(-1)
			return i, nil
		}, func(i int) error {
			taken = append(taken, i)
			return nil
		})
		require.NoError(t, err)
		require.Len(t, taken, n)
		for i := range taken {
			require.Equal(t, i, taken[i])
		}
	}
}

func TestInOrder_FirstError(t *testing.T) {
	first, other, enough := errors.New("first"), errors.New("other"), errors.New("enough")
	work := func(_, i int) (int, error) {
		switch {
		case i == 70:
			return 0, first
		case i > 70:
			return 0, other
		}
		return i, nil
	}
	taken := 0
	err := parallel.InOrder(t.Context(), 1000, work, func(int) error { taken++; return nil })
	require.ErrorIs(t, err, first)
	require.Equal(t, 70, taken)
	err = parallel.InOrder(t.Context(), 1000, work, func(i int) error {
		if i == 5 {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)

	ctx, cancel := context.WithCancel(t.Context())
	err = parallel.InOrder(ctx, 1000, func(_, i int) (int, error) { return i, nil }, func(i int) error {
		if i == 5 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
}
