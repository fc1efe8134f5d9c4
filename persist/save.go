package persist

import (
	"context"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// Save writes w, as it is, to a file: a save game. The file is complete and
// durable before it takes the name, so a save that fails never harms the one
// before. Saving an unchanged world twice gives the same bytes.
//
// It costs one pass over the world and needs memory for its encoded rows.
func Save(ctx context.Context, file string, w *ecs.World) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	sn := takeSnapshot(w, schemaOf(w), journal.ID{}, 0, nil, ecs.AnyStorage.Persistent)
	_, _, err = sn.write(root, filepath.Base(file), nil)
	return err
}

// Load replaces all that w holds by what Save wrote to a file. Register all
// components before; stored ones that are not registered are kept, and saved
// again. What older types wrote is converted, and [ecs.World.Converted] tells what
// that changed, fields that were dropped among it.
//
// Errors: [ErrSchema] naming the field that does not fit, [ErrForeign],
// [ErrNewer], [ErrCorrupt] with the offset. w is then as it was.
func Load(ctx context.Context, file string, w *ecs.World) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	r, err := openSnapshot(root, filepath.Base(file), snapshotName)
	if err != nil {
		return err
	}
	defer r.close()
	if _, err := r.manifest.schema.conversions(w); err != nil {
		return err
	}
	im, err := r.load(ctx, nil)
	if err != nil {
		return err
	}
	return im.fill(w, r.name)
}
