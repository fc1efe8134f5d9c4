package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

func TestAppend_ReadBack(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	fs := disk.Dir(root)
	opt := journal.Options{SegmentSize: 200_000, World: [16]byte{7}}

	// Sizes around the limits of the writer: padding, directSize and stageSize.
	sizes := []int{0, 1, 7, 8, 9, 4096, 65535, 65536, 65537, 300_000, 3}
	j := open(t, fs, opt)
	var ids []journal.ID
	for i, size := range sizes {
		ids = append(ids, add(t, j, uint64(i), size))
	}
	closeJournal(t, j, uint64(len(sizes)))

	log := scan(t, fs)
	defer log.Close()
	if len(log.Problems) > 0 || log.Torn != nil || !log.Clean || log.World != opt.World || log.Epoch != 1 {
		t.Fatalf("log: problems %v, torn %v, clean %v, world %x, epoch %d", log.Problems, log.Torn, log.Clean, log.World, log.Epoch)
	}
	if len(log.Segments) < 2 || len(log.Entries) != len(sizes) {
		t.Fatalf("%d segments, %d entries", len(log.Segments), len(log.Entries))
	}
	var buf []byte
	for i, e := range log.Entries {
		r, err := log.Record(e, buf)
		if err != nil || r.ID != ids[i] || !bytes.Equal(r.Payload, payload(r.ID.Seq, sizes[i])) {
			t.Errorf("Record(%d) = %v, %v", i, r.ID, err)
		}
		buf = r.Payload
	}
	for _, s := range log.Segments {
		info, err := root.Stat(s.Name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", s.Name, info.Mode(), err)
		}
	}
}

func TestAppend_PayloadInParts(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, sampleOptions)
	sizes := []int{99, 100, 101, 200, 201, 999}
	for i, size := range sizes {
		add(t, j, uint64(i), size)
	}
	if err := j.AppendPreamble(make([]byte, 101)); !errors.Is(err, journal.ErrTooLong) {
		t.Errorf("AppendPreamble of 101 bytes = %v, want %v", err, journal.ErrTooLong)
	}
	closeJournal(t, j, 6)
	log := scan(t, fs)
	for i, e := range log.Entries {
		p, err := log.Payload(e, nil)
		if err != nil || !bytes.Equal(p, payload(uint64(i+1), sizes[i])) || int(e.Length) != sizes[i] {
			t.Errorf("Payload of %d bytes = %d bytes, %v", sizes[i], len(p), err)
		}
	}
}

func TestScan_InvalidPartLosesRecord(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{Sync: journal.SyncNever}.WithPartSize(100))
	add(t, j, 0, 10)
	add(t, j, 1, 250)
	add(t, j, 2, 10)
	closeJournal(t, j, 3)
	const name = "00000001.seg"
	for part := range 3 {
		data := fs.Bytes(name)
		data[scan(t, fs).Entries[1].Offset+int64(part)*(48+104)] ^= 1
		log := scan(t, with(fs, name, data))
		if len(log.Entries) != 2 || len(log.Problems) == 0 || log.Entries[1].ID.Seq != 3 {
			t.Errorf("part %d damaged: entries %v, problems %v", part, log.Entries, log.Problems)
		}
	}
}

