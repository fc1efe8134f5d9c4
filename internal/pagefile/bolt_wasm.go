package pagefile

import "github.com/stet-ecs/stet/disk"

// boltRuns: bbolt does not build for WebAssembly, which maps no files.
const boltRuns = false

func newBoltTree(*disk.Temp, string) (tree, error) { return nil, nil }
