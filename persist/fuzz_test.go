package persist

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/pagefile"
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
	f.Fuzz(func(t *testing.T, payload []byte) { _ = replayed(t, payload) })
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
			_ = im.expect(ops).compare(im)
		})
	})
}

func FuzzManifest(f *testing.F) {
	_, m := savePages(hostileBase(f))
	f.Add(m.encode())
	m.files = []fileRef{{1, 2}, {3, 4}}
	f.Add(m.encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		bounded(t, len(src), func() {
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
	f.Fuzz(func(t *testing.T, src []byte) {
		bounded(t, len(src), func() {
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
		bounded(t, len(value), func() {
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
		err := decodeSparsePage(src, func(i int, row uint32, n int) error {
			require.Greater(t, i, last)
			last = i + n - 1
			for k := range n {
				rows[i+k] = row + uint32(k)
				require.NotEqual(t, noRow, rows[i+k])
			}
			return nil
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
