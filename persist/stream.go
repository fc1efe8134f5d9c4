package persist

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
)

// stream is the file name of a save that is read from a reader.
const stream = "stream"

// SaveTo writes w to out: the same bytes that [Save] writes to a file. SaveTo creates the whole
// save in memory and reads it back before it writes the first byte. So out gets a complete save, or
// a part of one if a write fails. [LoadFrom] reads it; if it is stored as a file, [Load] reads it
// too.
func SaveTo(ctx context.Context, out io.Writer, w *ecs.World, o ...FileOptions) error {
	files, options := disk.Memory(), onlyOptions(o)
	options.Files = files
	if err := Save(ctx, stream, w, options); err != nil {
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

// LoadFrom replaces the contents of w with a save, as [Load] does with a file. It reads the save
// from the present position of the reader up to the end. If the reader is an [io.ReaderAt] and an
// [io.Seeker], one goroutine per processor reads from it directly, and the reader is at its end
// afterwards. Any other reader is copied into memory first:
//
//	LoadFrom(ctx, file, w)                               an open *os.File
//	LoadFrom(ctx, bytes.NewReader(data), w)              bytes in memory
//	LoadFrom(ctx, io.NewSectionReader(r, 0, size), w)    any io.ReaderAt
//	LoadFrom(ctx, response.Body, w)                      is copied
//
// Offsets in errors count from the beginning of the save, in a file called "stream". LoadFrom reads
// all bytes: limit untrusted input with [io.LimitReader]. The memory that w needs is at most about
// 1000 times the size of the input.
func LoadFrom(ctx context.Context, in io.Reader, w *ecs.World) error {
	files, err := received(in)
	if err != nil {
		return err
	}
	return Load(ctx, stream, w, FileOptions{Files: files})
}

// received returns a file system with one file, called stream. The file has all bytes of the given
// reader.
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

// placedIn returns the unread bytes of a reader as a section, if the reader allows random access.
// It returns nil for sequential readers, for example pipes and terminals, which have no length.
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

// A placedFS is a file system with one read-only file, whose bytes a reader has.
type placedFS struct {
	disk.FS // An empty file system.
	in      *io.SectionReader
}

// Open opens the file called stream.
func (p placedFS) Open(name string) (disk.File, error) {
	if name != stream {
		return p.FS.Open(name)
	}
	return placedFile{p.in}, nil
}

// A placedFile is the file of a placedFS. Close does nothing, because the caller owns the reader.
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
