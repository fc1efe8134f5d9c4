package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

var ctx = context.Background()

// scan scans fs and checks the whole log.
func scan(t testing.TB, fs disk.FS) *journal.Log {
	t.Helper()
	log, err := journal.Scan(ctx, fs, 0, nil)
	if err != nil {
		t.Fatalf("Scan(%v) = %v", fs, err)
	}
	check(t, log)
	return log
}

// check reports violated invariants of a log.
func check(t testing.TB, log *journal.Log) {
	t.Helper()
	for i, e := range log.Entries {
		if i > 0 && e.ID.Seq <= log.Entries[i-1].ID.Seq {
			t.Fatalf("entry %d is record %d, after record %d", i, e.ID.Seq, log.Entries[i-1].ID.Seq)
		}
		if e.Parent >= e.ID.Seq {
			t.Fatalf("record %d has parent %d", e.ID.Seq, e.Parent)
		}
		s := log.Segments[e.Segment]
		if e.Offset < 256 || e.Offset+48+int64(e.Length) > s.End || e.ID.Epoch != s.Epoch {
			t.Fatalf("record %d is at %d of %s, which ends at %d, epoch %d", e.ID.Seq, e.Offset, s.Name, s.End, s.Epoch)
		}
		if found, ok := log.Find(e.ID.Seq); !ok || found != e {
			t.Fatalf("Find(%d) = %v, %v, want %v", e.ID.Seq, found, ok, e)
		}
		if _, err := log.Payload(e, nil); err != nil {
			t.Fatalf("Payload(%v) = %v", e.ID, err)
		}
		if e.ID.Seq > log.Last {
			t.Fatalf("record %d is newer than Last = %d", e.ID.Seq, log.Last)
		}
	}
	for i, e := range log.Lost {
		if i > 0 && e.ID.Seq <= log.Lost[i-1].ID.Seq || e.Parent >= e.ID.Seq || !e.Lost() || e.Segment >= len(log.Segments) {
			t.Fatalf("lost record number %d is record %d with parent %d", i, e.ID.Seq, e.Parent)
		}
		if _, ok := log.Find(e.ID.Seq); ok {
			t.Fatalf("record %d is lost and can be read", e.ID.Seq)
		}
		if _, err := log.Payload(e, nil); !errors.Is(err, journal.ErrCorrupt) {
			t.Fatalf("Payload(%v), which is lost = %v", e.ID, err)
		}
	}
	for _, s := range log.Segments {
		if s.End < 0 || s.End > s.Size && s.Err == nil && len(log.Problems) == 0 {
			t.Fatalf("%s ends at %d of %d bytes", s.Name, s.End, s.Size)
		}
	}
}

// open scans fs and opens it for writing.
func open(t testing.TB, fs disk.FS, opt journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(fs, scan(t, fs), opt)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	return j
}

// add appends a record whose payload contains its seq. It returns the record's ID.
func add(t testing.TB, j *journal.Journal, parent uint64, size int) journal.ID {
	t.Helper()
	seq := j.Next()
	id, err := j.Append(parent, seq*10, uint32(seq%7), append(j.Buffer(), payload(seq, size)...))
	if err != nil {
		t.Fatalf("Append(%d) = %v", seq, err)
	}
	if id.Seq != seq || id.Epoch != j.Epoch() {
		t.Fatalf("Append(%d) = %v, epoch %d", seq, id, j.Epoch())
	}
	return id
}

// payload returns a payload of the given size that contains seq.
func payload(seq uint64, size int) []byte {
	text := fmt.Appendf(nil, "record %d, ", seq)
	return bytes.Repeat(text, size/len(text)+1)[:size]
}

func closeJournal(t testing.TB, j *journal.Journal, head uint64) {
	t.Helper()
	if err := j.Close(ctx, head); err != nil {
		t.Fatalf("Close = %v", err)
	}
}

// sampleOptions create several small segments with preambles and split payloads.
var sampleOptions = journal.Options{
	World:       [16]byte{1, 2, 3},
	SegmentSize: 700,
	Sync:        journal.SyncNever,
	Preamble:    func() []byte { return []byte("the schema") },
}.WithPartSize(100)

// sample returns a journal of 9 records in several segments and two epochs. A first program
// crashed. A second program continued, rewound to record 2, and closed the journal cleanly.
func sample(t testing.TB) *disktest.Mem {
	t.Helper()
	fs := disktest.New()
	j := open(t, fs, sampleOptions)
	parent := uint64(0)
	for _, size := range []int{0, 5, 250, 8} {
		parent = add(t, j, parent, size).Seq
	}
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	crashed := fs.Crash()
	closeJournal(t, j, parent)

	j = open(t, crashed, sampleOptions)
	parent = 2 // Rewind to record 2.
	for _, size := range []int{60, 300, 1} {
		parent = add(t, j, parent, size).Seq
	}
	if err := j.AppendPreamble([]byte("a longer schema")); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{33, 12} {
		parent = add(t, j, parent, size).Seq
	}
	closeJournal(t, j, 8)
	log := scan(t, crashed)
	if len(log.Problems) > 0 || log.Torn != nil || !log.Clean || len(log.Entries) != 9 || len(log.Segments) < 3 {
		t.Fatalf("sample: %v: problems %v, torn %v, clean %v, %d entries", crashed, log.Problems, log.Torn, log.Clean, len(log.Entries))
	}
	return crashed
}
