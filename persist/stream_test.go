package persist_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// worldOf returns a world that is the same on every machine.
func worldOf(n int) *storetest.World {
	w := storetest.New(0)
	w.Fill(n)
	w.Commit()
	return w
}

func streamed(t testing.TB, w *ecs.World) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, persist.SaveTo(storetest.Background, &out, w))
	return out.Bytes()
}

func TestSaveTo_SameBytesAsSave(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 9000} {
		w := worldOf(n)
		data := streamed(t, w.World)
		require.Equal(t, saved(t, w.World), data)

		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		loaded, streamedIn := storetest.New(0), storetest.New(0)
		streamedIn.Fill(3)
		require.NoError(t, persist.Load(storetest.Background, file, loaded.World))
		require.NoError(t, persist.LoadFrom(storetest.Background, iotest.HalfReader(bytes.NewReader(data)), streamedIn.World))
		require.Equal(t, w.Digest(), loaded.Digest())
		require.Equal(t, w.Digest(), streamedIn.Digest())
	}
}

// everyMachine returns the save of a world that is the same on every machine.
func everyMachine(t testing.TB) (data []byte) {
	t.Helper()
	w := worldOf(5000)
	w.Do(storetest.RandomActions(rand.New(rand.NewPCG(1, 2)), 2000)...)
	w.ReleaseAll()
	w.Commit()
	require.Equal(t, "9c758e3e08f8af29", w.Digest().String())
	data = streamed(t, w.World)
	sum := sha256.Sum256(data)
	require.Equal(t, "86f39c2c0267cfbb6ba1cca4de9564a480195605e05a5b683d475bec7524992e", hex.EncodeToString(sum[:]))
	return data
}

// All builds write the same bytes as this one: builds for a browser, without file locks, or with
// 32-bit addresses.
func TestSave_BytesOnEveryMachine(t *testing.T) { everyMachine(t) }

// The bbolt command checks saves and lists their pages. The first save has the same bytes as a save
// that was written under WebAssembly.
func TestSave_ReadByBboltCommand(t *testing.T) {
	t.Parallel()
	deep.Processes(t)
	dir := t.TempDir()
	bbolt := filepath.Join(dir, "bbolt")
	out, err := exec.Command("go", "build", "-o", bbolt, "go.etcd.io/bbolt/cmd/bbolt").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, data := range map[string][]byte{
		"save of every machine":  everyMachine(t),
		"save of many pages":     streamed(t, worldOf(30_000).World),
		"compressed save":        compressedSave(t, worldOf(30_000).World),
		"save of an empty world": streamed(t, ecs.NewWorld(ecs.Options{})),
	} {
		file := filepath.Join(dir, "save")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		out, err := exec.Command(bbolt, "check", file).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		out, err = exec.Command(bbolt, "keys", "--format", "hex", file, "pages").Output()
		require.NoError(t, err, name)
		var keys strings.Builder
		require.NoError(t, openedSnapshot(t, file).File.Keys(func(k pagefile.Key, _ int64) error {
			_, err := fmt.Fprintf(&keys, "%08x%08x\n", k.Column, k.Page)
			return err
		}))
		require.Equal(t, keys.String(), string(out), name)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, after), "%s: bbolt has changed it", name)
	}
}

func TestLoadFrom_InvalidSave(t *testing.T) {
	data := streamed(t, worldOf(50).World)
	w := worldOf(3)
	before := w.Digest()
	flipped := bytes.Clone(data)
	flipped[len(data)/2] ^= 1
	failed := errors.New("the line is dead")
	for name, c := range map[string]struct {
		in   []byte
		fail error
		want error
	}{
		"nothing":   {nil, nil, persist.ErrCorrupt},
		"something": {[]byte("a letter"), nil, persist.ErrForeign},
		"cut":       {data[:len(data)-1], nil, persist.ErrCorrupt},
		"longer":    {append(bytes.Clone(data), 0), nil, persist.ErrCorrupt},
		"flipped":   {flipped, nil, persist.ErrCorrupt},
		"broken":    {data[:len(data)/2], failed, failed},
	} {
		for _, in := range []io.Reader{bytes.NewReader(c.in), iotest.OneByteReader(bytes.NewReader(c.in))} {
			if c.fail != nil {
				in = io.MultiReader(bytes.NewReader(c.in), iotest.ErrReader(c.fail))
			}
			require.ErrorIs(t, persist.LoadFrom(storetest.Background, in, w.World), c.want, name)
			require.Equal(t, before, w.Digest(), name)
		}
	}
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, persist.LoadFrom(ended, bytes.NewReader(data), w.World), context.Canceled)
	require.Equal(t, before, w.Digest())
}

