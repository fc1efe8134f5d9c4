//go:build unix

package persist_test

import (
	"os"
	"syscall"
)

func init() {
	irregulars["pipe"] = func(at, _ string) error { return syscall.Mkfifo(at, 0o600) }
	irregulars["directory"] = func(at, moved string) error {
		if info, err := os.Stat(moved); err != nil || info.IsDir() {
			// The original is a directory, so another directory would be valid. Use a pipe.
			return syscall.Mkfifo(at, 0o600)
		}
		return os.Mkdir(at, 0o700)
	}
}
