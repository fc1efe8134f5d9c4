// Package snap writes a state to one snapshot file, and reads a state from one file.
//
//	snapshot a running world, in steps    NewSnapshot, Snapshot.Advance, Assemble, Write
//	save a world in one go                Saved, Saving.Create
//	save an image in one go               SavedImage, Saving.Create
//	load a file as an image               Open, Reader.Load
//
// All of these functions use format.Array, which defines the arrays of a state and how they are
// split into pages. A page without changes since the previous snapshot is a reference to the file
// that has the page. Dirty lists the pages that ticks may have changed. A PageTable has the
// positions and checksums of pages. The package does not list or choose files; a Reader gets a
// function that names files.
package snap
