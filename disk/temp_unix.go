//go:build unix

package disk

import (
	"errors"
	"syscall"
)

// tempLocks says whether a [Temp] is locked while it is open. See [RemoveTemps].
const tempLocks = true

// lockless reports whether err means that the file system has no locks.
func lockless(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK)
}
