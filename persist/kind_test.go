package persist_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// kindWorld has positions in a storage of some kind, for every other entity.
func kindWorld(k ecs.Kind, entities int) (*ecs.World, *ecs.Storage[storetest.Position]) {
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister(w, ecs.Component[storetest.Position]{Kind: k})
	for i := range entities {
		if e := w.Create(); i%2 == 0 {
			s.Set(e, storetest.Position{X: float32(i), Y: 1})
		}
	}
	return w, s
}

var storageKinds = []ecs.Kind{ecs.Sparse, ecs.Indexed, ecs.Hashed, ecs.Ordered}

// A tick records rows by position. If another kind of storage places rows differently, Open
// converts the store. Otherwise the store continues without conversion.
func TestOpen_StorageKindChanged(t *testing.T) {
	t.Parallel()
	for _, from := range storageKinds {
		dir, file := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "save")
		w, _ := kindWorld(from, 100)
		s, err := persist.Open(storetest.Background, dir, w, persist.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Close(storetest.Background))
		require.NoError(t, persist.Save(storetest.Background, file, w))
		for _, to := range storageKinds {
			again, positions := kindWorld(to, 0)
			s, err := persist.Open(storetest.Background, dir, again, persist.Options{})
			require.NoError(t, err, "%v to %v", from, to)
			if c := s.Report().Converted; c == nil {
				require.Equal(t, w.Digest(), again.Digest())
			} else {
				require.Contains(t, c[0].String(), "Indexed")
			}
			for _, e := range again.Entities() {
				v, has := positions.Get(e)
				require.True(t, has == (e.Index()%2 == 0) || e.Index() == 4)
				require.True(t, !has || v == storetest.Position{X: float32(e.Index()), Y: 1})
			}
			positions.Remove(again.Entities()[4])
			require.NoError(t, s.Commit())
			require.NoError(t, s.Close(storetest.Background))
			w = again
			loaded, positions := kindWorld(to, 0)
			require.NoError(t, persist.Load(storetest.Background, file, loaded))
			require.Equal(t, 50, positions.Len())
			for _, e := range loaded.Entities() {
				v, has := positions.Get(e)
				require.Equal(t, e.Index()%2 == 0, has)
				require.True(t, !has || v == storetest.Position{X: float32(e.Index()), Y: 1})
			}
		}
		storetest.Verified(t, dir)
	}
}
