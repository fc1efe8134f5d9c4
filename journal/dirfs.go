package journal

import (
	"os"

	"github.com/stet-ecs/stet/internal/disk"
)

// DirFS returns the directory that root stands for. Names cannot lead out of
// it, neither by ".." nor by symbolic links. New files have mode 0600. The
// caller closes root after everything that uses the FS.
func DirFS(root *os.Root) FS { return disk.Sub(disk.Dir(root), ".") }
