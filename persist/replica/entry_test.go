package replica

import (
	"bytes"
	"maps"
	"testing"
)

// FuzzDecodeEntry decodes bytes as an entry. A valid entry is encoded to the same bytes, apart from
// the length of varints.
func FuzzDecodeEntry(f *testing.F) {
	h := header{entryID{1, 2}, link{3, entryID{4, 5}}}
	f.Add(encodeEntry(h, nil)[8:])
	f.Add(encodeEntry(h, []op{{opClaim, "a", 7, nil}, {opBegin, "", 7, nil}, {opPart, "snapshots/00000001.snap", 0, []byte("xyz")}, {opWhole, "snapshots/00000001.snap", 3, nil}})[8:])
	info := logInfo{"0123456789abcdef", "game 2", 3, 4}
	f.Add(encodeEntry(h, []op{{opClaim, "a", 7, info.encode()}, {opBegin, "", 7, []byte("{")}})[8:])
	f.Add(encodeEntry(h, []op{{opWrite, "journal/1.seg", 1 << 40, []byte{0}}, {opRemove, "journal/1.ledger", 0, nil}, {opComplete, "", 0, nil}, {opOffer, "b", 0, nil}})[8:])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = sealed(b)
		h, ops, err := decodeEntry(b)
		if err != nil {
			return
		}
		again := encodeEntry(h, ops)
		h2, ops2, err := decodeEntry(again)
		if len(again) > MaxEntry { // With the longer varints, the entry exceeds MaxEntry.
			return
		}
		if err != nil || h != h2 || len(ops) != len(ops2) {
			t.Fatalf("%v; %+v, then %+v", err, h, h2)
		}
		for i := range ops {
			if ops[i].kind != ops2[i].kind || ops[i].name != ops2[i].name || ops[i].number != ops2[i].number || !bytes.Equal(ops[i].data, ops2[i].data) {
				t.Fatalf("operation %d was %+v, and is %+v", i, ops[i], ops2[i])
			}
			if info, err := decodeInfo(ops[i].data); err == nil {
				if again, err := decodeInfo(info.encode()); err != nil || again != info {
					t.Fatalf("%v: %+v, then %+v", err, info, again)
				}
			}
		}
	})
}

// sealed puts the magic and a valid checksum before b.
func sealed(b []byte) []byte {
	entry := encodeEntry(header{}, nil)[:8]
	entry = append(entry, b...)
	return resum(entry)
}

// An entry with a flipped bit and a truncated entry are invalid.
func TestEntry_DamagedIsInvalid(t *testing.T) {
	whole := encodeEntry(header{entryID{1, 2}, link{3, entryID{4, 5}}}, []op{{opPart, "snapshots/00000001.snap", 0, []byte("xyz")}, {opClaim, "a", 7, nil}})
	for bit := range 8 * len(whole) {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if _, _, err := decodeEntry(b); err == nil {
			t.Errorf("bit %d", bit)
		}
	}
	for n := range whole {
		if _, _, err := decodeEntry(whole[:n]); err == nil {
			t.Errorf("%d bytes", n)
		}
	}
	if _, _, err := decodeEntry(whole); err != nil {
		t.Error(err)
	}
}

// FuzzDecodeState decodes bytes as a file state.
func FuzzDecodeState(f *testing.F) {
	f.Add((&state{At: link{1, entryID{2, 3}}, Term: 4, Info: logInfo{Log: "abc", Writes: 2}, Owner: true, Files: map[string]int64{"journal/1.seg": 5}}).encode())
	f.Add([]byte("stet-replica-1 00000000\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeState(b)
		if err != nil {
			return
		}
		again, err := decodeState(s.encode())
		if err != nil || again.At != s.At || again.Term != s.Term || again.Info != s.Info || !maps.Equal(again.Files, s.Files) || !maps.Equal(again.Parts, s.Parts) {
			t.Fatalf("%v: %+v, then %+v", err, s, again)
		}
	})
}

func TestReplicated_JournalAndSnapshotNames(t *testing.T) {
	for name, want := range map[string]bool{
		"journal/00000001.seg": true, "snapshots/00000001.snap": true, "journal/00000001.ledger": true,
		"LOCK": false, "journal": false, "journal/": false, "journal/a/b": false, "journal/..": false, "journal/1.seg.tmp": false, "../journal/x": false,
		"snapshots/a\\b": false, "journal//x": false, "/journal/x": false, "journal/a\x00": false,
	} {
		if got := replicated(name); got != want {
			t.Errorf("replicated(%q) = %v", name, got)
		}
	}
}