// A placedReader allows random access and counts the reads. Its sequential reads fail.
type placedReader struct {
	*bytes.Reader
	asked atomic.Int64
	most  atomic.Int64 // The longest read.
	fail  error
}

func (r *placedReader) Read([]byte) (int, error) { return 0, errors.New("LoadFrom read sequentially") }

func (r *placedReader) WriteTo(io.Writer) (int64, error) {
	return 0, errors.New("LoadFrom copied the reader")
}

func (r *placedReader) ReadAt(b []byte, offset int64) (int, error) {
	r.asked.Add(1)
	r.most.Store(max(r.most.Load(), int64(len(b))))
	if r.fail != nil && r.asked.Load() > 3 {
		return 0, r.fail
	}
	return r.Reader.ReadAt(b, offset)
}

func TestLoadFrom_ReaderAtAnyPlace(t *testing.T) {
	t.Parallel()
	w := worldOf(60_000)
	for _, data := range [][]byte{streamed(t, w.World), compressedSave(t, w.World)} {
		const before = 77
		r := &placedReader{Reader: bytes.NewReader(append(make([]byte, before), data...))}
		_, err := r.Seek(before, io.SeekStart)
		require.NoError(t, err)
		loaded := storetest.New(0)
		require.NoError(t, persist.LoadFrom(storetest.Background, r, loaded.World))
		require.Equal(t, w.Digest(), loaded.Digest())
		require.Zero(t, r.Len(), "the file is at its end after LoadFrom")
		require.Greater(t, r.asked.Load(), int64(4))
		require.LessOrEqual(t, r.most.Load(), int64(512<<10))
	}
}

func TestLoadFrom_AnOpenFile(t *testing.T) {
	t.Parallel()
	w := worldOf(300)
	file := filepath.Join(t.TempDir(), "container")
	data := streamed(t, w.World)
	require.NoError(t, os.WriteFile(file, append([]byte("a header "), data...), 0o600))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	_, err = io.CopyN(io.Discard, f, int64(len("a header ")))
	require.NoError(t, err)
	loaded, kept := storetest.New(0), storetest.New(0)
	require.NoError(t, persist.LoadFrom(storetest.Background, f, loaded.World))
	require.Equal(t, w.Digest(), loaded.Digest())

	s := storetest.Open(t, filepath.Join(t.TempDir(), "store"), kept, persist.Options{})
	require.NoError(t, s.LoadFrom(storetest.Background, io.NewSectionReader(f, int64(len("a header ")), int64(len(data)))))
	require.Equal(t, w.Len(), kept.Len())
	storetest.CloseStore(t, s)

	require.ErrorIs(t, persist.LoadFrom(storetest.Background, f, loaded.World), persist.ErrCorrupt, "nothing is left")
	require.Equal(t, w.Digest(), loaded.Digest())
}

func TestLoadFrom_ReaderFails(t *testing.T) {
	dead := errors.New("the line is dead")
	w := worldOf(3)
	before := w.Digest()
	r := &placedReader{Reader: bytes.NewReader(streamed(t, worldOf(9000).World)), fail: dead}
	err := persist.LoadFrom(storetest.Background, r, w.World)
	require.ErrorIs(t, err, dead)
	require.Equal(t, before, w.Digest())
}

// If a reader has the methods for random access but cannot seek, LoadFrom copies it.
func TestLoadFrom_ReaderCannotSeek(t *testing.T) {
	deep.Processes(t)
	w := worldOf(300)
	data := streamed(t, w.World)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	go func() {
		_, _ = out.Write(data)
		out.Close()
	}()
	loaded := storetest.New(0)
	require.NoError(t, persist.LoadFrom(storetest.Background, in, loaded.World))
	require.Equal(t, w.Digest(), loaded.Digest())
}

// A fullWriter takes n bytes and then fails.
type fullWriter struct{ n int }

var errFull = errors.New("full")

func (w *fullWriter) Write(b []byte) (int, error) {
	if len(b) > w.n {
		n := w.n
		w.n = 0
		return n, errFull
	}
	w.n -= len(b)
	return len(b), nil
}

func TestSaveTo_WriterFails(t *testing.T) {
	w := worldOf(50)
	err := persist.SaveTo(storetest.Background, &fullWriter{1000}, w.World)
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "save of tick 1")
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	var out bytes.Buffer
	require.ErrorIs(t, persist.SaveTo(ended, &out, w.World), context.Canceled)
	require.Zero(t, out.Len())
}
