// Package browser stores files in a browser, for programs that are compiled to WebAssembly with
// GOOS=js. [Open] returns the file system, and [Persist] asks the browser to keep the data.
//
//	files, err := browser.Open(ctx, "my game")
//	store, err := persist.Open(ctx, ".", world, persist.Options{Files: files})
//
// The files are in the origin-private file system (OPFS). If the browser has none, or refuses it,
// they are in IndexedDB. A dedicated worker opens and writes them, because browsers allow
// synchronous access only there. The Go program waits for the worker in the goroutine that calls,
// so the goroutine that draws frames continues. A Sync of a file calls flush of the browser, or
// stores the written bytes in one transaction.
//
// Only one tab can have the files open for writing. A second call of Open returns [disk.ErrLocked].
// [OpenRead] opens them for reading, for a tab that follows the store of another tab.
package browser
