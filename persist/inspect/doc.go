// Package inspect reads a store or a save at any tick, without the Go types of the program that
// wrote it. It also replays a recorded store. It never changes the store that it reads. A program
// may have that store open at the same time. Package repair writes new stores and saves from what
// inspect reads. The function Edit of package repair changes values in a state.
//
//	store, save ──OpenReadOnly──▶ View ──Resolve──▶ record ──At──▶ Image
//	                               │                               │
//	                               └ Peek, Trace, Diff, Commits …  └ World, Digest; package repair
//
//	open a store or a save            OpenReadOnly, OpenFS
//	list the contents                 View.Snapshots, View.Log, View.Space, View.Damage
//	find the record of a tick         View.Resolve, View.Marks, View.Tips
//	fill a world that has types       View.Fill
//	load the state after a record     View.At; View.Walk and View.Cursor for many
//	read parts of a state             View.Read, State.Outline, State.Row, State.Sweep
//	list what a tick changed          View.Commits, View.Changes
//	read one entity                   View.Peek, View.Trace, View.TraceBack
//	find live entities, references    View.Living, View.Referrers
//	read a tree of relations          View.Tree
//	compare states, histories         View.Diff, View.DiffTo; View.FindDivergence
//	follow a store in use             View.InUse, View.Refresh, View.WatchWriter
//	verify a store                    View.Verify, View.VerifyChecksums
//	replay or rebuild a store         OpenPlayer, Player.Step, Player.Diverged
//	replay new ticks                  Player.Refresh
//	save both worlds at a divergence  Player.SaveBoth
//
// Errors are those of package persist. Functions that run long report to persist.WithProgress.
//
// A seq identifies a record. Seq 0 stands for the oldest state of the store. A View shows the
// store as of the time when the view was opened. An Image shares no memory with the program's
// world.
package inspect
