package disk

import "golang.org/x/sys/unix"

// WriteBack is described with [File]. Only Sync gives the error if the device does
// not take the bytes.
func (f osFile) WriteBack(offset, size int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
}
