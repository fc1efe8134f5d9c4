package journal_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// hanging returns a directory whose first write of a record hangs until release
// is called.
func hanging() (fs *disktest.Mem, release func()) {
	fs = disktest.New()
	leave := make(chan bool)
	fs.OnCall(func(_ int, call string) {
		if call == "write 00000001.seg" {
			<-leave // Closed later.
		}
	})
	return fs, func() { close(leave) }
}

// tryAppend appends a record of 200 bytes, header included.
func tryAppend(j *journal.Journal, parent uint64) error {
	_, err := j.Append(parent, 0, 0, payload(j.Next(), 152))
	return err
}

func TestAFullQueueCanRefuseRecordsAndLosesNone(t *testing.T) {
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

func TestAnAlmostFullQueueTakesOnePayloadOfAnyLength(t *testing.T) {
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

func TestAPreambleAndTheRecordBehindItEnterAFullQueueTogether(t *testing.T) {
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
			t.Errorf("Append behind a preamble = %v", err)
		}
		if err := tryAppend(j, 2); !errors.Is(err, journal.ErrBacklog) {
			t.Errorf("second Append behind a preamble = %v, want %v", err, journal.ErrBacklog)
		}
		if err := j.AppendPreamble(nil); !errors.Is(err, journal.ErrBacklog) {
			t.Errorf("AppendPreamble with a full queue = %v, want %v", err, journal.ErrBacklog)
		}
		release()
		closeJournal(t, j, 2)
	})
}
