package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// vouched tests the ledger of a crash image. A scan that uses the summaries in the ledger must
// equal log, which comes from the segments. If the newest segment has acknowledged records, a scan
// without this segment must report that it is missing.
func vouched(t *testing.T, img image, log *journal.Log) {
	t.Helper()
	newest, err := journal.Scan(ctx, img.fs, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := newest.Everything(), log.Everything(); !reflect.DeepEqual(got, want) {
		t.Fatalf("according to the ledger %+v\naccording to the segments %+v", got, want)
	}
	n := len(log.Segments)
	if n == 0 || img.acked < log.Segments[n-1].First || log.Segments[n-1].Records == 0 {
		return
	}
	without := img.fs.Clone()
	if err := without.Remove(log.Segments[n-1].Name); err != nil {
		t.Fatal(err)
	}
	log, err = journal.Scan(ctx, without, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if log.Unsure == nil || log.Unsure.File != log.Problems[len(log.Problems)-1].File || log.Clean {
		t.Fatalf("%v\n%s was removed: unsure %v, problems %v, clean %v", without, img.fs, log.Unsure, log.Problems, log.Clean)
	}
}

// onlyLedger returns the name of the only ledger.
func onlyLedger(t testing.TB, files *disktest.Mem) string {
	t.Helper()
	names := slices.DeleteFunc(files.Files(), func(name string) bool { return !strings.HasSuffix(name, ".ledger") })
	if len(names) != 1 {
		t.Fatalf("ledgers %v", names)
	}
	return names[0]
}

func TestScan_AnyFileMissing(t *testing.T) {
	whole := sample(t)
	last := scan(t, whole).Segments[len(scan(t, whole).Segments)-1].Name
	for _, name := range whole.Files() {
		without := whole.Clone()
		if err := without.Remove(name); err != nil {
			t.Fatal(err)
		}
		log := scan(t, without)
		if len(log.Problems) != 1 || !errors.Is(log.Err(), journal.ErrCorrupt) {
			t.Errorf("%s was removed: problems %v", name, log.Problems)
		}
		if unsure := name == last || strings.HasSuffix(name, ".ledger"); (log.Unsure != nil) != unsure {
			t.Errorf("%s was removed: unsure %v", name, log.Unsure)
		}
	}
	for _, name := range whole.Files() { // Remove all files except the ledger.
		if strings.HasSuffix(name, ".seg") {
			if err := whole.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if log := scan(t, whole); log.Unsure == nil || log.Clean == true && len(log.Problems) == 0 || log.Epoch != 2 {
		t.Errorf("all segments were removed: %+v", log)
	}
}

// If the newest segment is missing, the journal continues with an unused number and epoch, and the
// segment stays reported as missing.
func TestLedger_NewestSegmentMissingAtOpen(t *testing.T) {
	files := sample(t)
	segments := scan(t, files).Segments
	for _, s := range []journal.Segment{segments[0], segments[len(segments)-1]} {
		c := files.Clone()
		if err := c.Remove(s.Name); err != nil {
			t.Fatal(err)
		}
		before := scan(t, c)
		j := open(t, c, sampleOptions)
		if j.Epoch() != 3 {
			t.Errorf("without %s the epoch is %d", s.Name, j.Epoch())
		}
		add(t, j, 0, 9)
		closeJournal(t, j, 1)
		after := scan(t, c)
		if len(after.Problems) != 1 || after.Problems[0].File != s.Name || after.Unsure != nil || after.Segments[len(after.Segments)-1].Number != uint64(len(segments)+1) {
			t.Errorf("without %s: problems %v, then %v; unsure %v", s.Name, before.Problems, after.Problems, after.Unsure)
		}
	}
}

func TestLedger_EveryFlippedBit(t *testing.T) {
	files := sample(t)
	name, want := onlyLedger(t, files), scan(t, files).Entries
	data := files.Bytes(name)
	for bit := range 8 * len(data) {
		flipped := bytes.Clone(data)
		flipped[bit/8] ^= 1 << (bit % 8)
		damaged := with(files, name, flipped)
		log := scan(t, damaged)
		if len(log.Problems) == 0 || !slices.Equal(log.Entries, want) || log.Clean != (log.Unsure == nil) {
			t.Fatalf("bit %d: problems %v, %d entries, clean %v", bit, log.Problems, len(log.Entries), log.Clean)
		}
		if newest, err := journal.Scan(ctx, damaged, 1, nil); err != nil || !slices.Equal(newest.Entries, want) {
			t.Fatalf("bit %d: according to the ledger %d entries, %v", bit, len(newest.Entries), err)
		}
	}
	for length := range data {
		log := scan(t, with(files, name, data[:length]))
		if len(log.Problems) == 0 || !slices.Equal(log.Entries, want) {
			t.Fatalf("cut to %d bytes: problems %v, %d entries", length, log.Problems, len(log.Entries))
		}
	}
	swapped := files.Clone() // The newest ledger is replaced by a copy of an earlier ledger.
	j := open(t, files, sampleOptions)
	add(t, j, 0, 9)
	closeJournal(t, j, 1)
	if err := files.Remove(onlyLedger(t, files)); err != nil {
		t.Fatal(err)
	}
	files.Put(name, swapped.Bytes(name))
	if log := scan(t, files); len(log.Problems) == 0 {
		t.Error("an older ledger replaced the newer one: no problem")
	}
}

func TestScan_SymbolicLinks(t *testing.T) {
	whole := sample(t)
	for _, name := range whole.Files() {
		dir := t.TempDir()
		for _, other := range whole.Files() {
			if err := os.WriteFile(filepath.Join(dir, other), whole.Bytes(other), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Rename(at, at+".moved"), os.Symlink(at+".moved", at)); err != nil {
			t.Skip("cannot create symbolic links: ", err)
		}
		files, err := disk.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		log := scan(t, files)
		if len(log.Problems) == 0 || log.Problems[0].File != name || !errors.Is(log.Problems[0], journal.ErrForeign) {
			t.Errorf("%s is a link: problems %v", name, log.Problems)
		}
		if _, err := journal.Open(files, log, sampleOptions); err == nil {
			t.Errorf("%s is a link, and Open accepted it", name)
		}
		files.Close()
	}
}

func TestLedger_UnknownFeatures(t *testing.T) {
	files := sample(t)
	name, log := onlyLedger(t, files), scan(t, files)
	number := log.Segments[len(log.Segments)-1].Number
	newer := with(files, name, journal.LedgerWith(number, log.World, []string{"waves", "!tides\n"}, nil, nil))
	if err := newer.Remove(name); err != nil {
		t.Fatal(err)
	}
	newer.Put("00000009.ledger", journal.LedgerWith(9, log.World, []string{"waves", "!tides\n"}, nil, nil))
	got := scan(t, newer)
	if !errors.Is(got.Err(), journal.ErrNewer) || !strings.Contains(got.Err().Error(), `"tides\n"`) {
		t.Errorf("an unknown required feature: %v", got.Err())
	}
	if _, err := journal.Open(newer, got, sampleOptions); !errors.Is(err, journal.ErrNewer) {
		t.Errorf("Open = %v", err)
	}
	newer.Put("00000009.ledger", journal.LedgerWith(9, log.World, []string{"waves"}, []uint32{77}, [][]byte{[]byte("of a later version")}))
	closeJournal(t, open(t, newer, sampleOptions), 8)
	if got := scan(t, newer).Features(); !slices.Equal(got, []string{"waves"}) {
		t.Errorf("features %q after opening for writing", got)
	}
}

func TestJournal_Version1HasNoLedger(t *testing.T) {
	files := disktest.New()
	files.Put("00000001.seg", journal.HostileSegment(1, 1, 1, 0, 0, journal.ID{}))
	options := sampleOptions
	options.World = [16]byte{}
	j := open(t, files, options)
	add(t, j, 0, 9)
	if err := errors.Join(j.Roll(ctx), j.KeepNote([]byte("nothing"))); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Prune(2); err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j, 1)
	log := scan(t, files)
	if len(log.Problems) > 0 || log.Note != nil || slices.ContainsFunc(files.Files(), func(name string) bool { return strings.HasSuffix(name, ".ledger") }) {
		t.Errorf("%v\nproblems %v, note %q", files, log.Problems, log.Note)
	}
	for _, s := range log.Segments {
		if version := binary.LittleEndian.Uint32(files.Bytes(s.Name)[8:]); version != 1 {
			t.Errorf("%s is of version %d", s.Name, version)
		}
	}
}

// A ledger stays short however long a program runs. A roll or an opening that writes a new ledger
// keeps all entries.
func TestLedger_StaysShort(t *testing.T) {
	defer journal.SetRenewSize(2000)()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		files := disktest.New()
		j := open(t, files, sampleOptions)
		note, longest, names := []byte(nil), 0, map[string]bool{}
		for range 400 {
			add(t, j, rng.Uint64N(j.Next()), rng.IntN(200))
			switch rng.IntN(30) {
			case 0:
				if _, err := j.Prune(j.Next() - min(j.Next(), 20)); err != nil {
					t.Fatal(err)
				}
			case 1:
				note = []byte(strings.Repeat("x", rng.IntN(50)))
				if err := j.KeepNote(note); err != nil {
					t.Fatal(err)
				}
			case 2:
				if err := j.Sync(ctx); err != nil {
					t.Fatal(err)
				}
				longest = max(longest, len(files.Bytes(onlyLedger(t, files))))
				names[onlyLedger(t, files)] = true
				// Scan a copy, because the writer may append a mark at any time.
				now := files.Clone()
				vouched(t, image{fs: now, acked: j.Durable()}, scan(t, now))
			case 3:
				closeJournal(t, j, j.Next()-1)
				j = open(t, files, sampleOptions)
			}
		}
		closeJournal(t, j, j.Next()-1)
		log := scan(t, files)
		if log.Err() != nil || !bytes.Equal(log.Note, note) {
			t.Errorf("seed %d: problems %v, note %q, want %q", seed, log.Problems, log.Note, note)
		}
		if longest > 20_000 || len(names) < 3 {
			t.Errorf("seed %d: the ledger had %d bytes at times, under %d names", seed, longest, len(names))
		}
	}
}

// After a failed KeepNote the previous note stays, also in a new ledger. The next write overwrites
// the remains of the failed write.
func TestKeepNote_FailedWrite(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		files := disktest.New()
		j := open(t, files, sampleOptions)
		if err := j.KeepNote([]byte("one")); err != nil {
			t.Fatal(err)
		}
		files.Fail(files.Calls()+1, disktest.ErrShortWrite)
		if err := j.KeepNote([]byte(strings.Repeat("another note ", 50))); !errors.Is(err, disktest.ErrShortWrite) {
			t.Fatal(err)
		}
		if renewed {
			defer journal.SetRenewSize(-1 << 20)()
		}
		if err := j.Roll(ctx); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j, 0)
		if log := scan(t, files); log.Err() != nil || string(log.Note) != "one" || (onlyLedger(t, files) == "00000002.ledger") != renewed {
			t.Errorf("problems %v, note %q, %s", log.Problems, log.Note, onlyLedger(t, files))
		}
	}
}

// An open journal whose ledger is missing acknowledges no record.
func TestLedger_RemovedWhileOpen(t *testing.T) {
	files := disktest.New()
	j := open(t, files, sampleOptions)
	add(t, j, 0, 9)
	if err := files.Remove(onlyLedger(t, files)); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(ctx); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sync = %v", err)
	}
	if j.Durable() > 0 {
		t.Errorf("record %d was confirmed", j.Durable())
	}
	if err := j.Close(ctx, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Close = %v", err)
	}
}

