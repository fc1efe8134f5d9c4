package persist_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

const slot = "slot.save"

// saveForever saves a world to the slot until the process is killed, and prints "saved" after each
// save. With the argument "stop" it prints "writing" in the middle of the first save, and then
// waits.
func saveForever(dir, argument string) error {
	w := storetest.New(0)
	w.Fill(2000)
	ctx := storetest.Background
	if argument == "stop" {
		ctx = persist.WithProgress(ctx, func(p persist.Progress) {
			if p.Done > 0 {
				fmt.Println("writing 1")
				select {}
			}
		})
	}
	for {
		if err := persist.Save(ctx, filepath.Join(dir, slot), w.World); err != nil {
			return err
		}
		fmt.Println("saved 1")
	}
}

// temps returns the files in dir except the slot.
func temps(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() != slot {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestSave_ConcurrentProcesses(t *testing.T) {
	dir := t.TempDir()
	file, own := filepath.Join(dir, slot), filepath.Join(dir, slot+".tmp")
	require.NoError(t, os.WriteFile(own, []byte("a user's own"), 0o600))
	var childs []*child
	for range 2 {
		childs = append(childs, startChild(t, "slot", dir, ""))
	}
	for _, c := range childs {
		c.await(t, "saved", 1)
	}
	var savers sync.WaitGroup
	var loaded atomic.Bool
	for i := range 3 {
		savers.Go(func() {
			w := storetest.New(0)
			w.Fill(1000 * (1 + i))
			for n := 0; n < 5 || !loaded.Load(); n++ {
				if err := persist.Save(storetest.Background, file, w.World); err != nil {
					t.Errorf("saver %d: %v", i, err)
					return
				}
			}
		})
	}
	for range 40 {
		w := storetest.New(0)
		if err := persist.Load(storetest.Background, file, w.World); err != nil {
			t.Errorf("load: %v", err)
		} else if n := w.Len(); n != 1000 && n != 2000 && n != 3000 {
			t.Errorf("the slot holds %d entities", n)
		}
	}
	loaded.Store(true)
	savers.Wait()
	for _, c := range childs {
		c.kill(t)
		require.Empty(t, c.said("failed"))
	}
	require.NoError(t, persist.Save(storetest.Background, file, storetest.New(0).World))
	if runtime.GOOS != "windows" { // On Windows, Save removes leftovers by their age.
		require.Equal(t, []string{slot + ".tmp"}, temps(t, dir))
	}
	text, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, "a user's own", string(text))
}

// A beforeRename is a file system that calls a function before it renames a file.
type beforeRename struct {
	disk.FS
	call func()
}

func (b beforeRename) Rename(from, to string) error {
	b.call()
	return b.FS.Rename(from, to)
}

// A save succeeds even if another process is killed in the middle of a save to the same file.
func TestSave_OtherSaverKilled(t *testing.T) {
	dir := t.TempDir()
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	for n := 1; n <= 3; n++ {
		w := storetest.New(0)
		w.Fill(n)
		err := persist.Save(storetest.Background, slot, w.World, persist.FileOptions{Files: beforeRename{files, func() {
			c := startChild(t, "slot", dir, "stop")
			c.await(t, "writing", 1)
			c.kill(t)
		}}})
		require.NoError(t, err)
		again := storetest.New(0)
		require.NoError(t, persist.Load(storetest.Background, slot, again.World, persist.FileOptions{Files: files}))
		require.Equal(t, w.Digest(), again.Digest())
		if runtime.GOOS != "windows" {
			require.Len(t, temps(t, dir), 1) // Save removed the files of killed savers.
		}
	}
}

// A former owner writes a snapshot while the new owner publishes one with the same number. The
// snapshot of the new owner stays.
func TestSnapshot_WrittenByFormerOwner(t *testing.T) {
	mem := disktest.New()
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}
	formerWorld, world := storetest.New(0), storetest.New(0)
	former, err := persist.Open(storetest.Background, ".", formerWorld.World, storetest.In(mem, options))
	require.NoError(t, err)
	formerWorld.Fill(7)
	require.NoError(t, former.Commit())
	require.NoError(t, former.Sync(storetest.Background))
	mem.Loosen("LOCK")
	owner, err := persist.Open(storetest.Background, ".", world.World, storetest.In(mem, options))
	require.NoError(t, err)
	world.Fill(9)
	require.NoError(t, owner.Commit())

	const name = "snapshots/00000002.snap"
	var begun atomic.Bool
	writing, goOn, ended := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	mem.OnCall(func(_ int, call string) {
		switch {
		// The new owner publishes its snapshot.
		case strings.HasPrefix(call, "publish "+name) && !begun.Swap(true):
			go func() {
				_, err := former.Snapshot(storetest.Background)
				ended <- err
				writing <- errors.New("the former owner wrote nothing")
			}()
			require.NoError(t, <-writing)
		// The former owner writes its snapshot.
		case strings.HasPrefix(call, "write "+name) && begun.Load():
			select {
			case writing <- nil:
				<-goOn
			default:
			}
		}
	})
	r, err := owner.Snapshot(storetest.Background)
	require.NoError(t, err)
	require.Equal(t, name, r.Name)
	whole := mem.Bytes(name)
	again := storetest.New(0)
	require.NoError(t, persist.Load(storetest.Background, name, again.World, persist.FileOptions{Files: mem}))
	require.Equal(t, world.Digest(), again.Digest())
	close(goOn)
	require.ErrorIs(t, <-ended, persist.ErrLost)
	mem.OnCall(nil)
	require.Equal(t, whole, mem.Bytes(name))
	storetest.CloseStore(t, owner)
	require.NoError(t, simVerify(mem.Crash(), world))
}

// Opening a store keeps the snapshot that a former owner is still writing. It removes unfinished
// files of processes that have ended.
func TestOpen_KeepsSnapshotBeingWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	storetest.CloseStore(t, storetest.Open(t, dir, storetest.New(0), persist.Options{}))
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	var kept string
	for i, name := range []string{"snapshots/00000007.snap", "journal/00000009.seg", "journal/00000009.ledger", "snapshots/00000008.snap"} {
		temp, err := disk.CreateTemp(files, name)
		require.NoError(t, err)
		require.NoError(t, temp.File.Close())
		if i < 3 {
			temp.Unlock()
		} else {
			defer temp.Discard()
			kept = temp.Name()
		}
	}
	own := map[string]string{"snapshots/00000006.snap.bak.tmp": "own", "journal/notes.tmp": "own"}
	storetest.WriteTree(t, dir, own)
	before := storetest.ReadTree(t, dir)
	storetest.CloseStore(t, storetest.Open(t, dir, storetest.New(0), persist.Options{}))
	if runtime.GOOS == "windows" { // On Windows, Open removes leftovers by their age.
		return
	}
	after := storetest.ReadTree(t, dir)
	for name := range before {
		if _, ok := disk.TempOf(name); ok && name != kept {
			require.NotContains(t, after, name)
		}
	}
	require.Contains(t, after, kept)
	for name := range own {
		require.Contains(t, after, name)
	}
}
