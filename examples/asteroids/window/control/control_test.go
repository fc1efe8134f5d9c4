package control_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/examples/asteroids/window/control"
	"github.com/stet-ecs/stet/persist"
)

// frames runs n frames with the same input. After each frame, it waits for the job.
func frames(t *testing.T, c *control.Control, n int, in control.Input) {
	t.Helper()
	for range n {
		require.NoError(t, c.Frame(t.Context(), in))
		settle(t, c)
	}
}

// settle runs frames without input until no job runs.
func settle(t *testing.T, c *control.Control) {
	t.Helper()
	for c.Busy() {
		require.NoError(t, c.Frame(t.Context(), control.Input{}))
		time.Sleep(100 * time.Microsecond)
	}
}

// bar returns the ticks of the time bar.
func bar(c *control.Control) (oldest, now, newest uint64) {
	return c.View.Oldest, c.View.Now, c.View.Newest
}

// awaitMessage runs frames with the same input until the game shows a message.
func awaitMessage(t *testing.T, c *control.Control, message string, in control.Input) {
	t.Helper()
	for end := time.Now().Add(time.Minute); c.Message != message; {
		require.True(t, time.Now().Before(end), "the message is %q", c.Message)
		frames(t, c, 1, in)
		time.Sleep(time.Millisecond)
	}
}

func open(t *testing.T) *control.Control {
	t.Helper()
	return openIn(t, disk.Memory())
}

func openIn(t *testing.T, files disk.FS) *control.Control {
	t.Helper()
	g, err := game.Open(t.Context(), ".", files)
	require.NoError(t, err)
	c := control.New(g)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

// A rewind accelerates to eight ticks a frame. It keeps the future until the player presses a
// button.
func TestFrame_RewindAccelerates(t *testing.T) {
	c := open(t)
	frames(t, c, 5, control.Input{})
	_, now, _ := bar(c)
	require.Zero(t, now) // The game has not begun without a button.
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	frames(t, c, 599, control.Input{})
	digest := c.Game.World.Digest()
	frames(t, c, 15, control.Input{Rewind: true})
	_, now, newest := bar(c)
	require.EqualValues(t, 585, now)
	require.EqualValues(t, 600, newest)
	frames(t, c, 105, control.Input{Rewind: true})
	require.Equal(t, 8, c.Speed())
	_, now, _ = bar(c)
	require.EqualValues(t, 600-15*(1+2+3+4+5+6+7+8), now)
	frames(t, c, 30, control.Input{}) // It waits.
	_, again, _ := bar(c)
	require.Equal(t, now, again)
	require.True(t, c.Waiting())

	frames(t, c, 1, control.Input{Seek: true, Tick: 600})
	require.Equal(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Seek: true, Tick: 100})
	frames(t, c, 1, control.Input{Buttons: game.Left})
	_, now, newest = bar(c)
	require.EqualValues(t, 101, now)
	require.EqualValues(t, 101, newest)
}

// A drag beyond the oldest or the newest tick goes to the oldest or the newest tick.
func TestFrame_SeekIsClamped(t *testing.T) {
	c := open(t)
	frames(t, c, 50, control.Input{Buttons: game.Thrust})
	frames(t, c, 1, control.Input{Seek: true, Tick: 1 << 40})
	_, now, _ := bar(c)
	require.EqualValues(t, 50, now)
	frames(t, c, 1, control.Input{Seek: true})
	oldest, now, _ := bar(c)
	require.EqualValues(t, 1, now)
	require.EqualValues(t, 1, oldest)
}

func TestFrame_SavesAndLoadsSlots(t *testing.T) {
	c := open(t)
	frames(t, c, 50, control.Input{Buttons: game.Thrust})
	frames(t, c, 1, control.Input{Load: 2})
	require.Equal(t, "slot 2 is empty", c.Message)
	require.NoError(t, c.Frame(t.Context(), control.Input{Save: 2, Buttons: game.Fire}))
	// The slot has the state after this frame.
	digest := c.Game.World.Digest()
	awaitMessage(t, c, "saved slot 2", control.Input{Buttons: game.Fire})
	frames(t, c, 179, control.Input{Buttons: game.Fire})
	require.Equal(t, "saved slot 2", c.Message)
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	require.Empty(t, c.Message)
	require.NotEqual(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Load: 2})
	require.Equal(t, "loaded slot 2", c.Message)
	require.True(t, c.Waiting())
	require.Equal(t, digest, c.Game.World.Digest())
	require.Len(t, c.View.Branches, 1) // The ticks before the load became a branch.

	frames(t, c, 1, control.Input{Rewind: true})
	digest = c.Game.World.Digest()
	frames(t, c, 1, control.Input{Save: 3}) // A waiting game saves the current tick.
	require.Equal(t, "saved slot 3", c.Message)
	frames(t, c, 10, control.Input{Buttons: game.Fire})
	frames(t, c, 1, control.Input{Load: 3})
	require.Equal(t, digest, c.Game.World.Digest())
}

