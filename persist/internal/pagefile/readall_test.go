package pagefile_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// readAll returns all pages that ReadAll visits, in ascending order.
func readAll(f *pagefile.File) (pages []page, err error) {
	var mu sync.Mutex
	err = f.ReadAll(context.Background(), func(k pagefile.Key, value []byte) error {
		mu.Lock()
		defer mu.Unlock()
		pages = append(pages, page{k, bytes.Clone(value)})
		return nil
	})
	slices.SortFunc(pages, func(a, b page) int { return a.key.Compare(b.key) })
	return pages, err
}

// checkReadAll fails unless ReadAll visits the pages that Scan visits. ReadAll must return an error
// if and only if Verify does.
func checkReadAll(tb interface{ Errorf(string, ...any) }, root *os.Root) {
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		return
	}
	defer f.Close()
	got, err := readAll(f)
	if verr := f.Verify(context.Background()); (err == nil) != (verr == nil) {
		tb.Errorf("ReadAll = %v, Verify = %v", err, verr)
	}
	if err != nil && !known(err) {
		tb.Errorf("ReadAll = %v", err)
	}
	want, scanErr := scan(root)
	if err == nil && (scanErr != nil || !samePages(got, want)) {
		tb.Errorf("ReadAll gave %d pages, Scan %d with error %v", len(got), len(want), scanErr)
	}
}

func TestReadAll_EveryPageOnce(t *testing.T) {
	mixed := numbered(3000, 40)
	for i := range mixed { // Values that end at, before and after the ends of blocks and stripes.
		if i%5 == 0 {
			mixed[i].value = bytes.Repeat([]byte{byte(i)}, i*61%(3*blockSize))
		}
	}
	for name, pages := range map[string][]page{
		"none":            nil,
		"inline":          numbered(5, 50),
		"small":           numbered(600, 20),
		"large":           numbered(30, 70_000),
		"mixed":           mixed,
		"longer than all": {{pagefile.Key{Column: 1}, make([]byte, 5<<20)}, {pagefile.Key{Column: 2}, []byte{1}}},
	} {
		root := pagefile.OpenRoot(t)
		create(t, root, pages)
		f, err := pagefile.Open(disk.Dir(root), "f")
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(f)
		if err != nil || !samePages(got, pages) {
			t.Errorf("%s: ReadAll = %d pages, %v, want %d", name, len(got), err, len(pages))
		}
		f.Close()
	}
}

func TestReadSome_ReadsWantedPages(t *testing.T) {
	p := newPatient(t, numbered(300, 20_000))
	f, err := pagefile.Open(disk.Dir(p.root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bad := int64(bytes.Index(p.data, p.pages[150].value)) + 10_000
	p.write(bad, p.data[bad]^1)
	for _, step := range []int{1, 2, 7, 50, 301} {
		for _, damaged := range []bool{false, true} {
			var want []page
			wanted := map[pagefile.Key]bool{}
			for i := step / 2; i < len(p.pages); i += step {
				if near := i >= 140 && i <= 160; damaged && i == 150 || !near {
					want = append(want, p.pages[i])
					wanted[p.pages[i].key] = true
				}
			}
			var mu sync.Mutex
			var got []page
			err := f.ReadSome(t.Context(), func(k pagefile.Key) bool { return wanted[k] }, func(k pagefile.Key, value []byte) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, page{k, bytes.Clone(value)})
				return nil
			})
			if wanted[p.pages[150].key] {
				if !covers(err, bad) {
					t.Errorf("every %dth: ReadSome = %v, want an error at %d", step, err, bad)
				}
				continue
			}
			slices.SortFunc(got, func(a, b page) int { return a.key.Compare(b.key) })
			if err != nil || !samePages(got, want) {
				t.Errorf("every %dth: ReadSome = %d pages, %v, want %d", step, len(got), err, len(want))
			}
		}
	}
}

// Damage outside all values is found, too.
func TestReadAll_ReportsDamageOutsideValues(t *testing.T) {
	p := newPatient(t, numbered(200, 20_000))
	for at := int64(0); at < int64(len(p.data)); at += blockSize / 2 {
		p.write(at, p.data[at]^1)
		checkReadAll(t, p.root)
		p.write(at, p.data[at])
	}
}

func TestReadAll_StopsOnError(t *testing.T) {
	root := pagefile.OpenRoot(t)
	create(t, root, numbered(200, 20_000))
	f, err := pagefile.Open(disk.Dir(root), "f")
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if err := f.ReadAll(t.Context(), func(pagefile.Key, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("ReadAll = %v, want %v", err, stop)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.ReadAll(ctx, func(pagefile.Key, []byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadAll = %v, want %v", err, context.Canceled)
	}
	f.Close()
	if _, err := readAll(f); !errors.Is(err, os.ErrClosed) {
		t.Errorf("ReadAll = %v, want %v", err, os.ErrClosed)
	}
}

// ReadAll detects a change between reading the tree and reading a value.
func TestReadAll_FileChangedMeanwhile(t *testing.T) {
	p := newPatient(t, numbered(20, 9000))
	f, err := pagefile.Open(disk.Dir(p.root), "f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := p.file.Truncate(2 * blockSize); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(f); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("ReadAll = %v, want %v", err, disk.ErrCorrupt)
	}
}
