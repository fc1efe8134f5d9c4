package journal_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// with returns a copy of fs in which the named file contains data.
func with(fs *disktest.Mem, name string, data []byte) *disktest.Mem {
	c := fs.Clone()
	c.Put(name, data)
	return c
}

func TestScan_FlippedBitInClosedJournal(t *testing.T) {
	fs := sample(t)
	for _, s := range scan(t, fs).Segments {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			data := fs.Bytes(s.Name)
			for bit := range len(data) * 8 {
				data[bit/8] ^= 1 << (bit % 8)
				checkFlip(t, with(fs, s.Name, data), s.Name, int64(bit/8))
				data[bit/8] ^= 1 << (bit % 8)
			}
		})
	}
}

// checkFlip scans fs, whose named file has a flipped bit at offset. The scan must report the bit as
// corrupt.
func checkFlip(t *testing.T, fs *disktest.Mem, name string, offset int64) {
	t.Helper()
	log := scan(t, fs)
	if log.Torn != nil {
		t.Errorf("flip at %d of %s: torn: %v", offset, name, log.Torn)
	}
	for _, p := range log.Problems {
		if p.File == name && p.Offset <= offset && offset < p.Offset+p.Length && errors.Is(p, journal.ErrCorrupt) {
			return
		}
	}
	t.Errorf("flip at %d of %s is not reported: %v", offset, name, log.Problems)
}

func TestScan_FlippedBitBeforeClose(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, sampleOptions)
	add(t, j, 0, 20)
	add(t, j, 1, 120)
	// After Sync, the writer appends a mark, a record without payload.
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	// durable is the end of record 2. The record has two parts of 100 and 20 bytes. Each part has a
	// header of 48 bytes, and is padded to a multiple of 8.
	durable := scan(t, fs).Entries[1].Offset + 2*48 + 104 + 24
	const name = "00000001.seg"
	want := int(durable) + 48
	data := fs.Bytes(name)
	for end := time.Now().Add(10 * time.Second); len(data) < want && time.Now().Before(end); data = fs.Bytes(name) {
		time.Sleep(time.Millisecond) // The mark follows after Sync returns.
	}
	if len(data) != want {
		t.Fatalf("%d bytes, want %d", len(data), want)
	}
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		after := with(fs, name, data)
		if offset := int64(bit / 8); offset < durable {
			checkFlip(t, after, name, offset)
		} else if log := scan(t, after); len(log.Problems) > 0 || log.Torn == nil || log.Torn.Offset != durable || len(log.Entries) != 2 {
			t.Errorf("flip at %d, in the mark: problems %v, torn %v, %d entries", offset, log.Problems, log.Torn, len(log.Entries))
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
	closeJournal(t, j, 2)
}

func TestScan_TruncatedAtEveryLength(t *testing.T) {
	fs := sample(t)
	whole := scan(t, fs)
	for i, s := range whole.Segments {
		data := fs.Bytes(s.Name)
		for size := range len(data) {
			log := scan(t, with(fs, s.Name, data[:size]))
			checkTruncated(t, whole, log, i, int64(size))
		}
	}
}

// checkTruncated checks the log of a journal whose segment i was truncated to the given size. The
// scan must report each truncation, except one within the seals of the last segment. A crash can
// leave such a segment, too.
func checkTruncated(t *testing.T, whole, log *journal.Log, i int, size int64) {
	t.Helper()
	name := whole.Segments[i].Name
	last := i == len(whole.Segments)-1
	// The ledger of the closed journal proves that the bytes before the seals were durable.
	seals := whole.Segments[i].End - 96
	switch {
	case (!last || size < seals) && len(log.Problems) == 0:
		t.Errorf("%s cut to %d: no problem", name, size)
	case last && size >= seals && len(log.Problems) > 0:
		t.Errorf("%s cut to %d: %v", name, size, log.Problems)
	case last && log.Clean:
		t.Errorf("%s cut to %d: clean", name, size)
	}
	for _, e := range log.Entries {
		if want, ok := whole.Find(e.ID.Seq); !ok || want != e {
			t.Errorf("%s cut to %d: record %v, want %v", name, size, e, want)
		}
	}
	if want := len(whole.Entries) - whole.Segments[i].Records; len(log.Entries) < want {
		t.Errorf("%s cut to %d: %d entries, want %d from the other segments at least", name, size, len(log.Entries), want)
	}
}

