package persist

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/internal/disk/disktest"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/journal"
)

// payloads returns the ticks of the sample store.
func payloads(t testing.TB) (payloads [][]byte) {
	v := verified(t, newSample(t).dir)
	for _, e := range v.Log().Entries {
		payload, err := v.Log().Payload(e, nil)
		require.NoError(t, err)
		payloads = append(payloads, payload)
	}
	require.NotEmpty(t, payloads)
	return payloads
}

func FuzzTick(f *testing.F) {
	for _, payload := range payloads(f) {
		f.Add(payload)
	}
	f.Add(new(tick).payload())
	f.Add((&tick{marks: []string{"boss", "level 2"}, inputs: []Input{{"left", nil}, {"fire", []byte{1, 2}}}}).payload())
	f.Fuzz(func(t *testing.T, payload []byte) {
		boundedTightly(t, len(payload), func() { _, _ = decodeTick(payload) })
		_ = replayed(t, payload)
	})
}

func FuzzOps(f *testing.F) {
	for _, payload := range payloads(f) {
		t, err := decodeTick(payload)
		require.NoError(f, err)
		f.Add(t.ops)
	}
	w := hostileBase(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		bounded(t, len(src), func() {
			ops, err := decodeOps(src)
			if err != nil {
				require.Empty(t, ops)
				return
			}
			require.LessOrEqual(t, len(ops), len(src))
			im := imageOf(t, w)
			require.NoError(t, im.expect(src))
			_ = im.check.compare(im)
		})
	})
}

func FuzzManifest(f *testing.F) {
	_, m := savePages(hostileBase(f))
	f.Add(m.encode())
	m.files = []fileRef{{1, 2}, {3, 4}}
	f.Add(m.encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		boundedTightly(t, len(src), func() {
			m, err := decodeManifest(src)
			if err != nil {
				return
			}
			again, err := decodeManifest(m.encode())
			require.NoError(t, err)
			require.Equal(t, m, again)
		})
	})
}

func FuzzSchema(f *testing.F) {
	f.Add(schemaOf(hostileBase(f).World).encode())
	f.Add(newSchema().encode())
	f.Add(evolvedSample().encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		boundedTightly(t, len(src), func() {
			s, err := decodeSchema(src)
			if err != nil {
				return
			}
			again, err := decodeSchema(s.encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
		})
	})
}

func FuzzPage(f *testing.F) {
	pages, _ := savePages(hostileBase(f))
	for _, value := range pages {
		f.Add(value)
	}
	e := newEncoder()
	appendReference(e, pageRef{3, 4})
	f.Add(e.buf)
	f.Fuzz(func(t *testing.T, value []byte) {
		boundedTightly(t, len(value), func() {
			content, ref, err := decodePage(value)
			if err != nil {
				return
			}
			require.Equal(t, content == nil, ref.file != 0)
			require.LessOrEqual(t, len(content), len(value))
		})
	})
}

func FuzzSparsePage(f *testing.F) {
	for _, rows := range [][]uint32{{0}, {noRow, 5, 1, noRow, 2}, {noRow - 1}, {noRow - 2, noRow - 1}, {1, 2, 3, noRow, 4, 5, 6, 7, 8, 9, 0}, make([]uint32, pageRows)} {
		page, _ := appendSparsePage(nil, rows)
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		rows := make([]uint32, pageRows)
		for i := range rows {
			rows[i] = noRow
		}
		last := -1
		var err error
		boundedTightly(t, len(src), func() {
			err = decodeSparsePage(src, func(i int, row uint32, n int) error {
				if i <= last || uint64(row)+uint64(n) > uint64(noRow) {
					t.Errorf("entry %d after %d: rows from %d on", i, last, row)
				}
				last = i + n - 1
				for k := range n {
					rows[i+k] = row + uint32(k)
				}
				return nil
			})
		})
		if err != nil {
			return
		}
		page, _ := appendSparsePage(nil, rows)
		again := make([]uint32, 0, pageRows)
		require.NoError(t, decodeSparsePage(page, func(i int, row uint32, n int) error {
			for k := range n {
				require.Equal(t, rows[i+k], row+uint32(k))
				again = append(again, row)
			}
			return nil
		}))
	})
}

// FuzzSavedPages loads saves whose checksums are right, with another manifest and
// another page.
func FuzzSavedPages(f *testing.F) {
	pages, m := savePages(hostileBase(f))
	keys := []pagefile.Key{
		key(registryColumn, 0), key(column(0, sparseArray), 0), key(column(0, denseArray), 0),
		key(column(0, dataArray), 0), key(column(2, dataArray), 0), key(column(6, dataArray), 0),
	}
	for i, k := range keys {
		content, _, err := decodePage(pages[k])
		require.NoError(f, err)
		f.Add(m.encode(), uint8(i), content)
	}
	f.Fuzz(func(t *testing.T, manifest []byte, which uint8, content []byte) {
		pages, _ := savePages(hostileBase(t))
		pages[key(manifestColumn, 0)] = direct(manifest)
		pages[keys[int(which)%len(keys)]] = direct(content)
		_ = loaded(t, hostileSave(t, pages))
	})
}

func FuzzSavedBytes(f *testing.F) {
	f.Add(saved(f, hostileBase(f).World))
	f.Add(saved(f, newTestWorld(0).World))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "save")
		require.NoError(t, os.WriteFile(file, data, 0o600))
		_ = loaded(t, file)
	})
}

// FuzzMovedTicks writes ticks into a journal whose checksums are right: some
// more than once, some not at all, on other parents, cut short or with a byte
// changed. Recovery refuses, or the state it leads to holds together.
//
// A step is 5 bytes: which tick, its parent, and what becomes of its payload.
func FuzzMovedTicks(f *testing.F) {
	s := newSample(f)
	v := verified(f, s.dir)
	ticks, world, schema := payloads(f), v.log.World, v.log.Preambles[0]
	preamble, err := v.log.Payload(schema, nil)
	require.NoError(f, err)
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0})
	f.Add([]byte{0, 0, 1, 9, 0, 1, 1, 2, 40, 7})
	const base = "snapshots/00000001.snap"
	f.Fuzz(func(t *testing.T, program []byte) {
		files := disktest.New()
		require.NoError(t, files.Mkdir(journalDir))
		require.NoError(t, files.Mkdir(snapshotDir))
		files.Put(base, []byte(s.tree[base]))
		size := len(s.tree[base]) + writeTicks(t, files, program, ticks, journal.Options{
			World: world, Sync: journal.SyncNever(), Preamble: func() []byte { return preamble },
		})
		bounded(t, size, func() {
			v := newView(files)
			defer v.Close()
			require.NoError(t, v.scan(background))
			im, err := v.At(background, v.Head())
			r, verifyErr := v.Verify(background)
			require.NoError(t, verifyErr)
			w := newTestWorld(0)
			store, openErr := openFiles(background, files, nil, w.World, Options{SnapshotBytes: -1})
			if openErr != nil {
				require.NotEmpty(t, r.Problems, "refused: %v", openErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, im.Digest(), persistent(w.World))
			require.NoError(t, store.journal.Close(background, store.head))
		})
	})
}

// writeTicks carries out a program of [FuzzMovedTicks]. It returns how many bytes
// it wrote.
func writeTicks(t testing.TB, files *disktest.Mem, program []byte, ticks [][]byte, options journal.Options) (size int) {
	dir := disk.Sub(files, journalDir)
	log, err := journal.Scan(background, dir, nil)
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
	require.NoError(t, j.Close(background, j.Next()-1))
	return size
}
