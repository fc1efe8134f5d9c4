package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// SaveOptions change how a world is saved. The zero value is useful.
type SaveOptions struct {
	// Compress makes the file smaller, by Zstandard, page by page: a page that does not
	// shrink by an eighth stays as it is. What is loaded, and its digest, are the same, and
	// single pages can still be read alone. Programs from before there were compressed
	// saves refuse such a file with [ErrNewer]. Default: not compressed.
	//
	// What comes in an order, numbers that are small and texts take an eighth to a quarter,
	// floats at random all of their bytes. Saving takes about 1.5 times as long, loading 2 to
	// 3 times, where the disk is no limit; docs/SLOTS.md has figures.
	Compress bool

	// Build says in the file which program on which machine wrote it, so that two saves of a tick that
	// differ tell whether their machines do: ecsdump info shows it. Equal worlds then have equal
	// saves only if one program wrote both.
	Build bool
}

// the returns what a program said of a save: nothing or one thing.
func the(said []SaveOptions) (o SaveOptions) {
	if len(said) > 1 {
		panic("persist: two SaveOptions for one save; say all in one")
	}
	for _, o = range said {
	}
	return o
}

// Save writes w, as it is, to a file: a save game. The file is complete and
// durable before it takes the name, so a save that fails never harms the one
// before. Saving an unchanged world twice gives the same bytes. What [SaveOptions] say,
// one at most, holds for it.
//
// It costs two passes over the world, one for its digest, and needs memory for about
// 50 MB of encoded rows. They are encoded by as many goroutines as the program has
// processors, while others are written and synced.
//
// Several savers of one file, also in other processes, do not disturb each other: the last complete save
// stays. A symbolic link is followed, and the file that it leads to is replaced, in its own directory. If
// that file does not exist, it is created. The new file has the permissions of the file it replaces, or
// 0600. Its owner is the process.
//
// It returns an error wrapping [ErrIrregular] before it writes anything if file is a directory, a pipe or a device.
// [SaveTo] writes to those.
func Save(ctx context.Context, file string, w *ecs.World, o ...SaveOptions) error {
	return inDirectoryOf(file, func(files disk.FS, name string) error { return SaveFS(ctx, files, name, w, o...) })
}

// inDirectoryOf calls f with the directory of a file and the file's name in it. It follows symbolic links.
func inDirectoryOf(file string, f func(files disk.FS, name string) error) error {
	file, err := catalog.Follow(file)
	if err != nil {
		return err
	}
	files, err := disk.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer files.Close()
	return f(files, filepath.Base(file))
}

// SaveFS writes w to a file of files, as [Save] does. It does not follow symbolic links: a link is
// [ErrIrregular].
func SaveFS(ctx context.Context, files disk.FS, file string, w *ecs.World, o ...SaveOptions) error {
	if err := savable(files, file); err != nil {
		return err
	}
	s := snap.Saved(w)
	said := the(o)
	s.Manifest.Compressed = said.Compress
	if said.Build {
		s.Manifest.SetBuild(build.Here())
	}
	_, err := s.Create(ctx, files, file)
	return err
}

// savable returns an error if file is something that a save must not replace.
func savable(files disk.FS, file string) error {
	entries, _ := files.ReadDir(path.Dir(file)) // A directory may be writable and not readable.
	for _, e := range entries {
		if e.Name() == path.Base(file) && !e.Type().IsRegular() {
			return fmt.Errorf("persist: save: %w: %s is %s", ErrIrregular, file, kindOf(e.Type()))
		}
	}
	return nil
}

// kindOf says in words what is not a regular file, and what to do.
func kindOf(t fs.FileMode) string {
	switch {
	case t.IsDir():
		return "a directory; give the name of a file in it"
	case t&fs.ModeSymlink != 0:
		return "a symbolic link; give the file that it leads to"
	case t&fs.ModeNamedPipe != 0:
		return "a pipe; write to it with SaveTo"
	case t&fs.ModeDevice != 0:
		return "a device; write to it with SaveTo"
	case t&fs.ModeSocket != 0:
		return "a socket; write to a connection with SaveTo"
	}
	return "no file that can be replaced; write to it with SaveTo"
}

// Load replaces all that w holds by what Save wrote to a file. Register all
// components before; stored ones that are not registered are kept, and saved
// again. What older types wrote is converted, and [raw.World.Converted] tells what
// that changed. A conversion that would lose values is refused until
// [ecs.Component.Dropped] says that it may.
//
// Errors: [fs.ErrNotExist] and [fs.ErrPermission] if the file cannot be opened; [ErrSchema] naming the field that
// does not fit, with [raw.ErrDropped] if its values would be lost; [layout.ErrIntSize] for an int that does not fit
// into 32 bits; [ErrForeign], [ErrNewer], [ErrCorrupt] with the offset. w is then as it was.
func Load(ctx context.Context, file string, w *ecs.World) error {
	return inDirectoryOf(file, func(files disk.FS, name string) error { return LoadFS(ctx, files, name, w) })
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
		if _, unopened := errors.AsType[*fs.PathError](err); unopened {
			err = fmt.Errorf("persist: load: %w", err)
		}
		return nil, "", err
	}
	defer r.Close()
	if _, err := image.Conversions(r.Manifest.Schema, w); err != nil {
		return nil, "", err
	}
	im, err = r.Load(ctx, nil, true)
	return im, r.Name, err
}
