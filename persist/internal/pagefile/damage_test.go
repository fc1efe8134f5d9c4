package pagefile_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// A patient is the open file "f", in which a test damages bytes.
type patient struct {
	t     *testing.T
	root  *os.Root
	file  *os.File
	data  []byte // The valid bytes.
	pages []page // The valid content.
}

func newPatient(t *testing.T, pages []page) *patient {
	root := pagefile.OpenRoot(t)
	data := create(t, root, pages)
	file, err := root.OpenFile("f", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &patient{t, root, file, data, pages}
}

// flip flips one bit, checks that readers report the damage and read all other pages, and flips the
// bit back.
func (p *patient) flip(at int64, bit int) {
	p.t.Helper()
	p.write(at, p.data[at]^1<<bit)
	defer p.write(at, p.data[at])
	f, err := pagefile.Open(disk.Dir(p.root), "f")
	if err != nil {
		if !covers(err, at) {
			p.t.Errorf("bit %d of byte %d is flipped, Open = %v", bit, at, err)
		}
		if _, err := pagefile.Check(context.Background(), disk.Dir(p.root), "f"); !covers(err, at) || !errors.Is(err, disk.ErrCorrupt) {
			p.t.Errorf("bit %d of byte %d is flipped, Check = %v", bit, at, err)
		}
		return
	}
	defer f.Close()
	if err := f.Verify(context.Background()); !covers(err, at) || !errors.Is(err, disk.ErrCorrupt) {
		p.t.Errorf("bit %d of byte %d is flipped, Verify = %v", bit, at, err)
	}
	p.checkScan(f, at)
	if at%4 != 0 {
		return
	}
	if _, err := readAll(f); !covers(err, at) {
		p.t.Errorf("bit %d of byte %d is flipped, ReadAll = %v", bit, at, err)
	}
}

// checkScan fails if f returns pages that were not written, or an error that does not cover the
// damaged byte. The parameter at is its offset.
func (p *patient) checkScan(f *pagefile.File, at int64) {
	p.t.Helper()
	i := 0
	err := f.Scan(func(k pagefile.Key, value []byte) error {
		if i >= len(p.pages) || k != p.pages[i].key || !bytes.Equal(value, p.pages[i].value) {
			p.t.Errorf("byte %d is damaged, Scan gave a wrong page %v", at, k)
		}
		i++
		return nil
	})
	if err == nil && i != len(p.pages) {
		p.t.Errorf("byte %d is damaged, Scan gave %d pages and no error, want %d", at, i, len(p.pages))
	}
	if err != nil && !covers(err, at) {
		p.t.Errorf("byte %d is damaged, Scan = %v", at, err)
	}
}

func (p *patient) write(at int64, b byte) {
	p.t.Helper()
	if _, err := p.file.WriteAt([]byte{b}, at); err != nil {
		p.t.Fatal(err)
	}
}

// The test flips a bit in each byte of a small file that has a tree. It also flips some bits in a
// file with an inline bucket.
func TestVerify_FlippedBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	tree := newPatient(t, numbered(5, 900))
	step := deep.Or(4, 1) // By default, a bit of every fourth byte.
	for at := r.IntN(step); at < len(tree.data); at += 1 + r.IntN(2*step-1) {
		tree.flip(int64(at), r.IntN(8))
	}
	inline := newPatient(t, numbered(5, 50))
	for at := r.IntN(8); at < len(inline.data); at += 1 + r.IntN(15) {
		inline.flip(int64(at), r.IntN(8))
	}
	footer := len(inline.data) - footerSize
	for at := footer - 4; at < len(inline.data); at++ {
		for bit := range 8 {
			inline.flip(int64(at), bit)
		}
	}
}

// Pages outside the damaged block must stay readable.
func TestVerify_FlippedBitInLargeFile(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	p := newPatient(t, numbered(200, 20_000))
	for range 150 {
		at, bit := r.Int64N(int64(len(p.data))), r.IntN(8)
		p.flip(at, bit)
		p.write(at, p.data[at]^1<<bit)
		p.checkGets(at)
		p.write(at, p.data[at])
	}
}

// checkGets gets every page while a byte is damaged. The parameter at is its offset.
func (p *patient) checkGets(at int64) {
	p.t.Helper()
	f, err := pagefile.Open(disk.Dir(p.root), "f")
	if err != nil {
		return // patient.flip checks such a file.
	}
	defer f.Close()
	good := 0
	for _, want := range p.pages {
		value, ok, err := f.Get(want.key)
		switch {
		case err == nil && (!ok || !bytes.Equal(value, want.value)):
			p.t.Errorf("byte %d is damaged, Get(%v) = %d wrong bytes, %v", at, want.key, len(value), ok)
		case err != nil && !covers(err, at):
			p.t.Errorf("byte %d is damaged, Get(%v) = %v", at, want.key, err)
		case err == nil:
			good++
		}
	}
	// Damage in a leaf loses at most four or five values. Damage in the root node loses more. The
	// root node is in the last two blocks, which this check skips.
	if good < len(p.pages)-8 && at < int64(len(p.data))-2*blockSize {
		p.t.Errorf("byte %d is damaged, %d of %d pages are left", at, good, len(p.pages))
	}
}

