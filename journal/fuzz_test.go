package journal_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// FuzzScan reads arbitrary bytes as two segments. Scan must not panic, and its log must be
// consistent. If the journal can be continued, continuing it adds no damage.
func FuzzScan(f *testing.F) {
	fs := sample(f)
	segments := scan(f, fs).Segments
	for _, s := range segments {
		f.Add(fs.Bytes(s.Name), []byte{})
	}
	f.Add(fs.Bytes(segments[0].Name), fs.Bytes(segments[1].Name))
	f.Add([]byte{}, []byte("STETJRNL"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		fs := disktest.New()
		fs.Put("00000001.seg", first)
		if len(second) > 0 {
			fs.Put("00000002.seg", second)
		}
		readAll(t, fs)
		carryOn(t, fs)
	})
}

// FuzzHostileRecords scans records with arbitrary fields in their headers. All checksums are valid,
// so the scan must detect impossible fields without them.
func FuzzHostileRecords(f *testing.F) {
	add := func(headers ...journal.HostileHeader) {
		var program []byte
		for _, h := range headers {
			program = binary.LittleEndian.AppendUint64(program, h.Seq|h.Parent<<8|h.Tick<<16|uint64(h.Synced)<<32)
			program = binary.LittleEndian.AppendUint32(program, h.Flags)
			program = binary.LittleEndian.AppendUint32(program, h.Length)
		}
		f.Add(program, uint64(256))
	}
	h := journal.HostileHeader{Seq: 1}
	add(h, journal.HostileHeader{Seq: 2, Parent: 1, Length: 8}, journal.HostileHeader{Seq: 2, Flags: journal.FlagMark})
	add(h, journal.HostileHeader{Seq: 1, Flags: journal.FlagSeal}, journal.HostileHeader{Seq: 1, Flags: journal.FlagSeal})
	add(h, journal.HostileHeader{Seq: 1, Flags: 1 << 20}, journal.HostileHeader{Seq: 1, Flags: journal.FlagSeal}, h, h)
	add(journal.HostileHeader{Seq: 1, Flags: journal.FlagSeal}, journal.HostileHeader{Seq: 2, Flags: journal.FlagSeal}, h)
	add(journal.HostileHeader{Seq: 1, Length: 1 << 31}, journal.HostileHeader{Seq: 1, Length: 256 << 20})
	add(journal.HostileHeader{Seq: 1, Flags: journal.FlagMore, Length: 3}, journal.HostileHeader{Seq: 1, Flags: journal.FlagPart, Length: 5})
	add(journal.HostileHeader{Seq: 0xff, Parent: 0xff}, journal.HostileHeader{}, journal.HostileHeader{Seq: 1, Synced: 0xffff})
	add(journal.HostileHeader{Flags: journal.FlagPreamble, Length: 20}, h)
	f.Fuzz(func(t *testing.T, program []byte, prevEnd uint64) {
		fs := disktest.New()
		data := hostile(program)
		fs.Put("00000001.seg", data)
		readAll(t, fs)
		carryOn(t, fs)

		fs = disktest.New()
		fs.Put("00000001.seg", data)
		fs.Put("00000002.seg", journal.HostileSegment(2, 2, 2, 1, prevEnd, journal.ID{Epoch: 1, Seq: 1}))
		readAll(t, fs)
		carryOn(t, fs)
	})
}

