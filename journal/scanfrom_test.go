package journal_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// scanFrom scans files from the record with seq base.
func scanFrom(t *testing.T, files disk.FS, base uint64) *journal.Log {
	t.Helper()
	log := new(journal.Log)
	if err := log.ScanFrom(ctx, files, 0, base, nil); err != nil {
		t.Fatal(err)
	}
	return log
}

// readOnce scans files from the record with seq base and reads all later records. It checks that
// each file is opened at most once. It returns the log and the number of openings by file name.
func readOnce(t *testing.T, files *disktest.Mem, base uint64) (log *journal.Log, opened map[string]int) {
	t.Helper()
	opened = map[string]int{}
	files.OnCall(func(_ int, call string) {
		if name, ok := strings.CutPrefix(call, "open "); ok {
			opened[name]++
		}
	})
	defer files.OnCall(nil)
	log = scanFrom(t, files, base)
	for _, e := range log.Entries {
		if e.ID.Seq <= base {
			continue
		}
		if _, err := log.Payload(e, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := log.Preamble(e); err != nil {
			t.Fatal(err)
		}
		log.Payloads([]journal.Entry{e}, func(_ journal.Entry, _ []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for name, n := range opened {
		if n > 1 {
			t.Fatalf("base %d: %s was opened %d times", base, name, n)
		}
	}
	return log, opened
}

// openings writes a journal with n openings. Each one appends up to two records and may roll.
func openings(t *testing.T, seed uint64, n int) *disktest.Mem {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	files := disktest.New()
	for range n {
		options := sampleOptions
		if rng.IntN(2) == 0 {
			options.Preamble = nil
		}
		j := open(t, files, options)
		for range rng.IntN(3) {
			add(t, j, rng.Uint64N(j.Next()), rng.IntN(90))
		}
		if rng.IntN(4) == 0 {
			if err := j.Roll(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(4) == 0 {
			j.Abandon()
		} else {
			closeJournal(t, j, rng.Uint64N(j.Next()))
		}
	}
	return files
}

// For unopened segments, ScanFrom returns the same records as Scan.
func TestScanFrom_EqualsScan(t *testing.T) {
	for seed := range uint64(40) {
		files := openings(t, seed, 20)
		want := scan(t, files)
		for base := uint64(0); base <= want.Last; base += 1 + want.Last/7 {
			got, opened := readOnce(t, files, base)
			if !reflect.DeepEqual(got.Everything(), want.Everything()) {
				t.Fatalf("seed %d, base %d:\n%+v, want\n%+v", seed, base, got.Everything(), want.Everything())
			}
			if behind := len(want.Segments) - got.Believed; base > 0 && len(opened) > behind+1 {
				t.Errorf("seed %d, base %d: %d files were opened, %d segments were read", seed, base, len(opened), behind)
			}
		}
	}
}

// One call opens few of the segments before the record with seq base. Repeated calls open all of
// them.
func TestScanFrom_RepeatedCallsReadAllSegments(t *testing.T) {
	const segments = 30
	files := disktest.New()
	for range segments {
		j := open(t, files, sampleOptions)
		closeJournal(t, j, add(t, j, j.Next()-1, 20).Seq)
	}
	all := map[string]bool{}
	for i := range 32 {
		log, opened := readOnce(t, files, segments+uint64(i))
		// ScanFrom may open four segments in rotation, the oldest and the newest segment, and the
		// ledger.
		if len(opened) > 4+3 {
			t.Errorf("%d files were opened: %v", len(opened), opened)
		}
		for name := range opened {
			all[name] = true
		}
		j, err := journal.Open(files, log, sampleOptions)
		if err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j, add(t, j, j.Next()-1, 20).Seq)
	}
	for _, s := range scan(t, files).Segments[:segments] {
		if !all[s.Name] {
			t.Errorf("%s was never opened", s.Name)
		}
	}
}

// ScanFrom reports an unopened segment that is missing or truncated, because it compares names and
// sizes with the ledger.
func TestScanFrom_SegmentMissingOrTruncated(t *testing.T) {
	const segments = 30
	whole := disktest.New()
	for range segments {
		j := open(t, whole, sampleOptions)
		closeJournal(t, j, add(t, j, j.Next()-1, 20).Seq)
	}
	log, opened := readOnce(t, whole, segments)
	for i, s := range log.Segments {
		if opened[s.Name] > 0 {
			continue
		}
		for how, damage := range map[string]func(files *disktest.Mem){
			"missing": func(files *disktest.Mem) { _ = files.Remove(s.Name) },
			"cut":     func(files *disktest.Mem) { files.Put(s.Name, whole.Bytes(s.Name)[:s.Size-1]) },
			"empty":   func(files *disktest.Mem) { files.Put(s.Name, nil) },
			"longer":  func(files *disktest.Mem) { files.Put(s.Name, append(whole.Bytes(s.Name), 7)) },
		} {
			files := whole.Clone()
			damage(files)
			got := scanFrom(t, files, segments)
			if len(got.Problems) == 0 || got.Problems[0].File != s.Name {
				t.Errorf("%s is %s: problems %v", s.Name, how, got.Problems)
			}
			if want := scan(t, files); how == "missing" && !reflect.DeepEqual(got.Entries, want.Entries) {
				t.Errorf("segment %d is missing: other entries", i)
			}
		}
	}
}

// A damaged ledger is not trusted, whatever the damage.
func TestScanFrom_DamagedLedger(t *testing.T) {
	files := openings(t, 1, 12)
	want := scan(t, files)
	name := onlyLedger(t, files)
	data := files.Bytes(name)
	for bit := 0; bit < 8*len(data); bit += 3 {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		damaged := with(files, name, flipped)
		got := scanFrom(t, damaged, want.Last)
		if full := scan(t, damaged); !reflect.DeepEqual(got.Everything(), full.Everything()) {
			t.Fatalf("bit %d: %+v, want\n%+v", bit, got.Everything(), full.Everything())
		}
	}
}

// A segment that is a link is reported, whatever its target.
func TestScanFrom_SymbolicLink(t *testing.T) {
	whole := openings(t, 2, 20)
	want := scan(t, whole)
	dir := t.TempDir()
	for _, name := range whole.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), whole.Bytes(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range want.Segments {
		at := filepath.Join(dir, s.Name)
		if err := errors.Join(os.Rename(at, at+".moved"), os.Symlink(at+".moved", at)); err != nil {
			t.Skip("cannot create symbolic links: ", err)
		}
		files, err := disk.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		log := scanFrom(t, files, want.Last)
		if len(log.Problems) == 0 || log.Problems[0].File != s.Name || !errors.Is(log.Problems[0], journal.ErrForeign) {
			t.Errorf("%s is a link: problems %v", s.Name, log.Problems)
		}
		if err := errors.Join(files.Close(), os.Remove(at), os.Rename(at+".moved", at)); err != nil {
			t.Fatal(err)
		}
	}
}
