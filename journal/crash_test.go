package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
)

// A history is the sequence of records that a test appended.
type history struct {
	records []journal.Record
	pruned  int // Records before this one may be pruned.
}

// append appends a record to the journal and, on success, to the history.
func (h *history) append(j *journal.Journal, parent uint64, size int) error {
	seq := j.Next()
	p := payload(seq+1000*j.Epoch(), size)
	id, err := j.Append(parent, seq*10, uint32(size), append(j.Buffer(), p...))
	if err == nil {
		h.records = append(h.records, journal.Record{ID: id, Parent: parent, Tick: seq * 10, Flags: uint32(size), Payload: p})
	}
	return err
}

// cut returns the history up to the last record of log.
func (h *history) cut(log *journal.Log) history {
	i := slices.IndexFunc(h.records, func(r journal.Record) bool { return r.ID == log.LastID })
	return history{records: slices.Clone(h.records[:i+1]), pruned: h.pruned}
}

// An image is the directory after a crash.
type image struct {
	fs      *disktest.Mem
	acked   uint64 // Highest seq that was certainly durable.
	records int    // Maximum number of records in the history at the crash.
	pruned  int
}

// verify checks that the image holds a prefix of h with all acknowledged records and without
// corruption. It returns the log of the image.
func (h *history) verify(t *testing.T, img image) *journal.Log {
	t.Helper()
	log := scan(t, img.fs)
	if len(log.Problems) > 0 {
		t.Fatalf("%v\nproblems %v", img.fs, log.Problems)
	}
	if log.Last < img.acked {
		t.Fatalf("%v\nrecord %d was acknowledged, the last one is %d", img.fs, img.acked, log.Last)
	}
	vouched(t, img, log)
	if len(log.Entries) == 0 {
		return log
	}
	at := slices.IndexFunc(h.records, func(r journal.Record) bool { return r.ID == log.Entries[0].ID })
	if at < 0 || at > img.pruned || at+len(log.Entries) > len(h.records) {
		t.Fatalf("%v\n%d entries from %v, appended were %d, pruned %d", img.fs, len(log.Entries), log.Entries[0].ID, len(h.records), img.pruned)
	}
	for i, e := range log.Entries {
		want := h.records[at+i]
		got, err := log.Record(e, nil)
		if err != nil || got.ID != want.ID || got.Parent != want.Parent || got.Tick != want.Tick ||
			got.Flags != want.Flags || !bytes.Equal(got.Payload, want.Payload) {
			t.Fatalf("%v\nentry %d = %v, %v, want %v", img.fs, i, got, err, want)
		}
	}
	return log
}

// crashOptions roll after a few records, so that crashes happen in every step of a roll.
var crashOptions = journal.Options{
	SegmentSize: 2500,
	Sync:        journal.SyncAlways,
	Preamble:    func() []byte { return bytes.Repeat([]byte("schema "), 20) },
}.WithPartSize(700)

// work appends, syncs, rewinds, rolls, prunes and closes. It stops at the first error.
func (h *history) work(fs disk.FS, began func(*journal.Journal)) error {
	log, err := journal.Scan(ctx, fs, 0, nil)
	if err != nil {
		return err
	}
	j, err := journal.Open(fs, log, crashOptions)
	if err != nil {
		return err
	}
	defer j.Close(ctx, 0) // Ends the writer after an error.
	began(j)
	parent := j.Next() - 1
	for i, size := range []int{0, 30, 600, 1500, 8, 90, 2300, 0, 450, 1, 77, 31, 5, 700, 701, 64} {
		if i == 5 {
			parent = 2
		}
		if err := h.append(j, parent, size); err != nil {
			return err
		}
		parent = j.Next() - 1
		if i%3 == 1 {
			if err := j.Wait(ctx, parent); err != nil {
				return err
			}
		}
		if i == 8 {
			if err := h.prune(j, 3); err != nil {
				return err
			}
		}
	}
	if err := j.AppendPreamble([]byte("more schema")); err != nil {
		return err
	}
	return j.Close(ctx, parent)
}

func (h *history) prune(j *journal.Journal, keep uint64) error {
	if err := j.Roll(ctx); err != nil {
		return err
	}
	h.pruned = int(keep)
	_, err := j.Prune(keep)
	return err
}

