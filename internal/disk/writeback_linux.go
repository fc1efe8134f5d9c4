package disk

import "golang.org/x/sys/unix"

// WriteBack makes the system begin to write bytes of f to its device and does not
// wait, so that a later Sync has less to do. It is a hint: only Sync makes bytes
// durable, and gives the error if the device does not take them.
func WriteBack(f File, offset, size int64) {
	if f, ok := f.(osFile); ok {
		_ = unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
	}
}
