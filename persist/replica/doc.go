// Package replica keeps a store on several machines, which share a log. Every tick that the owner
// confirms is in the log, so every later owner has it. A store has one owner at a time, and any
// number of followers.
//
//	owner      Commit ─▶ journal ─fsync─▶ Log ─▶ acknowledged: confirmed
//	                                       │
//	follower                               └─▶ the same files, byte for byte
//
//	keep a copy up to date    Follow, Follower.Files
//	show it                   inspect, persist.FollowFS, on Follower.Files
//	become the owner          Follower.Claim, then Owner.Open, or Open of a persist.Follower
//	hand over                 Owner.Offer, Follower.Offered
//	keep the log short        Owner.Rebase
//
// # The log
//
// A [Log] appends an entry after a given position, or not at all. This promise keeps two owners
// apart. A claim is an entry. Once the log has a claim, it refuses every append of the previous
// owner, because the position that this owner expects is taken. Safety needs no clock, no lease and
// no lock service. A machine that looks for a dead owner may guess, and may guess wrong.
//
// The owner's store is in [Owner.Files]. This file system sends to the log every write below
// journal/ and every file that is published below snapshots/. A sync of the journal writes to this
// machine's disk, appends to the log, and returns when the log has acknowledged. So
// [persist.Store.Sync] and [persist.Options.OnDurable] mean that the log has the tick. An owner
// that lost the log to another machine gets [persist.ErrLost].
//
// While the log does not answer, ticks go on until [persist.Options.QueueBytes] of them wait. Then
// [persist.Store.Commit] returns [persist.ErrBacklog] with the reason. A snapshot is finished when
// the log has it.
//
// An owner reads its log back as a new machine does. It reads new entries once a minute. It reads
// the whole log every ten minutes, and after a failure. If the log does not show an entry, the
// owner sends all files again.
//
// # Files of a directory
//
//	store/                     a store, as package persist writes it
//	state                      the last entry that store/ includes
//	aside/N/                   quarantine: data that was written here and never confirmed
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   bytes of a file from OFFSET up to the next such part, or to its end
//
// Data that an owner wrote and the log does not have is not part of the world, because another
// owner may have continued without it. The machine sets this data aside when it follows again, and
// never appends or shows it. If the log has the file, only the bytes from the first difference on
// are set aside. To restore the file, append these bytes to the first OFFSET bytes of the file in
// store/.
//
// Each call of [Follow] that sets something aside makes a directory. The newest eight are kept,
// with at most 256 MiB together. The newest one is always kept.
//
// # Crashes
//
// A machine may stop at any moment:
//
//	owner, before the log had an entry    the entry is not confirmed; it is set aside
//	owner, before the answer came         the entry is confirmed, and every follower gets it
//	owner, while it sends its own store   the store stays here; only this machine can claim it
//	owner, in Rebase                      the log is not trimmed; an up-to-date machine continues
//	claim, before its answer              the log has it or not; any later claim comes after it
//	follower, while it applies entries    it applies them again, from the entry in state on
package replica
