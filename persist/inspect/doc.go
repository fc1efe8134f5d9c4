// Package inspect reads a store or a save at any tick, without the Go types of the program that
// wrote it. It also replays a recorded store. It never changes the store that it reads. A program
// may have that store open at the same time.
//
// OpenReadOnly returns a View of a store or a save. View.Resolve returns the record of a point in
// time. View.At returns an Image of the state after a record. Other methods of a View read only
// parts of a state, or compare states. Package repair writes new stores and saves from what inspect
// reads, and its function Edit changes values in a state. Each row has a task and its functions:
//
//	open a store or a save            OpenReadOnly, OpenFS
//	list the contents                 View.Snapshots, View.Log, View.Space, View.Damage
//	find the record of a tick         View.Resolve, View.Marks, View.Tips
//	fill a world that has types       View.Fill
//	load the state after a record     View.At
//	load the states of many records   View.Walk, View.Cursor
//	read parts of a state             View.Read, State.Outline, State.Row, State.Sweep
//	list what a tick changed          View.Commits, View.Changes
//	read one entity                   View.Peek, View.Trace, View.TraceBack
//	find live entities, references    View.Living, View.Referrers
//	read a tree of relations          View.Tree
//	compare two states                View.Diff, View.DiffTo
//	compare two histories             View.FindDivergence
//	follow a store in use             View.InUse, View.Refresh, View.WatchWriter
//	verify a store                    View.Verify, View.VerifyChecksums
//	replay or rebuild a store         OpenPlayer, Player.Step, Player.Diverged
//	replay new ticks                  Player.Refresh
//	save both worlds at a divergence  Player.SaveBoth
//
// Errors are those of package persist. Functions that run long report to persist.WithProgress.
//
// A seq identifies a record. Seq 0 stands for the oldest state of the store. A View shows the store
// as of the time when the view was opened. An Image shares no memory with the program's world.
package inspect
