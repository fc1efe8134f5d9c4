package pagefile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// checkContent opens the file "f" and compares everything that can be read from it with want.
func checkContent(tb rapid.TB, root *os.Root, want []page) {
	tb.Helper()
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	defer f.Close()
	var got []page
	err = f.Scan(func(k pagefile.Key, value []byte) error {
		got = append(got, page{k, value})
		return nil
	})
	if err != nil || !samePages(got, want) {
		tb.Fatalf("Scan gave %d pages and %v, want %d pages", len(got), err, len(want))
	}
	checkKeys(tb, f, want)
	for i, p := range want {
		value, ok, err := f.Get(p.key)
		if err != nil || !ok || !bytes.Equal(value, p.value) {
			tb.Fatalf("Get(%v) = %d bytes, %v, %v, want %d bytes", p.key, len(value), ok, err, len(p.value))
		}
		next := pagefile.Key{Column: p.key.Column, Page: p.key.Page + 1}
		if i+1 < len(want) && want[i+1].key == next {
			continue
		}
		if _, ok, err := f.Get(next); ok || err != nil {
			tb.Fatalf("Get(%v) = %v, %v for a key that is not there", next, ok, err)
		}
	}
	checkReadAll(tb, root)
	if err := f.Verify(context.Background()); err != nil {
		tb.Fatalf("Verify: %v", err)
	}
}

// checkKeys compares the keys and sizes of f with those of want.
func checkKeys(tb rapid.TB, f *pagefile.File, want []page) {
	tb.Helper()
	i := 0
	err := f.Keys(func(k pagefile.Key, size int64) error {
		if i >= len(want) || k != want[i].key || size != int64(len(want[i].value)) {
			return fmt.Errorf("key %d is %v with %d bytes", i, k, size)
		}
		i++
		return nil
	})
	if err != nil || i != len(want) {
		tb.Fatalf("Keys gave %d keys and %v, want %d", i, err, len(want))
	}
}

// checkBolt compares the pages that bbolt reads from the file with want, and runs bbolt's own
// check.
func checkBolt(tb rapid.TB, root *os.Root, want []page) {
	tb.Helper()
	db, err := bbolt.Open(filepath.Join(root.Name(), "f"), 0, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		tb.Fatalf("bbolt: %v", err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		i := 0
		return tx.Bucket([]byte("pages")).ForEach(func(k, v []byte) error {
			p := want[i]
			i++
			key := fmt.Appendf(nil, "%08x%08x", p.key.Column, p.key.Page)
			if fmt.Sprintf("%x", k) != string(key) || !bytes.Equal(v, p.value) {
				return fmt.Errorf("page %d has key %x and %d bytes", i-1, k, len(v))
			}
			return nil
		})
	})
	if err != nil {
		tb.Fatalf("bbolt reads other pages: %v", err)
	}
}

// The test writes random pages and reads them in every way, including with bbolt.
func TestPut_RandomPagesReadBack(t *testing.T) {
	root := pagefile.OpenRoot(t)
	sizes := rapid.OneOf(
		rapid.IntRange(0, 40),
		rapid.IntRange(900, 1100), // Sizes around that of the largest inline bucket.
		rapid.IntRange(3900, 4200),
		rapid.IntRange(0, 200_000),
	)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 6), rapid.IntRange(0, 400)).Draw(t, "pages")
		size := sizes.Draw(t, "size")
		if n*size > 8<<20 {
			n = 8 << 20 / size
		}
		step := rapid.Uint32Range(1, 1<<20).Draw(t, "step")
		pages := numbered(n, size)
		for i := range pages {
			at := uint64(i) * uint64(step) << 12
			pages[i].key = pagefile.Key{Column: uint32(at >> 32), Page: uint32(at)}
			pages[i].value = pages[i].value[i%3*size/3:]
		}
		if _, err := pagefile.Create(disk.Dir(root), "f", put(pages)); err != nil {
			t.Fatalf("Create: %v", err)
		}
		checkContent(t, root, pages)
		checkBolt(t, root, pages)
	})
}

