package persist_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// FuzzSavedPages loads saves with correct checksums, but with another manifest and another page.
func FuzzSavedPages(f *testing.F) {
	pages, m := savePages(storetest.HostileBase(f))
	keys := []pagefile.Key{
		format.Key(format.RegistryColumn, 0), format.Key(format.Column(0, format.SparseArray), 0), format.Key(format.Column(0, format.DenseArray), 0),
		format.Key(format.Column(0, format.DataArray), 0), format.Key(format.Column(2, format.DataArray), 0), format.Key(format.Column(6, format.DataArray), 0),
	}
	for i, k := range keys {
		content, _, err := format.DecodePage(pages[k])
		require.NoError(f, err)
		f.Add(m.Encode(), uint8(i), content)
	}
	f.Fuzz(func(t *testing.T, manifest []byte, which uint8, content []byte) {
		pages, _ := savePages(storetest.HostileBase(t))
		pages[format.Key(format.ManifestColumn, 0)] = direct(manifest)
		pages[keys[int(which)%len(keys)]] = direct(content)
		_ = loaded(t, hostileSave(t, pages))
	})
}

func FuzzSavedBytes(f *testing.F) {
	f.Add(saved(f, storetest.HostileBase(f).World))
	f.Add(saved(f, storetest.New(0).World))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_ = loaded(t, file)
	})
}

// FuzzReorderedTicks writes ticks into a journal with correct checksums. Some are repeated,
// omitted, given other parents, truncated or changed by a byte. Open either returns an error or
// recovers a consistent state.
//
// A step is 5 bytes: the tick, its parent, and the change of its payload.
func FuzzReorderedTicks(f *testing.F) {
	s := storetest.NewSample(f)
	v := storetest.Verified(f, s.Dir)
	ticks, world, schema := storetest.Payloads(f), v.Log().World, v.Log().Preambles[0]
	preamble, err := v.Log().Payload(schema, nil)
	require.NoError(f, err)
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0})
	f.Add([]byte{0, 0, 1, 9, 0, 1, 1, 2, 40, 7})
	const base = "snapshots/00000001.snap"
	f.Fuzz(func(t *testing.T, program []byte) {
		files := disktest.New()
		require.NoError(t, files.Mkdir(catalog.JournalDir))
		require.NoError(t, files.Mkdir(catalog.SnapshotDir))
		files.Put(base, []byte(s.Tree[base]))
		size := len(s.Tree[base]) + writeTicks(t, files, program, ticks, journal.Options{
			World: world, Sync: journal.SyncNever, Preamble: func() []byte { return preamble },
		})
		storetest.Bounded(t, size, func() {
			v, err := inspect.OpenFS(storetest.Background, files, ".")
			require.NoError(t, err)
			defer v.Close()
			im, err := v.At(storetest.Background, v.Head())
			r, verifyErr := v.Verify(storetest.Background)
			require.NoError(t, verifyErr)
			w := storetest.New(0)
			store, openErr := persist.OpenFiles(storetest.Background, files, w.World, persist.Options{SnapshotBytes: -1})
			if openErr != nil {
				require.NotEmpty(t, r.Problems, "refused: %v", openErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, im.Digest(), storetest.Persistent(w.World))
			readTrees(t, v, v.Head(), true)
			require.NoError(t, store.Journal().Close(storetest.Background, store.Head()))
		})
	})
}

// writeTicks carries out a program of [FuzzReorderedTicks]. It returns the number of bytes written.
func writeTicks(t testing.TB, files *disktest.Mem, program []byte, ticks [][]byte, options journal.Options) (size int) {
	dir := disk.Sub(files, catalog.JournalDir)
	log, err := journal.Scan(storetest.Background, dir, 0, nil)
	require.NoError(t, err)
	j, err := journal.Open(dir, log, options)
	require.NoError(t, err)
	for program = program[:min(len(program), 200)]; len(program) >= 5; program = program[5:] {
		payload := bytes.Clone(ticks[int(program[0])%len(ticks)])
		at := int(program[3]) + int(program[4])<<8
		switch program[2] % 4 {
		case 1:
			payload = payload[:at%(len(payload)+1)]
		case 2:
			payload[at%len(payload)] ^= program[2]
		}
		size += len(payload)
		_, err := j.Append(uint64(program[1])%j.Next(), uint64(program[0]), 0, append(j.Buffer(), payload...))
		require.NoError(t, err)
	}
	require.NoError(t, j.Close(storetest.Background, j.Next()-1))
	return size
}
