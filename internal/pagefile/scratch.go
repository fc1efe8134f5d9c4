package pagefile

import (
	"io"
	"os"

	"github.com/stet-ecs/stet/internal/disk"
)

// create creates the file called name and returns what bbolt is to write to. It
// needs a file of the operating system: if dir has none, it gets a stand-in, whose
// bytes deliver copies.
func (w *Writer) create(dir disk.FS, name string) (*os.File, error) {
	f, err := dir.Create(name)
	if err != nil {
		return nil, err
	}
	if file := disk.OSFile(f); file != nil {
		return file, nil
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	scratch, err := os.CreateTemp("", "pagefile")
	if err != nil {
		return nil, err
	}
	w.scratch = scratch.Name()
	return scratch, nil
}

// deliver makes f hold the first length bytes of what bbolt wrote, after it
// closed its file.
func (w *Writer) deliver(f disk.File, length int64) error {
	if file := disk.OSFile(f); file != nil {
		return file.Truncate(length)
	}
	scratch, err := os.Open(w.scratch)
	if err != nil {
		return err
	}
	defer scratch.Close()
	_, err = io.Copy(io.NewOffsetWriter(f, 0), io.NewSectionReader(scratch, 0, length))
	return err
}

// removeScratch removes the stand-in, if there is one.
func (w *Writer) removeScratch() error {
	if w.scratch == "" {
		return nil
	}
	name := w.scratch
	w.scratch = ""
	return os.Remove(name)
}
