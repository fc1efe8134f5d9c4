package pagefile

import (
	"errors"
	"os"

	"github.com/stet-ecs/stet/disk"
)

// boltRuns is false because bbolt does not build for WebAssembly, which cannot map files.
const boltRuns = false

func newBoltTree(*disk.Temp, string, *os.File) (tree, error) { return nil, errors.ErrUnsupported }
