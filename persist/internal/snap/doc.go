// Package snap makes one snapshot file of a state, and a state of one file.
//
//	world, Pin ──StateCopy──▶ Snapshot ──┐                    in steps, beside the program
//	world ──Saved──▶ Saving ─────────────┼──pageList──▶ file  in one go, for saves
//	image ──SavedImage──▶ Saving ────────┘
//	file ──Open──▶ Reader ──loading──▶ Filling ──▶ image
//
// Which arrays a state has and how they are cut into pages is format.Array, for all of them.
// A page that did not change since the snapshot before is a reference to the file that has
// it. Dirty says which may have changed, as ticks tell; a PageTable, where the pages lie
// and what their sums are. Which files there are, and which of them to read, is not known
// here: a Reader is told how files are called.
package snap
