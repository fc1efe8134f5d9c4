package dump

import (
	"errors"
	"io"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/term"
)

// standardInput is what names it in the place of a store: a save, as a pipe brings it.
const standardInput = "-"

// maxInput is how many bytes of standard input are read: they lie in memory.
const maxInput = 1 << 30

// input returns the files of which the one called [standardInput] is what standard input
// has. It is read once, whoever asks.
func (a *app) input() (disk.FS, error) {
	if a.piped == nil {
		files, err := filesOf(a.stdin, maxInput)
		if err != nil {
			return nil, err
		}
		a.piped = files
	}
	return a.piped, nil
}

// filesOf returns files with what in has, which is limit bytes at most.
func filesOf(in io.Reader, limit int64) (disk.FS, error) {
	files := disk.Memory()
	f, err := files.Create(standardInput)
	if err != nil {
		return nil, err
	}
	// One byte more than the limit is read, which tells that there are more.
	n, err := io.Copy(io.NewOffsetWriter(f, 0), io.LimitReader(in, limit+1))
	if n > limit {
		return nil, fail(exitUsage, "", "standard input has more than %s, which is what is kept in memory: give the name of a file", term.Size(limit))
	}
	return files, errors.Join(err, f.Close())
}
