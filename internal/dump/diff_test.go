package dump

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// buildDiverged creates a store of nine ticks. If the last argument is true, two ticks are
// different. Tick 6 then moves 3v1 by a shorter distance, and tick 4 also sets a value to itself.
func buildDiverged(dir string, wrong bool) error {
	s := newSample()
	ctx := context.Background()
	store, err := persist.Open(ctx, dir, s.world, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return err
	}
	err = s.begin()
	for tick := 1; tick <= 9 && err == nil; tick++ {
		for _, e := range s.position.Entities() {
			p := s.position.Mut(e)
			p.X++
			if wrong && tick == 6 && e == ecs.NewEntity(3, 1) {
				p.X -= 0.25
			}
		}
		if wrong && tick == 4 {
			s.health.Set(ecs.NewEntity(2, 1), 20)
		}
		err = store.Commit()
	}
	return errors.Join(err, store.Close(ctx))
}

// A firstWriter records how many bytes the program allocated before it wrote any output.
type firstWriter struct {
	bytes.Buffer
	before runtime.MemStats
}

func (w *firstWriter) Write(p []byte) (int, error) {
	if w.Len() == 0 {
		runtime.ReadMemStats(&w.before)
	}
	return w.Buffer.Write(p)
}

func TestDiff_PrintsBeforeAllValuesAreRead(t *testing.T) {
	const n = 5000
	file := func(name string, health Health) string {
		w := ecs.NewWorld(ecs.Options{})
		of := ecs.MustRegister[Health](w)
		for range n {
			of.Set(w.Create(), health)
		}
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, persist.Save(t.Context(), file, w))
		return file
	}
	for _, format := range []string{"--json", "--ndjson"} {
		var out firstWriter
		var after runtime.MemStats
		args := []string{"diff", file("old", 1), file("new", 2), format, "--limit", "0"}
		require.Equal(t, exitProblem, run(t.Context(), func() {}, nil, args, &out, new(bytes.Buffer)))
		runtime.ReadMemStats(&after)
		require.Equal(t, n, bytes.Count(out.Bytes(), []byte(`"changed"`))-bytes.Count(out.Bytes(), []byte(`"changed":`)))
		require.Greater(t, after.Mallocs-out.before.Mallocs, uint64(5*n), "%s: all are described before the first is printed", format)
	}
}
