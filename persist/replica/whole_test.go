package replica_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist/replica"
)

// publishFile creates and publishes a file, as a store does.
func publishFile(files disk.FS, name string, content []byte) error {
	f, err := files.Create(name + ".tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteAt(content, 0); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = files.Publish(name+".tmp", name)
	}
	return err
}

// A new segment and a new snapshot are sent while a rebase runs, and a new segment is sent while a
// snapshot is sent. Every follower gets these files.
func TestRebase_NewFilesDuringRebase(t *testing.T) {
	var order []string
	// On a busy machine, a goroutine may start too late, so try again.
	for range 10 {
		if order = filesCome(t); slices.Equal(order, []string{"segment", "all", "snapshot"}) {
			return
		}
	}
	t.Errorf("the segment, the rebase and the snapshot ended in the order %v", order)
}

// filesCome returns the order in which a segment, a rebase and a snapshot are finished. The
// snapshot starts first. The rebase starts at the third entry of the snapshot, and the segment at
// the third entry of the rebase.
func filesCome(t *testing.T) (order []string) {
	log, mem := &hooked{}, disktest.New()
	o, err := follow(t, log, mem, replica.Options{}).Claim(background)
	require.NoError(t, err)
	files := o.Files()
	content := func(entries int) []byte { return bytes.Repeat([]byte{byte(entries)}, entries*replica.MaxEntry) }
	require.NoError(t, publishFile(files, "snapshots/00000001.snap", content(8)))
	var all sync.WaitGroup
	var mu sync.Mutex
	begin := func(what string, f func() error) func() {
		return func() {
			all.Go(func() {
				assert.NoError(t, f())
				mu.Lock()
				defer mu.Unlock()
				order = append(order, what)
			})
			// In this time, the goroutine starts to wait for the lock.
			time.Sleep(20 * time.Millisecond)
		}
	}
	var crashed *disktest.Mem
	var first replica.Position
	segment := begin("segment", func() error { return publishFile(files, "journal/00000001.seg", []byte("few bytes")) })
	rebase := begin("all", func() error {
		log.after(3, segment)
		err := o.Rebase(background)
		crashed = mem.Crash()
		first, _, _ = log.Bounds(background)
		return err
	})
	log.after(3, rebase)
	begin("snapshot", func() error { return publishFile(files, "snapshots/00000002.snap", content(20)) })()
	all.Wait()
	other := disktest.New()
	f := follow(t, log, other, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	require.True(t, f.Ready())
	require.NoError(t, same(mem, other))
	require.NoError(t, f.Close())

	// A machine that crashed during the snapshot reads only the entries after the rebase.
	log.asked = nil
	f = follow(t, log, crashed, replica.Options{})
	require.NoError(t, same(mem, crashed))
	require.NoError(t, f.Close())
	for _, after := range log.asked {
		assert.Greater(t, after, first+8)
	}
	require.NoError(t, o.Close())
	return order
}

// A hooked log calls a function in an append. It also records the positions after which Entries
// begins.
type hooked struct {
	replica.Memory
	mu    sync.Mutex
	left  int
	call  func()
	asked []replica.Position
}

// Entries implements [replica.Log].
func (l *hooked) Entries(ctx context.Context, after replica.Position) iter.Seq2[replica.Entry, error] {
	l.mu.Lock()
	l.asked = append(l.asked, after)
	l.mu.Unlock()
	return l.Memory.Entries(ctx, after)
}

// after makes the log call f in the n-th append from now on.
func (l *hooked) after(n int, f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.call = n, f
}

// Append implements [replica.Log].
func (l *hooked) Append(ctx context.Context, after replica.Position, entry []byte) (replica.Position, error) {
	l.mu.Lock()
	l.left--
	call := func() {}
	if l.left == 0 {
		call = l.call
	}
	l.mu.Unlock()
	call()
	return l.Memory.Append(ctx, after, entry)
}

// Files are created, written and removed during a rebase. Afterwards, all followers have the same
// files, wherever they begin to read. When the owner follows again, it also has these files.
func TestRebase_FilesChangeDuringRebase(t *testing.T) {
	for seed := range uint64(deep.Or(6, 60)) {
		log, mem := &replica.Memory{}, disktest.New()
		fail := func(what string, err error) {
			if err != nil {
				t.Errorf("seed %d: %s: %v", seed, what, err)
			}
		}
		live := disktest.New()
		l := follow(t, log, live, replica.Options{})
		o, err := follow(t, log, mem, replica.Options{}).Claim(background)
		require.NoError(t, err)
		files := o.Files()
		var writers sync.WaitGroup
		for n, dir := range []string{"journal", "journal", "snapshots"} {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			writers.Go(func() {
				var names []string
				for i := range 12 {
					name := fmt.Sprintf("%s/%d-%d", dir, n, i)
					fail("publish", publishFile(files, name, bytes.Repeat([]byte{byte(i)}, rng.IntN(3*replica.MaxEntry))))
					names = append(names, name)
					if name := names[rng.IntN(len(names))]; rng.IntN(2) == 0 {
						fail("grow", grow(files, name, rng.IntN(replica.MaxEntry)))
					}
					if k := rng.IntN(len(names)); rng.IntN(2) == 0 {
						fail("remove", files.Remove(names[k]))
						fail("remove", files.SyncDir(dir))
						names = append(names[:k], names[k+1:]...)
					}
				}
			})
		}
		wrote := make(chan struct{})
		go func() { writers.Wait(); close(wrote) }()
		for writing := true; writing; {
			select {
			case <-wrote:
				writing = false
			default:
			}
			fail("all", o.Rebase(background))
			f := follow(t, log, disktest.New(), replica.Options{})
			fail("wait", f.Wait(background, o.Position()))
			fail("close", f.Close())
			// The machine may crash here. The file state must then match the log.
			f, err := replica.Follow(background, log, mem.Crash(), replica.Options{})
			if fail("follow again", err); err == nil {
				fail("close", f.Close())
			}
		}
		last := disktest.New()
		f := follow(t, log, last, replica.Options{})
		for _, f := range []*replica.Follower{f, l} {
			fail("wait", f.Wait(background, o.Position()))
			fail("close", f.Close())
		}
		fail("who began last", same(mem, last))
		fail("who followed all the time", same(mem, live))
		require.NoError(t, o.Close())
	}
}

// grow appends to a file.
func grow(files disk.FS, name string, n int) error {
	f, err := files.OpenWrite(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err == nil {
		_, err = f.WriteAt(bytes.Repeat([]byte{9}, n), size)
	}
	if err != nil {
		return err
	}
	return f.Sync()
}
