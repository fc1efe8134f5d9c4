// Package disktest is [disktest] under the path that it had.
package disktest

import "github.com/stet-ecs/stet/disk/disktest"

type Mem = disktest.Mem

var (
	New           = disktest.New
	ErrShortWrite = disktest.ErrShortWrite
)
