// Package replica keeps copies of a store on several machines, which share a log. Every tick that
// the owner confirms is in the log, so every later owner has it. A store has one owner at a time,
// and any number of followers.
//
// The owner appends each tick to its journal. A sync sends the new bytes to the log. When the log
// acknowledges them, the tick is confirmed. Followers write the same bytes to the same files.
//
//	keep a copy up to date    Follow, Follower.Files
//	show the copy             package inspect or persist.Follow, with Follower.Files
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
//	an owner, before the log has an entry   the entry is unconfirmed, and quarantined later
//	an owner, before the log's answer       the entry is confirmed, and every follower gets it
//	an owner, while it sends its own store  the store remains; only this machine can claim it
//	an owner, in Rebase                     the older entries remain until all files are sent
//	a machine, while it claims              the claim may be in the log; any machine can claim
//	a follower, while it applies entries    it continues after the last entry in the file state
package replica
