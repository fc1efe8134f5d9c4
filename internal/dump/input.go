package dump

import (
	"errors"
	"io"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/term"
)

// standardInput is the argument that names standard input, which contains a save.
const standardInput = "-"

// maxInput is the largest accepted standard input, in bytes. Standard input is read into memory.
const maxInput = 1 << 30

// input reads standard input at the first call. It returns files with the content under the name
// [standardInput].
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

// filesOf reads at most limit bytes from in, and returns files with this content.
func filesOf(in io.Reader, limit int64) (disk.FS, error) {
	files := disk.Memory()
	f, err := files.Create(standardInput)
	if err != nil {
		return nil, err
	}
	// Read one byte more than the limit, to detect longer input.
	n, err := io.Copy(io.NewOffsetWriter(f, 0), io.LimitReader(in, limit+1))
	if n > limit {
		return nil, fail(exitUsage, "", "standard input is larger than %s, the limit for data in memory: give the name of a file", term.Size(limit))
	}
	return files, errors.Join(err, f.Close())
}
