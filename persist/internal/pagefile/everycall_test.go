package pagefile_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

func TestCreate_SameBytesInEveryFS(t *testing.T) {
	pages := numbered(40, 5000)
	m := disktest.New()
	if _, err := pagefile.Create(m, "f", put(pages)); err != nil {
		t.Fatal(err)
	}
	if want := create(t, pagefile.OpenRoot(t), pages); string(m.Bytes("f")) != string(want) {
		t.Errorf("%d bytes in memory, %d on disk, or others", len(m.Bytes("f")), len(want))
	}
}

// Each call fails once, and the system crashes before each call. The name must always refer to the
// complete old file or the complete new one.
func TestCreate_EveryCallFailsOrCrashes(t *testing.T) {
	before, pages := numbered(2, 10), numbered(30, 3000)
	start := disktest.New()
	if _, err := pagefile.Create(start, "f", put(before)); err != nil {
		t.Fatal(err)
	}
	whole := func(m *disktest.Mem) []page {
		t.Helper()
		for _, want := range [][]page{before, pages} {
			if got, err := scanFS(m); err == nil && samePages(got, want) {
				return want
			}
		}
		t.Fatalf("neither the old file nor the new one: %v", m)
		return nil
	}
	for _, failure := range []error{syscall.EIO, disktest.ErrShortWrite} {
		for n, failed := 1, true; failed; n++ {
			m := start.Crash()
			m.Fail(n, failure)
			_, err := pagefile.Create(m, "f", put(pages))
			if failed = m.Calls() >= n; !failed && err != nil {
				t.Fatal(err)
			}
			whole(m)
			if got := whole(m.Crash()); err == nil && &got[0] != &pages[0] {
				t.Errorf("failure of call %d: Create returned nil, and a crash left the old file", n)
			}
			for seed := range uint64(4) {
				whole(m.CrashSeed(seed))
			}
			if err != nil && !errors.Is(err, failure) {
				t.Errorf("failure of call %d: Create = %v, want %v", n, err, failure)
			}
		}
	}
	m := start.Crash()
	m.OnCall(func(n int, _ string) {
		whole(m.Crash())
		whole(m.CrashSeed(uint64(n)))
	})
	if _, err := pagefile.Create(m, "f", put(pages)); err != nil {
		t.Fatal(err)
	}
}

// scanFS is scan for any file system.
func scanFS(fs disk.FS) (pages []page, err error) {
	f, err := pagefile.Open(fs, "f")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = f.Scan(func(k pagefile.Key, value []byte) error {
		pages = append(pages, page{k, value})
		return nil
	})
	return pages, err
}
