package journal

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stet-ecs/stet/journal/budget"
)

// A SyncPolicy says when the writer calls fsync by itself. The zero value is
// SyncEvery(100 * time.Millisecond).
type SyncPolicy struct {
	kind  syncKind
	every time.Duration
}

type syncKind uint8

const (
	syncDefault syncKind = iota
	syncEvery
	syncAlways
	syncNever
)

const (
	defaultSyncEvery = 100 * time.Millisecond

	maxWriter = 255 // Bytes of [Options.Writer].
)

// SyncAlways syncs after every write. Records that arrive during an fsync share
// the next one.
func SyncAlways() SyncPolicy { return SyncPolicy{kind: syncAlways} }

// SyncEvery syncs d after the first record that is not durable yet. A d of 0 or
// less is [SyncAlways].
func SyncEvery(d time.Duration) SyncPolicy {
	if d <= 0 {
		return SyncAlways()
	}
	return SyncPolicy{kind: syncEvery, every: d}
}

// SyncNever leaves it to the caller's Sync, to rolls and to Close.
func SyncNever() SyncPolicy { return SyncPolicy{kind: syncNever} }

// String returns the call that makes p: "SyncEvery(100ms)".
func (p SyncPolicy) String() string {
	switch p = p.resolve(); p.kind {
	case syncAlways:
		return "SyncAlways()"
	case syncNever:
		return "SyncNever()"
	default:
		return fmt.Sprintf("SyncEvery(%v)", p.every)
	}
}

func (p SyncPolicy) resolve() SyncPolicy {
	if p.kind == syncDefault {
		return SyncEvery(defaultSyncEvery)
	}
	return p
}

// Options say how a journal is written. The zero value works.
type Options struct {
	// World identifies the world whose journal this is. Segments of another
	// world are refused with ErrForeign. Zero: whatever the segments say.
	World [16]byte

	// Sync is the fsync policy. Zero: every 100 ms.
	Sync SyncPolicy

	// SegmentSize is how many bytes a segment may have before the next record
	// goes into a new one. 0: 64 MiB. At most 1 GiB; more counts as that.
	SegmentSize int64

	// QueueSize bounds the bytes that wait for the writer: while they are as
	// many, no record is let into the queue, so it never holds more than that and
	// one payload. 0: 64 MiB.
	//
	// A sync holds the writer up, and the end of a segment takes four, one after the other. Records for which
	// the queue has room do not wait for them.
	QueueSize int64

	// Budget bounds the memory of the queues of all journals that have it, in addition to QueueSize: a
	// record is not let into the queue while the journal's share of it is full. A journal whose queue is
	// empty always takes one. See [budget.Budget]. nil: no bound.
	Budget *budget.Budget

	// RefuseWhenFull makes Append refuse a record then, with [ErrBacklog], instead
	// of waiting until the writer has made room. The journal is as it was and has
	// not failed: the same record can be appended later.
	RefuseWhenFull bool

	// FirstSeq is the seq of the first record of an empty directory. 0: 1.
	FirstSeq uint64

	// Epoch is the least epoch of the records that are appended: whoever decides elsewhere
	// who may write, gives each of them one of their own. 0: one more than the highest
	// there is, which it never falls below.
	Epoch uint64

	// Preamble returns the payload of the first record of every segment, at
	// most MaxPayload bytes; the journal copies it. It is called by Open, and
	// by Append and Roll in their caller's goroutine. nil: no preamble.
	Preamble func() []byte

	// Writer describes the program that writes, for [Log.Writer]: at most 255 bytes, more are
	// cut off. It is kept with each segment that is begun; a journal of version 1 has no place
	// for it. "": unknown.
	Writer string

	// OnDurable is called by the writer goroutine after an fsync covered seq
	// and all before it. It must not block, and must not call Close or Wait.
	// nil: nothing is called.
	OnDurable func(seq uint64)

	// OnLocal is called as OnDurable is, and before it, once a crash of this machine leaves
	// seq: where a file's Sync promises more than that, see [disk.SyncLocal]. What is durable is
	// local too.
	OnLocal func(seq uint64)

	// Guard is asked whether the directory is still the caller's: by the writer
	// goroutine after every fsync, before anybody is told that something is durable, and
	// before a segment gets its name, also by Open; and by Prune before each removal. An
	// error fails the journal, or the call of Open or Prune. It must not block, and must
	// not call methods of the journal. nil: it always is.
	Guard func() error

	partSize int64 // MaxPayload, less in tests.
}

const (
	defaultSegmentSize = 64 << 20
	maxSegmentSize     = 1 << 30
	defaultQueueSize   = 64 << 20
)

// resolve returns opt with its defaults filled in.
func (opt Options) resolve() Options {
	opt.Sync = opt.Sync.resolve()
	if opt.SegmentSize <= 0 {
		opt.SegmentSize = defaultSegmentSize
	}
	opt.SegmentSize = min(opt.SegmentSize, maxSegmentSize)
	if opt.QueueSize <= 0 {
		opt.QueueSize = defaultQueueSize
	}
	opt.Writer = opt.Writer[:min(len(opt.Writer), maxWriter)]
	opt.FirstSeq, opt.partSize = cmp.Or(opt.FirstSeq, 1), cmp.Or(opt.partSize, MaxPayload)
	if opt.Guard == nil {
		opt.Guard = func() error { return nil }
	}
	return opt
}
