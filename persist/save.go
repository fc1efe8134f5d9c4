package persist

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// Save writes w, as it is, to a file: a save game. The file is complete and
// durable before it takes the name, so a save that fails never harms the one
// before. Saving an unchanged world twice gives the same bytes.
//
// It costs two passes over the world, one for its digest, and needs memory for about
// 50 MB of encoded rows. They are encoded by as many goroutines as the program has
// processors, while others are written and synced.
func Save(ctx context.Context, file string, w *ecs.World) error {
	files, err := disk.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	return SaveFS(ctx, files, filepath.Base(file), w)
}

// SaveFS writes w to a file of files, as [Save] does.
func SaveFS(ctx context.Context, files disk.FS, file string, w *ecs.World) error {
	_, err := snap.Saved(w).Create(ctx, files, file)
	return err
}

// SaveTo writes w to out: the bytes that [Save] writes to a file. All of them are made, and
// read back, in memory before the first is written, so out gets a whole save or a part of
// one. [LoadFrom] reads it; as a file, so does [Load].
func SaveTo(ctx context.Context, out io.Writer, w *ecs.World) error {
	files := disk.Memory()
	if err := SaveFS(ctx, files, stream, w); err != nil {
		return err
	}
	f, err := files.Open(stream)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil {
		_, err = io.Copy(out, io.NewSectionReader(f, 0, size))
	}
	if err != nil {
		return fmt.Errorf("persist: save of tick %d: %w", w.Tick(), err)
	}
	return f.Close()
}

// stream is what the file in memory is called, in errors too.
const stream = "stream"

// Load replaces all that w holds by what Save wrote to a file. Register all
// components before; stored ones that are not registered are kept, and saved
// again. What older types wrote is converted, and [raw.World.Converted] tells what
// that changed. A conversion that would lose values is refused until
// [ecs.Component.Dropped] says that it may.
//
// Errors: [ErrSchema] naming the field that does not fit, with [raw.ErrDropped] if its
// values would be lost, [ErrForeign], [ErrNewer], [ErrCorrupt] with the offset. w is then as it was.
func Load(ctx context.Context, file string, w *ecs.World) error {
	files, err := disk.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	return LoadFS(ctx, files, filepath.Base(file), w)
}

// LoadFS replaces all that w holds by what is saved in a file of files, as [Load] does.
func LoadFS(ctx context.Context, files disk.FS, file string, w *ecs.World) error {
	im, name, err := readSave(ctx, files, file, w)
	if err != nil {
		return err
	}
	return im.Fill(w, name)
}

// readSave reads what is saved in a file, whose name in errors it returns. The types of w
// fit it.
func readSave(ctx context.Context, files disk.FS, file string, w *ecs.World) (im *image.Image, name string, err error) {
	r, err := snap.Open(files, file, catalog.SnapshotName)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	if _, err := image.Conversions(r.Manifest.Schema, w); err != nil {
		return nil, "", err
	}
	im, err = r.Load(ctx, nil, true)
	return im, r.Name, err
}

// LoadFrom replaces all that w holds by the save that in has up to its end, as [Load] does
// with a file. The save is in memory until LoadFrom returns; offsets in errors count from
// where it begins, in a file called "stream". in may give any number of bytes: bound what
// comes from strangers with [io.LimitReader].
func LoadFrom(ctx context.Context, in io.Reader, w *ecs.World) error {
	files, err := received(in)
	if err != nil {
		return err
	}
	return LoadFS(ctx, files, stream, w)
}

// received returns files of which stream is what in has.
func received(in io.Reader) (disk.FS, error) {
	files := disk.Memory()
	f, err := files.Create(stream)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.NewOffsetWriter(f, 0), in); err != nil {
		return nil, fmt.Errorf("persist: load: %w", err)
	}
	return files, f.Close()
}
