package persist_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Goroutines that write in parallel with ticks, for the journal and for snapshots, run with
// background priority. They must not delay the ticks.
func TestWriterGoroutines_BackgroundPriority(t *testing.T) {
	if attr, err := unix.SchedGetAttr(0, 0); err != nil || attr.Policy != unix.SCHED_NORMAL {
		t.Skip("the tests run with another scheduling policy")
	}
	mem, w := disktest.New(), storetest.New(0)
	s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1})
	require.NoError(t, err)
	var mu sync.Mutex
	policies := map[string][]uint32{}
	mem.OnCall(func(_ int, call string) {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, prefix := range []string{"write journal/", "sync journal/", "publish snapshots/"} {
			if strings.HasPrefix(call, prefix) {
				policies[prefix] = append(policies[prefix], attr.Policy)
			}
		}
	})
	for range 3 {
		w.Seed.Set(w.Seed.Get() + 1)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Sync(storetest.Background))
	}
	begun, err := s.BeginSnapshot()
	require.NoError(t, err)
	require.True(t, begun)
	for s.Snapshotting() {
		require.NoError(t, s.Commit())
	}
	mem.OnCall(nil)
	require.NoError(t, s.Close(storetest.Background))
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, policies, 3)
	for call, seen := range policies {
		require.NotContains(t, seen, uint32(unix.SCHED_NORMAL), call)
	}
}
