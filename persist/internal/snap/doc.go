// Package snap writes a state to one snapshot file, and reads a state from one file.
//
//	world, Pin ──StateCopy──▶ Snapshot ──┐                    in steps, while the program runs
//	world ──Saved──▶ Saving ─────────────┼──pageList──▶ file  in one go, for saves
//	image ──SavedImage──▶ Saving ────────┘
//	file ──Open──▶ Reader ──loading──▶ Filling ──▶ image
//
// All of them use format.Array, which defines the arrays of a state and how they are split into
// pages. A page without changes since the previous snapshot is a reference to the file that has the
// page. Dirty lists the pages that ticks may have changed. A PageTable has the positions and
// checksums of pages. The package does not list or choose files; a Reader gets a function that
// names files.
package snap
