//go:build unix

package game

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// childDir is an environment variable. If it is set, the test binary plays the game in that
// directory until it is killed.
const childDir = "STET_ASTEROIDS_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Println(playForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// plannedButtons returns the buttons of the next tick. They depend only on the world.
func plannedButtons(g *Game) Buttons {
	return bot{rand.New(rand.NewPCG(g.World.Tick(), 0))}.buttons(g)
}

// playForever plays the game in dir without end, and prints each new durable tick.
func playForever(dir string) error {
	g, err := Open(context.Background(), dir, nil)
	for last := uint64(0); err == nil; err = g.Step(plannedButtons(g)) {
		if durable := g.Store.Metrics().DurableTick; durable > last {
			last = durable
			fmt.Println("durable", durable)
		}
		time.Sleep(200 * time.Microsecond)
	}
	return err
}

// A process is killed several times while it plays. The next run continues at a durable tick or
// later, and can rewind the ticks of the killed process.
func TestGame_ContinuesAfterKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	executable, err := os.Executable()
	require.NoError(t, err)
	reference := New()
	digests := []ecs.Digest{0}
	for run := range 4 {
		child := exec.Command(executable)
		child.Env = append(os.Environ(), childDir+"="+dir)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		t.Cleanup(func() { child.Process.Kill() })
		durable, lines := uint64(0), bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			_, err := fmt.Sscanf(lines.Text(), "durable %d", &durable)
			require.NoError(t, err, lines.Text())
			if n == 2+run {
				// The loop continues, because the pipe may contain more lines.
				require.NoError(t, child.Process.Kill())
			}
		}
		require.Error(t, child.Wait())
		require.Equal(t, -1, child.ProcessState.ExitCode(), "it was not killed")

		g := open(t, dir)
		require.False(t, g.Store.Report().Clean)
		require.GreaterOrEqual(t, g.World.Tick(), durable)
		for reference.World.Tick() < g.World.Tick() {
			reference.Systems.Step(plannedButtons(reference))
			reference.World.Commit()
			digests = append(digests, reference.World.Digest())
		}
		t.Logf("durable tick %d, recovered tick %d", durable, g.World.Tick())
		require.Equal(t, reference.World.Digest(), g.World.Digest())
		require.Equal(t, reference.High.Get(), g.High.Get())
		require.NoError(t, g.Rewind(100))
		require.Equal(t, digests[g.World.Tick()], g.World.Digest())
		require.NoError(t, g.World.History().Seek(reference.World.Tick()))
		require.NoError(t, g.Store.Close(t.Context()))
	}
	require.Zero(t, replay(t, dir, New()))
}