// If a complete segment is removed, the journal fails at the end of the next segment.
func TestRoll_OldSegmentRemoved(t *testing.T) {
	for _, closed := range []bool{false, true} {
		files := disktest.New()
		j := open(t, files, sampleOptions)
		add(t, j, 0, 9)
		if err := j.Roll(ctx); err != nil {
			t.Fatal(err)
		}
		if err := files.Remove("00000001.seg"); err != nil {
			t.Fatal(err)
		}
		var err error
		if !closed {
			err = j.Roll(ctx)
		}
		if end := j.Close(ctx, 1); closed {
			err = end
		}
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "00000001.seg") {
			t.Errorf("closed %v: %v", closed, err)
		}
	}
}

// Every tick of a closed journal was durable, including ticks in its last sector.
func TestScan_ClosedJournalIsNotTorn(t *testing.T) {
	files := sample(t)
	log := scan(t, files)
	last := log.Segments[len(log.Segments)-1]
	data := files.Bytes(last.Name)
	seals := len(data) - 96
	for cut := 256; cut < len(data); cut++ {
		zeroed := append(bytes.Clone(data[:cut]), make([]byte, len(data)-cut)...)
		for _, damaged := range [][]byte{data[:cut], zeroed} {
			got := scan(t, with(files, last.Name, damaged))
			lost := len(damaged) < seals || !bytes.Equal(damaged[:seals], data[:seals])
			if lost != (got.Err() != nil) || got.Clean {
				t.Fatalf("cut at %d of %d, %d bytes: problems %v, torn %v, clean %v", cut, len(data), len(damaged), got.Problems, got.Torn, got.Clean)
			}
		}
	}
}

