package ports

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreePorts_AreDistinct(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		free, err := Free(6)
		require.NoError(t, err)
		for _, port := range free {
			require.False(t, seen[port], "port %d was returned before", port)
			seen[port] = true
			require.GreaterOrEqual(t, port, first)
			require.Less(t, port, first+count)
		}
	}
}

func TestFreePorts_SkipsPortInUse(t *testing.T) {
	free, err := Free(1)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", free[0]+1))
	if err != nil {
		t.Skip("the next port is in use already")
	}
	defer listener.Close()
	free, err = Free(1)
	require.NoError(t, err)
	assert.NotEqual(t, listener.Addr().(*net.TCPAddr).Port, free[0])
}

func TestFreePorts_TooManyRequested(t *testing.T) {
	_, err := Free(count + 1)
	require.ErrorContains(t, err, fmt.Sprintf("of %d ports", count+1))
}
