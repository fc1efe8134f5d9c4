// Package replica keeps a store on several machines: what its owner confirms lies in a log
// that the machines share, and whoever comes next has it. There is one owner at a time, and
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
// A [Log] takes an entry behind a position, or not at all. That one promise is all that keeps
// two owners apart: a claim is an entry, and once it is accepted, every append of the owner
// before is refused, since the position that it counts on is taken. Safety needs no clock, no
// lease and no lock service; whoever looks for a dead owner may guess, and guess wrong.
//
// The owner's store lies in [Owner.Files], a file system that hands to the log what is written
// below journal/ and what is published below snapshots/. A sync of the journal writes locally,
// appends, and returns when the log has it. So what [persist.Store.Sync] waits for and
// [persist.Options.OnDurable] tells is confirmed by the log, and an owner that another took the
// log from gets [persist.ErrLost]. Ticks go on meanwhile, as far as [persist.Options.QueueBytes]
// goes; then [persist.Store.Commit] returns [persist.ErrBacklog] with the reason. A snapshot is finished when the
// log has it.
//
// An owner reads its log back, as a new machine does: what came since, once a minute, and all of it every ten
// minutes and after a failure. If the log does not show an entry, the owner sends all files once more.
//
// # What lies in a directory
//
//	store/                     a store, as package persist has them
//	state                      up to which entry of the log it is what the log says
//	aside/N/                   what was written here and never was confirmed
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   what a file had from OFFSET on, up to the next such part or its end
//
// What an owner wrote and the log does not have, is no part of the world: somebody else may have
// gone on without. It is set aside when the machine follows again, and never cut off, appended
// or shown. Of a file that the log has, only the bytes are kept from the first one on that differs from the log,
// or behind its end in the log. These bytes behind the first OFFSET bytes of the file in store/ are the file as it was.
//
// Each following that finds something makes a directory, N by N. The newest eight are kept, as far as all of them
// have no more than 256 MiB together. The newest one is always kept.
//
// # Crashes
//
// A machine may stop anywhere. What becomes of what it was doing:
//
//	owner, before the log had an entry    it was not confirmed; set aside when the machine follows
//	owner, before it knew that it had     it is confirmed: whoever follows has it, this machine too
//	owner, while it brings in a store     it stays here, and only this machine can claim it
//	owner, in Rebase                      the log is not trimmed; whoever has the store goes on
//	claim, before its answer              the log has it or not; any later claim is behind it
//	follower, while it applies entries    it applies them again, from what is in state on
package replica
