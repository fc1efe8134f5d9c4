// Package persist keeps a world in a directory, so that the world survives a crash. The journal
// records every committed tick, and a snapshot of the whole world is written from time to time. The
// package also saves a world to a single file and loads it again.
//
// The arrows show how data moves. Commit and snapshots write it to files. Open builds an image from
// a snapshot and the ticks after it, and fills the world from the image:
//
//	world ──Commit──▶ tick (row patches, operations) ──▶ journal/*.seg
//	  │                                                     │ replay
//	  └──pages that changed──▶ snapshots/*.snap ──▶ image ◀─┘
//	                                                  │
//	  world ◀──────────────── Open ───────────────────┘
//
//	keep a world in a directory      Open, Store.Commit, Store.Close
//	or in another file system        Options.Files, FileOptions.Files
//	learn which ticks are durable    Store.Sync, Options.Sync, Options.OnDurable, Options.OnLocal
//	save to a file, load it          Save, SaveBehind, Load
//	save to a writer, load a reader  SaveTo, LoadFrom
//	make the file smaller            FileOptions.Compress
//	save some entities, merge them   package part: Of, Part.Save, Load, Part.Merge
//	save slots, load them            Store.SaveSlot, BeginSlot, LoadSlot, Slots, DeleteSlot
//	take a snapshot                  Store.Snapshot, Store.BeginSnapshot
//	name a tick, keep its inputs     Store.Mark, Store.MarkLast, Store.Input
//	from another goroutine           Store.Do, between ticks; Store.Backup, Store.Metrics
//	serve Do without a tick          Store.Poll
//	follow another program's store   Follow, Follower.Advance; Follower.Open takes it over
//	limit the data on the disk       Options.Retain, Report.Kept, Metrics.Kept
//	go back to an older tick         Store.Goto, Options.At, or ecs.History in memory
//	load a save into an open store   Store.Load, Store.LoadFrom
//	copy a store while it runs       Store.Backup, or Store.BackupTo for a zip file
//	observe a store                  Store.Metrics, for expvar, slog, Prometheus; WithProgress
//	save two worlds that differ      SaveDivergence
//	read a store, check all of it    package inspect: OpenReadOnly, View.At, View.Verify
//	replay recorded ticks            package inspect: OpenPlayer
//	recover a damaged store          package repair: Recover; Compact, Export, Import
//	change the types of components   package ecs: Component, Migrate
//
// # Words
//
// A checkpoint is in memory, and a snapshot is on disk. In many databases it is the opposite. A
// tick is durable once an fsync that covers it has returned. Until then a crash may lose the tick
// and all ticks after it, but no tick before it.
//
// # After a crash
//
// The recovered state is the state of a committed tick, and that tick is at least as new as the
// last durable one. Damage to durable data is an error with file and offset. Nothing is truncated
// or deleted because it looks damaged.
package persist
