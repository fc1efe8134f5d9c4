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
//	keep a world in a directory      Open, Store.Commit, Store.Close
//	or in another file system        OpenFS, SaveFS, LoadFS
//	know what is durable             Store.Sync, Options.Sync, Options.OnDurable, Options.OnLocal
//	save to a file, load it          Save, Load
//	as bytes, from any reader        SaveTo, LoadFrom
//	smaller                          SaveOptions
//	save some entities, merge them   package part: Of, Part.Save, Load, Part.Merge
//	take a snapshot, name it         Store.Snapshot, Store.SnapshotAs, Store.BeginSnapshot
//	name a tick, keep its inputs     Store.Mark, Store.Input
//	from another goroutine           Store.Do, between ticks; Store.Backup, Store.Metrics
//	keep a world at another's store  Follow, Follower.Advance; Follower.Open takes it over
//	say how much stays on the disk   Options.Retain, Report.Kept, Metrics.Kept
//	go back to an older tick         Store.Goto, Options.At, or ecs.History in memory
//	load a save into an open store   Store.Load, Store.LoadFrom
//	copy a store while it runs       Store.Backup
//	see how it fares                 Store.Metrics, for expvar, slog, Prometheus; WithProgress
//	save two worlds that differ      SaveDivergence
//	look into it, check all of it    package inspect: OpenReadOnly, View.At, View.Verify
//	play what was recorded again     package inspect: OpenPlayer
//	change the types of components   package ecs: Component, Migrate
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
