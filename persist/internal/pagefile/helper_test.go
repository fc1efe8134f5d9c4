package pagefile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A page is a key and its value.
type page struct {
	key   pagefile.Key
	value []byte
}

// numbered returns n pages of column 1 with different values of the given size.
func numbered(n, size int) []page {
	pages := make([]page, n)
	for i := range pages {
		value := bytes.Repeat([]byte{byte(i), byte(i >> 8), 7, byte(i * 31)}, size/4+1)[:size]
		pages[i] = page{pagefile.Key{Column: 1, Page: uint32(i)}, value}
	}
	return pages
}

// put returns a function that puts pages into a Writer.
func put(pages []page) func(*pagefile.Writer) error {
	return func(w *pagefile.Writer) error {
		for _, p := range pages {
			if err := w.Put(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	}
}

// writers are the options for each of the two tree writers.
var writers = []pagefile.Options{{}, {Bolt: true}}

// create writes pages to the file "f" and returns its bytes.
func create(tb testing.TB, root *os.Root, pages []page) []byte {
	tb.Helper()
	return createWith(tb, root, pagefile.Options{}, pages)
}

func createWith(tb testing.TB, root *os.Root, opts pagefile.Options, pages []page) []byte {
	tb.Helper()
	info, err := pagefile.CreateWith(disk.Dir(root), "f", opts, put(pages))
	if err != nil {
		tb.Fatalf("Create: %v", err)
	}
	data := readFile(tb, root, "f")
	if info.Size != int64(len(data)) || info.Pages != uint64(len(pages)) {
		tb.Fatalf("Create = %+v for %d pages in a file of %d bytes", info, len(pages), len(data))
	}
	return data
}

func readFile(tb rapid.TB, root *os.Root, name string) []byte {
	tb.Helper()
	data, err := root.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// writeFile creates a new file. Some file systems sync a truncated file immediately, which is slow.
func writeFile(tb testing.TB, root *os.Root, name string, data []byte) {
	tb.Helper()
	root.Remove(name)
	if err := root.WriteFile(name, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// scan returns all pages of the file "f", up to the first error.
func scan(root *os.Root) (pages []page, err error) { return scanFS(disk.Dir(root)) }

// samePages reports whether got and want are the same pages in the same order.
func samePages(got, want []page) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i].key != want[i].key || !bytes.Equal(got[i].value, want[i].value) {
			return false
		}
	}
	return true
}

// damages returns the damaged ranges in err.
func damages(err error) []*disk.DamageError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*disk.DamageError
		for _, e := range joined.Unwrap() {
			all = append(all, damages(e)...)
		}
		return all
	}
	if damage, ok := errors.AsType[*disk.DamageError](err); ok {
		return []*disk.DamageError{damage}
	}
	return nil
}

// covers reports whether a damaged range of err contains the byte at an offset.
func covers(err error, at int64) bool {
	for _, d := range damages(err) {
		if d.File == "f" && d.Offset <= at && at < d.Offset+d.Length {
			return true
		}
	}
	return false
}

// known reports whether err is an error that reading may return.
func known(err error) bool {
	var damage *disk.DamageError
	return errors.As(err, &damage) && errors.Is(err, disk.ErrCorrupt) ||
		errors.Is(err, disk.ErrForeign) || errors.Is(err, disk.ErrNewer)
}

// Constants of the format, copied from docs/FORMAT.md instead of the package.
const (
	pageSize   = 4096
	blockSize  = 65536
	footerSize = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// body returns the bytes before the trailer of a valid file.
func body(data []byte) []byte {
	return data[:binary.LittleEndian.Uint64(data[len(data)-footerSize+16:])]
}

// pagesOf returns the page count in the trailer of a valid file.
func pagesOf(data []byte) uint64 {
	return binary.LittleEndian.Uint64(data[len(data)-footerSize+40:])
}

// sealed returns body with a valid trailer.
func sealed(body []byte, pages uint64) []byte {
	le := binary.LittleEndian
	data := bytes.Clone(body)
	blocks := 0
	for rest := body; len(rest) > 0; blocks++ {
		n := min(blockSize, len(rest))
		data = le.AppendUint32(data, crc32.Checksum(rest[:n], castagnoli))
		rest = rest[n:]
	}
	table := crc32.Checksum(data[len(body):], castagnoli)
	footer := []byte("StetPage")
	footer = le.AppendUint32(footer, 1)
	footer = le.AppendUint32(footer, 0)
	footer = le.AppendUint64(footer, uint64(len(body)))
	footer = le.AppendUint32(footer, blockSize)
	footer = le.AppendUint32(footer, table)
	footer = le.AppendUint64(footer, uint64(blocks))
	footer = le.AppendUint64(footer, pages)
	footer = append(footer, make([]byte, 12)...)
	footer = le.AppendUint32(footer, crc32.Checksum(footer, castagnoli))
	return append(data, footer...)
}

// resealFooter recomputes the checksum of a changed footer.
func resealFooter(data []byte) {
	footer := data[len(data)-footerSize:]
	binary.LittleEndian.PutUint32(footer[60:], crc32.Checksum(footer[:60], castagnoli))
}

// resealMetas recomputes the checksums of changed meta pages.
func resealMetas(body []byte) {
	for i := range 2 {
		meta := body[i*pageSize+16:]
		sum := uint64(14695981039346656037) // FNV-1a.
		for _, b := range meta[:56] {
			sum = (sum ^ uint64(b)) * 1099511628211
		}
		binary.LittleEndian.PutUint64(meta[56:], sum)
	}
}