func TestScan_BytesAfterCleanEnd(t *testing.T) {
	fs := sample(t)
	segments := scan(t, fs).Segments
	name := segments[len(segments)-1].Name
	for _, tail := range []string{"\x00", "x", strings.Repeat("\x00", 100), strings.Repeat("rubbish ", 100)} {
		log := scan(t, with(fs, name, append(fs.Bytes(name), tail...)))
		if len(log.Problems) != 1 || !errors.Is(log.Err(), journal.ErrCorrupt) || log.Torn != nil || log.Clean || log.Head != 8 {
			t.Errorf("%d bytes more: problems %v, torn %v, clean %v, head %d", len(tail), log.Problems, log.Torn, log.Clean, log.Head)
		}
	}
}

func TestScan_BytesAfterUncleanEnd(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	add(t, j, 0, 20)
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	const name = "00000001.seg"
	for _, tail := range []string{"\x00", strings.Repeat("\x00", 5000), strings.Repeat("rubbish!", 99)} {
		log := scan(t, with(fs, name, append(fs.Bytes(name), tail...)))
		if len(log.Problems) != 0 || log.Torn == nil || log.Torn.Length != int64(len(tail)) || len(log.Entries) != 1 || log.Clean {
			t.Errorf("%d bytes more: problems %v, torn %v, %d entries", len(tail), log.Problems, log.Torn, len(log.Entries))
		}
	}
	closeJournal(t, j, 1)
}

func TestScan_StaleBytesOfAnotherSegment(t *testing.T) {
	fs := sample(t)
	segments := scan(t, fs).Segments
	first, last := fs.Bytes(segments[0].Name), segments[len(segments)-1]
	data := append(fs.Bytes(last.Name)[:256], first[256:]...)
	log := scan(t, with(fs, last.Name, data))
	for _, e := range log.Entries {
		if e.Segment == len(segments)-1 {
			t.Errorf("record %v read from the bytes of another segment", e.ID)
		}
	}
}

func TestScan_OneHeaderCopyDamaged(t *testing.T) {
	fs := sample(t)
	for _, s := range scan(t, fs).Segments {
		for _, at := range []int{0, 9, 50, 127, 128, 200, 255} {
			data := fs.Bytes(s.Name)
			data[at] ^= 0x10
			log := scan(t, with(fs, s.Name, data))
			if len(log.Entries) != 9 || len(log.Problems) != 1 || log.Head != 8 || !log.Clean {
				t.Errorf("%s damaged at %d: %d entries, problems %v", s.Name, at, len(log.Entries), log.Problems)
			}
		}
	}
}

func TestScan_DamagedRecordKeepsOthersReadable(t *testing.T) {
	fs := sample(t)
	whole := scan(t, fs)
	for _, hit := range whole.Entries {
		name := whole.Segments[hit.Segment].Name
		data := fs.Bytes(name)
		data[hit.Offset+20] ^= 1 // Damage the header of the record.
		log := scan(t, with(fs, name, data))
		if len(log.Entries) != 8 {
			t.Errorf("record %d damaged: %d of 8 others are left", hit.ID.Seq, len(log.Entries))
		}
		if _, err := log.Path(0, hit.ID.Seq); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("record %d damaged: Path to it = %v, want %v", hit.ID.Seq, err, journal.ErrNotFound)
		}
	}
}

