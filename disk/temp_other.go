//go:build !unix

package disk

// tempLocks says whether a [Temp] is locked while it is open. On Windows, a locked file cannot be
// read, but writers read their temporary files back. WebAssembly has no locks between processes.
const tempLocks = false

func lockless(error) bool { return true }
