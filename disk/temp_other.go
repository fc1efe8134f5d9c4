//go:build !unix

package disk

// tempLocks says whether a [Temp] is locked while it is open. On Windows a lock prevents others
// from reading the file, but temporary files are read back. WebAssembly has no locks between
// processes.
const tempLocks = false

func lockless(error) bool { return true }
