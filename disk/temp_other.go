//go:build !unix

package disk

// tempLocks says whether a [Temp] is locked while it is open. Windows refuses others to read what is locked,
// which a file that is read back cannot bear. WebAssembly has no locks between processes.
const tempLocks = false

func lockless(error) bool { return true }
