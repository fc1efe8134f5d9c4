// Package inspect tells what lies in a store or a save, at any tick and without the Go
// types of the program that wrote it. It also writes new stores and saves from what it
// finds, and plays a recorded store again. What it reads, it never changes; a program may
// have it open.
//
//	store, save ──OpenReadOnly──▶ View ──Resolve──▶ record ──At──▶ Image
//	                                │                               │
//	                                └ Peek, Trace, Diff, Commits …  └ Export, World, SaveImage
//
//	open a store or a save            OpenReadOnly, OpenFS
//	what there is                     View.Snapshots, View.Log, View.Space, View.Damage
//	a point in time to its record     View.Resolve, View.Marks, View.Tips
//	a state in a world with types     View.Fill
//	the state after a record          View.At; View.Walk and View.Cursor for many
//	of it only what is asked for      View.Read, State.Outline, State.Row, State.Sweep
//	what a tick did                   View.Commits, View.Changes
//	one entity, without the state     View.Peek, View.Trace, View.TraceBack
//	who is alive, who refers to one   View.Living, View.Referrers
//	what hangs on one                 View.Tree
//	two states, two histories         View.Diff, View.DiffTo; View.Part
//	follow a store in use             View.InUse, View.Refresh, View.WatchWriter
//	check all of it                   View.Verify, View.VerifyChecksums
//	save what can be saved            Recover
//	write less of it                  View.Compact, View.Backup
//	out as text, and in again         Export, Import, SaveImage, SaveStore
//	play it, or make it again         OpenPlayer, Player.Step, Player.Diverged
//	play what is written meanwhile    Player.Refresh
//	save both worlds where it differs Player.SaveBoth
//
// Errors are those of package persist, and what takes long heeds persist.WithProgress.
//
// A record is named by its seq; 0 is the oldest state of the store. A View shows the store
// as it was when it was opened, and an Image shares nothing with the program's world.
package inspect
