package journal_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

var keep = flag.Bool("keep", false, "write the journal of a new format version to testdata, once")

// TestScan_JournalOfEarlierBuild reads a journal that an earlier build wrote. It reads it with this
// package and with a separate reader that follows docs/FORMAT.md. The files stand for the files of
// users, so they are never regenerated.
func TestScan_JournalOfEarlierBuild(t *testing.T) {
	const dir = "testdata/v1"
	if *keep {
		writeFormat(t, dir)
	}
	files, err := filepath.Glob(dir + "/*.seg")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d segments in %s, %v", len(files), dir, err)
	}
	fs := disktest.New()
	var plain strings.Builder
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		fs.Put(filepath.Base(name), data)
		plainRead(t, &plain, data)
	}
	log := scan(t, fs)
	if log.Err() != nil || log.Torn != nil || !log.Clean || log.Head != 8 || log.Last != 9 || log.Epoch != 2 {
		t.Fatalf("problems %v, torn %v, clean %v, head %d, last %d, epoch %d", log.Problems, log.Torn, log.Clean, log.Head, log.Last, log.Epoch)
	}
	var ours strings.Builder
	for _, e := range log.Entries {
		p, err := log.Payload(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&ours, "%v after %d, tick %d, flags %#x: %s\n", e.ID, e.Parent, e.Tick, e.Flags, p)
	}
	if plain.String() != ours.String() {
		t.Errorf("read by the format's text:\n%s\nread by the package:\n%s", &plain, &ours)
	}
	closeJournal(t, open(t, fs, journal.Options{}), 8) // The journal can be continued.
}

func writeFormat(t *testing.T, dir string) {
	t.Helper()
	fs := sample(t)
	for _, s := range scan(t, fs).Segments {
		if err := os.WriteFile(filepath.Join(dir, s.Name), fs.Bytes(s.Name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// plainRead prints the records of an undamaged segment. It shares no code with the package.
func plainRead(t *testing.T, out *strings.Builder, data []byte) {
	t.Helper()
	le := binary.LittleEndian
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	if string(data[:8]) != "STETJRNL" || crc32.Checksum(data[8:124], castagnoli) != le.Uint32(data[124:]) {
		t.Fatal("the segment header is invalid")
	}
	epoch, salt := le.Uint64(data[32:]), data[104:112]
	var payload []byte
	for offset := 256; offset < len(data); {
		r := data[offset:]
		sum := append([]byte(nil), salt...)
		sum = le.AppendUint64(sum, uint64(offset))
		sum = append(sum, r[8:48]...)
		if string(r[:4]) != "\xa5\xe7\xd2\xc3" || crc32.Checksum(sum, castagnoli) != le.Uint32(r[4:]) {
			t.Fatalf("the record header at %d is invalid", offset)
		}
		flags, length := le.Uint32(r[36:]), int(le.Uint32(r[40:]))
		offset += 48 + (length+7)/8*8
		if flags>>29 != 0 {
			continue // Skip seals, marks and preambles.
		}
		payload = append(payload, r[48:48+length]...)
		if crc := le.Uint32(r[44:]); crc32.Checksum(payload, castagnoli) != crc {
			t.Fatalf("the payload before %d is invalid", offset)
		}
		if flags&(1<<28) == 0 {
			fmt.Fprintf(out, "%d/%d/%08x after %d, tick %d, flags %#x: %s\n",
				epoch, le.Uint64(r[8:]), le.Uint32(r[44:]), le.Uint64(r[16:]), le.Uint64(r[24:]), flags&0xffff, payload)
			payload = payload[:0]
		}
	}
}