func TestOpen_ShortenedFile(t *testing.T) {
	p := newPatient(t, numbered(12, 900))
	size := len(p.data)
	lengths := []int{0, 1, 19, 20, 21, 63, 64, 65, pageSize, size - footerSize - 4, size - footerSize, size - 1}
	for length := 0; length < size; length += 97 {
		lengths = append(lengths, length)
	}
	for _, length := range lengths {
		writeFile(t, p.root, "f", p.data[:length])
		if _, err := pagefile.Open(disk.Dir(p.root), "f"); !errors.Is(err, disk.ErrCorrupt) || len(damages(err)) != 1 {
			t.Errorf("Open of %d bytes of %d = %v, want a *DamageError", length, size, err)
		}
	}
}

func TestOpen_LengthenedFile(t *testing.T) {
	p := newPatient(t, numbered(12, 900))
	tails := map[string][]byte{
		"a byte":                       {0},
		"zeros":                        make([]byte, 1000),
		"the trailer":                  p.data[len(body(p.data)):],
		"the footer":                   p.data[len(p.data)-footerSize:],
		"the file":                     p.data,
		"an empty file with a trailer": sealed(nil, 0),
	}
	for name, tail := range tails {
		writeFile(t, p.root, "f", append(bytes.Clone(p.data), tail...))
		if _, err := pagefile.Open(disk.Dir(p.root), "f"); !errors.Is(err, disk.ErrCorrupt) || len(damages(err)) != 1 {
			t.Errorf("Open with %s appended = %v, want a *DamageError", name, err)
		}
	}
}

// If a file is truncated while it is open, reads return an error and do not fault.
func TestFile_ShortenedWhileOpen(t *testing.T) {
	p := newPatient(t, numbered(100, 50_000))
	f, err := pagefile.Open(disk.Dir(p.root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.file.Truncate(20 * blockSize); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Get(p.pages[90].key); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Get = %v, want %v", err, disk.ErrCorrupt)
	}
	if err := f.Scan(func(pagefile.Key, []byte) error { return nil }); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Scan = %v, want %v", err, disk.ErrCorrupt)
	}
	if err := f.Verify(t.Context()); !covers(err, 20*blockSize) || covers(err, 20*blockSize-1) {
		t.Errorf("Verify = %v, want the bytes from %d on", err, 20*blockSize)
	}
}

func TestVerify_ReportsEveryDamagedRange(t *testing.T) {
	p := newPatient(t, numbered(100, 50_000))
	for _, block := range []int64{0, 3, 4, 5, 9, 70} {
		p.write(block*blockSize+block, p.data[block*blockSize+block]^1)
	}
	info, err := pagefile.Check(t.Context(), disk.Dir(p.root), "f")
	want := [][2]int64{{0, 1}, {3, 3}, {9, 1}, {70, 1}}
	got := damages(err)
	if len(got) != len(want) || info.Pages != 100 {
		t.Fatalf("Check = %+v, %v, want the ranges %v in blocks", info, err, want)
	}
	for i, d := range got {
		if d.Offset != want[i][0]*blockSize || d.Length != want[i][1]*blockSize {
			t.Errorf("range %d is %v, want %v in blocks", i, d, want[i])
		}
	}
}

func TestVerify_ContextEnds(t *testing.T) {
	root := pagefile.OpenRoot(t)
	create(t, root, numbered(100, 50_000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pagefile.Check(ctx, disk.Dir(root), "f"); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v, want %v", err, context.Canceled)
	}
}

func TestOpen_ForeignNewerOrDamagedFile(t *testing.T) {
	root := pagefile.OpenRoot(t)
	good := create(t, root, numbered(12, 900))
	footer := len(good) - footerSize
	set := func(at int, b byte) []byte {
		data := bytes.Clone(good)
		data[footer+at] = b
		resealFooter(data)
		return data
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"text", []byte(strings.Repeat("not a page file\n", 20)), disk.ErrForeign},
		{"short text", []byte("x"), disk.ErrForeign},
		{"no trailer", body(good), disk.ErrCorrupt},
		{"version 2", set(8, 2), disk.ErrNewer},
		{"version 256", set(9, 1), disk.ErrNewer},
		{"version 0", set(8, 0), disk.ErrCorrupt},
		{"a feature", set(12, 1), disk.ErrNewer},
		{"another feature", set(15, 0x80), disk.ErrNewer},
		{"a shorter body", set(17, good[footer+17]-0x10), disk.ErrCorrupt},
		{"a longer body", set(17, good[footer+17]+0x10), disk.ErrCorrupt},
		{"a huge body", set(23, 0xFF), disk.ErrCorrupt},
		{"a body with an incomplete page", set(16, 1), disk.ErrCorrupt},
		{"another block size", set(24, 1), disk.ErrCorrupt},
		{"another table checksum", set(28, good[footer+28]^1), disk.ErrCorrupt},
		{"another block count", set(32, 2), disk.ErrCorrupt},
		{"a huge block count", set(39, 0xFF), disk.ErrCorrupt},
		{"reserved bytes", set(59, 1), disk.ErrCorrupt},
		{"an empty body", sealed(nil, 0), disk.ErrCorrupt},
		{"zeros", sealed(make([]byte, 8*pageSize), 0), disk.ErrCorrupt},
	}
	for _, tt := range tests {
		writeFile(t, root, "f", tt.data)
		_, err := pagefile.Open(disk.Dir(root), "f")
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "f") {
			t.Errorf("%s: Open = %v, want %v", tt.name, err, tt.want)
		}
	}
	// A wrong page count does not prevent reading the other pages.
	writeFile(t, root, "f", set(40, 13))
	pages, err := scan(root)
	if !errors.Is(err, disk.ErrCorrupt) || !samePages(pages, numbered(12, 900)) {
		t.Errorf("Scan with a wrong count gave %d pages and %v", len(pages), err)
	}
}
