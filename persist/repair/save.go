package repair

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// SaveStore creates a new store at dir with a state as its first one. The new store has
// no history: ticks, marks and slots of the old store are left out. Nothing may exist at dir.
func SaveStore(ctx context.Context, of *inspect.Image, dir string) error {
	im := of.Internal()
	from := catalog.New(nil)
	// Read never fails.
	_, _ = rand.Read(from.Log.World[:])
	r := newRewrite(from, nil, nil)
	return r.store(dir, func() error {
		if err := r.begin(ctx, im); err != nil {
			return err
		}
		return r.end(ctx, im.ID.Seq)
	})
}

// SaveImage writes im to a new file, as persist.Save writes a world. The file must not exist.
func SaveImage(ctx context.Context, im *inspect.Image, file string) error {
	_, err := saveImage(ctx, im.Internal(), file, false)
	return err
}

// saveImage is SaveImage with optional compression. It returns the size of the file.
func saveImage(ctx context.Context, im *image.Image, file string, compress bool) (size int64, err error) {
	if err := checkUnused(file); err != nil {
		return 0, err
	}
	err = inDirectory(filepath.Dir(filepath.Clean(file)), func(files disk.FS) error {
		s := snap.SavedImage(im)
		// Clear the ID of the record: a save belongs to no journal.
		s.Manifest.ID = journal.ID{}
		if compress {
			s.Compress()
		}
		info, err := s.Create(ctx, files, filepath.Base(file))
		size = info.Size
		return err
	})
	return size, err
}

// checkUnused returns an error if a file or directory exists at path.
func checkUnused(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("persist: %w: %s; give a name that is not in use", fs.ErrExist, path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// inDirectory calls f with the files in the given directory.
func inDirectory(dir string, f func(files disk.FS) error) error {
	files, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	return f(files)
}
