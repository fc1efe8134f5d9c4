package persist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// FileOptions say where a file is, and how a world is saved. The zero value is useful.
type FileOptions struct {
	// Files is the file system for the file. The file's name is relative to the root of Files. The
	// default is the file system of the operating system.
	Files disk.FS

	// Compress makes the file smaller with Zstandard, page by page. A page that does not shrink by
	// an eighth stays uncompressed. The loaded world and its digest are the same, and single pages
	// can still be read alone. Program versions without compressed saves refuse such a file with
	// [ErrNewer]. By default, saves are not compressed.
	//
	// Sorted data, small numbers and text shrink to between an eighth and a quarter; random floats
	// do not shrink. Without a disk limit, saving takes about 1.5 times as long, and loading 2 to 3
	// times. docs/BENCHMARKS.md has figures.
	Compress bool

	// Build adds a description of the program and the machine to the file. ecsdump info shows it.
	// Then the saves of equal worlds are equal only if the same program wrote them.
	Build bool
}

// onlyOptions returns the only element of the slice said. If said is empty, it returns the zero
// FileOptions.
func onlyOptions(said []FileOptions) (o FileOptions) {
	if len(said) > 1 {
		panic("persist: more than one FileOptions for a file; combine them")
	}
	for _, o = range said {
	}
	return o
}

// Save writes the present state of w to a file, for example a save game. The file is complete and
// durable before it gets its name, so a failed save never harms an earlier file. Saving an
// unchanged world twice gives the same bytes. At most one FileOptions is allowed.
//
// A save makes two passes over the world, one of them for the digest, and needs memory for about 50
// MB of encoded rows. One goroutine per processor encodes rows, while other rows are written and
// synced.
//
// Concurrent saves to one file do not disturb each other, even from different processes: the last
// complete save stays. If file is a symbolic link, Save replaces the target of the link, or creates
// the target. In [FileOptions.Files], Save follows no links and returns [ErrIrregular]. The new
// file has the permissions of the file it replaces, or 0600. Its owner is the user of the process.
//
// If file is a directory, a pipe or a device, Save writes nothing and returns an error wrapping
// [ErrIrregular]. [SaveTo] writes to pipes and devices.
func Save(ctx context.Context, file string, w *ecs.World, o ...FileOptions) error {
	options := onlyOptions(o)
	return inDirectoryOf(file, options.Files, func(files disk.FS, name string) error {
		if err := savable(files, name); err != nil {
			return err
		}
		s := snap.Saved(w)
		if options.Compress {
			s.Compress()
		}
		if options.Build {
			s.Manifest.SetBuild(build.Here())
		}
		_, err := s.Create(ctx, files, name)
		return err
	})
}

// SaveBehind saves the present state of w as [Save] does, but does not wait for the disk. It copies
// the world with [ecs.World.Clone], and a goroutine saves the copy, so the program may change w at
// once. The channel gets one result: nil when the file is durable, or the error of Save. It has
// room for the result, so the program need not receive it.
//
//	saved := persist.SaveBehind(ctx, "game1.save", w)
//	…                                        the game continues
//	if err := <-saved; err != nil { … }
//
// If several calls save to one file, they write it in the order of the calls. Calls of Save are not
// part of this order. If the process ends before the result, the earlier file stays.
//
// Cost: that of Clone in the caller, and memory for a second world until the file is written.
func SaveBehind(ctx context.Context, file string, w *ecs.World, o ...FileOptions) <-chan error {
	options, saved := onlyOptions(o), w.Clone()
	done, written := make(chan error, 1), make(chan struct{})
	f := queueOf(options.Files, file)
	older := savingBehind.add(f, written)
	go func() {
		if older != nil {
			<-older
		}
		err := Save(ctx, file, saved, options)
		savingBehind.remove(f, written)
		done <- err
	}()
	return done
}

// savingBehind orders the saves of SaveBehind.
var savingBehind saveQueue

// A saveQueue orders the saves to each file.
type saveQueue struct {
	mu sync.Mutex
	// The channel of a file is closed when its newest save is written.
	last map[string]chan struct{}
}

// queueOf returns the key of a file in a saveQueue. Two files with the same name in different
// [FileOptions.Files] have the same key. Their saves then wait for each other, which is correct but
// slower.
func queueOf(files disk.FS, file string) string {
	if files != nil {
		return "in " + path.Clean(file)
	}
	if target, err := catalog.Follow(file); err == nil {
		file = target
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return file
}

// add registers a save to the file f; the channel written is closed when that save ends. add
// returns the channel of the previous save, or nil.
func (q *saveQueue) add(f string, written chan struct{}) (older chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		q.last = map[string]chan struct{}{}
	}
	older, q.last[f] = q.last[f], written
	return older
}

// remove ends a save.
func (q *saveQueue) remove(f string, written chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last[f] == written {
		delete(q.last, f)
	}
	close(written)
}

// inDirectoryOf opens the directory of a file, and calls f with the directory and the file's name
// there. It follows symbolic links. If the parameter in is not nil, it opens nothing, and calls f
// with the file system in and the whole name.
func inDirectoryOf(file string, in disk.FS, f func(files disk.FS, name string) error) error {
	if in != nil {
		return f(in, file)
	}
	file, err := catalog.Follow(file)
	if err != nil {
		return err
	}
	dir := filepath.Dir(file)
	files, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer files.Close()
	err = f(files, filepath.Base(file))
	about := func(kind error) bool { return errors.Is(err, kind) }
	if slices.ContainsFunc([]error{fs.ErrNotExist, fs.ErrPermission, ErrForeign, ErrCorrupt}, about) && dir != "." {
		return fmt.Errorf("%w (in %s)", err, dir) // The error names the file in dir.
	}
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

// kindOf describes an irregular file, and says what to do instead.
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

// Load replaces the contents of w with a file that Save wrote. Register all components before Load.
// Stored components that are not registered are kept, and saved again. Older types are converted,
// and [raw.World.Converted] lists the changes. A conversion that would lose values is refused
// unless [ecs.Component.Dropped] allows it.
//
// If Load fails, w is unchanged. It returns [fs.ErrNotExist] or [fs.ErrPermission] if the file
// cannot be opened. [ErrSchema] names all fields that do not fit, and what to do for each. It wraps
// [raw.ErrDropped] if values would only be lost. [layout.ErrIntSize] reports an int that does not
// fit into 32 bits. Other errors: [ErrForeign], [ErrNewer], and [ErrCorrupt] with the offset.
func Load(ctx context.Context, file string, w *ecs.World, o ...FileOptions) error {
	return inDirectoryOf(file, onlyOptions(o).Files, func(files disk.FS, name string) error {
		im, name, err := readSave(ctx, files, name, w)
		if err != nil {
			return err
		}
		return im.Fill(w, name)
	})
}

// readSave reads a saved file, and checks that the types of w fit. name is the file's name for
// errors.
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
