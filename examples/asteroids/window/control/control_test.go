package control_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
)

// frames runs n frames with the same input.
func frames(t *testing.T, c *control.Control, n int, in control.Input) {
	t.Helper()
	for range n {
		require.NoError(t, c.Frame(t.Context(), in))
	}
}

func open(t *testing.T) *control.Control {
	t.Helper()
	g, err := game.Open(t.Context(), ".", disk.Memory())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close(context.Background())) })
	return control.New(g)
}

// A rewind accelerates to eight ticks a frame. It keeps the future until the player presses a
// button.
func TestFrame_RewindAccelerates(t *testing.T) {
	c := open(t)
	frames(t, c, 5, control.Input{})
	_, now, _ := c.Bar()
	require.Zero(t, now) // The game waits for the first button.
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	frames(t, c, 599, control.Input{})
	digest := c.Game.World.Digest()
	frames(t, c, 15, control.Input{Rewind: true})
	_, now, newest := c.Bar()
	require.EqualValues(t, 585, now)
	require.EqualValues(t, 600, newest)
	frames(t, c, 105, control.Input{Rewind: true})
	require.Equal(t, 8, c.Speed())
	_, now, _ = c.Bar()
	require.EqualValues(t, 600-15*(1+2+3+4+5+6+7+8), now)
	frames(t, c, 30, control.Input{}) // It waits.
	_, again, _ := c.Bar()
	require.Equal(t, now, again)
	require.True(t, c.Waiting())

	frames(t, c, 1, control.Input{Seek: true, Tick: 600})
	require.Equal(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Seek: true, Tick: 100})
	frames(t, c, 1, control.Input{Buttons: game.Left})
	_, now, newest = c.Bar()
	require.EqualValues(t, 101, now)
	require.EqualValues(t, 101, newest)
}

// A drag to a place before the oldest tick, or after the newest one, goes to that tick.
func TestFrame_SeekIsClamped(t *testing.T) {
	c := open(t)
	frames(t, c, 50, control.Input{Buttons: game.Thrust})
	frames(t, c, 1, control.Input{Seek: true, Tick: 1 << 40})
	_, now, _ := c.Bar()
	require.EqualValues(t, 50, now)
	frames(t, c, 1, control.Input{Seek: true})
	oldest, now, _ := c.Bar()
	require.EqualValues(t, 1, now)
	require.EqualValues(t, 1, oldest)
}

func TestFrame_Slots(t *testing.T) {
	c := open(t)
	frames(t, c, 50, control.Input{Buttons: game.Thrust})
	frames(t, c, 1, control.Input{Load: 2})
	require.Equal(t, "slot 2 is empty", c.Message)
	digest := c.Game.World.Digest()
	require.NoError(t, c.Frame(t.Context(), control.Input{Save: 2, Buttons: game.Fire}))
	require.Equal(t, "saved slot 2", c.Message)
	frames(t, c, 100, control.Input{Buttons: game.Fire})
	require.Equal(t, "saved slot 2", c.Message)
	frames(t, c, 30, control.Input{Buttons: game.Fire})
	require.Empty(t, c.Message)
	require.NotEqual(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Load: 2})
	require.Equal(t, "loaded slot 2", c.Message)
	_, now, _ := c.Bar()
	require.True(t, c.Waiting())
	require.LessOrEqual(t, now, uint64(53))
}

// If the disk is full, the game continues in memory and says so. It saves again when there is
// space.
func TestFrame_DiskFull(t *testing.T) {
	mem := disktest.New()
	g, err := game.Open(t.Context(), ".", mem)
	require.NoError(t, err)
	c := control.New(g)
	frames(t, c, 10, control.Input{Buttons: game.Thrust})
	mem.FailFrom(1, syscall.ENOSPC)
	for !strings.HasPrefix(c.Message, "not saved: ") {
		frames(t, c, 1, control.Input{Buttons: game.Thrust})
		time.Sleep(time.Millisecond) // The journal writes in a goroutine of its own.
	}
	require.Contains(t, c.Message, "no space")
	frames(t, c, 1, control.Input{Save: 1})
	require.Contains(t, c.Message, "not saved: ")
	_, now, _ := c.Bar()
	require.Greater(t, now, uint64(10))
	mem.FailFrom(0, nil)
	frames(t, c, 700, control.Input{Buttons: game.Thrust})
	require.Empty(t, c.Message)
	require.NoError(t, g.Close(t.Context()))
}
