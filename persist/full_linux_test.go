package persist_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// TestFullFileSystem_DurableTicksStay fills a file system of 400 KiB in a process with
// its own mounts.
func TestFullFileSystem_DurableTicksStay(t *testing.T) {
	t.Parallel()
	withMounts(t, fillFileSystem)
}

// TestFullFileSystem_OpenAndPruneStore fills a file system of 40 MiB to the last byte
// with a store that keeps everything.
func TestFullFileSystem_OpenAndPruneStore(t *testing.T) {
	t.Parallel()
	withMounts(t, pruneFullFileSystem)
}

// withMounts runs a test in a process with its own mounts.
func withMounts(t *testing.T, run func(t *testing.T)) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	if os.Getenv(insideVariable) != "" {
		run(t)
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	inside := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := inside.CombinedOutput()
	if err != nil && inside.Process == nil {
		t.Skipf("the process cannot have its own mounts: %v", err)
	}
	require.NoError(t, err, string(out))
}

// pruneFullFileSystem reopens a store that filled its file system: once by Open after a close, and
// once by Resume while it is open.
func pruneFullFileSystem(t *testing.T) {
	for _, resume := range []bool{false, true} {
		dir := t.TempDir()
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=40m,mode=700"))
		store := filepath.Join(dir, "store")
		newWorld := func() (*ecs.World, *ecs.Storage[[64]int64]) {
			w := ecs.NewWorld(ecs.Options{})
			return w, ecs.MustRegister(w, ecs.Component[[64]int64]{Name: "cells"})
		}
		options := persist.Options{SnapshotPace: -1, SnapshotBytes: 512 << 10}
		options.Retain.KeepAll = !resume
		options.Retain.Bytes = map[bool]int64{true: 100 << 20}[resume]
		options = persist.Segmented(options, 1<<20)
		w, cells := newWorld()
		for range 500 {
			cells.Set(w.Create(), [64]int64{})
		}
		s, err := persist.Open(storetest.Background, store, w, options)
		require.NoError(t, err)
		tick := func() error {
			for i, rows := 0, cells.MutValues(); i < len(rows); i++ {
				rows[i][w.Tick()%64]++
			}
			err := s.Commit()
			if err == nil {
				err = s.Sync(storetest.Background)
			}
			// Wait for the snapshot, so that every round has the same number of snapshots.
			_, _ = s.Written(storetest.Background)
			return err
		}
		durable := ""
		for tick() == nil {
			durable = storetest.Persistent(w).String()
		}
		require.ErrorIs(t, s.Err(), syscall.ENOSPC)
		require.FileExists(t, filepath.Join(store, "BALLAST"))
		rest, err := os.Create(filepath.Join(dir, "rest")) // Fills the space that remains.
		require.NoError(t, err)
		for _, size := range []int{64 << 10, 1} {
			for err = nil; err == nil; {
				_, err = rest.Write(make([]byte, size))
			}
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, rest.Close())
		if resume {
			persist.Retained(s, persist.Retention{Bytes: 10 << 20})
			require.NoError(t, s.Resume(storetest.Background))
		} else {
			require.ErrorIs(t, s.Close(storetest.Background), syscall.ENOSPC)
			w, cells = newWorld()
			options.Retain = persist.Retention{Bytes: 10 << 20}
			s, err = persist.Open(storetest.Background, store, w, options)
			require.NoError(t, err)
			require.Equal(t, durable, storetest.Persistent(w).String())
			require.Less(t, s.Report().Kept.Bytes, int64(20<<20))
		}
		require.NoFileExists(t, filepath.Join(store, "BALLAST"))
		require.Less(t, s.Metrics().DiskBytes, int64(20<<20))
		for range 100 {
			require.NoError(t, tick())
		}
		r, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
		require.NoError(t, r.RemoveErr)
		require.LessOrEqual(t, s.Metrics().DiskBytes, int64(10<<20))
		want := storetest.Persistent(w).String()
		require.NoError(t, s.Close(storetest.Background))
		v := storetest.Verified(t, store)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.Equal(t, want, im.Digest().String())
		require.NoError(t, v.Close())
		require.NoError(t, unix.Unmount(dir, 0))
	}
}

// fillFileSystem makes a store run out of space again and again, in snapshots and in the journal,
// and frees a little space between.
func fillFileSystem(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=400k,mode=700"))
	defer func() { require.NoError(t, unix.Unmount(dir, 0)) }()
	var room []string // Files that are removed to free space.
	for i := range 8 {
		name := filepath.Join(dir, fmt.Sprint("room", i))
		require.NoError(t, os.WriteFile(name, make([]byte, 16<<10), 0o600))
		room = append(room, name)
	}
	store := filepath.Join(dir, "store")
	durable := ""
	full := 0
	for opening := 0; ; opening++ {
		w := storetest.New(0)
		s, err := persist.Open(storetest.Background, store, w.World, persist.Options{Sync: journal.SyncAlways, SnapshotBytes: -1})
		if err == nil {
			if found := storetest.Persistent(w.World).String(); opening > 0 {
				require.Equal(t, durable, found)
			}
			durable = fillStore(t, s, w)
		} else {
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.Zero(t, w.Len())
		}
		full++
		v := storetest.Verified(t, store)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.Equal(t, durable, im.Digest().String())
		require.NoError(t, v.Close())
		if len(room) == 0 {
			break
		}
		require.NoError(t, os.Remove(room[0]))
		room = room[1:]
	}
	require.Equal(t, 9, full)
}

// fillStore commits until the journal fails for lack of space. It also takes snapshots, which may
// fail. It returns the last durable digest.
func fillStore(t *testing.T, s *persist.Store, w *storetest.World) (durable string) {
	require.NoError(t, s.Sync(storetest.Background))
	durable = storetest.Persistent(w.World).String()
	for {
		if w.Tick()%5 == 0 && s.Err() == nil && !w.Raw().Dirty() {
			if _, err := s.Snapshot(storetest.Background); err != nil && s.Err() == nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
			}
		}
		w.Fill(20)
		if err := s.Commit(); err == nil && s.Sync(storetest.Background) == nil {
			durable = storetest.Persistent(w.World).String()
			continue
		}
		require.ErrorIs(t, s.Err(), syscall.ENOSPC)
		require.ErrorIs(t, s.Commit(), syscall.ENOSPC)
		require.ErrorIs(t, s.Close(storetest.Background), syscall.ENOSPC)
		return durable
	}
}
