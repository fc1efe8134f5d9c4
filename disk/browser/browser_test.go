//go:build js && wasm

package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strconv"
	"syscall"
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

// onBackends runs a test on OPFS and on IndexedDB. It hides OPFS from the worker to test IndexedDB.
func onBackends(t *testing.T, test func(t *testing.T)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			patchWorker(t, b.patch)
			test(t)
		})
	}
}

var backends = []struct{ name, patch string }{
	{"OPFS", ""},
	{"IndexedDB", "delete StorageManager.prototype.getDirectory"},
}

// patchWorker makes each worker run a statement before its script.
func patchWorker(tb testing.TB, statement string) {
	global, old := js.Global(), js.Global().Get("Blob")
	global.Call("eval", `self.Blob = class extends Blob { constructor(parts, o) { super([`+strconv.Quote(statement+";")+`, ...parts], o) } }`)
	tb.Cleanup(func() { global.Set("Blob", old) })
}

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

func TestOpen_ReadsFilesOfEarlierOpen(t *testing.T) { onBackends(t, testOpenFilesStay) }

func testOpenFilesStay(t *testing.T) {
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
	require.Equal(t, path.Base(t.Name()), browser.Backend(tree))
	require.Equal(t, "\x00\x00\x00text", content(t, tree, "d/b"))
	_, err = tree.Open("d/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, tree.Remove("d/b"))
	require.NoError(t, tree.Remove("d"))
	require.NoError(t, tree.SyncDir("."))
}

// A file has the bytes that were written at random offsets, also after it is opened or created
// again.
func TestFile_RandomWrites(t *testing.T) { onBackends(t, testFileRandomWrites) }

// Writes to IndexedDB fail at random, like on a full disk. The test repeats each failed call until
// it succeeds. No bytes are lost.
func TestFile_WritesRetriedOnFullDisk(t *testing.T) {
	patchWorker(t, backends[1].patch+`; const put = IDBObjectStore.prototype.put; let x = 1;
		IDBObjectStore.prototype.put = function(...args) {
			x = x * 48271 % 2147483647;
			if (x % 4 == 0) throw new DOMException("", "QuotaExceededError");
			return put.apply(this, args);
		}`)
	testFileRandomWrites(t)
}

func testFileRandomWrites(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	try := func(call func() error) {
		for {
			if err := call(); !errors.Is(err, syscall.ENOSPC) {
				require.NoError(t, err)
				return
			}
		}
	}
	var tree disk.FS
	reopen := func() {
		if tree != nil {
			try(func() error { return tree.SyncDir(".") })
			_ = tree.Close()
		}
		try(func() (err error) {
			tree, err = browser.Open(t.Context(), t.Name())
			return err
		})
	}
	reopen()
	_ = tree.Remove("a")
	f, err := tree.Create("a")
	require.NoError(t, err)
	var want []byte
	for range 150 {
		switch rng.IntN(10) {
		case 0:
			try(f.Sync)
		case 1:
			again := rng.IntN(4)
			if again < 2 {
				try(f.Sync)
			}
			if err := f.Close(); !errors.Is(err, syscall.ENOSPC) {
				require.NoError(t, err)
			}
			if again == 0 {
				require.NoError(t, tree.Remove("a"))
			}
			if again < 2 {
				reopen()
			}
			if again > 0 {
				f, err = tree.OpenWrite("a")
			} else {
				f, err = tree.Create("a") // The same number of the device, as it is the highest.
				want = nil
			}
			require.NoError(t, err)
		case 2, 3:
			at := rng.IntN(len(want) + 1)
			b := make([]byte, rng.IntN(len(want)-at+1))
			_, err := f.ReadAt(b, int64(at))
			require.NoError(t, err)
			require.True(t, string(want[at:at+len(b)]) == string(b))
		default:
			at, b := rng.IntN(len(want)+100), make([]byte, 1+rng.IntN(5000))
			if rng.IntN(10) == 0 {
				at, b = len(want)+rng.IntN(300_000), make([]byte, 1+rng.IntN(300_000))
			}
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
	}
	require.True(t, string(want) == content(t, tree, "a"))
	try(f.Sync)
	require.NoError(t, f.Close())
	reopen()
	require.True(t, string(want) == content(t, tree, "a"))
	_ = tree.Close()
}

// Another tab takes the files over: it becomes the owner in IndexedDB. Then Sync and Close of the
// first tab fail, and store nothing.
func TestSync_FilesTakenByOtherTab(t *testing.T) {
	patchWorker(t, backends[1].patch)
	tree := open(t, t.Name())
	_ = tree.Remove("a")
	f, err := tree.Create("a")
	require.NoError(t, err)
	require.NoError(t, tree.SyncDir("."))
	done := make(chan struct{})
	js.Global().Get("Function").New("name", "done", `indexedDB.open(name).onsuccess = (e) => {
		const tx = e.target.result.transaction("owner", "readwrite");
		tx.objectStore("owner").put("another", "owner");
		tx.oncomplete = () => { e.target.result.close(); done(); };
	}`).Invoke("stet: "+t.Name(), js.FuncOf(func(js.Value, []js.Value) any { close(done); return nil }))
	<-done
	_, err = f.WriteAt([]byte("text"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, f.Sync(), disk.ErrLost)
	require.ErrorIs(t, tree.Close(), disk.ErrLost)
	tree = open(t, t.Name())
	require.Empty(t, content(t, tree, "a"))
	require.NoError(t, tree.Close())
}

// A second Open fails while the first one has the files, and succeeds after Close. If the lock is
// taken by force, every call returns ErrLost.
func TestOpen_SecondTab(t *testing.T) { onBackends(t, testOpenSecondTab) }

func testOpenSecondTab(t *testing.T) {
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
	require.Eventually(t, func() bool { // Wait until the browser releases the other lock.
		tree, err := browser.Open(t.Context(), t.Name())
		return err == nil && tree.Close() == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, tree.Close(), disk.ErrLost)
}

func TestWait_UntilClosed(t *testing.T) {
	require.NoError(t, browser.Wait(t.Context(), t.Name()))
	tree := open(t, t.Name())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, browser.Wait(ctx, t.Name()), context.DeadlineExceeded)
	free := make(chan error, 2)
	for range 2 {
		go func() { free <- browser.Wait(t.Context(), t.Name()) }()
	}
	time.Sleep(100 * time.Millisecond)
	require.Empty(t, free)
	require.NoError(t, tree.Close())
	require.NoError(t, <-free)
	require.NoError(t, <-free)
	require.NoError(t, open(t, t.Name()).Close())
}

// If the context ends, Open releases its lock.
func TestOpen_EndedContext(t *testing.T) { onBackends(t, testOpenEndedContext) }

func testOpenEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		_, err := browser.Open(ctx, t.Name())
		require.Error(t, err)
	}
	require.NoError(t, open(t, t.Name()).Close())
}

// Open returns ErrUnsupported in these cases: the browser has no Web Locks, it refuses them, the
// worker fails, or there is neither OPFS nor IndexedDB.
func TestOpen_Unsupported(t *testing.T) {
	const noPrivate = `delete StorageManager.prototype.getDirectory; `
	for _, c := range []struct{ page, worker string }{
		{page: `Object.defineProperty(navigator, "locks", { value: undefined, configurable: true })`},
		{page: `Object.defineProperty(navigator, "locks", { value: { request: async () => { throw new DOMException("no", "SecurityError") } }, configurable: true })`},
		{worker: noPrivate + `Object.defineProperty(self, "indexedDB", { value: undefined })`},
		{worker: noPrivate + `IDBFactory.prototype.open = () => { throw new DOMException("no", "SecurityError") }`},
		{worker: `syntax error`},
	} {
		t.Run("", func(t *testing.T) {
			patchWorker(t, c.worker)
			js.Global().Call("eval", c.page)
			_, err := browser.Open(t.Context(), t.Name())
			require.ErrorIs(t, err, browser.ErrUnsupported, c)
			js.Global().Call("eval", `delete navigator.locks`)
		})
	}
	require.NoError(t, open(t, t.Name()).Close())
}

// Without OPFS, Open stores the files in IndexedDB. They stay there when OPFS becomes available.
func TestOpen_KeepsIndexedDBOnceUsed(t *testing.T) {
	for i, statement := range []string{
		`delete FileSystemFileHandle.prototype.createSyncAccessHandle`,
		`StorageManager.prototype.getDirectory = async () => { throw new DOMException("no", "SecurityError") }`,
		``,
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			patchWorker(t, statement)
			tree := open(t, "TestOpen_KeepsIndexedDBOnceUsed")
			require.Equal(t, "IndexedDB", browser.Backend(tree))
			if i == 0 {
				_ = tree.Remove("a")
				f, err := tree.Create("a")
				require.NoError(t, err)
				_, err = f.WriteAt([]byte("text"), 200_000)
				// The file stays open. Close of the tree must store its bytes.
				require.NoError(t, err)
			}
			require.NoError(t, tree.Close())
			tree = open(t, "TestOpen_KeepsIndexedDBOnceUsed")
			require.True(t, string(make([]byte, 200_000))+"text" == content(t, tree, "a"))
			require.NoError(t, tree.Close())
		})
	}
}

