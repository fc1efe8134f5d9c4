package persist

import (
	"context"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/disk"
)

// Save writes w, as it is, to a file: a save game. The file is complete and
// durable before it takes the name, so a save that fails never harms the one
// before. Saving an unchanged world twice gives the same bytes.
//
// It costs one pass over the world and needs memory for its encoded rows.
func Save(ctx context.Context, file string, w *ecs.World) error {
	files, err := disk.OpenDir(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	sn := newSnapshot(w, &present{World: w}, schemaOf(w), snapshotBase{}, ecs.AnyStorage.Persistent, new(bufferList))
	sn.advance(&present{World: w}, unlimited)
	if err := sn.assemble(); err != nil {
		return err
	}
	_, _, err = sn.write(files, filepath.Base(file), nil)
	return err
}

// Load replaces all that w holds by what Save wrote to a file. Register all
// components before; stored ones that are not registered are kept, and saved
// again.
//
// Errors: [ErrSchema] naming the field that does not fit, [ErrForeign],
// [ErrNewer], [ErrCorrupt] with the offset. w is then as it was.
func Load(ctx context.Context, file string, w *ecs.World) error {
	files, err := disk.OpenDir(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	r, err := openSnapshot(files, filepath.Base(file), snapshotName)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.manifest.schema.fits(w); err != nil {
		return err
	}
	im, err := r.load(ctx, nil)
	if err != nil {
		return err
	}
	return im.fill(w, r.name)
}
