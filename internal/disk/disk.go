// Package disk is [disk] under the path that it had.
package disk

import "github.com/stet-ecs/stet/disk"

type (
	FS   = disk.FS
	File = disk.File
	Lock = disk.Lock
)

var (
	ErrIrregular = disk.ErrIrregular
	ErrLocked    = disk.ErrLocked
	Dir          = disk.Dir
	OpenDir      = disk.Open
	Sub          = disk.Sub
)