func TestPut_SizesAtLimits(t *testing.T) {
	tests := []struct {
		name  string
		pages []page
	}{
		{"no page", nil},
		{"one page", numbered(1, 100)},
		{"one empty value", numbered(1, 0)},
		{"empty values", numbered(1000, 0)},
		{"the largest inline bucket", numbered(1, 1024-16-16-8)},
		{"one byte more", numbered(1, 1024-16-16-8+1)},
		{"the extreme keys", []page{{pagefile.Key{}, []byte("a")}, {pagefile.Key{Column: 1<<32 - 1, Page: 1<<32 - 1}, []byte("b")}}},
		{"values longer than a transaction", numbered(3, 5<<20)},
		{"values above 16 MiB", numbered(3, 17<<20)},
		{"a large value among small ones", append(numbered(300, 50), page{pagefile.Key{Column: 2}, make([]byte, 20<<20)}, page{pagefile.Key{Column: 3}, nil})},
		{"several transactions", numbered(600, 64<<10)},
		{"100,000 small pages", numbered(100_000, 12)},
	}
	for _, tt := range tests {
		for _, opts := range writers {
			t.Run(fmt.Sprintf("%s/bolt=%v", tt.name, opts.Bolt), func(t *testing.T) {
				t.Parallel()
				root := pagefile.OpenRoot(t)
				createWith(t, root, opts, tt.pages)
				checkContent(t, root, tt.pages)
				checkBolt(t, root, tt.pages)
			})
		}
	}
}

func TestCreate_SameBytesEachTime(t *testing.T) {
	for _, pages := range [][]page{nil, numbered(3, 10), numbered(2000, 100), numbered(700, 50_000)} {
		for _, opts := range writers {
			first := createWith(t, pagefile.OpenRoot(t), opts, pages)
			second := createWith(t, pagefile.OpenRoot(t), opts, pages)
			if !bytes.Equal(first, second) {
				t.Errorf("%d pages with %+v gave two different files", len(pages), opts)
			}
		}
	}
}

// A new version that changes the bytes on purpose must change these numbers. The bytes do not
// depend on the machine.
func TestCreate_KnownChecksums(t *testing.T) {
	tests := []struct {
		pages []page
		want  pagefile.Info
	}{
		{nil, pagefile.Info{Size: 12356, Pages: 0, Blocks: 1, CRC: 0xcf734456}},
		{numbered(3, 10), pagefile.Info{Size: 12356, Pages: 3, Blocks: 1, CRC: 0x5595182a}},
		{numbered(2000, 100), pagefile.Info{Size: 274516, Pages: 2000, Blocks: 5, CRC: 0x3442bf57}},
		{numbered(400, 50_000), pagefile.Info{Size: 20088076, Pages: 400, Blocks: 307, CRC: 0xd3ac1d84}},
	}
	for _, tt := range tests {
		got, err := pagefile.Create(disk.Dir(pagefile.OpenRoot(t)), "f", put(tt.pages))
		if err != nil || got != tt.want {
			t.Errorf("Create(%d pages) = %+v, %v, want %+v", len(tt.pages), got, err, tt.want)
		}
	}
}

// Files of every earlier format version can be read.
func TestOpen_OldFormats(t *testing.T) {
	tests := []struct {
		name  string
		pages []page
	}{
		{"v1-inline.pages", numbered(5, 50)},
		{"v1-tree.pages", numbered(5, 900)},
	}
	for _, tt := range tests {
		data, err := os.ReadFile(filepath.Join("testdata", tt.name))
		if err != nil {
			t.Fatal(err)
		}
		root := pagefile.OpenRoot(t)
		writeFile(t, root, "f", data)
		checkContent(t, root, tt.pages)
	}
}

func TestPut_KeysMustAscend(t *testing.T) {
	k := func(column, page uint32) pagefile.Key { return pagefile.Key{Column: column, Page: page} }
	tests := [][2]pagefile.Key{
		{k(0, 0), k(0, 0)},
		{k(1, 5), k(1, 5)},
		{k(1, 5), k(1, 4)},
		{k(2, 0), k(1, 9)},
		{k(256, 0), k(1, 0)},
	}
	for _, tt := range tests {
		root := pagefile.OpenRoot(t)
		_, err := pagefile.Create(disk.Dir(root), "f", func(w *pagefile.Writer) error {
			if err := w.Put(tt[0], nil); err != nil {
				return err
			}
			if err := w.Put(tt[1], nil); !errors.Is(err, pagefile.ErrOrder) {
				t.Errorf("Put(%v) after %v = %v, want %v", tt[1], tt[0], err, pagefile.ErrOrder)
			}
			w.Put(k(1<<31, 0), nil) // The key ascends, but an earlier Put has failed.
			return nil
		})
		if !errors.Is(err, pagefile.ErrOrder) {
			t.Errorf("Create after a refused Put = %v, want %v", err, pagefile.ErrOrder)
		}
		checkNames(t, root)
	}
}

