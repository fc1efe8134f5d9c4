package journal_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// aTree returns a closed journal of several segments with some rewinds. The tick of a record is
// that of its parent plus one.
func aTree(t *testing.T, seed uint64) *disktest.Mem {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	fs := disktest.New()
	ticks, parents := map[uint64]uint64{}, map[uint64]uint64{}
	parent := uint64(0)
	for range 2 {
		j := open(t, fs, journal.Options{SegmentSize: 900, Sync: journal.SyncNever, Preamble: func() []byte { return []byte("types") }})
		for range 20 {
			if rng.IntN(5) == 0 {
				for range rng.IntN(4) {
					parent = parents[parent] // The program rewinds to an ancestor.
				}
			}
			id, err := j.Append(parent, ticks[parent]+1, 0, payload(j.Next(), 1+rng.IntN(60)))
			if err != nil {
				t.Fatal(err)
			}
			ticks[id.Seq], parents[id.Seq] = ticks[parent]+1, parent
			parent = id.Seq
		}
		closeJournal(t, j, parent)
	}
	return fs
}

// The log must describe unreadable records correctly, and Ancestors must continue with their
// parents.
func TestLog_LostRecordsHaveParentAndTick(t *testing.T) {
	const header, inPayload = 20, 48
	known, unknown := 0, 0
	for seed := range uint64(6) {
		fs := aTree(t, seed)
		truth := scan(t, fs)
		if len(truth.Problems) > 0 || len(truth.Lost) > 0 || len(truth.Segments) < 4 {
			t.Fatalf("seed %d: %v, %d segments", seed, truth.Problems, len(truth.Segments))
		}
		for i, e := range truth.Entries {
			for _, at := range [][]int64{{header}, {inPayload}, {header, header}, {inPayload, header}, {header, inPayload}} {
				if i+len(at) > len(truth.Entries) {
					continue
				}
				damaged := fs.Clone()
				for k, offset := range at { // Damage consecutive records from this one on.
					hit := truth.Entries[i+k]
					name := truth.Segments[hit.Segment].Name
					data := damaged.Bytes(name)
					data[hit.Offset+offset] ^= 4
					damaged.Put(name, data)
				}
				log := scan(t, damaged)
				if len(log.Entries) != len(truth.Entries)-len(at) {
					t.Fatalf("seed %d, record %d: %d entries", seed, e.ID.Seq, len(log.Entries))
				}
				for _, lost := range log.Lost {
					want, _ := truth.Find(lost.ID.Seq)
					if lost.Parent != want.Parent || lost.Tick != want.Tick || lost.ID.Epoch > 0 && lost.ID != want.ID {
						t.Errorf("seed %d: lost record %d is %+v, want %+v", seed, lost.ID.Seq, lost, want)
					}
				}
				known += len(log.Lost)
				unknown += len(at) - len(log.Lost)
				if at[0] == inPayload {
					if found, ok := log.Known(e.ID.Seq); !ok || found.ID != e.ID {
						t.Errorf("seed %d: of record %d only the payload is damaged: %+v", seed, e.ID.Seq, found)
					}
				}
				straight := i > 0 && e.Parent == e.ID.Seq-1 && i+1 < len(truth.Entries) && truth.Entries[i+1].Parent == e.ID.Seq
				if found, ok := log.Known(e.ID.Seq); len(at) == 1 && straight && (!ok || found.Parent != e.Parent) {
					t.Errorf("seed %d: record %d between its parent and its child is not known", seed, e.ID.Seq)
				}
				if len(at) == len(log.Lost) {
					want := slices.Collect(truth.Ancestors(truth.Head))
					got := slices.Collect(log.Ancestors(truth.Head))
					if !slices.EqualFunc(got, want, func(a, b journal.Entry) bool { return a.ID.Seq == b.ID.Seq && a.Tick == b.Tick }) {
						t.Errorf("seed %d, record %d: another path to the head", seed, e.ID.Seq)
					}
					if _, err := log.Path(e.Parent, e.ID.Seq); !errors.Is(err, journal.ErrCorrupt) {
						t.Errorf("seed %d: Path over record %d = %v", seed, e.ID.Seq, err)
					}
				}
			}
		}
	}
	t.Logf("%d lost records known, %d not", known, unknown)
	if known < 2*unknown {
		t.Errorf("%d lost records known, %d not", known, unknown)
	}
}
