package disk_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stet-ecs/stet/disk"
)

// The directories of /proc cannot be synced, like those of some network file systems.
func TestSyncDir_Unsupported(t *testing.T) {
	proc, err := disk.Open("/proc/self")
	if err != nil {
		t.Skip(err)
	}
	defer proc.Close()
	if err := proc.SyncDir("."); !errors.Is(err, disk.ErrNoDirSync) {
		t.Errorf("SyncDir of /proc/self = %v, want %v", err, disk.ErrNoDirSync)
	}
	if err := disk.SyncDir(proc, "."); err != nil {
		t.Errorf("disk.SyncDir of /proc/self = %v", err)
	}
	if err := disk.SyncDir(proc, "missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("disk.SyncDir of a missing directory = %v", err)
	}
}
