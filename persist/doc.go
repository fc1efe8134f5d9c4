// Package persist keeps a world in a directory, so that it comes back after a
// crash as it was: every committed tick goes into a journal, and now and then a
// snapshot holds it all. It also saves a world to a single file and loads it
// again.
//
//	world ──Commit──▶ tick (row patches, operations) ──▶ journal/*.seg
//	  │                                                     │ replay
//	  └──pages that changed──▶ snapshots/*.snap ──▶ image ◀─┘
//	                                                  │
//	  world ◀──────────────── Load ───────────────────┘
//
// [Open] makes a directory keep a world, [Store.Commit] ends a tick,
// [Store.Close] seals it. [Save] and [Load] do without a directory.
// [OpenReadOnly] looks into either without Go types and without changing
// anything.
//
// # Words
//
// A checkpoint is in memory, a snapshot on disk; other stores use the words the
// other way round. A tick is durable once an fsync that covers it has returned;
// until then a crash may lose it, and the ticks after it, but nothing before.
//
// # After a crash
//
// The state recovered is that of some committed tick, no older than the last
// durable one. Damage to what was durable is an error with file and offset;
// nothing is cut off or deleted because it looks bad.
package persist