// crashes runs h.work with fs and simulates a crash before every call of fs, including the writer's
// calls. It returns the directory after each crash. For each call, the first image has only the
// synced bytes, and the other images also have some of the unsynced bytes.
func (h *history) crashes(t *testing.T, fs *disktest.Mem, seeds int) []image {
	t.Helper()
	var mu sync.Mutex // Guards images and j.
	var images []image
	var j *journal.Journal
	fs.OnCall(func(n int, _ string) {
		mu.Lock()
		defer mu.Unlock()
		var img image
		if j != nil {
			img.acked = j.Durable() // The crash must keep these records.
		}
		img.fs = fs.Crash()
		images = append(images, img)
		for seed := range seeds {
			img.fs = fs.CrashSeed(uint64(n*seeds + seed))
			images = append(images, img)
		}
	})
	calls := fs.Calls()
	opened := func(o *journal.Journal) {
		mu.Lock()
		defer mu.Unlock()
		j = o
	}
	if err := h.work(fs, opened); err != nil {
		t.Fatal(err)
	}
	fs.OnCall(nil)
	if fs.Calls() < calls+30 {
		t.Fatalf("work made only %d calls", fs.Calls()-calls)
	}
	images = append(images, image{fs: fs.Crash(), acked: j.Durable()})
	for i := range images {
		images[i].pruned = h.pruned
	}
	return images
}

func TestCrash_BeforeEveryCall(t *testing.T) {
	var h history
	torn, images := 0, h.crashes(t, disktest.New(), 12)
	for _, img := range images {
		if log := h.verify(t, img); log.Torn != nil {
			torn++
		}
	}
	if torn < len(images)/20 {
		t.Errorf("only %d of %d crashes left a torn tail", torn, len(images))
	}
	last := images[len(images)-1]
	if log := h.verify(t, last); !log.Clean || log.Last != 16 || log.Head != 16 {
		t.Errorf("after Close: clean %v, last %d, head %d", log.Clean, log.Last, log.Head)
	}
}

// TestCrash_SecondCrashWhileReopening takes the images of a first crash. It opens each image,
// appends to it, and crashes a second time before every call.
func TestCrash_SecondCrashWhileReopening(t *testing.T) {
	var h history
	images := h.crashes(t, disktest.New(), 2)
	// Each call has three images: the first has only the synced bytes, the others have some of the
	// unsynced bytes. The step is no multiple of 3, so the loop uses all three.
	for i := 0; i < len(images); i += deep.Or(17, 7) {
		img := images[i]
		log := h.verify(t, img)
		again := h.cut(log)
		for _, second := range again.crashes(t, img.fs, 1) {
			second.acked = max(second.acked, log.Last)
			second.pruned = max(second.pruned, h.pruned)
			again.verify(t, second)
		}
	}
}

// TestCrash_WhileClosing closes journals of different lengths, so that the seals begin at every
// possible offset in a sector.
func TestCrash_WhileClosing(t *testing.T) {
	for size := range 64 {
		for _, synced := range []bool{false, true} {
			fs := disktest.New()
			j := open(t, fs, journal.Options{Sync: journal.SyncNever})
			var h history
			if err := h.append(j, 0, size*8); err != nil {
				t.Fatal(err)
			}
			if synced {
				if err := j.Sync(ctx); err != nil {
					t.Fatal(err)
				}
			}
			var images []image
			fs.OnCall(func(n int, _ string) {
				for seed := range uint64(4) {
					images = append(images, image{fs: fs.CrashSeed(seed), acked: j.Durable()})
				}
			})
			closeJournal(t, j, 1)
			for _, img := range images {
				h.verify(t, img)
			}
		}
	}
}

// A directory sync fails during a roll, so the name of the new segment is not durable. Then Open
// begins another segment, and the test crashes Open before every call. If a crash keeps the name of
// the last segment, it must keep the name of the segment before, too.
func TestCrash_SegmentNamesDurableInOrder(t *testing.T) {
	fs := disktest.New()
	syncs := 0
	fs.OnCall(func(n int, call string) {
		if call == "sync directory" {
			// The third directory sync is for the second segment. The first two are for the first
			// segment and the ledger.
			if syncs++; syncs == 3 {
				fs.Fail(n, syscall.EIO)
			}
		}
	})
	j := open(t, fs, journal.Options{})
	if err := j.Roll(ctx); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Roll = %v, want %v", err, syscall.EIO)
	}
	var mu sync.Mutex // Guards images.
	var images []image
	fs.OnCall(func(int, string) {
		mu.Lock()
		defer mu.Unlock()
		for seed := range uint64(8) {
			images = append(images, image{fs: fs.CrashSeed(seed)})
		}
	})
	closeJournal(t, open(t, fs, journal.Options{}), 0)
	var h history
	for _, img := range images {
		h.verify(t, img)
	}
}