func TestClose_HeadIsOlderRecord(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	for parent := range uint64(5) {
		add(t, j, parent, 10)
	}
	add(t, j, 2, 10) // Record 6 continues record 2.
	add(t, j, 6, 10)
	closeJournal(t, j, 6)

	log := scan(t, fs)
	if log.Head != 6 || log.Last != 7 {
		t.Fatalf("head %d, last %d, want 6, 7", log.Head, log.Last)
	}
	path, err := log.Path(0, log.Head)
	if err != nil || !slices.Equal(seqs(path), []uint64{1, 2, 6}) {
		t.Errorf("Path(0, 6) = %v, %v", seqs(path), err)
	}
	if path, err := log.Path(2, 7); err != nil || !slices.Equal(seqs(path), []uint64{6, 7}) {
		t.Errorf("Path(2, 7) = %v, %v", seqs(path), err)
	}
	if path, err := log.Path(6, 6); err != nil || len(path) != 0 {
		t.Errorf("Path(6, 6) = %v, %v", seqs(path), err)
	}
	if _, err := log.Path(4, 7); !errors.Is(err, journal.ErrNotAncestor) {
		t.Errorf("Path(4, 7) = %v, want %v", err, journal.ErrNotAncestor)
	}
	if got := seqs(slices.Collect(log.Ancestors(5))); !slices.Equal(got, []uint64{5, 4, 3, 2, 1}) {
		t.Errorf("Ancestors(5) = %v", got)
	}

	// The head survives an opening without appends, a roll, and pruning.
	j = open(t, fs, journal.Options{})
	if err := j.Roll(ctx); err != nil {
		t.Fatal(err)
	}
	if removed, err := j.Prune(8); err != nil || len(removed) != 2 {
		t.Fatalf("Prune = %v, %v", removed, err)
	}
	if log := scan(t, fs.Crash()); log.Head != 6 || log.Last != 7 || log.Clean || len(log.Entries) != 0 {
		t.Errorf("after pruning: head %d, last %d, clean %v, %d entries", log.Head, log.Last, log.Clean, len(log.Entries))
	}
	add(t, j, 6, 1)
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if log := scan(t, fs.Crash()); log.Head != 8 {
		t.Errorf("after the next record: head %d, want 8", log.Head)
	}
	closeJournal(t, j, 8)
}

func seqs(entries []journal.Entry) []uint64 {
	var s []uint64
	for _, e := range entries {
		s = append(s, e.ID.Seq)
	}
	return s
}

func TestOpen_ReusesSeqsOfLostTail(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{Sync: journal.SyncNever})
	add(t, j, 0, 10)
	if err := j.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	lost := add(t, j, 1, 10)
	crashed := fs.Crash()
	closeJournal(t, j, 2)

	j = open(t, crashed, journal.Options{})
	again := add(t, j, 1, 10)
	closeJournal(t, j, 2)
	if again.Seq != lost.Seq || again.CRC != lost.CRC || again == lost {
		t.Errorf("IDs %v and %v, want the same seq of another epoch", lost, again)
	}
	if e, ok := scan(t, crashed).Find(2); !ok || e.ID != again {
		t.Errorf("Find(2) = %v, %v, want %v", e.ID, ok, again)
	}
}

func TestOpen_TornTail(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	add(t, j, 0, 10)
	if err := j.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	const name = "00000001.seg"
	torn := with(fs, name, append(fs.Bytes(name), "torn torn torn"...))
	closeJournal(t, j, 1)

	j = open(t, torn, journal.Options{})
	closeJournal(t, j, 1)
	log := scan(t, torn)
	if len(log.Problems) > 0 || log.Torn != nil || !log.Clean || len(log.TornTails) != 1 {
		t.Fatalf("problems %v, torn %v, clean %v, torn tails %v", log.Problems, log.Torn, log.Clean, log.TornTails)
	}
	d := log.TornTails[0]
	if got := string(torn.Bytes(d.File)[d.Offset:][:d.Length]); got != "torn torn torn" {
		t.Errorf("torn tail %q", got)
	}
}

func TestOpen_FirstSeq(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{FirstSeq: 101})
	if log := scan(t, fs.Crash()); log.Head != 100 || log.Last != 100 {
		t.Errorf("before the first record: head %d, last %d", log.Head, log.Last)
	}
	add(t, j, 100, 5)
	closeJournal(t, j, 101)
	path, err := scan(t, fs).Path(100, 101)
	if err != nil || !slices.Equal(seqs(path), []uint64{101}) {
		t.Errorf("Path(100, 101) = %v, %v", seqs(path), err)
	}
}

func TestOpen_RefusesLogOfEarlierState(t *testing.T) {
	fs := sample(t)
	log := scan(t, fs)
	closeJournal(t, open(t, fs, journal.Options{}), 8)
	if _, err := journal.Open(fs, log, journal.Options{}); err == nil {
		t.Error("Open with an old log succeeded")
	}
}