// FuzzLedgerEntries reads arbitrary ledger entries with valid checksums next to valid segments.
// Scan must not panic, and no record of the segments may be lost.
func FuzzLedgerEntries(f *testing.F) {
	files := sample(f)
	log := scan(f, files)
	f.Add(files.Bytes(onlyLedger(f, files))[64:])
	f.Add([]byte{2, 5, 1, 2, 3, 4, 5})
	f.Add([]byte{6, 3, 1, 'g', 'o', 6, 2, 99, 'x', 6, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		var kinds []uint32
		var entries [][]byte
		for len(program) >= 2 {
			n := min(int(program[1]), len(program)-2)
			kinds, entries = append(kinds, uint32(program[0]%7)), append(entries, program[2:2+n])
			program = program[2+n:]
		}
		hostile := files.Clone()
		hostile.Put("00000077.ledger", journal.LedgerWith(77, log.World, nil, kinds, entries))
		got := scan(t, hostile)
		if !errors.Is(got.Err(), journal.ErrNewer) && !slices.Equal(got.Entries, log.Entries) {
			t.Errorf("entries %v", got.Entries)
		}
		if newest, err := journal.Scan(ctx, hostile, 1, nil); err != nil || newest == nil {
			t.Errorf("ScanNewest = %v", err)
		}
		goesOn(t, hostile, got)
	})
}

// FuzzLedgerBytes reads arbitrary bytes as a ledger.
func FuzzLedgerBytes(f *testing.F) {
	files := sample(f)
	log := scan(f, files)
	name := onlyLedger(f, files)
	f.Add(files.Bytes(name))
	f.Fuzz(func(t *testing.T, data []byte) {
		hostile := with(files, name, data)
		if got := scan(t, hostile); !errors.Is(got.Err(), journal.ErrNewer) && !slices.Equal(got.Entries, log.Entries) {
			t.Errorf("entries %v", got.Entries)
		}
		goesOn(t, hostile, scan(t, hostile))
	})
}

// goesOn opens files for writing, if possible, and checks that the ledger is complete afterwards.
func goesOn(t *testing.T, files *disktest.Mem, log *journal.Log) {
	t.Helper()
	j, err := journal.Open(files, log, sampleOptions)
	if err != nil {
		return
	}
	id := add(t, j, 0, 9)
	closeJournal(t, j, id.Seq)
	if got := scan(t, files); got.LastID != id || got.Unsure != nil {
		t.Errorf("problems %v, last %v, want %v", got.Problems, got.LastID, id)
	}
}
