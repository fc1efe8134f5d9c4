package replica

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
)

func TestClassOf_EachError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Class
	}{
		{nil, None},
		{io.ErrUnexpectedEOF, Retried},
		{ErrUnknown, Retried},
		{&HoleError{1, 3}, Retried},
		{fmt.Errorf("full: %w", ErrOperator), Operator},
		{&ShorterError{3, 2}, Operator},
		{fmt.Errorf("%w: %w", persist.ErrLost, &ShorterError{3, 2}), Fenced},
		{fmt.Errorf("%w: %w", ErrTaken, persist.ErrLost), Fenced},
		{errors.Join(io.EOF, persist.ErrNewer), Operator},
		{persist.ErrLocked, Operator},
		{persist.ErrSchema, Operator},
	} {
		require.Equal(t, c.want, ClassOf(c.err), "%v", c.err)
	}
	require.Equal(t, "operator", Operator.String())
}
