package pagefile_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

func TestUsage_AddsUpToSize(t *testing.T) {
	for _, n := range []int{0, 1, 3, 200, 5000} {
		for _, size := range []int{0, 10, 5000} {
			root := pagefile.OpenRoot(t)
			data := create(t, root, numbered(n, size))
			f, err := pagefile.Open(disk.Dir(root), "f")
			if err != nil {
				t.Fatal(err)
			}
			keys := 0
			u, err := f.Usage(10, func(k pagefile.Key, size int64, value []byte) error {
				want, _, err := f.Get(k)
				if size > 10 {
					want = nil
				}
				if !bytes.Equal(value, want) || size != int64(len(value)) && size <= 10 {
					t.Errorf("Usage gives page %v of %d bytes as %x, want %x", k, size, value, want)
				}
				keys++
				return err
			})
			f.Close()
			if err != nil || keys != n {
				t.Fatalf("Usage of %d pages of %d bytes visits %d, %v", n, size, keys, err)
			}
			if sum := u.Values + u.Tree + u.Free + u.Checksums; sum != int64(len(data)) {
				t.Errorf("%d pages of %d bytes: %+v add up to %d, the file has %d", n, size, u, sum, len(data))
			}
			if u.Values != int64(n*size) || u.Tree < int64(8*n) || u.Free < 0 || u.Checksums < 64 {
				t.Errorf("%d pages of %d bytes: %+v", n, size, u)
			}
		}
	}
}

func TestUsage_DamagedFile(t *testing.T) {
	root := pagefile.OpenRoot(t)
	data := create(t, root, numbered(300, 100))
	data[4096*4+20] ^= 1
	writeFile(t, root, "f", data)
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err == nil {
		defer f.Close()
		_, err = f.Usage(0, func(pagefile.Key, int64, []byte) error { return nil })
	}
	if !known(err) || err == nil {
		t.Errorf("Usage = %v", err)
	}
}

// The test uses leaves of large values, with and without gaps between keys. Usage reads only the
// first page of these leaves.
func TestUsage_LeavesOfLargeValues(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		var pages []page
		var k pagefile.Key
		for range random.IntN(600) {
			switch random.IntN(8) {
			case 0:
				k = pagefile.Key{Column: k.Column + 1}
			case 1:
				k.Page += uint32(random.IntN(3))
			}
			k.Page++
			pages = append(pages, page{k, make([]byte, random.IntN(6000))})
		}
		root := pagefile.OpenRoot(t)
		create(t, root, pages)
		f, err := pagefile.Open(disk.Dir(root), "f")
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		_, err = f.Usage(10, func(k pagefile.Key, size int64, value []byte) error {
			if want := pages[i]; k != want.key || size != int64(len(want.value)) || size <= 10 && len(value) != int(size) {
				t.Fatalf("seed %d: Usage gives page %v of %d bytes, want %v of %d", seed, k, size, want.key, len(want.value))
			}
			i++
			return nil
		})
		f.Close()
		if err != nil || i != len(pages) {
			t.Errorf("seed %d: Usage of %d pages gives %d, %v", seed, len(pages), i, err)
		}
	}
}

// The test damages each byte of a branch and of the leaves' nodes in turn. Usage does not verify
// the checksums of leaves. So it cannot notice a wrong size of the last value in a leaf.
func TestUsage_DamagedTree(t *testing.T) {
	root := pagefile.OpenRoot(t)
	pages := numbered(40, 5000)
	data := create(t, root, pages)
	usage := func(data []byte) (got []page, err error) {
		writeFile(t, root, "f", data)
		f, err := pagefile.Open(disk.Dir(root), "f")
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = f.Usage(0, func(k pagefile.Key, size int64, _ []byte) error {
			got = append(got, page{k, make([]byte, size)})
			return nil
		})
		return got, err
	}
	unseen := 0
	for at := 2 * pageSize; at < len(body(data)); at++ {
		if at%pageSize >= 100 {
			continue
		}
		damaged := bytes.Clone(data)
		damaged[at] ^= 1
		got, err := usage(damaged)
		switch {
		case err != nil && !known(err):
			t.Errorf("byte %d: Usage = %v", at, err)
		case err == nil && len(got) != len(pages):
			t.Errorf("byte %d: Usage gives %d pages, want %d", at, len(got), len(pages))
		case err == nil:
			for i, p := range pages {
				if got[i].key != p.key {
					t.Errorf("byte %d: Usage gives page %v, want %v", at, got[i].key, p.key)
				}
				if len(got[i].value) != len(p.value) {
					unseen++
				}
			}
		}
	}
	if unseen > len(pages) {
		t.Errorf("%d wrong sizes were not reported", unseen)
	}
}
