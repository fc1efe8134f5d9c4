package journal_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// writers returns the writers of all segments of a log.
func writers(log *journal.Log) (all []string) {
	for i := range log.Segments {
		all = append(all, log.Writer(&log.Segments[i]))
	}
	return all
}

// written opens the journal with this [journal.Options.Writer], adds a record, and closes it.
func written(t *testing.T, files *disktest.Mem, writer string) {
	t.Helper()
	j, err := journal.Open(files, scan(t, files), journal.Options{Writer: writer})
	if err != nil {
		t.Fatal(err)
	}
	closeJournal(t, j, add(t, j, 0, 9).Seq)
}

func TestOpen_RecordsWriterID(t *testing.T) {
	files := disktest.New()
	long := strings.Repeat("w", 300)
	want := []string{"a", "b", "", long[:255], "b"}
	for i, w := range []string{"a", "b", "", long, "b"} {
		written(t, files, w)
		if got := writers(scan(t, files)); !slices.Equal(got, want[:i+1]) {
			t.Fatalf("writers %q, want %q", got, want[:i+1])
		}
	}
	to := disktest.New()
	if err := scan(t, files).Copy(ctx, to, 1<<60, nil); err != nil {
		t.Fatal(err)
	}
	if got := writers(scan(t, to)); !slices.Equal(got, want) {
		t.Errorf("writers of a copy %q, want %q", got, want)
	}
}

// All segments have the Options.Writer of the journal, including those that a roll has begun.
func TestRoll_KeepsWriterID(t *testing.T) {
	files := disktest.New()
	j, err := journal.Open(files, scan(t, files), journal.Options{Writer: "a", SegmentSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	parent := uint64(0)
	for range 20 {
		parent = add(t, j, parent, 100).Seq
	}
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	log := scan(t, files)
	if got := writers(log); len(got) < 3 || slices.ContainsFunc(got, func(w string) bool { return w != "a" }) {
		t.Errorf("writers %q, want a for each of several", got)
	}
	closeJournal(t, j, parent)
}

// A ledger may have no writer entries. Then the writers are unknown. A writer entry for an unlisted
// segment is damage, but all records stay readable.
func TestLedger_WriterEntriesMissing(t *testing.T) {
	files := sample(t)
	log := scan(t, files)
	if got := writers(log); slices.ContainsFunc(got, func(w string) bool { return w != "" }) {
		t.Errorf("writers %q of a journal without writer entries", got)
	}
	name := onlyLedger(t, files)
	for text, damaged := range map[string]bool{"\x01go": true, "": true, "\x63go": true} {
		with := with(files, name, bytes.Clone(files.Bytes(name)))
		with.Put("00000077.ledger", journal.LedgerWith(77, log.World, nil, []uint32{6}, [][]byte{[]byte(text)}))
		if got := scan(t, with); slices.ContainsFunc(got.Problems, func(d *disk.DamageError) bool {
			return strings.Contains(d.Reason, "impossible values")
		}) != damaged || !slices.Equal(got.Entries, log.Entries) {
			t.Errorf("%q: problems %v", text, got.Problems)
		}
	}
}
