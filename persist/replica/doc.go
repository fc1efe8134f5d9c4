// Package replica keeps copies of a store on several machines, which share a log. Every tick that
// the owner confirms is in the log, so every later owner has it. A store has one owner at a time,
// and any number of followers.
//
//	owner      Commit ─▶ journal ─fsync─▶ Log ─▶ acknowledged: confirmed
//	                                       │
//	follower                               └─▶ the same files, byte for byte
//
//	keep a copy up to date    Follow, Follower.Files
//	show it                   inspect, persist.Follow, of Follower.Files
//	become the owner          Follower.Claim, then Owner.Open, or Open of a persist.Follower
//	hand over                 Owner.Offer, Follower.Offered
//	keep the log short        Owner.Rebase
//
// # The log
//
// A [Log] appends an entry only at the position that the caller expects as the end of the log. This
// promise keeps two owners apart: a claim is an entry, and after this entry, the log refuses the
// appends of the previous owner. Safety needs no clock, no lease and no lock service. A machine may
// therefore guess that the owner is dead, and guess wrong.
//
// The owner's store is in the file system [Owner.Files]. This file system sends to the log every
// write below journal/, and every file that is published below snapshots/. A sync of the journal
// returns when the log has acknowledged the entries. So [persist.Store.Sync] and
// [persist.Options.OnDurable] mean that the log has the tick. An owner that lost the log to another
// machine gets [persist.ErrLost].
//
// While the log does not answer, ticks continue until [persist.Options.QueueBytes] of them wait.
// Then [persist.Store.Commit] returns [persist.ErrBacklog] with the reason.
//
// An owner also reads its log: new entries once a minute, and the whole log every ten minutes and
// after a failure. If the log does not show an entry, the owner sends all files again.
//
// # Files of a directory
//
//	store/                     a store, as package persist writes it
//	state                      the last entry that store/ includes
//	aside/N/                   quarantine: data that was written here and never confirmed
//	aside/N/NAME               a file that the log does not have
//	aside/N/NAME.from-OFFSET   bytes of a file from OFFSET up to the next such part, or to its end
//
// If the log does not have the last data of an owner, another owner may have continued without that
// data. So this data is not part of the world. The machine quarantines it when it follows again,
// and never shows it. To restore a file, append the quarantined bytes to the first OFFSET bytes of
// the file in store/.
//
// Each call of [Follow] that quarantines data makes a directory. The newest eight directories are
// kept, with at most 256 MiB together. The newest one is always kept.
//
// # Crashes
//
// A machine may crash at any moment:
//
//	owner, before the log had an entry    the entry is not confirmed; it is set aside
//	owner, before it got the answer       the entry is confirmed, and every follower gets it
//	owner, while it sends its own store   the store remains; only this machine can claim it
//	owner, in Rebase                      the log is not trimmed; an up-to-date machine continues
//	claim, before its answer              the log has the claim or not; a later claim follows it
//	follower, while it applies entries    it applies the entries after the one in state again
package replica