// hostile builds a segment with one record for each 16 bytes of the input. Payloads are zeros.
func hostile(program []byte) []byte {
	data := journal.HostileSegment(1, 1, 1, 0, 0, journal.ID{})
	for len(program) >= 16 {
		fields := binary.LittleEndian.Uint64(program)
		h := journal.HostileHeader{
			Seq:    fields & 0xff,
			Parent: fields >> 8 & 0xff,
			Tick:   fields >> 16 & 0xffff,
			Synced: uint32(fields >> 32),
			Flags:  binary.LittleEndian.Uint32(program[8:]),
			Length: binary.LittleEndian.Uint32(program[12:]),
		}
		program = program[16:]
		body := make([]byte, min(h.Length, 100)) // The header may state a longer payload.
		h.CRC = crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
		if h.Flags&journal.FlagSeal != 0 {
			h.CRC = journal.SealCRC
			h.Tick = uint64(len(data)) + 96
		}
		data = append(h.AppendTo(data), body...)
		data = append(data, make([]byte, -len(data)&7)...)
	}
	return data
}

// readAll scans fs within a memory limit and calls all methods of the log.
func readAll(t *testing.T, fs *disktest.Mem) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	log, err := journal.Scan(ctx, fs, 0, nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	var size uint64
	for _, name := range fs.Files() {
		size += uint64(len(fs.Bytes(name)))
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20+40*size {
		t.Errorf("scanning %d bytes allocated %d", size, allocated)
	}
	check(t, log)
	for _, e := range log.Entries {
		if _, err := log.Preamble(e); err != nil && log.Err() == nil {
			t.Errorf("Preamble(%v) = %v without a problem", e.ID, err)
		}
		for range log.Ancestors(e.ID.Seq) {
		}
		log.Path(0, e.ID.Seq)
	}
}

// carryOn opens fs for writing, if possible. It checks that earlier records and new records can be
// read.
func carryOn(t *testing.T, fs *disktest.Mem) {
	t.Helper()
	before := scan(t, fs)
	j, err := journal.Open(fs, before, journal.Options{})
	if err != nil {
		return
	}
	id := add(t, j, j.Next()-1, 20)
	closeJournal(t, j, id.Seq)
	after := scan(t, fs)
	if records(after.Problems) != records(before.Problems) || after.Torn != nil || !after.Clean || after.LastID != id {
		t.Errorf("problems %v, then %v; torn %v, clean %v, last %v", before.Problems, after.Problems, after.Torn, after.Clean, after.LastID)
	}
	if len(after.Entries) != len(before.Entries)+1 || !slices.Equal(after.Entries[:len(before.Entries)], before.Entries) {
		t.Errorf("entries %v, then %v", before.Entries, after.Entries)
	}
}

// records returns the number of problems in segments. It skips problems of the ledger, because
// every opening writes a new ledger.
func records(problems []*disk.DamageError) (n int) {
	for _, p := range problems {
		if !strings.HasSuffix(p.File, ".ledger") {
			n++
		}
	}
	return n
}

// FuzzAppend interprets its input as payload sizes and operations on a journal. It checks that the
// appended records are read back.
func FuzzAppend(f *testing.F) {
	f.Add([]byte{1, 50, 250, 255, 3, 9, 254, 7})
	f.Add([]byte{253, 253, 1, 255, 255, 2, 254})
	f.Fuzz(func(t *testing.T, steps []byte) {
		fs := disktest.New()
		j := open(t, fs, sampleOptions)
		var h history
		for _, step := range steps[:min(len(steps), 100)] {
			switch step {
			case 255:
				closeJournal(t, j, j.Next()-1)
				j = open(t, fs, sampleOptions)
			case 254:
				if err := j.Roll(ctx); err != nil {
					t.Fatal(err)
				}
			case 253:
				if err := j.AppendPreamble(bytes.Repeat([]byte{1}, int(j.Next()%9))); err != nil {
					t.Fatal(err)
				}
			default:
				if err := h.append(j, j.Next()/2, int(step)*3); err != nil {
					t.Fatal(err)
				}
			}
		}
		closeJournal(t, j, j.Next()-1)
		if log := h.verify(t, image{fs: fs.Crash(), acked: j.Next() - 1}); len(log.Entries) != len(h.records) || !log.Clean {
			t.Errorf("%d entries of %d, clean %v", len(log.Entries), len(h.records), log.Clean)
		}
	})
}
