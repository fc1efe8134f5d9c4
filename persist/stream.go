package persist

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
)

// stream is what the file is called that a save from a reader is, in errors too.
const stream = "stream"

// SaveTo writes w to out: the bytes that [Save] writes to a file. All of them are made, and
// read back, in memory before the first is written, so out gets a whole save or a part of
// one. [LoadFrom] reads it; as a file, so does [Load].
func SaveTo(ctx context.Context, out io.Writer, w *ecs.World, o ...SaveOptions) error {
	files := disk.Memory()
	if err := SaveFS(ctx, files, stream, w, o...); err != nil {
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

// LoadFrom replaces all that w holds by the save that in has from where it stands up to its
// end, as [Load] does with a file. What can be read at any place, as it is an [io.ReaderAt]
// and an [io.Seeker], is read there, by as many goroutines as the program has processors,
// and stands at its end then. All else is copied into memory first:
//
//	LoadFrom(ctx, file, w)                               an open *os.File
//	LoadFrom(ctx, bytes.NewReader(data), w)              bytes in memory
//	LoadFrom(ctx, io.NewSectionReader(r, 0, size), w)    any io.ReaderAt
//	LoadFrom(ctx, response.Body, w)                      is copied
//
// Offsets in errors count from where the save begins, in a file called "stream". in may give
// any number of bytes: bound what comes from strangers with [io.LimitReader]. The memory
// that it takes in w is at most about 1000 times that.
func LoadFrom(ctx context.Context, in io.Reader, w *ecs.World) error {
	files, err := received(in)
	if err != nil {
		return err
	}
	return LoadFS(ctx, files, stream, w)
}

// received returns files of which stream is what in has.
func received(in io.Reader) (disk.FS, error) {
	if placed := placedIn(in); placed != nil {
		return placedFS{disk.Memory(), placed}, nil
	}
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

// placedIn returns what in has from where it stands, if that can be read at any place; nil:
// only byte after byte, as from a pipe or a terminal, which have no length.
func placedIn(in io.Reader) *io.SectionReader {
	r, ok := in.(interface {
		io.ReaderAt
		io.Seeker
	})
	if !ok {
		return nil
	}
	begin, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	end, err := r.Seek(0, io.SeekEnd)
	if err != nil || end <= begin {
		return nil
	}
	return io.NewSectionReader(r, begin, end-begin)
}

// A placedFS is a tree of one file, which is only read, in some reader.
type placedFS struct {
	disk.FS // Without files.
	in      *io.SectionReader
}

// Open opens the file called stream.
func (p placedFS) Open(name string) (disk.File, error) {
	if name != stream {
		return p.FS.Open(name)
	}
	return placedFile{p.in}, nil
}

// A placedFile is the file of a placedFS. Closing it does nothing: the reader is another's.
type placedFile struct{ in *io.SectionReader }

func (f placedFile) ReadAt(b []byte, offset int64) (int, error) { return f.in.ReadAt(b, offset) }
func (f placedFile) Size() (int64, error)                       { return f.in.Size(), nil }
func (f placedFile) Named(name string) (bool, error)            { return name == stream, nil }
func (f placedFile) Sync() error                                { return nil }
func (f placedFile) Close() error                               { return nil }

// WriteAt fails.
func (f placedFile) WriteAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: stream, Err: fs.ErrPermission}
}
