//go:build unix

package persist_test

import (
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func init() {
	children["full"] = fillDisk
	children["save"] = fillSave
}

// fillDisk commits until the journal fails because of a file size limit, and prints what happened.
func fillDisk(dir, _ string) error {
	signal.Ignore(syscall.SIGXFSZ)
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{Sync: journal.SyncAlways, SnapshotBytes: -1})
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 20_000, Max: 20_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	ticks := 0
	for err == nil && ticks < 10_000 {
		w.Fill(3)
		fmt.Println("before", storetest.Persistent(w.World))
		err = s.Commit()
		if e := s.Sync(storetest.Background); err == nil && e == nil {
			fmt.Println("synced", storetest.Persistent(w.World))
		}
		ticks++
	}
	fmt.Println("error", err)
	for range 3 { // The world continues, and nothing more becomes durable.
		w.Fill(3)
		again := s.Commit()
		fmt.Println("again", again)
	}
	_, err = s.Snapshot(storetest.Background)
	fmt.Println("snapshot", err)
	fmt.Println("sync", s.Sync(storetest.Background))
	fmt.Println("alive", w.Len() == 3*(ticks+3) && w.Tick() == uint64(ticks+3))
	fmt.Println("close", s.Close(storetest.Background))
	return nil
}

// fillSave saves a small world, and then a larger one that exceeds the limit.
func fillSave(file, _ string) error {
	signal.Ignore(syscall.SIGXFSZ)
	w := storetest.New(0)
	w.Fill(3)
	if err := persist.Save(storetest.Background, file, w.World); err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 100_000, Max: 100_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	w.Fill(20_000)
	fmt.Println("save", persist.Save(storetest.Background, file, w.World))
	return nil
}

func TestFullDisk_Save(t *testing.T) {
	file := filepath.Join(t.TempDir(), "save")
	c := startChild(t, "save", file, "")
	require.NoError(t, c.cmd.Wait())
	require.Len(t, c.said("save"), 1)
	require.Contains(t, c.said("save")[0], "file too large")
	w := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, file, w.World))
	require.Equal(t, 3, w.Len())
	files, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	require.Equal(t, []string{file}, files)
}

func TestFullDisk_Commit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	c := startChild(t, "full", dir, "")
	require.NoError(t, c.cmd.Wait())
	failure := c.said("error")
	require.Len(t, failure, 1)
	require.Contains(t, failure[0], "persist: journal failed, nothing later is saved")
	require.Contains(t, failure[0], "file too large")
	for _, again := range c.said("again") {
		require.Equal(t, failure[0], again)
	}
	require.Len(t, c.said("again"), 3)
	require.Equal(t, failure, c.said("snapshot"))
	require.NotEqual(t, []string{"<nil>"}, c.said("sync"))
	require.NotEqual(t, []string{"<nil>"}, c.said("close"))
	require.Equal(t, []string{"true"}, c.said("alive"))

	synced := c.said("synced")
	require.NotEmpty(t, synced)
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{})
	require.Equal(t, synced[len(synced)-1], storetest.Persistent(w.World).String())
	require.False(t, s.Report().Clean)
	require.False(t, strings.Contains(s.Report().String(), "skipped"))
	storetest.CloseStore(t, s)
	storetest.Verified(t, dir)
}