func TestScan_MissingAndSwappedSegments(t *testing.T) {
	fs := sample(t)
	segments := scan(t, fs).Segments
	t.Run("a segment in the middle is missing", func(t *testing.T) {
		c := fs.Clone()
		if err := c.Remove(segments[1].Name); err != nil {
			t.Fatal(err)
		}
		if log := scan(t, c); !errors.Is(log.Err(), journal.ErrCorrupt) || log.Problems[0].File != segments[1].Name {
			t.Errorf("problems %v", log.Problems)
		}
	})
	t.Run("the oldest segment is missing", func(t *testing.T) {
		c := fs.Clone()
		if err := c.Remove(segments[0].Name); err != nil {
			t.Fatal(err)
		}
		log := scan(t, c)
		if len(log.Problems) != 1 || log.Problems[0].File != segments[0].Name || log.Unsure != nil || log.Head != 8 || log.Last != 9 {
			t.Errorf("problems %v, unsure %v, head %d, last %d", log.Problems, log.Unsure, log.Head, log.Last)
		}
	})
	t.Run("a segment under another's name", func(t *testing.T) {
		if log := scan(t, with(fs, segments[1].Name, fs.Bytes(segments[0].Name))); !errors.Is(log.Err(), journal.ErrCorrupt) {
			t.Errorf("problems %v", log.Problems)
		}
	})
	t.Run("a segment of another history", func(t *testing.T) {
		other := sample(t)
		last := segments[len(segments)-1].Name
		c := fs.Clone()
		c.Put(last, other.Bytes(last))
		if log := scan(t, c); len(log.Problems) != 1 || log.Problems[0].File != last {
			t.Errorf("equal history: problems %v", log.Problems)
		}
		j := open(t, disktest.New(), sampleOptions)
		closeJournal(t, j, 0)
		foreign := disktest.New()
		j = open(t, foreign, sampleOptions)
		add(t, j, 0, 9)
		closeJournal(t, j, 1)
		c = foreign.Clone()
		c.Put(segments[1].Name, fs.Bytes(segments[1].Name))
		if log := scan(t, c); !errors.Is(log.Err(), journal.ErrCorrupt) {
			t.Errorf("other history: problems %v", log.Problems)
		}
	})
}

