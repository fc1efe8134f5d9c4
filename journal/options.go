package journal

import (
	"cmp"
	"time"

	"github.com/stet-ecs/stet/journal/budget"
)

// Two values of [Options.Sync] that are not delays. SyncAlways syncs after every write. Records
// that arrive during a sync share the next sync. SyncNever syncs only on the caller's Sync, on
// rolls and on Close.
const (
	SyncAlways time.Duration = 1
	SyncNever  time.Duration = -1
)

// Options configure how a journal is written. The zero value works.
type Options struct {
	// World identifies the world of this journal. Open refuses segments of another world with
	// ErrForeign. Zero means the world of the existing segments.
	World [16]byte

	// Sync is a delay. It begins with the first record that is not durable yet, and ends with the
	// fsync. [SyncAlways] and [SyncNever] are other policies. 0 means 100 ms.
	Sync time.Duration

	// SegmentSize is the size in bytes from which the next record goes into a new segment. 0 means
	// 64 MiB. The maximum is 1 GiB; a larger value counts as 1 GiB.
	SegmentSize int64

	// QueueSize bounds the bytes that wait for the writer. While at least QueueSize bytes wait, the
	// queue accepts no record. So the queue holds at most QueueSize bytes and one payload. 0 means
	// 64 MiB.
	//
	// The writer writes nothing during a sync, and the end of a segment takes four syncs in
	// sequence. Meanwhile, Append continues as long as the queue has room.
	QueueSize int64

	// Budget bounds the memory for queues. All journals with the same budget share it. QueueSize
	// applies in addition. The queue accepts no record while the journal's share of the budget is
	// full. An empty queue always accepts one record. See [budget.Budget]. Nil means no bound.
	Budget *budget.Budget

	// RefuseWhenFull makes Append refuse a record with [ErrBacklog] when the queue or budget is
	// full, instead of waiting for room. The journal is unchanged and has not failed: the caller
	// can append the same record later.
	RefuseWhenFull bool

	// FirstSeq is the seq of the first record of an empty directory. 0 means 1.
	FirstSeq uint64

	// Epoch is the lowest epoch of the appended records. A program that elects its writers itself
	// passes a new epoch for each writer. The journal uses the highest epoch in the segments plus
	// one, or Epoch if that is higher. 0 means no lower bound.
	Epoch uint64

	// Preamble returns the payload of the first record of every segment, at most 256 MiB.
	// The journal copies it. Open, Append and Roll call Preamble in their caller's goroutine. Nil
	// means no preamble.
	Preamble func() []byte

	// Writer describes the program that writes, for [Log.Writer]. Bytes after the first 255 are cut
	// off. The journal stores Writer with each new segment; a journal of version 1 does not store
	// it. "" means unknown.
	Writer string

	// OnDurable is called by the writer goroutine after an fsync covered seq and all records before
	// it. Sync returns after the calls for its records. OnDurable must not block, and must not call
	// Close, Sync or Wait. Nil means no call.
	OnDurable func(seq uint64)

	// OnLocal is called by the writer goroutine once seq survives a crash of this machine.
	// OnDurable follows. The two calls differ only if the Sync of a file also waits for other
	// machines; see [disk.SyncLocal].
	OnLocal func(seq uint64)

	// Guard checks that the directory still belongs to the caller. The writer goroutine calls it
	// after every fsync, before it reports anything as durable. Open and the writer call it before
	// a segment gets its name, and Prune calls it before each removal. An error fails the journal,
	// or the call of Open or Prune. Guard must not block and must not call methods of the journal.
	// Nil means no check.
	Guard func() error

	partSize int64 // maxPayload, or less in tests.
}

const (
	defaultSync        = 100 * time.Millisecond
	defaultSegmentSize = 64 << 20
	maxSegmentSize     = 1 << 30
	defaultQueueSize   = 64 << 20
	maxWriter          = 255 // Maximum length of [Options.Writer], in bytes.
)

// resolve returns opt with its defaults filled in.
func (opt Options) resolve() Options {
	opt.Sync = max(cmp.Or(opt.Sync, defaultSync), SyncNever)
	if opt.SegmentSize <= 0 {
		opt.SegmentSize = defaultSegmentSize
	}
	opt.SegmentSize = min(opt.SegmentSize, maxSegmentSize)
	if opt.QueueSize <= 0 {
		opt.QueueSize = defaultQueueSize
	}
	opt.Writer = opt.Writer[:min(len(opt.Writer), maxWriter)]
	opt.FirstSeq, opt.partSize = cmp.Or(opt.FirstSeq, 1), cmp.Or(opt.partSize, maxPayload)
	if opt.Guard == nil {
		opt.Guard = func() error { return nil }
	}
	return opt
}
