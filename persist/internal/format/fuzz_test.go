package format_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// savedPages returns the pages of a save, and its manifest.
func savedPages(t testing.TB) (map[pagefile.Key][]byte, *format.Manifest) {
	t.Helper()
	files := disk.Memory()
	require.NoError(t, persist.Save(storetest.Background, "save", storetest.HostileBase(t).World, persist.FileOptions{Files: files}))
	f, err := pagefile.Open(files, "save")
	require.NoError(t, err)
	defer f.Close()
	pages := map[pagefile.Key][]byte{}
	require.NoError(t, f.Scan(func(k pagefile.Key, value []byte) error {
		pages[k] = bytes.Clone(value)
		return nil
	}))
	content, _, err := format.DecodePage(pages[format.Key(format.ManifestColumn, 0)])
	require.NoError(t, err)
	m, err := format.DecodeManifest(content)
	require.NoError(t, err)
	return pages, m
}

func FuzzDecodeSchema(f *testing.F) {
	f.Add(format.SchemaOf(storetest.HostileBase(f).World).Encode())
	f.Add(format.NewSchema().Encode())
	f.Add(evolvedSample().Encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		storetest.BoundedTightly(t, len(src), func() {
			s, err := format.DecodeSchema(src)
			if err != nil {
				return
			}
			again, err := format.DecodeSchema(s.Encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
		})
	})
}

func FuzzDecodeManifest(f *testing.F) {
	_, m := savedPages(f)
	f.Add(m.Encode())
	m.Files = []format.FileRef{{Number: 1, CRC: 2}, {Number: 3, CRC: 4}}
	f.Add(m.Encode())
	m.Repeats = true
	f.Add(m.Encode())
	m.Compressed = true
	f.Add(m.Encode())
	m.SetBuild("go1.26.8 linux/arm64 fused math:e83c")
	f.Add(m.Encode())
	f.Fuzz(func(t *testing.T, src []byte) {
		storetest.BoundedTightly(t, len(src), func() {
			m, err := format.DecodeManifest(src)
			if err != nil {
				return
			}
			again, err := format.DecodeManifest(m.Encode())
			require.NoError(t, err)
			require.Equal(t, m, again)
		})
	})
}

func FuzzDecodePage(f *testing.F) {
	pages, _ := savedPages(f)
	for _, value := range pages {
		f.Add(value)
	}
	e := format.NewEncoder()
	format.AppendReference(e, format.PageRef{File: 3, CRC: 4})
	f.Add(e.Buf)
	for _, ref := range []format.PageRef{{Column: 1, CRC: 4}, {File: 3, Column: 1<<32 - 1, CRC: 1<<32 - 1}} {
		e := format.NewEncoder()
		format.AppendReference(e, ref)
		f.Add(e.Buf)
	}
	var frame []byte
	content := bytes.Repeat([]byte("content "), 200)
	rest, _ := format.CompressedHead(e, &frame, content)
	f.Add(append(e.Buf, rest...))
	f.Fuzz(func(t *testing.T, value []byte) {
		limit, most := 256<<10+200*len(value), len(value)
		// The page is compressed, so decompressing may need a new decoder.
		if len(value) > 1 && value[1] == 3 {
			limit, most = 4<<20+300*len(value), 256*len(value)
		}
		storetest.BoundedBy(t, uint64(limit), len(value), func() {
			content, ref, err := format.DecodePage(value)
			if err != nil {
				return
			}
			require.Equal(t, content == nil, ref.Elsewhere())
			if ref.Elsewhere() {
				e := format.NewEncoder()
				format.AppendReference(e, ref)
				require.LessOrEqual(t, len(e.Buf), format.MaxReference)
				_, again, err := format.DecodePage(e.Buf)
				require.NoError(t, err)
				require.Equal(t, ref, again)
			}
			require.LessOrEqual(t, len(content), most)
		})
	})
}

func FuzzDecodeSparsePage(f *testing.F) {
	for _, rows := range [][]uint32{{0}, {format.NoRow, 5, 1, format.NoRow, 2}, {format.NoRow - 1}, {format.NoRow - 2, format.NoRow - 1}, {1, 2, 3, format.NoRow, 4, 5, 6, 7, 8, 9, 0}, make([]uint32, format.PageRows)} {
		page, _ := format.AppendSparsePage(nil, rows)
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		rows := make([]uint32, format.PageRows)
		for i := range rows {
			rows[i] = format.NoRow
		}
		last := -1
		var err error
		storetest.BoundedTightly(t, len(src), func() {
			err = format.DecodeSparsePage(src, func(i int, row uint32, n int) error {
				if i <= last || uint64(row)+uint64(n) > uint64(format.NoRow) {
					t.Errorf("entry %d after %d: rows from %d on", i, last, row)
				}
				last = i + n - 1
				for k := range n {
					rows[i+k] = row + uint32(k)
				}
				return nil
			})
		})
		var at [format.PageRows]uint32
		atErr := format.DecodeSparseRows(src, &at)
		require.Equal(t, err, atErr)
		if err != nil {
			return
		}
		require.Equal(t, rows, at[:])
		page, _ := format.AppendSparsePage(nil, rows)
		again := make([]uint32, 0, format.PageRows)
		require.NoError(t, format.DecodeSparsePage(page, func(i int, row uint32, n int) error {
			for k := range n {
				require.Equal(t, rows[i+k], row+uint32(k))
				again = append(again, row)
			}
			return nil
		}))
	})
}