func TestScan_SegmentFromOtherJournal(t *testing.T) {
	one, other := disktest.New(), disktest.New()
	for fs, text := range map[*disktest.Mem]string{one: "one payload", other: "another one"} {
		// A journal of version 1 has no ledger.
		fs.Put("00000001.seg", journal.HostileSegment(1, 1, 1, 0, 0, journal.ID{}))
		j := open(t, fs, journal.Options{})
		if _, err := j.Append(0, 0, 0, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := j.Roll(ctx); err != nil {
			t.Fatal(err)
		}
		closeJournal(t, j, 1)
	}
	log := scan(t, with(one, "00000002.seg", other.Bytes("00000002.seg")))
	if len(log.Problems) != 1 || !errors.Is(log.Err(), journal.ErrCorrupt) || log.Problems[0].File != "00000003.seg" {
		t.Errorf("problems %v", log.Problems)
	}
}

func TestScan_EpochDecreases(t *testing.T) {
	for second, want := range map[uint64]int{4: 1, 5: 0, 6: 0} {
		fs := disktest.New()
		fs.Put("00000001.seg", journal.HostileSegment(1, 5, 1, 0, 0, journal.ID{}))
		fs.Put("00000002.seg", journal.HostileSegment(2, second, 1, 1, 256, journal.ID{}))
		if log := scan(t, fs); len(log.Problems) != want || log.Epoch != max(5, second) {
			t.Errorf("epoch %d after 5: problems %v, epoch %d", second, log.Problems, log.Epoch)
		}
	}
}

func TestOpen_LastRecordDamaged(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	add(t, j, 0, 20)
	add(t, j, 1, 20)
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	damage := func() *disktest.Mem {
		data := fs.Bytes("00000001.seg")
		data[scan(t, fs).Entries[1].Offset] ^= 1
		return with(fs, "00000001.seg", data)
	}
	damaged := damage()
	for range 2000 { // After Sync the writer appends a mark that contains seq 2.
		if scan(t, damaged).Last == 2 {
			break
		}
		time.Sleep(time.Millisecond)
		damaged = damage()
	}
	closeJournal(t, j, 2)
	if log := scan(t, damaged); log.Last != 2 || log.Head != 1 || log.LastID.Seq != 1 {
		t.Fatalf("last %d, head %d, last ID %v", log.Last, log.Head, log.LastID)
	}
	j = open(t, damaged, journal.Options{})
	if id := add(t, j, 1, 20); id.Seq != 3 {
		t.Errorf("the next record is %v, want seq 3", id)
	}
	closeJournal(t, j, 3)
	if log := scan(t, damaged); len(log.Entries) != 2 || len(log.Problems) != 1 {
		t.Errorf("%d entries, problems %v", len(log.Entries), log.Problems)
	}
}

// Each case has records with valid checksums that contradict themselves or each other. A mark after
// them proves that they were durable.
func TestScan_ContradictoryRecords(t *testing.T) {
	one := journal.HostileHeader{Seq: 1}
	tests := []struct {
		name    string
		records []journal.HostileHeader
		reason  string
		left    int // Number of readable records.
	}{
		{"nothing wrong", []journal.HostileHeader{one, {Seq: 2, Parent: 1}}, "", 2},
		{"unknown flags", []journal.HostileHeader{one, {Seq: 2, Flags: 1 << 20}}, "unknown flags", 1},
		{"two kinds", []journal.HostileHeader{one, {Seq: 2, Flags: journal.FlagMark | journal.FlagPreamble}}, "two kinds", 1},
		{"part of a preamble", []journal.HostileHeader{one, {Flags: journal.FlagPreamble | journal.FlagMore}}, "without parts", 1},
		{"own parent", []journal.HostileHeader{one, {Seq: 2, Parent: 2}}, "not an earlier one", 1},
		{"seq left out", []journal.HostileHeader{one, {Seq: 3}}, "record 3 where 2 is due", 1},
		{"seq twice", []journal.HostileHeader{one, one}, "record 1 where 2 is due", 1},
		{"payload longer than the maximum", []journal.HostileHeader{one, {Seq: 2, Length: 1<<32 - 1}}, "payload of", 1},
		{"mark with a payload", []journal.HostileHeader{one, {Flags: journal.FlagMark, Length: 4}}, "mark or seal with a payload", 1},
		{"watermark after its record", []journal.HostileHeader{one, {Seq: 2, Synced: 1 << 20}}, "watermark", 1},
		{"seal states another end", []journal.HostileHeader{one, {Flags: journal.FlagSeal, Tick: 99, CRC: journal.SealCRC}}, "another end", 1},
		{"first part missing", []journal.HostileHeader{one, {Seq: 2, Flags: journal.FlagPart}}, "without the parts", 1},
		{"last part missing", []journal.HostileHeader{one, {Seq: 2, Flags: journal.FlagMore}, {Seq: 3}}, "parts of the payload are missing", 2},
		{"part of another record", []journal.HostileHeader{one, {Seq: 2, Flags: journal.FlagMore}, {Seq: 3, Flags: journal.FlagPart}}, "parts", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := journal.HostileSegment(1, 1, 1, 0, 0, journal.ID{})
			for _, h := range tt.records {
				data = h.AppendTo(data)
			}
			end := uint32(len(data))
			data = journal.HostileHeader{Flags: journal.FlagMark, Synced: end}.AppendTo(data)
			fs := disktest.New()
			fs.Put("00000001.seg", data)
			log := scan(t, fs)
			if tt.reason == "" && log.Err() != nil || tt.reason != "" && (log.Err() == nil || !strings.Contains(log.Err().Error(), tt.reason)) {
				t.Errorf("Err() = %v, want %q", log.Err(), tt.reason)
			}
			if len(log.Entries) != tt.left || log.Torn != nil {
				t.Errorf("%d entries, want %d; torn %v", len(log.Entries), tt.left, log.Torn)
			}
		})
	}
}