// The time bar can reach ticks that only the store has. A player can return to a branch.
func TestFrame_SeeksStoredTicksAndBranches(t *testing.T) {
	c := open(t)
	digests := map[uint64]ecs.Digest{}
	for range 2000 {
		frames(t, c, 1, control.Input{Buttons: game.Thrust | game.Fire})
		digests[c.View.Now] = c.Game.World.Digest()
	}
	for _, tick := range []uint64{1, 1000, 77, 1999, 2000, 500} {
		frames(t, c, 2, control.Input{Seek: true, Tick: tick})
		require.Equal(t, tick, c.View.Now)
		require.Equal(t, digests[tick], c.Game.World.Digest())
	}
	for c.View.Now > 300 {
		require.NoError(t, c.Frame(t.Context(), control.Input{Rewind: true}))
		time.Sleep(time.Millisecond)
	}
	settle(t, c)
	frames(t, c, 2, control.Input{})
	_, now, newest := bar(c)
	require.EqualValues(t, 2000, newest)
	require.Equal(t, digests[now], c.Game.World.Digest())
	require.NotEmpty(t, c.View.Future)
	frames(t, c, 50, control.Input{Buttons: game.Left})
	require.Equal(t, []game.Branch{{From: now, To: 2000, Record: 2000}}, c.View.Branches)
	require.NotNil(t, c.View.Ghost)
	frames(t, c, 1, control.Input{Visit: 2})
	frames(t, c, 1, control.Input{Visit: 1})
	require.Equal(t, digests[2000], c.Game.World.Digest())
	require.Len(t, c.View.Branches, 1)
}

// While a job runs, the view does not change, and a rewind still accelerates.
func TestFrame_JobKeepsView(t *testing.T) {
	c := open(t)
	frames(t, c, 1500, control.Input{Buttons: game.Thrust | game.Fire})
	require.NoError(t, c.Frame(t.Context(), control.Input{Seek: true, Tick: 100}))
	require.True(t, c.Busy())
	for range 20 { // The job may end in one of these frames.
		require.NoError(t, c.Frame(t.Context(), control.Input{Rewind: true}))
	}
	settle(t, c)
	frames(t, c, 2, control.Input{})
	require.Equal(t, uint64(100-15-2*5), c.View.Now)
	require.Empty(t, c.Message)
}

// A replay shows the run from its first tick. Then the game continues at its tick before the
// replay.
func TestFrame_Replay(t *testing.T) {
	c := open(t)
	for range 300 {
		frames(t, c, 1, control.Input{Buttons: game.Thrust | game.Fire})
	}
	digest := c.Game.World.Digest()
	frames(t, c, 1, control.Input{Replay: true})
	require.True(t, c.View.Replaying, c.Message)
	require.Less(t, c.View.Now, uint64(3))
	sounds := 0
	for range 100 {
		frames(t, c, 1, control.Input{})
		sounds += len(c.Heard)
	}
	require.InDelta(t, 100, c.View.Now, 3)
	require.NotZero(t, sounds)
	frames(t, c, 1, control.Input{Seek: true, Tick: 280})
	require.EqualValues(t, 280, c.View.Now)
	frames(t, c, 30, control.Input{})
	require.False(t, c.View.Replaying)
	require.Equal(t, "the replay has ended", c.Message)
	require.EqualValues(t, 300, c.View.Now)
	require.Equal(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Replay: true})
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	require.False(t, c.View.Replaying)
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	require.EqualValues(t, 301, c.View.Now)
}