func TestPut_CopiesValue(t *testing.T) {
	root := pagefile.OpenRoot(t)
	value := []byte("before")
	_, err := pagefile.Create(disk.Dir(root), "f", func(w *pagefile.Writer) error {
		defer copy(value, "after!")
		return w.Put(pagefile.Key{}, value)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkContent(t, root, []page{{pagefile.Key{}, []byte("before")}})
}

func TestWriter_UseAfterCreate(t *testing.T) {
	root := pagefile.OpenRoot(t)
	var kept *pagefile.Writer
	_, err := pagefile.Create(disk.Dir(root), "f", func(w *pagefile.Writer) error {
		kept = w
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := kept.Put(pagefile.Key{}, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Put after Create = %v, want %v", err, os.ErrClosed)
	}
}

// checkNames fails unless the directory contains exactly these files.
func checkNames(t *testing.T, root *os.Root, want ...string) {
	t.Helper()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the directory has %v, want %v", got, want)
	}
}

func TestCreate_FailureKeepsOldFile(t *testing.T) {
	failure := errors.New("failure")
	write := put(numbered(300, 60_000)) // Enough for a committed transaction.
	tests := []struct {
		name   string
		fill   func(w *pagefile.Writer) error
		before func() error
	}{
		{name: "fill fails at once", fill: func(*pagefile.Writer) error { return failure }},
		{name: "fill fails late", fill: func(w *pagefile.Writer) error { write(w); return failure }},
		{name: "fill panics at once", fill: func(*pagefile.Writer) error { panic(failure) }},
		{name: "fill panics late", fill: func(w *pagefile.Writer) error { write(w); panic(failure) }},
		{name: "before fails", fill: write, before: func() error { return failure }},
		{name: "before panics", fill: write, before: func() error { panic(failure) }},
	}
	for _, tt := range tests {
		for _, opts := range writers {
			t.Run(fmt.Sprintf("%s/bolt=%v", tt.name, opts.Bolt), func(t *testing.T) {
				root := pagefile.OpenRoot(t)
				old := create(t, root, numbered(3, 10))
				opts.BeforePublish = tt.before
				if err := createPanicking(root, opts, tt.fill); !errors.Is(err, failure) {
					t.Errorf("CreateWith = %v, want %v", err, failure)
				}
				if !bytes.Equal(readFile(t, root, "f"), old) {
					t.Error("the old file changed")
				}
				checkNames(t, root, "f")
			})
		}
	}
}

// createPanicking is CreateWith, but returns a panic as an error.
func createPanicking(root *os.Root, opts pagefile.Options, fill func(*pagefile.Writer) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = p.(error)
		}
	}()
	_, err = pagefile.CreateWith(disk.Dir(root), "f", opts, fill)
	return err
}

// When BeforePublish is called, the new file is complete and the old one still has the name.
func TestBeforePublish_BothFilesExist(t *testing.T) {
	root := pagefile.OpenRoot(t)
	old := create(t, root, numbered(3, 10))
	pages := numbered(50, 1000)
	before := func() error {
		if !bytes.Equal(readFile(t, root, "f"), old) {
			t.Error("the old file changed before BeforePublish")
		}
		temps, err := filepath.Glob(filepath.Join(root.Name(), "f.*.tmp"))
		if err != nil || len(temps) != 1 {
			t.Fatalf("before publishing there are %v, %v", temps, err)
		}
		info, err := pagefile.Check(t.Context(), disk.Dir(root), filepath.Base(temps[0]))
		if err != nil || info.Pages != 50 {
			t.Errorf("Check of the unpublished file = %+v, %v", info, err)
		}
		return nil
	}
	if _, err := pagefile.CreateWith(disk.Dir(root), "f", pagefile.Options{BeforePublish: before}, put(pages)); err != nil {
		t.Fatal(err)
	}
	checkContent(t, root, pages)
	checkNames(t, root, "f")
}

// Create removes only unfinished files whose writers have ended.
func TestCreate_RemovesUnfinishedFiles(t *testing.T) {
	root := pagefile.OpenRoot(t)
	dir := disk.Dir(root)
	leave := func(name string, locked bool) string {
		temp, err := disk.CreateTemp(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { temp.File.Close() })
		if !locked {
			temp.Unlock()
		}
		// Without file locks, Create removes a temporary file only if it is old.
		old := time.Now().Add(-2 * time.Hour)
		if err := root.Chtimes(temp.Name(), old, old); err != nil && !locked {
			t.Fatal(err)
		}
		return temp.Name()
	}
	leave("f", false)
	leave("f", false)
	kept := []string{"f", "f.tmp", "f.bak.tmp", leave("g", false)}
	if runtime.GOOS != "windows" {
		kept = append(kept, leave("f", true))
	}
	writeFile(t, root, "f.tmp", []byte("a user's own"))
	writeFile(t, root, "f.bak.tmp", []byte("a user's own"))
	create(t, root, numbered(3, 10))
	checkContent(t, root, numbered(3, 10))
	slices.Sort(kept)
	checkNames(t, root, kept...)
}

func TestCreate_FileInSubdirectory(t *testing.T) {
	root := pagefile.OpenRoot(t)
	if err := root.Mkdir("sub", 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("sub", "f")
	if _, err := pagefile.Create(disk.Dir(root), name, put(numbered(3, 10))); err != nil {
		t.Fatal(err)
	}
	if info, err := root.Stat(name); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file's mode is %v, %v, want 0600", info.Mode(), err)
	}
	checkNames(t, root, "sub")
}

func TestFile_ReadingChangesNothing(t *testing.T) {
	root := pagefile.OpenRoot(t)
	pages := numbered(300, 3000)
	data := create(t, root, pages)
	if err := root.Chtimes("f", time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := root.Chmod("f", 0o400); err != nil {
		t.Fatal(err)
	}
	checkContent(t, root, pages)
	info, err := root.Stat("f")
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(time.Unix(1, 0)) || !bytes.Equal(readFile(t, root, "f"), data) {
		t.Error("reading changed the file")
	}
	checkNames(t, root, "f")
}

// Several goroutines use each of several Files on one file.
func TestFile_ConcurrentReaders(t *testing.T) {
	root := pagefile.OpenRoot(t)
	pages := numbered(500, 5000)
	create(t, root, pages)
	var wg sync.WaitGroup
	for range 3 {
		f, err := pagefile.Open(disk.Dir(root), "f")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for start := range 3 {
			wg.Go(func() {
				for i := range pages {
					p := pages[(i*7+start*100)%len(pages)]
					if value, ok, err := f.Get(p.key); !ok || err != nil || !bytes.Equal(value, p.value) {
						t.Errorf("Get(%v) = %d bytes, %v, %v", p.key, len(value), ok, err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			if err := f.Verify(t.Context()); err != nil {
				t.Errorf("Verify: %v", err)
			}
		})
	}
	wg.Wait()
}

func TestGet_ValueAfterClose(t *testing.T) {
	root := pagefile.OpenRoot(t)
	for _, pages := range [][]page{numbered(2, 10), numbered(100, 2000)} {
		create(t, root, pages)
		f, err := pagefile.Open(disk.Dir(root), "f")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := f.Get(pages[0].key)
		for i := range first {
			first[i] ^= 0xFF // The caller owns the value, so the next Get is not affected.
		}
		again, _, _ := f.Get(pages[0].key)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, pages[0].value) {
			t.Error("two calls of Get returned the same memory")
		}
	}
}

func TestFile_UseAfterClose(t *testing.T) {
	root := pagefile.OpenRoot(t)
	create(t, root, numbered(100, 50_000))
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, _, err := f.Get(pagefile.Key{Column: 1, Page: 50}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Get after Close = %v, want %v", err, os.ErrClosed)
	}
	if err := f.Verify(t.Context()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Verify after Close = %v, want %v", err, os.ErrClosed)
	}
}

func TestOpen_MissingFile(t *testing.T) {
	if _, err := pagefile.Open(disk.Dir(pagefile.OpenRoot(t)), "f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open = %v, want %v", err, fs.ErrNotExist)
	}
}

func TestScan_StopsOnError(t *testing.T) {
	root := pagefile.OpenRoot(t)
	create(t, root, numbered(100, 100))
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop := errors.New("stop")
	calls := 0
	visit := func() error {
		if calls++; calls == 7 {
			return stop
		}
		return nil
	}
	if err := f.Scan(func(pagefile.Key, []byte) error { return visit() }); err != stop || calls != 7 {
		t.Errorf("Scan = %v after %d calls, want %v after 7", err, calls, stop)
	}
	calls = 0
	if err := f.Keys(func(pagefile.Key, int64) error { return visit() }); err != stop || calls != 7 {
		t.Errorf("Keys = %v after %d calls, want %v after 7", err, calls, stop)
	}
}
