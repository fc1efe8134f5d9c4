package persist_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// Calls that need a committed world name the storages that were written.
func TestErrUncommitted_NamesWhatWasWritten(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{History: 2})
	var storages []*ecs.Storage[int32]
	for i := range 7 {
		storages = append(storages, ecs.Must(ecs.Register(w, ecs.Component[int32]{Name: fmt.Sprint("Part", i)})))
	}
	store, err := persist.Open(storetest.Background, ".", w, persist.Options{Files: disk.Memory()})
	require.NoError(t, err)
	e := w.Create()
	for _, s := range storages {
		s.Set(e, 1)
	}
	_, err = store.SaveSlot(storetest.Background, "slot", "")
	require.ErrorIs(t, err, persist.ErrUncommitted)
	require.ErrorContains(t, err, "uncommitted changes of entities, Part0, Part1, Part2, Part3, 3 more: ")
	require.NoError(t, store.Commit())
	for range ecs.NewQuery1(ecs.Write(storages[2])).All() { // The loop visits a row for writing.
	}
	require.ErrorContains(t, store.MarkLast("here"), "uncommitted changes of Part2: MarkLast needs")
	require.ErrorContains(t, store.Close(storetest.Background), "uncommitted changes of Part2: the world was changed")
}
