package persist

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// watchPeriod is how often a store looks for its snapshot files while ticks are synced.
const watchPeriod = time.Second

// A watch detects that snapshot files of an open store were removed or truncated. The state is then
// still in memory, so the store can write another snapshot.
//
// The watch reads the directory without holding the lock, while the list of expected files may
// change. The store adds a file to the list after it has published the file, and drops it from the
// list before it deletes the file. So a file that is in the list before and after the read must be
// in the directory.
type watch struct {
	mu       sync.Mutex
	expected map[uint32]int64 // The sizes of the files that the journal's note lists, by number.
	lost     []uint32         // Numbers of files that are missing and not replaced, ascending.
	looked   time.Time        // When the directory was last read.
}

// expect replaces the files that the watch looks for.
func (w *watch) expect(sizes map[uint32]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expected = sizes
	for _, n := range w.lost {
		delete(sizes, n)
	}
}

// lookSometimes reads the directory unless the watch has read it within the last second.
func (w *watch) lookSometimes(files disk.FS) {
	w.mu.Lock()
	due := time.Since(w.looked) >= watchPeriod
	w.mu.Unlock()
	if due {
		w.read(files)
	}
}

// look reads the directory. It returns the numbers of the files that are missing and not replaced.
func (w *watch) look(files disk.FS) []uint32 {
	w.read(files)
	return w.missing()
}

// missing returns the files that earlier reads of the directory found missing, unless they were
// replaced.
func (w *watch) missing() []uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lost)
}

// read compares the directory with the expected files. If the directory cannot be read, the next
// call tries again.
func (w *watch) read(files disk.FS) {
	w.mu.Lock()
	before := maps.Clone(w.expected)
	w.mu.Unlock()
	if len(before) == 0 {
		return
	}
	entries, err := files.ReadDir(catalog.SnapshotDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	there := make(map[string]int64, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			there[catalog.SnapshotDir+"/"+e.Name()] = info.Size()
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = time.Now()
	for n, size := range w.expected {
		if _, ok := before[n]; !ok {
			continue
		}
		if found, ok := there[catalog.SnapshotName(n)]; !ok || found != size {
			delete(w.expected, n)
			w.lost = append(w.lost, n)
		}
	}
	slices.Sort(w.lost)
}

// replaced removes the files with these numbers from the list of lost files, because a new snapshot
// replaces them.
func (w *watch) replaced(numbers []uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = slices.DeleteFunc(w.lost, func(n uint32) bool { return slices.Contains(numbers, n) })
}
