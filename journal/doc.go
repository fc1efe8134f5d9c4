// Package journal keeps an append-only tree of records in segment files of one
// flat directory. It knows nothing of what a record means: a payload is opaque
// bytes.
//
//	to read what is there             Scan, then Log.Path, Log.Payload
//	to continue it                    Open with that Log, then Journal.Append
//	to know what survives a crash     Journal.Durable, Wait, Sync
//	to end it properly                Journal.Close
//	to forget the oldest records      Journal.Roll, Prune
//
// # The tree
//
// Every record has a seq, which grows by one, and a parent: the seq of the
// record that it continues. After a rewind the next record names an older
// parent. Nothing is rewritten; the abandoned branch stays.
//
//	seq     1 <- 2 <- 3 <- 4          4 is abandoned
//	             ^
//	             +--- 5 <- 6          6 is the head
//
// The head is the last record, or the seq that a clean close named. A crash
// frees the seqs of a lost tail; an [ID] tells their two uses apart.
//
// # The bytes
//
// Integers are little-endian. Records begin at multiples of 8.
//
//	segment    header | header again | preamble | record | mark | record | … | seal | seal
//
//	record     0      4      8      16       24     32       36      40       44      48
//	           +------+------+------+--------+------+--------+-------+--------+-------+---------+---+
//	           | magic| CRC  | seq  | parent | tick | synced | flags | length | crc   | payload | 0 |
//	           +------+------+------+--------+------+--------+-------+--------+-------+---------+---+
//
// CRC covers the segment's random salt, the record's own offset and the rest of
// the header; nothing of a header is believed before it holds, so stale bytes,
// zeros and rubbish are never a record. crc covers the payload. Synced is the
// watermark: up to where the segment was known durable when the record was
// written. docs/FORMAT.md has every byte.
//
// # The ledger
//
// Beside the segments lies a ledger, NUMBER.ledger, that lists them: an opening writes a
// new one, a roll adds a segment once its name is durable and before anything in it is
// acknowledged. So a segment that is gone is missed, be it the newest. An entry also sums
// up the segment before, which [Scan] can believe instead of reading it.
//
// # Torn or corrupt
//
// Bad bytes are corrupt if something vouches that they were durable once: a
// watermark above them in a later header that holds, the end that the next
// segment states, or the end that a seal states. Else they are a torn tail:
// unfinished, and acknowledged to nobody.
//
//	             vouched                       torn tail
//	|----------------------------------|----------------------|
//	 record  record  #bad#  record      record  #bad#  record
//	                 corrupt  |                 torn   dropped
//	                          synced of some good header
//
// So that the last records are vouched for as well, the writer leaves a mark
// with the watermark after an fsync that finds the queue empty; and two seals,
// each stating the exact end, at a clean close.
//
// # What a crash can leave behind
//
// Each of these is recovered by the next Scan and Open, and crashing in those is
// harmless, too.
//
//  1. While appending: whole records, then any mixture of written, half written
//     and unwritten sectors. The records before the first bad byte count.
//  2. Killed, but the system went on: everything that was written is there, and
//     perhaps not durable. Open writes the unvouched bytes again, as they are,
//     and syncs before its new segment vouches for them: after a failed fsync
//     the system may hold bytes that it will never write.
//  3. While rolling or opening: a temporary file, which Scan ignores and Open
//     removes; or the new segment, whole, for it gets its name last.
//  4. While closing: a beginning of the two seals. Both lie in one sector, and
//     everything before was synced first. A second seal that is cut off or zero
//     is torn; one with other bytes is corrupt.
//  5. While pruning: the oldest segments are gone, in order. The ledger said so before.
//  6. While entering a segment in the ledger: the segment has its name and nothing behind
//     its preamble, and the ledger an unfinished end, or there are two of them, of which
//     the older one was about to be removed.
//
// # Opening cuts nothing
//
// Open begins a new segment under a higher epoch, whose header says where its
// predecessor ends. Later bytes there are disowned and stay as evidence.
//
// # What is assumed
//
// A write does not damage durable bytes beside it; a sector of 512 bytes is
// written from its beginning and does not turn to garbage if it held durable
// bytes; a rename is one step; and one process writes at a time, which
// [Options.Guard] can see to. Nothing here guards against somebody who computes
// checksums.
package journal