// TestJournal_EveryDiskCallFails makes each disk call fail in turn. The journal must return the
// error and stay failed. All acknowledged records must stay readable: at once, after a crash, and
// after reopening.
func TestJournal_EveryDiskCallFails(t *testing.T) {
	counted := disktest.New()
	var h history
	if err := h.work(counted, func(*journal.Journal) {}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= counted.Calls(); n++ {
		for _, failure := range []error{syscall.EIO, syscall.ENOSPC, disktest.ErrShortWrite} {
			for _, forEver := range []bool{false, true} {
				name := fmt.Sprintf("call %d, %v, for ever %v", n, failure, forEver)
				t.Run(name, func(t *testing.T) { failCall(t, n, failure, forEver) })
			}
		}
	}
}

func failCall(t *testing.T, n int, failure error, forEver bool) {
	fs := disktest.New()
	var call string
	fs.OnCall(func(i int, name string) {
		if i == n {
			call = name
		}
	})
	fs.Fail(n, failure)
	if forEver {
		fs.FailFrom(n, failure)
	}
	var h history
	var j *journal.Journal
	err := h.work(fs, func(opened *journal.Journal) { j = opened })
	if call == "" {
		return // This run made fewer than n calls: the batches were larger.
	}
	// A failed close or unlock has no effect on a file that was only read, or that already has its
	// final name.
	harmless := strings.HasPrefix(call, "close") || strings.HasPrefix(call, "unlock")
	if !errors.Is(err, failure) && (!harmless || err != nil) {
		t.Fatalf("%s: work = %v, want %v", call, err, failure)
	}
	fs.OnCall(nil)
	fs.Fail(n, nil)
	fs.FailFrom(0, nil)
	img := image{fs: fs, pruned: h.pruned}
	if j != nil {
		img.acked = j.Durable()
		staysFailed(t, j)
	}
	h.verify(t, img)
	for seed := range uint64(4) {
		img.fs = fs.CrashSeed(seed)
		h.verify(t, img)
	}
	img.fs = fs.Crash()
	h.verify(t, img)
	reopenAfterFailure(t, fs, &h)
}

// staysFailed checks that a failed or closed journal refuses every call.
func staysFailed(t *testing.T, j *journal.Journal) {
	t.Helper()
	want := j.Err()
	if want == nil {
		t.Fatal("Err() = nil")
	}
	if _, err := j.Append(0, 0, 0, nil); err != want {
		t.Errorf("Append = %v, want %v", err, want)
	}
	if err := j.AppendPreamble(nil); err != want {
		t.Errorf("AppendPreamble = %v, want %v", err, want)
	}
	if err := j.Roll(ctx); err != want {
		t.Errorf("Roll = %v, want %v", err, want)
	}
	if next := j.Next(); j.Durable() < next-1 {
		if err := j.Sync(ctx); err != want {
			t.Errorf("Sync = %v, want %v", err, want)
		}
	}
}

// reopenAfterFailure opens fs after a failed fsync, like a program that restarts. The bytes of the
// failed fsync are readable, but they are not on the disk. A second fsync alone does not write
// them, because the system has marked them clean. Still, every record that reopenAfterFailure finds
// must survive a crash.
func reopenAfterFailure(t *testing.T, fs *disktest.Mem, h *history) {
	t.Helper()
	log := scan(t, fs)
	j, err := journal.Open(fs, log, crashOptions)
	if err != nil {
		t.Fatalf("Open after the failure = %v", err)
	}
	again := h.cut(log)
	if err := again.append(j, 0, 40); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	again.verify(t, image{fs: fs.Crash(), acked: j.Next() - 1, pruned: h.pruned})
	closeJournal(t, j, j.Next()-1)
}
