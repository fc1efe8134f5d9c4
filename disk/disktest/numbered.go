package disktest

import (
	"errors"
	"io/fs"
	"strconv"
	"sync"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/flat"
)

// Numbered returns a device that stores its files in the root of fsys, with decimal names. As in a
// browser, a file can be open only once, and Sync also makes the name of the file durable.
func Numbered(fsys disk.FS) flat.Device { return &numbered{fsys: fsys, open: map[uint64]bool{}} }

type numbered struct {
	fsys disk.FS
	mu   sync.Mutex
	open map[uint64]bool
}

var errOpenTwice = errors.New("disktest: a file of the device is open")

func (d *numbered) Files() (numbers []uint64, err error) {
	entries, err := d.fsys.ReadDir(".")
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, err
}

func (d *numbered) Open(number uint64) (flat.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[number] {
		return nil, errOpenTwice
	}
	name := strconv.FormatUint(number, 10)
	f, err := d.fsys.OpenWrite(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = d.fsys.Create(name)
	}
	if err != nil {
		return nil, err
	}
	d.open[number] = true
	return &numberedFile{f, d, number}, nil
}

func (d *numbered) Remove(number uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[number] {
		return errOpenTwice
	}
	err := d.fsys.Remove(strconv.FormatUint(number, 10))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *numbered) Sizes(numbers []uint64) ([]int64, error) {
	entries, err := d.fsys.ReadDir(".")
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, len(numbers))
	for i, number := range numbers {
		sizes[i] = -1
		for _, e := range entries {
			if e.Name() != strconv.FormatUint(number, 10) {
				continue
			}
			info, err := e.Info()
			if err != nil {
				return nil, err
			}
			sizes[i] = info.Size()
		}
	}
	return sizes, nil
}

func (d *numbered) Close() error { return nil }

type numberedFile struct {
	disk.File
	d      *numbered
	number uint64
}

func (f *numberedFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	return f.d.fsys.SyncDir(".")
}

func (f *numberedFile) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	delete(f.d.open, f.number)
	return f.File.Close()
}
