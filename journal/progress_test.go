package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/journal"
)

// longSegments returns a closed journal of several segments of one megabyte each.
func longSegments(t testing.TB) *disktest.Mem {
	fs := disktest.New()
	j := open(t, fs, journal.Options{Sync: journal.SyncNever, SegmentSize: 1 << 20})
	parent := uint64(0)
	for range 30 {
		parent = add(t, j, parent, 100_000).Seq
	}
	closeJournal(t, j, parent)
	return fs
}

func TestScan_ReportsProgress(t *testing.T) {
	fs := longSegments(t)
	size := int64(0)
	for _, s := range scan(t, fs).Segments {
		size += s.Size
	}
	var told []int64
	_, err := journal.Scan(ctx, fs, 0, func(done, total int64) {
		if total != size {
			t.Errorf("total %d, want %d", total, size)
		}
		told = append(told, done)
	})
	if err != nil {
		t.Fatal(err)
	}
	if told[0] != 0 || told[len(told)-1] != size || len(told) < 40 {
		t.Errorf("progress %v, want 0 to %d in steps of at most 64 KiB", told, size)
	}
	for i := 1; i < len(told); i++ {
		if step := told[i] - told[i-1]; step <= 0 || step > 64<<10 {
			t.Errorf("progress %d after %d", told[i], told[i-1])
		}
	}
}

func TestScan_ContextEnds(t *testing.T) {
	fs := longSegments(t)
	for _, after := range []int{0, 1, 7, 30} {
		ending, cancel := context.WithCancel(ctx)
		told := 0
		log, err := journal.Scan(ending, fs, 0, func(done, total int64) {
			if told++; told > after {
				cancel()
			}
		})
		if log != nil && err == nil || !errors.Is(err, context.Canceled) || told > after+1 {
			t.Errorf("Scan = %v after %d calls of progress, want %v", err, told, context.Canceled)
		}
		cancel()
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := journal.Scan(ended, disktest.New(), 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Scan of an empty directory = %v, want %v", err, context.Canceled)
	}
}
