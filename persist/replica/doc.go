// Package replica keeps a store on several machines. The machines share a log. What the owner of
// the store confirms is in the log, and every later owner has it. There is one owner at a time, and
// any number of followers.
//
//	owner      Commit ─▶ journal ─fsync─▶ Log ─▶ acknowledged: confirmed
//	                                       │
//	follower                               └─▶ the same files, byte for byte
//
//	keep a copy up to date                 Follow, Follower.Files
//	show it                                inspect, persist.FollowFS, on Follower.Files
//	become the owner                       Follower.Claim, then Owner.Open, or Open of a persist.Follower
//	hand over                              Owner.Offer, Follower.Offered
//	keep the log short                     Owner.Rebase
//
// # The log
//
// A [Log] appends an entry behind a position, or not at all. That one promise keeps two owners
// apart. A claim is an entry. Once the log accepts it, it refuses every append of the owner before,
// because the position that this owner expects is taken. Safety needs no clock, no lease and no
// lock service. A machine that looks for a dead owner may guess, and may guess wrong.
//
// The owner's store is in [Owner.Files]. This file system sends to the log what is written below
// journal/ and what is published below snapshots/. A sync of the journal writes to this machine's
// disk, appends to the log, and returns when the log has acknowledged. So [persist.Store.Sync] and
// [persist.Options.OnDurable] mean that the log has the tick. An owner that lost the log to another
// machine gets [persist.ErrLost].
//
// Ticks go on while the log does not answer, until [persist.Options.QueueBytes] of them wait. Then
// [persist.Store.Commit] returns [persist.ErrBacklog] with the reason. A snapshot is finished when
// the log has it.
//
// An owner reads its log back as a new machine does. It reads new entries once a minute, and all of
// the log every ten minutes and after a failure. If the log does not show an entry, the owner sends
// all files again.
//
// # What lies in a directory
//
//	store/                     a store, as package persist has them
//	state                      up to which entry of the log it is what the log says
//	aside/N/                   what was written here and never was confirmed
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   what a file had from OFFSET on, up to the next such part or its end
//
// What an owner wrote and the log does not have is no part of the world: another owner may have
// continued without it. It is set aside when the machine follows again. It is never appended or
// shown. Of a file that the log has, only the bytes from the first difference on are kept. The
// first OFFSET bytes of the file in store/, followed by these bytes, are the file as it was.
//
// Each call of [Follow] that sets something aside makes a directory. The newest eight are kept,
// with at most 256 MiB together. The newest one is always kept.
//
// # Crashes
//
// A machine may stop at any moment:
//
//	owner, before the log had an entry    the entry is not confirmed; it is set aside
//	owner, before it knew that it had     the entry is confirmed, and every follower gets it
//	owner, while it brings in a store     the store stays here, and only this machine can claim it
//	owner, in Rebase                      the log is not trimmed; a machine that has the store continues
//	claim, before its answer              the log has it or not; any later claim is behind it
//	follower, while it applies entries    it applies them again, from what is in state on
package replica
