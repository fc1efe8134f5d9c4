// Package archive packs the files of a store into one zip file, to download it from a browser or to
// attach it to a report.
//
// Store.BackupTo writes a store to a zip file. [Read] reads the zip file into a file system in
// memory, in which package inspect and persist.Follow can open the store.
//
// Any program that knows zip files can unpack an archive. The result is the directory of a store.
package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// maxName is the maximum length of a name, in bytes.
const maxName = 1 << 12

// signature is the start of a zip file that is not empty.
const signature = "PK\x03\x04"

// Is reports whether a file looks like an archive. It reads four bytes.
func Is(file io.ReaderAt) bool {
	b := make([]byte, len(signature))
	n, _ := file.ReadAt(b, 0)
	return string(b[:n]) == signature
}

// Write writes all files and directories in a tree to out. Another program must not change them
// meanwhile.
func Write(ctx context.Context, out io.Writer, files disk.FS) error {
	z := zip.NewWriter(out)
	if err := pack(ctx, z, files, "."); err != nil {
		return err
	}
	return z.Close()
}

// pack adds the files in a directory to z.
func pack(ctx context.Context, z *zip.Writer, files disk.FS, dir string) error {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			if _, err = z.Create(name + "/"); err == nil {
				err = pack(ctx, z, files, name)
			}
		} else {
			err = packFile(z, files, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func packFile(z *zip.Writer, files disk.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	w, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(f, 0, size))
	return err
}

// ErrTooLarge reports that the files of an archive have more bytes than the caller allows.
var ErrTooLarge = errors.New("archive: too large")

// Read unpacks a zip file of size bytes into memory. Cost: the memory of all unpacked files.
//
// Errors:
//   - [ErrTooLarge]: the unpacked files have more than limit bytes together.
//   - [disk.ErrCorrupt]: the bytes are not a zip file, or differ from their checksums.
func Read(ctx context.Context, in io.ReaderAt, size, limit int64) (disk.FS, error) {
	r := &reader{ReaderAt: in}
	files, err := unpack(ctx, r, size, limit)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrTooLarge):
		return files, err
	case r.err != nil:
		return nil, r.err
	}
	return nil, fmt.Errorf("archive: %w: %w", disk.ErrCorrupt, err)
}

// A reader records the error of a failed read, so that Read can tell it from a damaged archive.
type reader struct {
	io.ReaderAt
	err error
}

func (r *reader) ReadAt(b []byte, offset int64) (int, error) {
	if offset < 0 { // The archive has a wrong offset.
		return 0, io.ErrUnexpectedEOF
	}
	n, err := r.ReaderAt.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func unpack(ctx context.Context, in io.ReaderAt, size, limit int64) (disk.FS, error) {
	z, err := zip.NewReader(in, size)
	if err != nil {
		return nil, err
	}
	files, left := disk.Memory(), limit
	for _, entry := range z.File {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir := strings.HasSuffix(entry.Name, "/")
		name := strings.TrimSuffix(entry.Name, "/")
		if !fs.ValidPath(name) || len(name) > maxName {
			return nil, fmt.Errorf("the name %.100q: %w", name, fs.ErrInvalid)
		}
		if dir {
			err = makeDirs(files, name)
		} else {
			left, err = unpackFile(files, entry, left)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// makeDirs creates a directory and its parents, if they are missing.
func makeDirs(files disk.FS, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeDirs(files, path.Dir(dir)); err != nil {
		return err
	}
	if err := files.Mkdir(dir); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// unpackFile unpacks a file of at most left bytes. It returns how many bytes are left for the other
// files.
func unpackFile(files disk.FS, entry *zip.File, left int64) (int64, error) {
	if err := makeDirs(files, path.Dir(entry.Name)); err != nil {
		return left, err
	}
	r, err := entry.Open()
	if err != nil {
		return left, err
	}
	defer r.Close()
	f, err := files.Create(entry.Name)
	if err != nil {
		return left, err
	}
	defer f.Close()
	// The size in the header may be wrong, so count the bytes.
	n, err := io.Copy(io.NewOffsetWriter(f, 0), io.LimitReader(r, left+1))
	if n > left {
		return 0, ErrTooLarge
	}
	return left - n, err
}
