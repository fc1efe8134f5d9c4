package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/stet-ecs/stet/disk"
)

// Copy copies the segments of l to an empty directory and makes the copies durable. In the last
// segment, the copy ends before the first record whose seq is greater than the argument last. In
// each other segment, it ends where the header of the next segment says. The copy has no torn
// bytes. If all records of a closed journal are copied, the copy is closed, too. Otherwise, it
// looks like a journal that was not closed.
//
// Copy may run while another goroutine or process appends. If l has problems, Copy fails with the
// first problem. If a segment is missing, the error wraps fs.ErrNotExist. Copy calls progress, if
// not nil, with the number of bytes copied since the previous call.
func (l *Log) Copy(ctx context.Context, to disk.FS, last uint64, progress func(n int64)) error {
	if err := l.Err(); err != nil {
		return err
	}
	for i := range l.Segments {
		s := &l.Segments[i]
		end := s.End
		if i == len(l.Segments)-1 {
			end = l.endAfter(last)
		}
		if err := l.copySegment(ctx, to, s.Name, end, progress); err != nil {
			return err
		}
	}
	if err := syncDir(to); err != nil {
		return err
	}
	return l.copyLedger(to, last)
}

// copyLedger writes a ledger for the copied segments. The parameter last is the highest seq that
// the copy may contain.
func (l *Log) copyLedger(to disk.FS, last uint64) error {
	if l.ledger == nil {
		return nil
	}
	w := l.ledgerWriter(to, l.World, func() error { return nil })
	newest := &l.Segments[len(l.Segments)-1]
	w.segments = w.segments[:len(w.segments)-1]
	err := w.began(&newest.header, l.Writer(newest), nil)
	if err == nil && newest.sealed && l.endAfter(last) == newest.End {
		err = w.closed(closedSegment{newest.Number, uint64(newest.End - 2*recordHeader)})
	}
	return errors.Join(err, w.close())
}

// endAfter returns the offset in the last segment at which the copy ends: the first record whose
// seq is greater than last. If all records belong to the copy, it is the end of the segment.
func (l *Log) endAfter(last uint64) int64 {
	i := len(l.Segments) - 1
	at := sort.Search(len(l.Entries), func(at int) bool { return l.Entries[at].Segment == i && l.Entries[at].ID.Seq > last })
	if at < len(l.Entries) {
		return l.Entries[at].Offset
	}
	return l.Segments[i].End
}

func (l *Log) copySegment(ctx context.Context, to disk.FS, name string, end int64, progress func(n int64)) error {
	from, err := l.fs.Open(name)
	if err != nil {
		return fmt.Errorf("journal: open %s: %w", name, err)
	}
	defer from.Close()
	f, err := to.Create(name)
	if err != nil {
		return fmt.Errorf("journal: create %s: %w", name, err)
	}
	return copyBytes(ctx, f, from, name, 0, end, progress)
}

// copyBytes copies the bytes in [offset, end) to the same place in another file or in the same one.
// It makes the copy durable, and closes to.
func copyBytes(ctx context.Context, to, from disk.File, name string, offset, end int64, progress func(n int64)) (err error) {
	defer func() {
		if e := to.Close(); err == nil && e != nil {
			err = fmt.Errorf("journal: close %s: %w", name, e)
		}
	}()
	buf := make([]byte, stageSize)
	for offset < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := readAt(from, name, buf[:min(stageSize, end-offset)], offset)
		if err == nil && n == 0 {
			err = fmt.Errorf("journal: read %s: %w", name, io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		if err := writeAt(to, name, buf[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		if progress != nil {
			progress(int64(n))
		}
	}
	if err := to.Sync(); err != nil {
		return fmt.Errorf("journal: sync %s: %w", name, err)
	}
	return nil
}
