package persist_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// The testdata directory has a store and a save that the first version wrote, and a description of
// their contents. They are never rewritten, because every version must be able to read them. A
// later format gets a store of its own.
const (
	keptStore = "testdata/store-1"
	keptSave  = "testdata/save-1"
	keptText  = "testdata/store-1.txt"
)

func TestOpen_StoreOfFirstVersion(t *testing.T) {
	if _, err := os.Stat(keptStore); *golden.Update && os.IsNotExist(err) {
		writeKept(t)
	}
	want, err := os.ReadFile(keptText)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	tree := storetest.ReadTree(t, keptStore)
	require.Len(t, tree, 7) // Two directories, three snapshots, two segments.
	storetest.WriteTree(t, dir, tree)
	golden.Kept(t, keptText, describe(t, dir))

	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.True(t, s.Report().Clean)
	require.Equal(t, uint64(4), s.Report().Tick)
	require.Equal(t, storetest.Rules{Name: "second", Limit: 2}, w.Rules.Get())
	require.Equal(t, storetest.Seed(6), w.Seed.Get())
	require.Equal(t, 5, w.Len())
	require.Equal(t, storetest.Position{X: 9, Y: 9}, w.Position.Values()[0])
	require.Equal(t, storetest.Bag{Name: "sack", Items: []string{"rope", ""}, Counts: map[string]int32{"gold": 1, "tin": 0}}, w.Bag.Values()[0])
	w.Fill(1)
	require.NoError(t, s.Commit()) // The store accepts more ticks.
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)

	saved := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, keptSave, saved.World))
	// Land is a resource that was added later.
	stored := func(st raw.Storage) bool { return st.Name() != saved.Land.Name() }
	require.Contains(t, string(want), "save "+saved.Digests(stored).World.String())
}

func writeKept(t *testing.T) {
	s := storetest.NewSample(t)
	delete(s.Tree, "LOCK")
	storetest.WriteTree(t, keptStore, s.Tree)
	w := storetest.New(0)
	require.NoError(t, w.Raw().Load(stateAt(t, s.Dir).State()))
	require.NoError(t, persist.Save(storetest.Background, keptSave, w.World))
	require.NoError(t, os.WriteFile(keptText, []byte(describe(t, s.Dir)), 0o600))
}

func stateAt(t *testing.T, dir string) *image.Image {
	v := storetest.Verified(t, dir)
	im, err := v.Catalog().At(storetest.Background, v.Head())
	require.NoError(t, err)
	return im
}

// describe describes the contents of a store: every tick and its digest, and all values at the
// head.
func describe(t *testing.T, dir string) string {
	var b strings.Builder
	v := storetest.Verified(t, dir)
	commits, err := v.Commits(0, ^uint64(0))
	require.NoError(t, err)
	for _, c := range commits {
		im, err := v.Catalog().At(storetest.Background, c.Seq)
		require.NoError(t, err)
		ops, err := c.Ops()
		require.NoError(t, err)
		fmt.Fprintf(&b, "record %d after %d, tick %d, %d operations, on the way to the head: %v, digest %v\n",
			c.Seq, c.Parent, c.Tick, len(ops), c.OnHead, im.Digest())
	}
	im := stateAt(t, dir)
	fmt.Fprintf(&b, "entities %v, %d alive, %d free\n", im.Registry, im.Alive, im.Free)
	for _, c := range im.Components {
		for row := range c.Len() {
			value, err := c.Value(row)
			require.NoError(t, err)
			owner := ""
			if !c.Resource {
				owner = " of " + c.Entities[row].String()
			}
			fmt.Fprintf(&b, "%s%s = %v\n", c.Name, owner, value)
		}
	}
	fmt.Fprintf(&b, "save %v\n", im.Digest())
	return b.String()
}