func TestOpen_TemporaryFiles(t *testing.T) {
	fs := sample(t)
	for _, name := range []string{"00000009.seg.tmp", "9.seg.tmp", "notes.txt", "00000009.segment"} {
		fs.Put(name, []byte("rubbish"))
	}
	closeJournal(t, open(t, fs, journal.Options{}), 8)
	// Without file locks, Open keeps the temporary file for an hour: it may belong to another
	// writer.
	if locks := runtime.GOOS != "windows" && runtime.GOARCH != "wasm"; locks && fs.Bytes("00000009.seg.tmp") != nil {
		t.Error("the temporary file is still there")
	}
	for _, name := range []string{"9.seg.tmp", "notes.txt", "00000009.segment"} {
		if fs.Bytes(name) == nil {
			t.Errorf("%s is gone", name)
		}
	}
}

func TestJournal_RefusedArguments(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	add(t, j, 0, 1)
	if _, err := j.Append(2, 0, 0, nil); err == nil {
		t.Error("Append with itself as parent succeeded")
	}
	if _, err := j.Append(0, 0, journal.FlagPreamble, nil); err == nil {
		t.Error("Append with a flag of the journal succeeded")
	}
	if err := j.Wait(ctx, 2); err == nil {
		t.Error("Wait for a record that was not appended succeeded")
	}
	if err := j.Close(ctx, 2); err == nil {
		t.Error("Close with a head that was not appended succeeded")
	}
	if j.Err() != nil {
		t.Errorf("Err() = %v after refused calls only", j.Err())
	}
	closeJournal(t, j, 1)
	closeJournal(t, j, 1) // A second Close returns the same result.
	if _, err := j.Append(0, 0, 0, nil); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("Append after Close = %v, want %v", err, journal.ErrClosed)
	}
	if err := j.Wait(ctx, 1); err != nil {
		t.Errorf("Wait after Close for a durable record = %v", err)
	}
}

func TestAppend_FromSeveralGoroutines(t *testing.T) {
	fs := disktest.New()
	syncs := 0
	fs.OnCall(func(_ int, call string) {
		if call == "sync 00000001.seg" {
			syncs++ // No lock is needed, because only the writer goroutine syncs.
		}
	})
	var durable []uint64
	j := open(t, fs, journal.Options{Sync: journal.SyncAlways, OnDurable: func(seq uint64) { durable = append(durable, seq) }})
	const appenders, each = 8, 50
	var wg sync.WaitGroup
	for range appenders {
		wg.Go(func() {
			for range each {
				id, err := j.Append(0, 0, 0, append(j.Buffer(), "payload"...))
				if err == nil {
					err = j.Wait(ctx, id.Seq)
				}
				if err != nil || j.Durable() < id.Seq {
					t.Errorf("record %v: durable %d, %v", id, j.Durable(), err)
				}
			}
		})
	}
	wg.Wait()
	closeJournal(t, j, appenders*each)
	if log := scan(t, fs.Crash()); len(log.Entries) != appenders*each || log.Err() != nil {
		t.Errorf("%d entries, %v", len(log.Entries), log.Err())
	}
	if syncs > appenders*each+3 {
		t.Errorf("%d fsyncs for %d records", syncs, appenders*each)
	}
	if !slices.IsSorted(durable) || len(durable) == 0 || durable[len(durable)-1] != appenders*each {
		t.Errorf("OnDurable was called with %v", durable)
	}
}

// TestGroupCommit_RecordsShareSync blocks the writer in its first fsync while records queue up.
// These records share the second fsync.
func TestGroupCommit_RecordsShareSync(t *testing.T) {
	fs := disktest.New()
	entered, leave := make(chan bool), make(chan bool)
	syncs := 0
	fs.OnCall(func(_ int, call string) {
		if call != "sync 00000001.seg" {
			return
		}
		if syncs++; syncs == 1 {
			entered <- true
			<-leave
		}
	})
	j := open(t, fs, journal.Options{Sync: journal.SyncAlways})
	add(t, j, 0, 10)
	<-entered
	for parent := uint64(1); parent < 100; parent++ {
		add(t, j, parent, 10)
	}
	close(leave)
	if err := j.Wait(ctx, 100); err != nil {
		t.Fatal(err)
	}
	if syncs != 2 {
		t.Errorf("%d fsyncs, want 2", syncs)
	}
	closeJournal(t, j, 100)
}

