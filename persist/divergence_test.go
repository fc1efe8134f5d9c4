package persist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/persist"
)

// diverged returns the divergence of a game that keeps a counter outside its world.
func diverged() *schedule.Divergence {
	w := ecs.NewWorld(ecs.Options{History: 2})
	scores := ecs.MustRegister[Score](w)
	scores.Set(w.Create(), Score{})
	w.Commit()

	points := 0
	systems := schedule.New[struct{}](w)
	systems.Add("score", scores, func(*schedule.Tick[struct{}]) {
		points++
		scores.Set(w.Entities()[0], Score{points})
	})
	test, err := systems.SyncTest(2)
	for err == nil {
		err = test.Step(struct{}{})
	}
	var d *schedule.Divergence
	errors.As(err, &d)
	return d
}

func ExampleSaveDivergence() {
	temp, remove := tempDir()
	defer remove()
	command, err := persist.SaveDivergence(context.Background(), temp, diverged())
	fmt.Println(strings.ReplaceAll(command, temp+string(filepath.Separator), ""), err)
	// Output: ecsdump diff tick2-first.save tick2-again.save <nil>
}

func TestSaveDivergence_TwoWorlds(t *testing.T) {
	ctx, d := context.Background(), diverged()
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // The second call replaces the files of the first.
		command, err := persist.SaveDivergence(ctx, dir, d)
		require.NoError(t, err)
		files := strings.Fields(command)[2:]
		require.Len(t, files, 2)
		for i, want := range []*ecs.World{d.First, d.Again} {
			w := ecs.NewWorld(ecs.Options{})
			ecs.MustRegister[Score](w)
			require.NoError(t, persist.Load(ctx, files[i], w))
			require.Equal(t, want.Digest(), w.Digest())
		}
	}
	spaced := filepath.Join(t.TempDir(), "it's of today")
	command, err := persist.SaveDivergence(ctx, spaced, d)
	require.NoError(t, err)
	require.Equal(t, shell.Command("ecsdump", "diff", filepath.Join(spaced, "tick2-first.save"), filepath.Join(spaced, "tick2-again.save")), command)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = persist.SaveDivergence(ctx, filepath.Join(dir, "file"), d)
	require.Error(t, err)
}
