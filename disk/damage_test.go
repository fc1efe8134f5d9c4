package disk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stet-ecs/stet/disk"
)

func TestDamageErrorIn_AddsDirectoryToFile(t *testing.T) {
	d := &disk.DamageError{File: "1.seg", Offset: 8, Length: 16, Reason: "checksum differs", Err: disk.ErrCorrupt}
	above := d.In("journal")
	if got := fmt.Sprint(above); got != "corrupt: journal/1.seg: 16 bytes at offset 8: checksum differs" {
		t.Error(got)
	}
	if !errors.Is(above, disk.ErrCorrupt) || d.File != "1.seg" {
		t.Errorf("%v, of %v", above, d)
	}
	above.Offset = -1
	if got := fmt.Sprint(above); got != "corrupt: journal/1.seg: checksum differs" {
		t.Error(got)
	}
}
