package catalog

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
)

// endlessFiles is a tree in which every file is endless.
type endlessFiles struct {
	disk.FS
	disk.File
	read int64
}

func (e *endlessFiles) Open(string) (disk.File, error) { return e, nil }
func (e *endlessFiles) Close() error                   { return nil }

func (e *endlessFiles) ReadAt(b []byte, offset int64) (int, error) {
	e.read = max(e.read, offset+int64(len(b)))
	return copy(b, strings.Repeat("x", len(b))), nil
}

func TestReadHolder_StopsAtMaxHolder(t *testing.T) {
	files := new(endlessFiles)
	require.Len(t, readHolder(files), maxHolder)
	require.EqualValues(t, maxHolder, files.read)
}

// The text that Acquire writes can be read back completely, even with a long program name.
func TestAcquire_LongName(t *testing.T) {
	name := os.Args[0]
	defer func() { os.Args[0] = name }()
	for _, long := range []string{strings.Repeat("x", 3*maxHolder), strings.Repeat("ł", maxHolder)} {
		os.Args[0] = long
		l, err := Acquire(disk.Memory())
		require.NoError(t, err)
		require.NoError(t, l.Check())
		require.NoError(t, l.Release(true))
	}
}
