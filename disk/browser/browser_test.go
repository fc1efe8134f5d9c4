//go:build js && wasm

package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strconv"
	"syscall/js"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/browser"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// These tests run in a browser: make opfs.

func open(t *testing.T, name string) disk.FS {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tree, err := browser.Open(ctx, name)
	require.NoError(t, err)
	return tree
}

func content(t *testing.T, tree disk.FS, name string) string {
	t.Helper()
	f, err := tree.Open(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	return string(b)
}

func TestOpen_FilesStay(t *testing.T) {
	tree := open(t, t.Name())
	require.NoError(t, tree.Mkdir("d"))
	f, err := tree.Create("d/a")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("text"), 3)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, tree.Rename("d/a", "d/b"))
	require.NoError(t, tree.SyncDir("d"))
	require.NoError(t, tree.Close())
	_, err = tree.Open("d/b")
	require.ErrorIs(t, err, fs.ErrClosed)

	tree = open(t, t.Name())
	defer tree.Close()
	require.Equal(t, "\x00\x00\x00text", content(t, tree, "d/b"))
	_, err = tree.Open("d/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, tree.Remove("d/b"))
	require.NoError(t, tree.SyncDir("d"))
}

// The bytes of a file are those of random writes, also after the file system was opened again.
func TestFile_RandomWrites(t *testing.T) {
	tree := open(t, t.Name())
	rng := rand.New(rand.NewPCG(1, 2))
	var want []byte
	_ = tree.Remove("a")
	f, err := tree.Create("a")
	require.NoError(t, err)
	for range 60 {
		at, b := rng.IntN(len(want)+100), make([]byte, 1+rng.IntN(5000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if more := at + len(b) - len(want); more > 0 {
			want = append(want, make([]byte, more)...)
		}
		copy(want[at:], b)
		n, err := f.WriteAt(b, int64(at))
		require.NoError(t, err)
		require.Equal(t, len(b), n)
	}
	require.Equal(t, string(want), content(t, tree, "a"))
	require.NoError(t, f.Close())
	require.NoError(t, tree.Close())
	tree = open(t, t.Name())
	defer tree.Close()
	require.Equal(t, string(want), content(t, tree, "a"))
}

// A second Open fails while the first one has the files, and succeeds after Close. If the lock is
// taken by force, every call returns ErrLost.
func TestOpen_SecondTab(t *testing.T) {
	tree := open(t, t.Name())
	_, err := browser.Open(t.Context(), t.Name())
	require.ErrorIs(t, err, disk.ErrLocked)
	require.NoError(t, tree.Close())
	tree = open(t, t.Name())
	steal := js.Global().Get("Function").New("name", `return navigator.locks.request(name, { steal: true }, () => {})`)
	steal.Invoke("stet: " + t.Name())
	require.Eventually(t, func() bool {
		_, err := tree.Create("a")
		return errors.Is(err, disk.ErrLost)
	}, 10*time.Second, 10*time.Millisecond)
	l, err := tree.Lock("lock")
	require.ErrorIs(t, err, disk.ErrLost)
	require.Nil(t, l)
	require.Eventually(t, func() bool { // The other lock ends soon.
		tree, err := browser.Open(t.Context(), t.Name())
		return err == nil && tree.Close() == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, tree.Close(), disk.ErrLost)
}

// A context that has ended leaves no lock behind.
func TestOpen_EndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		_, err := browser.Open(ctx, t.Name())
		require.Error(t, err)
	}
	require.NoError(t, open(t, t.Name()).Close())
}

// Open returns ErrUnsupported if the browser has no Web Locks, or refuses them, and if it has no
// private files.
func TestOpen_Unsupported(t *testing.T) {
	for _, replace := range []string{
		`Object.defineProperty(navigator, "locks", { value: undefined, configurable: true })`,
		`Object.defineProperty(navigator, "locks", { value: { request: async () => { throw new DOMException("no", "SecurityError") } }, configurable: true })`,
		`const old = Blob; self.Blob = class extends old { constructor(parts, o) { super(["delete StorageManager.prototype.getDirectory;", ...parts], o) } }; self.oldBlob = old`,
		`const old = Blob; self.Blob = class extends old { constructor(parts, o) { super(["syntax error"], o) } }; self.oldBlob = old`,
	} {
		js.Global().Get("Function").New(replace).Invoke()
		_, err := browser.Open(t.Context(), t.Name())
		require.ErrorIs(t, err, browser.ErrUnsupported, replace)
		js.Global().Get("Function").New(`delete navigator.locks; self.Blob = self.oldBlob ?? Blob`).Invoke()
	}
	require.NoError(t, open(t, t.Name()).Close())
}

type counter struct{ N int }

// A store keeps its ticks, slots and snapshots in the browser.
func TestStore_ContinuesAfterOpen(t *testing.T) {
	last := 0
	for run := range 3 {
		tree := open(t, t.Name())
		w := ecs.NewWorld(ecs.Options{History: 10})
		counters := ecs.MustRegister[counter](w)
		store, err := persist.Open(t.Context(), ".", w, persist.Options{Files: tree, SnapshotBytes: 4000})
		require.NoError(t, err)
		if run == 0 {
			w.Clear() // An earlier run of the test may have left a store.
			counters.Set(w.Create(), counter{})
		}
		e := w.Entities()[0]
		if run > 0 {
			c, _ := counters.Get(e)
			require.Equal(t, last, c.N)
		}
		for range 200 {
			counters.Mut(e).N++
			require.NoError(t, store.Commit())
		}
		c, _ := counters.Get(e)
		last = c.N
		_, err = store.SaveSlot(t.Context(), "slot "+strconv.Itoa(run), "")
		require.NoError(t, err)
		require.Len(t, store.Slots(), run+1)
		require.NoError(t, store.Close(t.Context()))
		require.NoError(t, tree.Close())
	}
}

func TestUsage_CountsBytes(t *testing.T) {
	used, quota, err := browser.Usage(t.Context())
	require.NoError(t, err)
	require.Less(t, used, quota)
	_, err = browser.Persist(t.Context())
	require.NoError(t, err)
}

// BenchmarkCommit measures a Commit with one changed row, and a Sync after it.
func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprint("sync=", sync), func(b *testing.B) {
			tree, err := browser.Open(b.Context(), b.Name())
			require.NoError(b, err)
			w := ecs.NewWorld(ecs.Options{})
			counters := ecs.MustRegister[counter](w)
			store, err := persist.Open(b.Context(), ".", w, persist.Options{Files: tree})
			require.NoError(b, err)
			e := w.Create()
			counters.Set(e, counter{})
			for b.Loop() {
				counters.Mut(e).N++
				require.NoError(b, store.Commit())
				if sync {
					require.NoError(b, store.Sync(b.Context()))
				}
			}
			require.NoError(b, store.Close(b.Context()))
			require.NoError(b, tree.Close())
		})
	}
}

// BenchmarkWrite measures a write of 4 KiB, and a Sync after it.
func BenchmarkWrite(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprint("sync=", sync), func(b *testing.B) {
			tree, err := browser.Open(b.Context(), b.Name())
			require.NoError(b, err)
			f, err := tree.Create("a")
			require.NoError(b, err)
			data := make([]byte, 4096)
			for b.Loop() {
				_, err := f.WriteAt(data, 0)
				require.NoError(b, err)
				if sync {
					require.NoError(b, f.Sync())
				}
			}
			require.NoError(b, f.Close())
			require.NoError(b, tree.Remove("a"))
			require.NoError(b, tree.Close())
		})
	}
}
