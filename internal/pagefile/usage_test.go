package pagefile_test

import (
	"bytes"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/pagefile"
)

func TestTheUsageOfAFileAddsUpToItsSize(t *testing.T) {
	for _, n := range []int{0, 1, 3, 200, 5000} {
		for _, size := range []int{0, 10, 5000} {
			root := openRoot(t)
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

func TestTheUsageOfADamagedFileIsAnError(t *testing.T) {
	root := openRoot(t)
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
