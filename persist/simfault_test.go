package persist_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
)

// A simFault is a failure of the disk. The zero simFault is no failure.
type simFault struct {
	n    int  // The call that fails.
	all  bool // All later calls fail too.
	name string
}

var simErrors = map[string]error{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "short": disktest.ErrShortWrite}

func (f simFault) String() string {
	if f.all {
		return fmt.Sprintf("fail-from %d %s", f.n, f.name)
	}
	return fmt.Sprintf("fail %d %s", f.n, f.name)
}

// arm makes the file system mem fail at the calls that f describes.
func (f simFault) arm(mem *disktest.Mem) {
	switch {
	case f.n == 0:
	case f.all:
		mem.FailFrom(f.n, simErrors[f.name])
	default:
		mem.Fail(f.n, simErrors[f.name])
	}
}

// plain returns nil if err names the failed call's error and file, and does not report damage.
func (f simFault) plain(err error, call string) error {
	if call == "" {
		return fmt.Errorf("an error although no call failed: %w", err)
	}
	words := strings.Fields(call)
	file := path.Base(words[len(words)-1])
	if name, ok := disk.TempOf(file); ok {
		file = name
	}
	switch {
	case !errors.Is(err, simErrors[f.name]):
		return fmt.Errorf("%q failed with %s, and the error does not say so: %w", call, f.name, err)
	case errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNewer):
		return fmt.Errorf("%q failed with %s, but the error blames the files: %w", call, f.name, err)
	case !f.all && len(words) > 1 && !strings.Contains(err.Error(), file):
		return fmt.Errorf("%q failed, and the error does not name the file: %w", call, err)
	}
	return nil
}