func TestOptionsSync_DelayUntilDurable(t *testing.T) {
	tests := []struct {
		sync    time.Duration
		durable []uint64 // Expected durable records after 0, 9, 10 and 1000 ms.
	}{
		{0, []uint64{0, 0, 0, 1}},
		{10 * time.Millisecond, []uint64{0, 0, 1, 1}},
		{journal.SyncAlways, []uint64{1, 1, 1, 1}},
		{journal.SyncNever, []uint64{0, 0, 0, 0}},
		{-time.Second, []uint64{0, 0, 0, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.sync.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := open(t, disktest.New(), journal.Options{Sync: tt.sync})
				add(t, j, 0, 10)
				begin := time.Now()
				for i, at := range []time.Duration{0, 9, 10, 1000} {
					time.Sleep(time.Until(begin.Add(at * time.Millisecond)))
					synctest.Wait()
					if got := j.Durable(); got != tt.durable[i] {
						t.Errorf("durable after %d ms: %d, want %d", at, got, tt.durable[i])
					}
				}
				if err := j.Wait(ctx, 1); err != nil {
					t.Errorf("Wait = %v", err)
				}
				closeJournal(t, j, 1)
			})
		})
	}
}

func TestJournal_IdleWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := disktest.New()
		j := open(t, fs, journal.Options{})
		add(t, j, 0, 10)
		time.Sleep(time.Second)
		synctest.Wait()
		calls, changes := fs.Calls(), fs.Changes()
		time.Sleep(time.Hour)
		synctest.Wait()
		if fs.Calls() != calls {
			t.Errorf("%d calls in an idle hour", fs.Calls()-calls)
		}
		if err := j.Sync(ctx); err != nil { // Sync checks that the files exist.
			t.Fatal(err)
		}
		if fs.Changes() != changes {
			t.Errorf("%d changes by a Sync without new records", fs.Changes()-changes)
		}
		closeJournal(t, j, 1)
	})
}

func TestWait_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := open(t, disktest.New(), journal.Options{Sync: time.Hour})
		add(t, j, 0, 10)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := j.Wait(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v, want %v", err, context.DeadlineExceeded)
		}
		if err := j.Wait(ctx, 1); err != nil {
			t.Errorf("Wait = %v", err)
		}
		closeJournal(t, j, 1)
	})
}

func TestAppend_FullQueueBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := disktest.New()
		leave := make(chan bool)
		fs.OnCall(func(_ int, call string) {
			if call == "write 00000001.seg" {
				<-leave // Block until the channel leave is closed.
			}
		})
		j := open(t, fs, journal.Options{QueueSize: 1000})
		appended := 0
		go func() {
			for parent := range uint64(20) {
				add(t, j, parent, 152) // 200 bytes with its header.
				appended++
			}
		}()
		synctest.Wait()
		if appended != 5 {
			t.Errorf("%d records of 200 bytes fit into a queue of 1000", appended)
		}
		close(leave)
		synctest.Wait()
		if appended != 20 {
			t.Errorf("%d of 20 records after the queue was written", appended)
		}
		add(t, j, 20, 5000) // Longer than the queue.
		closeJournal(t, j, 21)
	})
}

