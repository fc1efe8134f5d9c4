package repair

import (
	"context"
	"errors"
	"math"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// Backup copies the store of v, with all ticks that can be read. Another process may have the
// store open. See persist.Store.Backup.
func Backup(ctx context.Context, v *inspect.View, dir string) error {
	if v.IsSave() {
		return errors.New("persist: backup: a save is one file that never changes; copy it")
	}
	return catalog.Backup(ctx, v.Catalog().Files, dir, func() uint64 { return math.MaxUint64 })
}
