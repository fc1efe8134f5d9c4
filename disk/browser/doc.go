// Package browser stores files in a browser, for programs that are compiled to WebAssembly with
// GOOS=js. [Open] returns the file system, and [Persist] asks the browser to keep the data.
//
//	files, err := browser.Open(ctx, "my game")
//	store, err := persist.Open(ctx, ".", world, persist.Options{Files: files})
//
// The files are in the origin-private file system (OPFS), or in IndexedDB if OPFS is not available.
// A dedicated worker reads and writes them, because browsers allow synchronous access only in
// workers. A call blocks only its own goroutine, so the program continues to draw frames.
//
// File.Sync calls the browser's flush in OPFS, or stores the written bytes in one transaction of
// IndexedDB.
//
// Only one tab can have the files open for writing: in a second tab, Open returns [disk.ErrLocked].
// [OpenRead] opens the files for reading, for a tab that follows the store of another tab.
package browser