// The file of a run can be dropped into another game. A link leads to its moment.
func TestFrame_OpensDroppedFileAndLink(t *testing.T) {
	c := open(t)
	frames(t, c, 100, control.Input{Buttons: game.Thrust})
	var file []byte
	files := make(chan []byte, 1)
	c.KeepFile = func(name string, data []byte) (string, error) {
		require.Equal(t, "asteroids-100.zip", name)
		files <- data
		return name, nil
	}
	frames(t, c, 1, control.Input{File: true, Buttons: game.Thrust})
	require.Equal(t, "saving the run", c.Message)
	file = <-files
	awaitMessage(t, c, "saved asteroids-100.zip", control.Input{Buttons: game.Thrust})
	link := ""
	c.KeepLink = func(l string) string { link = l; return "copied" }
	frames(t, c, 1, control.Input{Link: true})
	require.Equal(t, "copied", c.Message)
	require.True(t, c.Waiting())
	digest := c.Game.World.Digest()
	frames(t, c, 100, control.Input{Buttons: game.Thrust})
	c.Visit(t.Context(), link)
	settle(t, c)
	require.Equal(t, digest, c.Game.World.Digest())
	require.Equal(t, "this is the moment of the link", c.Message)
	frames(t, c, 10, control.Input{Buttons: game.Thrust})
	// The player puts links into the address bar.
	frames(t, c, 1, control.Input{Open: link})
	require.Equal(t, digest, c.Game.World.Digest())
	frames(t, c, 1, control.Input{Open: "record:7,12345678"})
	require.Equal(t, "the link is from another game", c.Message)
	c.Visit(t.Context(), "record:99999")
	settle(t, c)
	require.Equal(t, "this moment is no longer there", c.Message)

	other := open(t)
	frames(t, other, 1, control.Input{Dropped: []byte("no game")})
	require.Equal(t, "not loaded: the file is damaged, or no game", other.Message)
	frames(t, other, 1, control.Input{Dropped: file})
	require.Equal(t, "loaded the last moment of the file", other.Message)
	require.GreaterOrEqual(t, other.View.Now, uint64(100))
	require.Equal(t, c.Game.State.Get().Wave, other.View.State.Wave)
	loaded := other.View.Now
	frames(t, other, 1, control.Input{Replay: true})
	frames(t, other, 1, control.Input{})
	require.Equal(t, "the replay has ended", other.Message, "a line of one tick")
	frames(t, other, 1, control.Input{Buttons: game.Fire})
	require.Empty(t, other.Message, "the player has gone on")
	frames(t, other, 100, control.Input{Buttons: game.Fire})
	frames(t, other, 1, control.Input{Seek: true, Tick: 1})
	require.Equal(t, loaded, other.View.Now, "the line begins with the file")
	frames(t, other, 1, control.Input{Replay: true})
	require.True(t, other.View.Replaying, other.Message)
	frames(t, other, 1, control.Input{Replay: true})
	frames(t, other, 1, control.Input{Seek: true, Tick: 1 << 20})
	frames(t, other, 1, control.Input{Replay: true})
	frames(t, other, 101, control.Input{})
	require.Equal(t, "the replay has ended", other.Message)
}

// After the last ship, the game stands still until the player fires.
func TestFrame_GameOver(t *testing.T) {
	c := open(t)
	frames(t, c, 10, control.Input{Buttons: game.Thrust})
	c.Game.State.Set(game.State{Wait: 5})
	c.Game.Ship.Clear()
	frames(t, c, 20, control.Input{Buttons: game.Fire})
	require.Equal(t, uint64(30), c.View.Now, "the player holds Fire")
	require.Zero(t, c.View.State.Lives)
	frames(t, c, 20, control.Input{Buttons: game.Left})
	require.Equal(t, uint64(31), c.View.Now)
	require.False(t, c.View.Playing)
	frames(t, c, 1, control.Input{Buttons: game.Fire})
	require.Equal(t, int32(3), c.View.State.Lives)
}

// A second program shows the game that the first program plays.
func TestFrame_Watch(t *testing.T) {
	files := disk.Memory()
	c := openIn(t, files)
	frames(t, c, 10, control.Input{Buttons: game.Thrust})
	_, err := game.Open(t.Context(), ".", files)
	require.ErrorIs(t, err, persist.ErrLocked)
	other, err := game.Watch(t.Context(), ".", files)
	require.NoError(t, err)
	watcher := control.New(other)
	for range 20 {
		frames(t, c, 10, control.Input{Buttons: game.Thrust | game.Fire})
		require.NoError(t, c.Game.Store.Sync(t.Context()))
		frames(t, watcher, 2, control.Input{Buttons: game.Left, Rewind: true})
		require.True(t, watcher.View.Watching)
		require.Equal(t, c.View.Now, watcher.View.Now)
		require.Equal(t, c.View.Newest, watcher.View.Newest)
		require.Equal(t, c.View.Sprites, watcher.View.Sprites)
	}
	require.NoError(t, watcher.Close(t.Context()))
}

// If the disk is full, the game continues in memory and says so. It saves again when there is
// space.
func TestFrame_DiskFull(t *testing.T) {
	mem := disktest.New()
	c := openIn(t, mem)
	frames(t, c, 10, control.Input{Buttons: game.Thrust})
	mem.FailFrom(1, syscall.ENOSPC)
	awaitMessage(t, c, "not saved: no space is left", control.Input{Buttons: game.Thrust})
	frames(t, c, 1, control.Input{Save: 1})
	require.Contains(t, c.Message, "not saved: ")
	_, now, _ := bar(c)
	frames(t, c, 100, control.Input{Buttons: game.Thrust})
	require.Equal(t, now+100, c.View.Now, "the game continues in memory")
	mem.FailFrom(0, nil)
	frames(t, c, 700, control.Input{Buttons: game.Thrust})
	require.Empty(t, c.Message)
}