func TestScan_ForeignNewerOrCorruptSegment(t *testing.T) {
	segment := func(change func(b []byte)) []byte {
		b := journal.HostileSegment(1, 1, 1, 0, 0, journal.ID{})
		change(b[:128])
		change(b[128:])
		return b
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"empty file", nil, journal.ErrCorrupt},
		{"header cut short", segment(func([]byte) {})[:100], journal.ErrCorrupt},
		{"zeros", make([]byte, 4096), journal.ErrCorrupt},
		{"another kind of file", []byte(strings.Repeat("SQLite format 3\x00", 30)), journal.ErrForeign},
		{"magic damaged in both copies", segment(func(b []byte) { b[0] ^= 1 }), journal.ErrCorrupt},
		{"content damaged in both copies", segment(func(b []byte) { b[40] ^= 1 }), journal.ErrCorrupt},
		{"next version", segment(func(b []byte) { b[8] = 3; journal.SumSegmentHeader(b) }), journal.ErrNewer},
		{"unknown feature", segment(func(b []byte) { b[12] = 1; journal.SumSegmentHeader(b) }), journal.ErrNewer},
		{"start beyond any segment", segment(func(b []byte) { b[63] = 1; journal.SumSegmentHeader(b) }), journal.ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fs := disktest.New()
			fs.Put("00000001.seg", tt.data)
			log := scan(t, fs)
			if !errors.Is(log.Err(), tt.want) {
				t.Errorf("Err() = %v, want %v", log.Err(), tt.want)
			}
			calls := fs.Calls()
			if _, err := journal.Open(fs, log, journal.Options{}); !errors.Is(err, tt.want) {
				t.Errorf("Open = %v, want %v", err, tt.want)
			}
			if fs.Calls() != calls {
				t.Error("Open touched the directory")
			}
		})
	}
}

func TestScan_SegmentsOfTwoWorlds(t *testing.T) {
	fs := sample(t)
	log := scan(t, fs)
	if _, err := journal.Open(fs, log, journal.Options{World: [16]byte{9}}); !errors.Is(err, journal.ErrForeign) {
		t.Errorf("Open of another world = %v, want %v", err, journal.ErrForeign)
	}
	next := log.Segments[len(log.Segments)-1].Number + 1
	fs.Put(fmt.Sprintf("%08d.seg", next), journal.HostileSegment(next, 9, 10, next-1, 0, log.LastID))
	if log := scan(t, fs); !errors.Is(log.Err(), journal.ErrForeign) || len(log.Entries) != 9 {
		t.Errorf("problems %v, %d entries", log.Problems, len(log.Entries))
	}
}

func TestScan_FailedRead(t *testing.T) {
	fs := sample(t)
	counted := fs.Clone()
	if _, err := journal.Scan(ctx, counted, 0, nil); err != nil {
		t.Fatal(err)
	}
	calls := counted.Calls()
	eio := errors.New("input/output error")
	for n := 1; n <= calls; n++ {
		c := fs.Clone()
		c.Fail(n, eio)
		var call string
		c.OnCall(func(i int, name string) {
			if i == n {
				call = name
			}
		})
		_, err := journal.Scan(ctx, c, 0, nil)
		if strings.HasPrefix(call, "close") {
			continue // The file was only read, so a failed close is harmless.
		}
		if !errors.Is(err, eio) {
			t.Errorf("Scan with call %d, %s, failing = %v, want %v", n, call, err, eio)
		}
	}
}

// The preamble of a segment is durable before the segment gets its name, so a missing preamble is
// damage. Opening and closing the journal must not change the reported damage.
func TestOpen_TruncatedSegmentStaysReported(t *testing.T) {
	fs := sample(t)
	segments := scan(t, fs).Segments
	last := segments[len(segments)-1].Name
	for _, size := range []int{256, 300} {
		short := with(fs, last, fs.Bytes(last)[:size])
		before := scan(t, short)
		j := open(t, short, sampleOptions)
		closeJournal(t, j, 6)
		if after := scan(t, short); before.Err() == nil || !reflect.DeepEqual(after.Problems, before.Problems) {
			t.Errorf("cut to %d: problems %v, then %v", size, before.Problems, after.Problems)
		}
	}
}

func TestPreamble_LostInDamage(t *testing.T) {
	fs := sample(t)
	whole := scan(t, fs)
	e, _ := whole.Find(9)
	p, ok := whole.PreambleAt(e)
	if got, err := whole.Preamble(e); !ok || err != nil || string(got) != "a longer schema" {
		t.Fatalf("Preamble = %q, %v", got, err)
	}
	name := whole.Segments[e.Segment].Name
	data := fs.Bytes(name)
	data[p.Offset] ^= 1
	log := scan(t, with(fs, name, data))
	if got, err := log.Preamble(e); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("Preamble = %q, %v, want %v", got, err, journal.ErrCorrupt)
	}
	first := log.Entries[0]
	if got, err := log.Preamble(first); err != nil || string(got) != "the schema" {
		t.Errorf("Preamble of another segment = %q, %v", got, err)
	}
}
