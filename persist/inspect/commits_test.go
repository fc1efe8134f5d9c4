package inspect_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Several goroutines read the commits. Commits returns them in order, up to the first damaged
// record.
func TestCommits_EndsAtDamagedRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	for range 400 {
		w.Fill(1)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	v := storetest.ViewOf(t, dir)
	commits, err := v.Commits(3, 390)
	require.NoError(t, err)
	require.Len(t, commits, 388)

	spoil := func(seq int) {
		e := v.Log().Entries[seq-1]
		name := filepath.Join(dir, "journal", v.Log().Segments[e.Segment].Name)
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		content[e.Offset+int64(e.Length)] ^= 1
		require.NoError(t, os.WriteFile(name, content, 0o600))
	}
	// Each round damages an earlier record. Commits must stop at the first damaged record.
	for _, damaged := range []int{370, 200, 130, 129, 3} {
		spoil(damaged)
		commits, err = v.Commits(3, 390)
		require.ErrorIs(t, err, persist.ErrCorrupt)
		require.Len(t, commits, damaged-3)
		for i := range commits {
			require.EqualValues(t, 3+i, commits[i].Seq)
		}
	}
}
