package pagefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
)

// boltKey is a key as bbolt stores it.
func boltKey(k pagefile.Key) []byte {
	return []byte{
		byte(k.Column >> 24), byte(k.Column >> 16), byte(k.Column >> 8), byte(k.Column),
		byte(k.Page >> 24), byte(k.Page >> 16), byte(k.Page >> 8), byte(k.Page),
	}
}

// openBolt opens the file called name for writing.
func openBolt(tb rapid.TB, root *os.Root, name string) *bbolt.DB {
	tb.Helper()
	db, err := bbolt.Open(filepath.Join(root.Name(), name), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		tb.Fatalf("bbolt: %v", err)
	}
	return db
}

// checkBoltWrites changes the file "f" with bbolt. The result must equal that of the same changes
// in a new database.
func checkBoltWrites(tb rapid.TB, root *os.Root, pages []page) {
	tb.Helper()
	os.Remove(filepath.Join(root.Name(), "model"))
	ours, model := openBolt(tb, root, "f"), openBolt(tb, root, "model")
	defer ours.Close()
	defer model.Close()
	err := model.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("pages"))
		for _, p := range pages {
			if err == nil {
				err = b.Put(boltKey(p.key), p.value)
			}
		}
		return err
	})
	for _, db := range []*bbolt.DB{ours, model} {
		for round := range 3 {
			if err == nil {
				err = db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("pages")), pages, round) })
			}
		}
	}
	if err != nil {
		tb.Fatalf("bbolt: %v", err)
	}
	want, got := dump(tb, model), dump(tb, ours)
	if !bytes.Equal(want, got) {
		tb.Fatalf("after changes by bbolt, the file holds %d bytes of pages, a database of bbolt's own %d, or others", len(got), len(want))
	}
}

// change removes and replaces some pages, and adds others.
func change(b *bbolt.Bucket, pages []page, round int) error {
	for i, p := range pages {
		key := boltKey(p.key)
		var err error
		switch (i + round) % 7 {
		case 0:
			err = b.Delete(key)
		case 1:
			err = b.Put(key, []byte("short"))
		case 2:
			err = b.Put(append(key, byte(round)), p.value)
		}
		if err != nil {
			return err
		}
	}
	return b.Put([]byte("one more"), []byte{byte(round)})
}

// dump returns the contents of db, after bbolt's own check.
func dump(tb rapid.TB, db *bbolt.DB) []byte {
	tb.Helper()
	var all []byte
	err := db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			return err
		}
		return tx.Bucket([]byte("pages")).ForEach(func(k, v []byte) error {
			all = fmt.Appendf(all, "%d %d\n%s%s", len(k), len(v), k, v)
			return nil
		})
	})
	if err != nil {
		tb.Fatalf("bbolt: %v", err)
	}
	return all
}

func TestBolt_ReadsAndChangesPageFile(t *testing.T) {
	root := pagefile.OpenRoot(t)
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(
			rapid.IntRange(0, 40), rapid.IntRange(900, 1100), rapid.IntRange(1900, 4200), rapid.IntRange(0, 100_000),
		), 0, 60).Draw(t, "sizes")
		pages := numbered(len(sizes), 100_000)
		for i, size := range sizes {
			pages[i].value = pages[i].value[:size]
		}
		if _, err := pagefile.Create(disk.Dir(root), "f", put(pages)); err != nil {
			t.Fatalf("Create: %v", err)
		}
		checkContent(t, root, pages)
		checkBolt(t, root, pages)
		checkBoltWrites(t, root, pages)
	})
}

// A branch has at most 170 children. One more page adds a branch, and more than 170 branches add a
// level.
func TestCreate_EveryNumberOfLeaves(t *testing.T) {
	counts := []int{1, 2, 3, 169, 170, 171, 172, 340, 341}
	if !testing.Short() {
		counts = append(counts, 170*170, 170*170+1)
	}
	for _, n := range counts {
		root := pagefile.OpenRoot(t)
		pages := numbered(n, 2050) // Two of these values do not fit into a page.
		info, err := pagefile.Create(disk.Dir(root), "f", put(pages))
		if err != nil {
			t.Fatal(err)
		}
		nodes := int64(3 + n)
		for level := n; level > 1; nodes += int64(level) {
			level = (level + 169) / 170
		}
		if want := nodes*pageSize + 4*info.Blocks + footerSize; info.Size != want {
			t.Errorf("%d leaves make a file of %d bytes, want %d", n, info.Size, want)
		}
		checkBolt(t, root, pages)
		if n < 1000 {
			checkContent(t, root, pages)
			checkBoltWrites(t, root, pages)
		}
	}
}

func TestPut_ValueInParts(t *testing.T) {
	root := pagefile.OpenRoot(t)
	_, err := pagefile.Create(disk.Dir(root), "f", func(w *pagefile.Writer) error {
		return errors.Join(
			w.Put(pagefile.Key{Page: 1}),
			w.Put(pagefile.Key{Page: 2}, []byte("a"), nil, []byte("bc")),
			w.Put(pagefile.Key{Page: 3}, make([]byte, 5000), []byte("d")),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkContent(t, root, []page{
		{pagefile.Key{Page: 1}, nil}, {pagefile.Key{Page: 2}, []byte("abc")}, {pagefile.Key{Page: 3}, append(make([]byte, 5000), 'd')},
	})
}

// The file is valid, but its pages differ from the pages that were put. CreateWith does not publish
// it.
func TestCreate_FileReplacedMeanwhile(t *testing.T) {
	m, other := disktest.New(), disktest.New()
	for fs, n := range map[disk.FS]int{m: 3, other: 4} {
		if _, err := pagefile.Create(fs, "f", put(numbered(n, 10))); err != nil {
			t.Fatal(err)
		}
	}
	old := m.Bytes("f")
	m.OnCall(func(_ int, call string) {
		if temp, ok := strings.CutPrefix(call, "open f."); ok {
			m.Put("f."+temp, other.Bytes("f"))
		}
	})
	if _, err := pagefile.Create(m, "f", put(numbered(4, 11))); !errors.Is(err, disk.ErrCorrupt) {
		t.Errorf("Create = %v, want %v", err, disk.ErrCorrupt)
	}
	if !bytes.Equal(m.Bytes("f"), old) || len(m.Files()) != 1 {
		t.Errorf("after a failure there are %v", m)
	}
}

// An unfinished file begins with zeros.
func TestCreate_UnfinishedFileBeginsWithZeros(t *testing.T) {
	m := disktest.New()
	writes := 0
	m.OnCall(func(_ int, call string) {
		temp, ok := strings.CutPrefix(call, "write ")
		if !ok {
			return
		}
		writes++
		if data := m.Bytes(temp); len(data) > 0 && !bytes.Equal(data[:blockSize], make([]byte, blockSize)) {
			t.Errorf("before write %d block 0 is already written", writes)
		}
	})
	if _, err := pagefile.Create(m, "f", put(numbered(100, 50_000))); err != nil || writes < 4 {
		t.Errorf("Create = %v after %d writes", err, writes)
	}
}
