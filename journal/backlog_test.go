package journal_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// hanging returns a directory whose first write of a record blocks until release is called.
func hanging() (fs *disktest.Mem, release func()) {
	fs = disktest.New()
	leave := make(chan bool)
	fs.OnCall(func(_ int, call string) {
		if call == "write 00000001.seg" {
			<-leave // Block until release is called.
		}
	})
	return fs, func() { close(leave) }
}

// tryAppend appends a record of 200 bytes, header included.
func tryAppend(j *journal.Journal, parent uint64) error {
	_, err := j.Append(parent, 0, 0, payload(j.Next(), 152))
	return err
}

func TestAppend_RefuseWhenFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, release := hanging()
		j := open(t, fs, journal.Options{QueueSize: 1000, RefuseWhenFull: true})
		refused := 0
		for range 8 {
			before := j.Next()
			switch err := tryAppend(j, before-1); {
			case errors.Is(err, journal.ErrBacklog):
				refused++
				if j.Next() != before || j.Err() != nil {
					t.Errorf("refused record %d: the next is %d, failed: %v", before, j.Next(), j.Err())
				}
			case err != nil:
				t.Fatal(err)
			}
		}
		if refused != 3 || j.Backlog() != 1000 {
			t.Errorf("a queue of 1000 refuses %d of 8 records of 200 bytes and holds %d", refused, j.Backlog())
		}
		release()
		synctest.Wait()
		if err := tryAppend(j, 5); err != nil {
			t.Errorf("Append after the queue was written = %v", err)
		}
		closeJournal(t, j, 6)
		if log := scan(t, fs); len(log.Entries) != 6 || !log.Clean {
			t.Errorf("%d entries, clean %v", len(log.Entries), log.Clean)
		}
	})
}

// The queue is full when the writer begins a new segment. Then the writer waits for syncs.
// Meanwhile, Append must accept records, because the written records have left the queue.
func TestAppend_WhileRollWaitsForSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := disktest.New()
		write, sync := make(chan bool), make(chan bool)
		syncs := 0
		fs.OnCall(func(_ int, call string) {
			switch {
			case call == "write 00000001.seg":
				<-write
			case strings.HasPrefix(call, "sync"):
				<-sync
				syncs++
			}
		})
		// Let the four syncs of Open return. All later syncs block until close(sync).
		go func() { sync <- true; sync <- true; sync <- true; sync <- true }()
		j := open(t, fs, journal.Options{QueueSize: 2000, RefuseWhenFull: true, SegmentSize: 2200, Sync: journal.SyncNever})
		// Eight of the ten records fit into the first segment, so the writer must roll.
		for j.Backlog() < 2000 {
			if err := tryAppend(j, 0); err != nil {
				t.Fatal(err)
			}
		}
		before := syncs
		close(write)
		synctest.Wait()
		for i := range 8 {
			if err := tryAppend(j, 0); err != nil {
				t.Errorf("Append %d while a roll waits for its first sync = %v", i, err)
			}
		}
		if err := tryAppend(j, 0); !errors.Is(err, journal.ErrBacklog) || syncs != before {
			t.Errorf("Append to a full queue = %v, %d syncs have returned, want %d", err, syncs, before)
		}
		close(sync)
		closeJournal(t, j, j.Next()-1)
		if log := scan(t, fs); len(log.Entries) != 18 || !log.Clean || len(log.Segments) < 3 {
			t.Errorf("%d entries in %d segments, clean %v", len(log.Entries), len(log.Segments), log.Clean)
		}
	})
}

func TestAppend_LongPayloadInAlmostFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, release := hanging()
		j := open(t, fs, journal.Options{QueueSize: 201, RefuseWhenFull: true})
		for i, want := range []error{nil, nil, journal.ErrBacklog} {
			size := []int{152, 100_000, 0}[i]
			if _, err := j.Append(0, 0, 0, make([]byte, size)); !errors.Is(err, want) {
				t.Errorf("Append(%d bytes) = %v, want %v", size, err, want)
			}
		}
		release()
		closeJournal(t, j, 2)
	})
}

func TestAppendPreamble_FullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, release := hanging()
		j := open(t, fs, journal.Options{QueueSize: 300, RefuseWhenFull: true})
		if err := tryAppend(j, 0); err != nil {
			t.Fatal(err)
		}
		if err := j.AppendPreamble(make([]byte, 500)); err != nil {
			t.Errorf("AppendPreamble before the queue is full = %v", err)
		}
		if err := tryAppend(j, 1); err != nil {
			t.Errorf("Append after a preamble = %v", err)
		}
		if err := tryAppend(j, 2); !errors.Is(err, journal.ErrBacklog) {
			t.Errorf("second Append after a preamble = %v, want %v", err, journal.ErrBacklog)
		}
		if err := j.AppendPreamble(nil); !errors.Is(err, journal.ErrBacklog) {
			t.Errorf("AppendPreamble with a full queue = %v, want %v", err, journal.ErrBacklog)
		}
		release()
		closeJournal(t, j, 2)
	})
}
