package disk

import "golang.org/x/sys/unix"

// WriteBack starts writing bytes to the device; see [File]. If the device refuses the bytes, only
// Sync returns the error.
func (f osFile) WriteBack(offset, size int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, size, unix.SYNC_FILE_RANGE_WRITE)
}