// If the database cannot be opened, Open returns an error and no empty file system.
func TestOpen_FailedDatabase(t *testing.T) {
	const noPrivate = `delete StorageManager.prototype.getDirectory`
	t.Run("store", func(t *testing.T) {
		patchWorker(t, noPrivate)
		tree := open(t, "TestOpen_FailedDatabase")
		if err := tree.Mkdir("d"); err != nil {
			require.ErrorIs(t, err, fs.ErrExist)
		}
		require.NoError(t, tree.SyncDir("."))
		require.NoError(t, tree.Close())
	})
	t.Run("fail", func(t *testing.T) {
		patchWorker(t, `IDBFactory.prototype.open = () => { throw new DOMException("no disk", "UnknownError") }`)
		_, err := browser.Open(t.Context(), "TestOpen_FailedDatabase")
		require.ErrorContains(t, err, "no disk")
	})
	tree := open(t, "TestOpen_FailedDatabase")
	defer tree.Close()
	_, err := tree.ReadDir("d")
	require.NoError(t, err)
}

type counter struct{ N int }

// A store keeps its ticks, slots and snapshots in the browser.
func TestStore_ContinuesAfterOpen(t *testing.T) { onBackends(t, testStoreContinuesAfterOpen) }

func testStoreContinuesAfterOpen(t *testing.T) {
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

// A follower in the same page equals the writer at each tick. Meanwhile, the store adds and removes
// snapshots and segments, and is opened again.
func TestOpenRead_Follower(t *testing.T) { onBackends(t, testOpenReadFollower) }

func testOpenReadFollower(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	_, err := browser.OpenRead(t.Context(), t.Name()+strconv.FormatUint(seed, 10))
	require.ErrorIs(t, err, fs.ErrNotExist)

	var tree disk.FS
	var store *persist.Store
	w := ecs.NewWorld(ecs.Options{History: 10})
	counters := ecs.MustRegister[counter](w)
	openStore := func() {
		tree = open(t, t.Name())
		w = ecs.NewWorld(ecs.Options{History: 10})
		counters = ecs.MustRegister[counter](w)
		store, err = persist.Open(t.Context(), ".", w, persist.Options{
			Files: tree, SnapshotBytes: 20_000, Retain: persist.Retention{Bytes: 200_000},
		})
		require.NoError(t, err)
	}
	closeStore := func() {
		require.NoError(t, store.Close(t.Context()))
		require.NoError(t, tree.Close())
	}
	openStore()
	w.Clear() // An earlier run of the test may have left a store.
	require.NoError(t, store.Commit())
	require.NoError(t, store.Sync(t.Context()))

	reader, err := browser.OpenRead(t.Context(), t.Name())
	require.NoError(t, err)
	require.Equal(t, browser.Backend(tree), browser.Backend(reader))
	locked, err := reader.Locked("LOCK")
	require.True(t, locked && err == nil)
	seen := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[counter](seen)
	follower, err := persist.Follow(t.Context(), ".", seen, persist.FileOptions{Files: reader})
	require.NoError(t, err)
	digests := map[uint64]ecs.Digest{w.Tick(): w.Digest()}
	names := map[string]bool{}
	advanced := 0
	for range 250 {
		for range rng.IntN(40) {
			if all := w.Entities(); len(all) > 300 || len(all) > 0 && rng.IntN(3) == 0 {
				w.Destroy(all[rng.IntN(len(all))])
			} else {
				counters.Set(w.Create(), counter{rng.Int()})
			}
		}
		require.NoError(t, store.Commit())
		digests[w.Tick()] = w.Digest()
		switch rng.IntN(40) {
		case 0:
			closeStore()
			locked, err := reader.Locked("LOCK")
			require.True(t, !locked && err == nil)
			openStore()
		case 1, 2, 3:
			require.NoError(t, store.Sync(t.Context()))
		}
		if rng.IntN(3) == 0 {
			changed, err := follower.Advance(t.Context())
			require.NoError(t, err)
			require.Equal(t, digests[seen.Tick()], seen.Digest(), "tick %d", seen.Tick())
			if changed {
				advanced++
			}
			for _, dir := range []string{"journal", "snapshots"} {
				entries, err := reader.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					names[e.Name()] = true
				}
			}
		}
	}
	closeStore()
	_, err = follower.Advance(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.Tick(), seen.Tick())
	require.Equal(t, w.Digest(), seen.Digest())
	require.Greater(t, advanced, 10)
	left, err := reader.ReadDir("journal")
	require.NoError(t, err)
	require.Greater(t, len(names), len(left)+5, "files were removed")
	require.NoError(t, follower.Close())
	require.NoError(t, reader.Close())
}

func TestUsage_CountsBytes(t *testing.T) {
	used, quota, err := browser.Usage(t.Context())
	require.NoError(t, err)
	require.Less(t, used, quota)
	_, err = browser.Persist(t.Context())
	require.NoError(t, err)
}

func onBackendsAndSync(b *testing.B, benchmark func(b *testing.B, sync bool)) {
	for _, backend := range backends {
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/sync=%t", backend.name, sync), func(b *testing.B) {
				patchWorker(b, backend.patch)
				benchmark(b, sync)
			})
		}
	}
}

// BenchmarkCommit measures a Commit with one changed row, and a Sync after it.
func BenchmarkCommit(b *testing.B) {
	onBackendsAndSync(b, func(b *testing.B, sync bool) {
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

// BenchmarkWrite measures a write of 4 KiB, and a Sync after it.
func BenchmarkWrite(b *testing.B) {
	onBackendsAndSync(b, func(b *testing.B, sync bool) {
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
