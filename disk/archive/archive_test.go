package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
)

func contents(t require.TestingT, files disk.FS) map[string]string {
	all, err := disktest.Contents(files)
	require.NoError(t, err)
	return all
}

// tree returns a tree with n random files.
func tree(t testing.TB, random *rand.Rand, n int) disk.FS {
	files := disk.Memory()
	require.NoError(t, files.Mkdir("a"))
	require.NoError(t, files.Mkdir("a/b"))
	for i := range n {
		dir := []string{".", "a", "a/b"}[random.IntN(3)]
		f, err := files.Create(path.Join(dir, fmt.Sprint("f", i)))
		require.NoError(t, err)
		b := make([]byte, random.IntN(5000))
		for j := range b {
			b[j] = byte(random.IntN(1 + i))
		}
		_, err = f.WriteAt(b, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return files
}

func packed(t testing.TB, files disk.FS) []byte {
	var b bytes.Buffer
	require.NoError(t, Write(t.Context(), &b, files))
	return b.Bytes()
}

func read(b []byte) (disk.FS, error) {
	return Read(context.Background(), bytes.NewReader(b), int64(len(b)), 1<<20)
}

func TestRead_HasAllFiles(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		files := tree(t, random, 1+random.IntN(20))
		b := packed(t, files)
		require.True(t, Is(bytes.NewReader(b)))
		again, err := read(b)
		require.NoError(t, err)
		require.Equal(t, contents(t, files), contents(t, again))
	}
	require.False(t, Is(bytes.NewReader(nil)))
	require.False(t, Is(bytes.NewReader([]byte("stet"))))
}

// After a bit flip, Read either returns ErrCorrupt or the original contents.
func TestRead_Damage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	files := tree(t, random, 5)
	want, b := contents(t, files), packed(t, files)
	damaged := 0
	for range 2000 {
		bad := bytes.Clone(b)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		again, err := read(bad)
		if err != nil {
			require.ErrorIs(t, err, disk.ErrCorrupt)
			damaged++
			continue
		}
		for name, text := range contents(t, again) {
			if want[name] != "" || text != "" {
				found := false
				// The name may have changed: zip files have no checksum of names.
				for _, w := range want {
					found = found || w == text
				}
				require.True(t, found, name)
			}
		}
	}
	require.Greater(t, damaged, 1000)
}

func TestRead_RefusesTooManyBytes(t *testing.T) {
	files := tree(t, rand.New(rand.NewPCG(1, 2)), 5)
	b, total := packed(t, files), int64(0)
	for _, text := range contents(t, files) {
		if text != disktest.Directory {
			total += int64(len(text))
		}
	}
	_, err := Read(t.Context(), bytes.NewReader(b), int64(len(b)), total)
	require.NoError(t, err)
	_, err = Read(t.Context(), bytes.NewReader(b), int64(len(b)), total-1)
	require.ErrorIs(t, err, ErrTooLarge)
	require.NotErrorIs(t, err, disk.ErrCorrupt)
}

// If the disk fails, Read returns its error and not ErrCorrupt.
func TestRead_FailedRead(t *testing.T) {
	b := packed(t, tree(t, rand.New(rand.NewPCG(1, 2)), 5))
	failure := errors.New("no disk")
	for bad := range 20 {
		calls := 0
		_, err := Read(t.Context(), readerFunc(func(p []byte, at int64) (int, error) {
			if calls++; calls > bad {
				return 0, failure
			}
			return bytes.NewReader(b).ReadAt(p, at)
		}), int64(len(b)), 1<<20)
		if calls > bad {
			require.ErrorIs(t, err, failure)
			require.NotErrorIs(t, err, disk.ErrCorrupt)
		} else {
			require.NoError(t, err)
		}
	}
}

type readerFunc func(b []byte, offset int64) (int, error)

func (f readerFunc) ReadAt(b []byte, offset int64) (int, error) { return f(b, offset) }

func TestRead_EndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := packed(t, tree(t, rand.New(rand.NewPCG(1, 2)), 5))
	_, err := Read(ctx, bytes.NewReader(b), int64(len(b)), 1<<20)
	require.Equal(t, context.Canceled, err)
	require.ErrorIs(t, Write(ctx, io.Discard, tree(t, rand.New(rand.NewPCG(1, 2)), 5)), context.Canceled)
}

// Read returns files or an error for any bytes. It rejects names outside of the directory.
func FuzzRead(f *testing.F) {
	f.Add(packed(f, tree(f, rand.New(rand.NewPCG(1, 2)), 3)))
	f.Add([]byte("PK\x03\x04../x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if files, err := read(b); err == nil {
			contents(t, files)
		}
	})
}