func TestJournal_FailureWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := disktest.New()
		leave := make(chan bool)
		broken := errors.New("broken")
		fs.OnCall(func(n int, call string) {
			if call == "sync 00000001.seg" {
				fs.Fail(n, broken)
				<-leave
			}
		})
		j := open(t, fs, journal.Options{Sync: journal.SyncAlways, QueueSize: 90})
		var errs []error
		add(t, j, 0, 50)
		synctest.Wait() // The writer is in its fsync.
		add(t, j, 1, 50)
		var mu sync.Mutex
		for _, f := range []func() error{
			func() error { return j.Wait(ctx, 1) },
			func() error { return j.Sync(ctx) },
			func() error { _, err := j.Append(0, 0, 0, make([]byte, 200)); return err },
		} {
			go func() {
				err := f()
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}()
		}
		synctest.Wait()
		close(leave)
		synctest.Wait()
		for _, err := range append(errs, j.Err(), j.Close(ctx, 1)) {
			if !errors.Is(err, broken) {
				t.Errorf("got %v, want %v", err, broken)
			}
		}
		if len(errs) != 3 || j.Durable() != 0 || j.Backlog() != 0 {
			t.Errorf("%d of 3 woke up, durable %d, %d bytes wait", len(errs), j.Durable(), j.Backlog())
		}
	})
}

