// Package deep says how much tests try. Without more they try what finds nearly
// all mistakes in a minute; with STET_DEEP=1 in the environment, as CI sets it,
// they try all that they are made for.
package deep

import "os"

// Or returns all if STET_DEEP is set, some if it is not.
func Or[T any](some, all T) T {
	if os.Getenv("STET_DEEP") != "" {
		return all
	}
	return some
}
