package journal_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// pieces splits a segment into its header and its records with their padding.
func pieces(t testing.TB, data []byte) (cut [][]byte) {
	t.Helper()
	cut = append(cut, data[:256])
	for at := 256; at < len(data); {
		size := 48 + (int(binary.LittleEndian.Uint32(data[at+40:]))+7)&^7
		if !bytes.HasPrefix(data[at:], []byte{0xa5, 0xe7, 0xd2, 0xc3}) || at+size > len(data) {
			t.Fatalf("no record at %d", at)
		}
		cut = append(cut, data[at:at+size])
		at += size
	}
	return cut
}

// A move is a change of a segment, such as a removed, copied or swapped record.
type move struct{ kind, segment, piece, other, from byte }

const moveSize = 5

// carryOut applies m to segments. Each segment is split into pieces: its header and its records.
// The parameter strange has the pieces of another journal, which some moves copy.
func (m move) carryOut(segments [][][]byte, strange [][][]byte) {
	s := segments[int(m.segment)%len(segments)]
	if len(s) == 0 {
		return
	}
	i := int(m.piece) % len(s)
	all := append(append([][][]byte{}, segments...), strange...)
	source := all[int(m.from)%len(all)]
	if len(source) == 0 {
		source = s
	}
	j := int(m.other) % len(source)
	switch m.kind % 6 {
	case 0: // Remove a piece.
		s = append(append([][]byte{}, s[:i]...), s[i+1:]...)
	case 1: // Duplicate a piece.
		s = append(append(append([][]byte{}, s[:i+1]...), s[i]), s[i+1:]...)
	case 2: // Swap two pieces.
		s = append([][]byte{}, s...)
		j = int(m.other) % len(s)
		s[i], s[j] = s[j], s[i]
	case 3: // Replace a piece by a piece of any segment.
		s = append([][]byte{}, s...)
		s[i] = source[j]
	case 4: // Truncate a piece.
		s = append([][]byte{}, s...)
		s[i] = s[i][:int(m.other)%(len(s[i])+1)]
	case 5: // Replace the end by the end of another segment.
		s = append(append([][]byte{}, s[:i]...), source[j:]...)
	}
	segments[int(m.segment)%len(segments)] = s
}

// FuzzMovedRecords removes, duplicates, swaps and truncates records. It also replaces records by
// those of other segments and of another journal. Each record keeps its checksum, which is valid
// only at the original position. So a moved record must not count, and every change must be
// detected.
func FuzzMovedRecords(f *testing.F) {
	for kind := range byte(6) {
		f.Add([]byte{kind, 0, 2, 3, 1})
		f.Add([]byte{kind, 1, 1, 2, 4, kind, 2, 0, 1, 5})
		f.Add([]byte{kind, 255, 255, 1, 0, 3, 0, 0, 0, 6})
	}
	f.Add([]byte{5, 0, 2, 1, 4}) // Use records of another journal at their original positions.
	fs, strange := sample(f), disktest.New()
	// The journal in strange has the same world but another history, like a copy that was
	// continued.
	j := open(f, strange, sampleOptions)
	for seq := range uint64(9) {
		add(f, j, seq, 70)
	}
	closeJournal(f, j, 9)
	whole := scan(f, fs)
	cut := func(fs *disktest.Mem) (all [][][]byte) {
		for _, s := range scan(f, fs).Segments {
			all = append(all, pieces(f, fs.Bytes(s.Name)))
		}
		return all
	}
	ours, theirs := cut(fs), cut(strange)
	for i := range theirs {
		// Drop the other journal's header. Otherwise a move could copy it, and the records after it
		// would be valid.
		theirs[i] = theirs[i][1:]
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		segments := append([][][]byte{}, ours...)
		program = program[:min(len(program), 20*moveSize)]
		for ; len(program) >= moveSize; program = program[moveSize:] {
			move{program[0], program[1], program[2], program[3], program[4]}.carryOut(segments, theirs)
		}
		moved, changed, size := fs.Clone(), false, 0
		for i, s := range segments {
			name := whole.Segments[i].Name
			data := bytes.Join(s, nil)
			size += len(data)
			if size > 1<<16 {
				return // The copied records made the journal too large. Skip this input.
			}
			changed = changed || !bytes.Equal(data, fs.Bytes(name))
			moved.Put(name, data)
		}
		readAll(t, moved)
		checkMoved(t, whole, moved, changed)
	})
}

func checkMoved(t *testing.T, whole *journal.Log, moved *disktest.Mem, changed bool) {
	t.Helper()
	log := scan(t, moved)
	for _, e := range log.Entries {
		if want, ok := whole.Find(e.ID.Seq); !ok || want != e {
			t.Errorf("record %v, written as %v", e, want)
		}
	}
	if noticed := len(log.Problems) > 0 || log.Torn != nil || len(log.TornTails) > 0 || !log.Clean; noticed != changed {
		t.Errorf("changed: %v, but problems %v, torn %v, clean %v", changed, log.Problems, log.Torn, log.Clean)
	}
	carryOn(t, moved)
}