func TestPrune_KeepsNeededSegments(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	for parent := range uint64(9) {
		add(t, j, parent, 10)
		if parent%3 == 2 {
			if err := j.Roll(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		keep uint64
		want []string
	}{
		{3, nil},
		{4, []string{"00000001.seg"}},
		{6, nil},
		{99, []string{"00000002.seg", "00000003.seg"}},
	} {
		if removed, err := j.Prune(tt.keep); err != nil || !slices.Equal(removed, tt.want) {
			t.Errorf("Prune(%d) = %v, %v, want %v", tt.keep, removed, err, tt.want)
		}
	}
	closeJournal(t, j, 9)
	if log := scan(t, fs); log.Err() != nil || log.Head != 9 || len(log.Segments) != 1 {
		t.Errorf("after pruning: %v, head %d, %d segments", log.Err(), log.Head, len(log.Segments))
	}
}

// Segments returns the sizes of the existing files, including files of earlier openings.
func TestSegments_FileSizes(t *testing.T) {
	fs := disktest.New()
	last := uint64(0)
	for range 3 {
		j := open(t, fs, journal.Options{SegmentSize: 2000})
		for range 40 {
			if last = add(t, j, last, 100).Seq; last%7 > 0 {
				continue
			}
			if err := j.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Prune(max(last, 20) - 20); err != nil {
				t.Fatal(err)
			}
		}
		closeJournal(t, j, last)
		var got, want []string
		for first, size := range j.Segments() {
			got = append(got, fmt.Sprint(first, size))
		}
		for _, s := range scan(t, fs).Segments {
			want = append(want, fmt.Sprint(s.First, s.Size))
		}
		if !slices.Equal(got, want) || len(got) < 2 {
			t.Fatalf("Segments() = %v, want %v", got, want)
		}
	}
}

func TestAppend_AllocatesNothing(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	j := open(t, disk.Dir(root), journal.Options{Sync: journal.SyncNever, QueueSize: 64 << 10})
	content := payload(1, 1000)
	hundred := func() {
		for range 100 {
			if _, err := j.Append(0, 0, 0, append(j.Buffer(), content...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		hundred()
	}
	if allocs := testing.AllocsPerRun(20, hundred); allocs > 0 {
		t.Errorf("100 appends allocate %v times", allocs)
	}
	closeJournal(t, j, 1)
}

func TestScan_SegmentsPrunedMeanwhile(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	add(t, j, 0, 10)
	if err := j.Roll(ctx); err != nil {
		t.Fatal(err)
	}
	pruned := false
	fs.OnCall(func(_ int, call string) {
		if call == "open 00000001.seg" && !pruned {
			pruned = true
			if _, err := j.Prune(2); err != nil {
				t.Error(err)
			}
		}
	})
	if log := scan(t, fs); log.Err() != nil || len(log.Segments) != 1 || log.Head != 1 {
		t.Errorf("problems %v, %d segments, head %d", log.Problems, len(log.Segments), log.Head)
	}
	closeJournal(t, j, 1)
}

func TestAppendSummed_EqualsAppend(t *testing.T) {
	fs := disktest.New()
	j := open(t, fs, journal.Options{})
	var want []journal.ID
	for n := range 300 {
		payload := bytes.Repeat([]byte{byte(n), 3, byte(n >> 3)}, n)
		var sum journal.Sum
		for end := n % 7; end <= len(payload); end += 1 + n%50 {
			sum.Add(payload[:end])
		}
		id, err := j.AppendSummed(0, uint64(n), 0, payload, sum)
		if crc := crc32.Checksum(payload, crc32.MakeTable(crc32.Castagnoli)); err != nil || id.CRC != crc {
			t.Fatalf("AppendSummed of %d bytes = %v, %v, want CRC %08x", len(payload), id, err, crc)
		}
		want = append(want, id)
	}
	closeJournal(t, j, 300)
	log := scan(t, fs)
	defer log.Close()
	if err := log.Err(); err != nil || len(log.Entries) != len(want) {
		t.Fatalf("%d entries, %v", len(log.Entries), err)
	}
	for i, e := range log.Entries {
		if r, err := log.Record(e, nil); err != nil || r.ID != want[i] {
			t.Errorf("Record(%d) = %v, %v, want %v", i, r.ID, err, want[i])
		}
	}
}

func TestOpen_EpochOptionIsLowerBound(t *testing.T) {
	mem := disktest.New()
	for _, c := range []struct{ least, want uint64 }{{0, 1}, {7 << 16, 7 << 16}, {3, 7<<16 + 1}, {0, 7<<16 + 2}} {
		j := open(t, mem, journal.Options{Epoch: c.least})
		id := add(t, j, j.Next()-1, 9)
		if id.Epoch != c.want || j.Epoch() != c.want {
			t.Errorf("record has epoch %d, journal has %d; lowest epoch %d, want %d", id.Epoch, j.Epoch(), c.least, c.want)
		}
		closeJournal(t, j, id.Seq)
		log := scan(t, mem)
		if log.Epoch != c.want || len(log.Problems) > 0 {
			t.Errorf("Scan returns epoch %d, want %d; %v", log.Epoch, c.want, log.Problems)
		}
		log.Close()
	}
}

// A sharedFS simulates files that are replicated to other machines. A sync waits for this machine
// first, then for the others.
type sharedFS struct {
	disk.FS
	ours func() // Simulates the wait for other machines. Called after local.
}

type sharedFile struct {
	disk.File
	ours func()
}

func (f sharedFS) Create(name string) (disk.File, error) {
	file, err := f.FS.Create(name)
	return sharedFile{file, f.ours}, err
}

func (f sharedFile) SyncLocal(local func()) error {
	err := f.Sync()
	if err == nil {
		local()
		f.ours()
	}
	return err
}

// OnLocal is called before OnDurable, even if disk.Sub wraps the files. Sync returns after both.
func TestOnLocal_BeforeOnDurable(t *testing.T) {
	var told []string
	var j *journal.Journal
	note := func(what string) func(uint64) {
		return func(seq uint64) {
			s := j.Stats()
			told = append(told, fmt.Sprintf("%s %d: local %d, tick %d; durable %d", what, seq, s.Local, s.LocalTick, s.Durable))
		}
	}
	fs := disk.Sub(sharedFS{disktest.New(), func() { told = append(told, "others") }}, ".")
	j = open(t, fs, journal.Options{Sync: journal.SyncNever, OnLocal: note("local"), OnDurable: func(seq uint64) {
		time.Sleep(20 * time.Millisecond) // If Sync did not wait, it would return in this time.
		note("durable")(seq)
	}})
	told = nil // Drop the calls for the header of the segment.
	add(t, j, 0, 10)
	if err := j.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	tick := j.Stats().DurableTick
	want := []string{
		fmt.Sprintf("local 1: local 1, tick %d; durable 0", tick), "others",
		fmt.Sprintf("durable 1: local 1, tick %d; durable 1", tick),
	}
	if !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	closeJournal(t, j, 1)
	again := open(t, fs, journal.Options{})
	if s := again.Stats(); s.Local != 1 {
		t.Errorf("after opening again, Local is %d", s.Local)
	}
	closeJournal(t, again, 1)
}
