package ecs

import (
	"testing"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stretchr/testify/require"
)

func TestWritten_NamesStorages(t *testing.T) {
	w := NewWorld(Options{History: 2})
	place, speed, score := Must(Register(w, Component[int32]{Name: "Place"})), Must(Register(w, Component[int16]{Name: "Speed"})), Must(RegisterResource(w, int64(0), Component[int64]{Name: "Score"}))
	best := Must(RegisterResource(w, int8(0), Component[int8]{Name: "Best", NoRewind: true}))
	require.NoError(t, w.Raw().Attach(recorderFunc(func(*raw.Change) uint64 { return 1 }), 0))
	e := w.Create()
	place.Set(e, 1)
	require.Equal(t, []string{"entities", "Place"}, w.Raw().Written())
	checkpoint := w.Checkpoint() // A write before a checkpoint counts, too.
	speed.Set(e, 2)
	require.Equal(t, []string{"entities", "Place", "Speed"}, w.Raw().Written())
	w.Restore(checkpoint)
	w.Release(checkpoint)
	w.Commit()
	require.Empty(t, w.Raw().Written())
	for range NewQuery1(Read(place)).All() {
	}
	require.Empty(t, w.Raw().Written())
	for range NewQuery1(Write(place)).All() { // It only visits the row.
	}
	require.Equal(t, []string{"Place"}, w.Raw().Written())
	w.Commit()
	score.Set(3)
	best.Set(4)
	require.Equal(t, []string{"Score", "Best"}, w.Raw().Written())
	w.Commit()
	best.Set(5)
	require.Equal(t, []string{"Best"}, w.Raw().Written())
	require.True(t, w.Dirty())
	w.Commit()
	require.Empty(t, w.Raw().Written())
}
