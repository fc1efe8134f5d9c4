// Package journal keeps an append-only tree of records in segment files of one flat directory. The
// package does not interpret payloads: a payload is opaque bytes.
//
//	to read a journal                 Scan, then Log.Path, Log.Payload
//	to continue a journal             Open with that Log, then Journal.Append
//	to wait for durability            Journal.Durable, Wait, Sync
//	to end a journal properly         Journal.Close
//	to remove the oldest records      Journal.Roll, Prune
//
// # The tree
//
// Every record has a seq, which grows by one, and a parent: the seq of the record that it
// continues. After a rewind the next record has an older parent. Existing records are never
// rewritten, so the abandoned branch stays. In this example, each arrow leads to the parent.
// Records 3 and 4 are abandoned, and record 6 is the head:
//
//	1 <- 2 <- 3 <- 4
//	     ^
//	     +--- 5 <- 6
//
// The head is the last record, or the seq that a clean close recorded. After a crash, the seqs of a
// lost tail are used again. An [ID] tells the two records with the same seq apart.
//
// # The bytes
//
// Integers are little-endian. Records begin at multiples of 8.
//
//	segment    header | header again | preamble | record | mark | record | … | seal | seal
//
//	record  0      4      8      16       24     32       36      40       44      48
//	        +------+------+------+--------+------+--------+-------+--------+-------+---------+---+
//	        | magic| CRC  | seq  | parent | tick | synced | flags | length | crc   | payload | 0 |
//	        +------+------+------+--------+------+--------+-------+--------+-------+---------+---+
//
// CRC covers the segment's random salt, the record's own offset and the rest of the header. A
// reader uses no field of a header before this CRC matches, so stale bytes and zeros never pass for
// a record. crc covers the payload. synced is the watermark: the segment was durable up to this
// offset when the record was written. docs/FORMAT.md describes every byte.
//
// # The ledger
//
// The ledger, NUMBER.ledger, lists the segments. Open writes a new ledger. A roll adds the new
// segment to the ledger after the segment's name is durable, and before any of its records is
// acknowledged. So a scan notices that a segment is missing, even the newest one. A ledger entry
// also contains a summary of the previous segment. [Scan] can use this summary instead of reading
// the segment.
//
// # Torn or corrupt
//
// Bad bytes are corrupt if the journal proves that they were durable once. Each of these facts is a
// proof:
//
//   - A later valid header has a watermark above the bytes.
//   - The next segment states that this segment ends after the bytes.
//   - A seal states that the segment ends after the bytes.
//   - The ledger of a closed journal states that the segment ends after the bytes.
//
// All other bad bytes are a torn tail: an unfinished write that was never acknowledged.
//
// In this example, the highest watermark in a valid header is at the bar. The second line says how
// a scan treats the bytes above it:
//
//	record  record  bad      record  |  record  bad   record
//	kept    kept    corrupt  kept    |  kept    torn  dropped
//
// The last records also need a proof. After an fsync that finds the queue empty, the writer appends
// a mark with the watermark. A clean close appends two seals, and each states the exact end.
//
// # What a crash can leave behind
//
// The next Scan and Open recover from each of these states. A crash during that recovery is
// harmless, too.
//
//  1. While appending: complete records, then any mixture of written, half-written and unwritten
//     sectors. Only the records before the first bad byte are kept.
//  2. The process is killed, but the system keeps running: all written bytes are readable, but may
//     not be durable. Open writes the unproven bytes again, unchanged, and syncs them before the
//     new segment declares them durable. A second write is needed because the system may drop
//     bytes after a failed fsync.
//  3. While rolling or opening: a temporary file, which Scan ignores and Open removes. Or the
//     complete new segment, because a segment gets its name last.
//  4. While closing: a prefix of the two seals. Both are in one sector, and everything before them
//     was synced first. A second seal that is cut off or followed by zeros is torn; one with other
//     bytes is corrupt.
//  5. While pruning: the oldest segments are gone, in order. Before that, the ledger has recorded
//     that these segments may be missing.
//  6. While adding a segment to the ledger: the segment has its name and nothing after its
//     preamble. The ledger has an unfinished end, or two ledgers exist and the older one was about
//     to be removed.
//
// # Opening removes no bytes
//
// Open begins a new segment with a higher epoch. The new header states where the previous segment
// ends. Later bytes of the previous segment are cut off: readers ignore them, but they stay in the
// file as evidence.
//
// # Assumptions
//
//   - A write does not damage adjacent durable bytes.
//   - A sector of 512 bytes is written from its beginning. It does not turn to garbage if it held
//     durable bytes.
//   - A rename is atomic.
//   - One process writes at a time. [Options.Guard] can check this.
//
// The checksums detect accidents. They do not protect against an attacker that recomputes them.
package journal
