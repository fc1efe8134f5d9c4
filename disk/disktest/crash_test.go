package disktest_test

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
)

// appendText appends text to a file that is open for writing.
func appendText(t *testing.T, f disk.File, text string) {
	t.Helper()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt([]byte(text), size); n != len(text) || err != nil {
		t.Fatalf("WriteAt = %d, %v", n, err)
	}
}

func create(t *testing.T, m *disktest.Mem, name string) disk.File {
	t.Helper()
	f, err := m.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCrash_KeepsSyncedBytes(t *testing.T) {
	m := disktest.New()
	a, b := create(t, m, "a"), create(t, m, "b")
	appendText(t, a, "synced")
	appendText(t, b, "synced, but without a name")
	if a.Sync() != nil || m.SyncDir(".") != nil || b.Sync() != nil {
		t.Fatal("a sync failed")
	}
	appendText(t, a, " and not")
	if err := m.Rename("b", "c"); err != nil {
		t.Fatal(err)
	}
	after := m.Crash()
	if got := string(after.Bytes("a")); got != "synced" {
		t.Errorf("a holds %q", got)
	}
	if after.Bytes("c") != nil || string(after.Bytes("b")) != "synced, but without a name" {
		t.Errorf("b holds %q, c %q", after.Bytes("b"), after.Bytes("c"))
	}
	if got := string(m.Bytes("a")); got != "synced and not" {
		t.Errorf("without the crash, a holds %q", got)
	}
}

func TestCrashSeed_KeepsSyncedBytes(t *testing.T) {
	m := disktest.New()
	f := create(t, m, "f")
	appendText(t, f, strings.Repeat("s", 700))
	if f.Sync() != nil || m.SyncDir(".") != nil {
		t.Fatal("a sync failed")
	}
	appendText(t, f, strings.Repeat("u", 3000))
	kinds := map[string]bool{}
	for seed := range uint64(200) {
		got := string(m.CrashSeed(seed).Bytes("f"))
		if again := string(m.CrashSeed(seed).Bytes("f")); got != again {
			t.Fatalf("seed %d gave two results", seed)
		}
		if !strings.HasPrefix(got, strings.Repeat("s", 700)) {
			t.Fatalf("seed %d lost synced bytes", seed)
		}
		tail := got[700:]
		kinds["hole"] = kinds["hole"] || strings.Contains(tail, "\x00u")
		kinds["garbage"] = kinds["garbage"] || strings.Trim(tail, "u\x00") != ""
		kinds["part of a sector"] = kinds["part of a sector"] || len(got)%512 != 0 && len(got) != 3700
	}
	for _, kind := range []string{"hole", "garbage", "part of a sector"} {
		if !kinds[kind] {
			t.Errorf("no crash of 200 seeds left: %s", kind)
		}
	}
}

func TestSync_FailureMarksBytesClean(t *testing.T) {
	m := disktest.New()
	f := create(t, m, "f")
	if err := m.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	appendText(t, f, "lost")
	m.Fail(m.Calls()+1, syscall.EIO)
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Sync = %v, want %v", err, syscall.EIO)
	}
	if err := f.Sync(); err != nil {
		t.Fatalf("second Sync = %v", err)
	}
	if got := m.Crash().Bytes("f"); len(got) != 0 {
		t.Errorf("after the crash: %q", got)
	}
	if _, err := f.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := string(m.Crash().Bytes("f")); got != "lost" {
		t.Errorf("written again, synced, after the crash: %q", got)
	}
}

func TestMem_FailInjectsErrors(t *testing.T) {
	m := disktest.New()
	var calls []string
	m.OnCall(func(n int, call string) {
		calls = append(calls, call)
		if n != len(calls) {
			t.Errorf("call %d is number %d", len(calls), n)
		}
	})
	m.Fail(2, disktest.ErrShortWrite)
	m.FailFrom(4, syscall.ENOSPC)
	f := create(t, m, "f")
	if n, err := f.WriteAt([]byte("1234"), 0); n != 2 || !errors.Is(err, disktest.ErrShortWrite) {
		t.Errorf("short write = %d, %v", n, err)
	}
	b := make([]byte, 4)
	if n, err := f.ReadAt(b, 0); n != 2 || err != io.EOF {
		t.Errorf("ReadAt = %d, %v", n, err)
	}
	if _, err := m.Create("g"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Create = %v", err)
	}
	if _, err := m.ReadDir("."); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("ReadDir = %v", err)
	}
	if got := strings.Join(calls, ", "); got != "create f, write f, read f, create g, list" {
		t.Errorf("calls %s", got)
	}
}

func TestMem_CreatePutAndRemoveFiles(t *testing.T) {
	m := disktest.New()
	create(t, m, "b")
	m.Put("a", []byte("put"))
	if _, err := m.Create("b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create of a taken name = %v", err)
	}
	for _, err := range []error{m.Remove("x"), m.Rename("x", "y")} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want %v", err, fs.ErrNotExist)
		}
	}
	f, err := m.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write to a file opened for reading = %v", err)
	}
	if got := m.Files(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("there are %q", got)
	}
}
