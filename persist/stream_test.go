package persist_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
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

func TestAStreamHasTheBytesOfAFile(t *testing.T) {
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

// What is written where there are neither locks nor 64 bits, as in a browser, is what is
// written here.
func TestASaveHasTheSameBytesOnEveryMachine(t *testing.T) {
	w := worldOf(5000)
	w.Do(storetest.RandomActions(rand.New(rand.NewPCG(1, 2)), 2000)...)
	w.ReleaseAll()
	w.Commit()
	require.Equal(t, "7e0716b9868cefb4", w.Digest().String())
	sum := sha256.Sum256(streamed(t, w.World))
	require.Equal(t, "21434b07bad5a10b24ea74483615688e186c9535f63b5db12206824a57c80461", hex.EncodeToString(sum[:]))
}

func TestAStreamThatIsNoSaveChangesNothing(t *testing.T) {
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
		in := bytes.NewReader(c.in)
		err := persist.LoadFrom(storetest.Background, in, w.World)
		if c.fail != nil {
			err = persist.LoadFrom(storetest.Background, iotest.TimeoutReader(iotest.ErrReader(c.fail)), w.World)
		}
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, before, w.Digest(), name)
	}
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	require.ErrorIs(t, persist.LoadFrom(ended, bytes.NewReader(data), w.World), context.Canceled)
	require.Equal(t, before, w.Digest())
}

// A writer that takes n bytes and then fails.
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

func TestAStreamThatCannotBeWrittenSaysSo(t *testing.T) {
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
