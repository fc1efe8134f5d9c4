package dump

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestStandardInput_SizeLimit(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 10: true, 11: false, 5000: false} {
		files, err := filesOf(strings.NewReader(strings.Repeat("x", n)), 10)
		if !ok {
			var f *failure
			require.ErrorAs(t, err, &f)
			require.Equal(t, exitUsage, f.code)
			require.ErrorContains(t, err, "standard input is larger than 10 B")
			require.Equal(t, f, classifyOpen(standardInput, err), "opening returns the failure unchanged")
			continue
		}
		require.NoError(t, err)
		f, err := files.Open(standardInput)
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		require.Equal(t, int64(n), size)
	}
	dead := errors.New("dead")
	_, err := filesOf(iotest.ErrReader(dead), 10)
	require.ErrorIs(t, err, dead)
}
