package repair_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// requireExported requires that the values by name in w equal those in an export of dir. It
// returns the number of rows.
func requireExported(t *testing.T, w *ecs.World, dir string) (rows int) {
	v := storetest.ViewOf(t, dir)
	im, err := v.At(storetest.Background, v.Head())
	require.NoError(t, err)
	for line := range strings.Lines(exported(t, im, true)) {
		var row struct {
			Component, Entity string
			Value             json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		if row.Component == "" || row.Value == nil {
			continue
		}
		s, ok := w.Storage(row.Component)
		require.True(t, ok, row.Component)
		e := ecs.Entity(0)
		if row.Entity != "" {
			e, err = ecs.ParseEntity(row.Entity)
			require.NoError(t, err)
		} else if s.Entities() != nil {
			// The row is a gap.
			continue
		}
		src, ok := s.GetJSON(e)
		require.True(t, ok, line)
		require.Equal(t, string(row.Value), string(src))
		rows++
	}
	return rows
}

func TestExport_SameValuesAsGetJSON(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	store := storetest.Open(t, dir, w, persist.Options{})
	w.Fill(30)
	w.Commit()
	storetest.CloseStore(t, store)
	rows := requireExported(t, w.World, dir)
	require.Greater(t, rows, 30)

	// A world without registered types reads the same values by name, and can write them.
	bare := ecs.NewWorld(ecs.Options{})
	store, err := persist.Open(storetest.Background, dir, bare, persist.Options{})
	require.NoError(t, err)
	require.Equal(t, rows, requireExported(t, bare, dir))
	texts := map[string]string{}
	target := bare.Create()
	for _, s := range bare.Raw().Storages() {
		if s.IsResource() {
			continue
		}
		named, _ := bare.Storage(s.Name())
		require.ErrorContains(t, named.SetAny(target, 1), "the program has not registered it")
		for _, e := range named.Entities() {
			if e == ecs.Vacant {
				continue
			}
			src, ok := named.GetJSON(e)
			require.True(t, ok)
			require.NoError(t, named.SetJSON(target, src), s.Name())
			_, ok = named.GetAny(e)
			require.False(t, ok)
			texts[s.Name()] = string(src)
			break
		}
	}
	require.NotEmpty(t, texts)
	bare.Commit()
	storetest.CloseStore(t, store)
	require.Equal(t, rows+len(texts), requireExported(t, bare, dir))

	// A world with registered types finds the written values.
	again := storetest.New(0)
	store = storetest.Open(t, dir, again, persist.Options{})
	defer storetest.CloseStore(t, store)
	for name, text := range texts {
		s, ok := again.Storage(name)
		require.True(t, ok)
		src, _ := s.GetJSON(target)
		require.Equal(t, text, string(src))
	}
}
