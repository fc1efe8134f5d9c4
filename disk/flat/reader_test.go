package flat_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/disk/flat"
	"github.com/stet-ecs/stet/internal/deep"
)

// A readDevice reads the files of a simulated device. It calls meanwhile() before and during each
// read, so that the writer can write then.
type readDevice struct {
	mem       *disktest.Mem
	meanwhile func()
	written   bool
}

func (d *readDevice) Files() ([]uint64, error) {
	d.meanwhile()
	return disktest.Numbered(d.mem).Files()
}

func (d *readDevice) ReadFiles(numbers ...uint64) (all [][]byte, err error) {
	for _, number := range numbers {
		b, err := d.readFile(number)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func (d *readDevice) readFile(number uint64) (b []byte, err error) {
	d.meanwhile()
	for range 3 {
		name := fmt.Sprint(number)
		if !slices.Contains(d.mem.Files(), name) {
			return nil, fs.ErrNotExist
		}
		now := d.mem.Bytes(name)
		if len(now) > len(b) {
			// Read about half of the new bytes. Before the other half is read, meanwhile() can
			// change it.
			b = append(b, now[len(b):min(len(now), len(b)+1+len(now)/2)]...)
		}
		d.meanwhile()
	}
	return b, nil
}

func (d *readDevice) Open(number uint64) (flat.File, error) {
	d.meanwhile()
	if !slices.Contains(d.mem.Files(), fmt.Sprint(number)) {
		return nil, fs.ErrNotExist
	}
	return readFile{d, number}, nil
}

func (d *readDevice) Sizes(numbers []uint64) ([]int64, error) {
	return disktest.Numbered(d.mem).Sizes(numbers)
}

func (d *readDevice) Written() (bool, error) { return d.written, nil }
func (d *readDevice) Close() error           { return nil }

type readFile struct {
	d      *readDevice
	number uint64
}

func (f readFile) ReadAt(b []byte, at int64) (int, error) {
	all, err := f.d.readFile(f.number)
	if err != nil {
		return 0, err
	}
	return strings.NewReader(string(all)).ReadAt(b, at)
}

func (f readFile) Size() (int64, error) {
	all, err := f.d.readFile(f.number)
	return int64(len(all)), err
}

func (f readFile) WriteAt([]byte, int64) (int, error) { panic("a write of a reader") }
func (f readFile) Sync() error                        { panic("a sync of a reader") }
func (f readFile) Close() error                       { return nil }

// Each ReadDir returns the names of a single point in time. Meanwhile, the writer creates, renames
// and removes files, begins new lists, and is opened again.
func TestOpenRead_WhileWritten(t *testing.T) {
	t.Parallel()
	rewritten := 0
	for seed := range uint64(deep.Or(30, 3_000)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mem := disktest.New()
		tree := open(t, mem)
		// The length of a file's contents identifies the contents. There is one state for each
		// change.
		states, length := []map[string]int64{{}}, 0
		// The names are long, so the writer soon begins a new list.
		name := func() string { return fmt.Sprint(rng.IntN(8), strings.Repeat("x", 2500)) }
		step := func() {
			state, from, to := maps.Clone(states[len(states)-1]), name(), name()
			_, isFrom := state[from]
			switch rng.IntN(10) {
			case 0, 1:
				if !isFrom {
					return
				}
				delete(state, from)
				require.NoError(t, tree.Remove(from))
				states = append(states, state)
			case 2, 3, 4:
				if !isFrom || from == to {
					return
				}
				state[to] = state[from]
				delete(state, from)
				require.NoError(t, tree.Rename(from, to))
				states = append(states, state)
			case 5:
				require.NoError(t, tree.SyncDir("."))
			case 6:
				if rng.IntN(5) == 0 {
					require.NoError(t, tree.Close())
					tree = open(t, mem)
				}
			default:
				if isFrom {
					return
				}
				length++
				require.NoError(t, write(tree, from, strings.Repeat("y", length), false))
				state[from] = int64(length)
				states = append(states, state)
			}
		}
		calls := 0
		d := &readDevice{mem: mem, meanwhile: func() {
			if calls++; calls < 8 { // The writer pauses after some calls, so that ReadDir ends.
				for range rng.IntN(3) * rng.IntN(3) * rng.IntN(3) {
					step()
				}
			}
		}}
		reader, err := flat.OpenRead(d)
		require.NoError(t, err, "seed %d", seed)
		for range 60 {
			calls = 0
			first := len(states) - 1
			entries, err := reader.ReadDir(".")
			require.NoError(t, err, "seed %d", seed)
			seen := map[string]int64{}
			calls = 8
			for _, e := range entries {
				info, err := e.Info()
				if seen[e.Name()] = -1; err == nil { // Info fails if the file was removed.
					seen[e.Name()] = info.Size()
				} else {
					require.ErrorIs(t, err, fs.ErrNotExist, "seed %d", seed)
				}
			}
			isState := func(s map[string]int64) bool {
				return maps.EqualFunc(s, seen, func(a, b int64) bool { return a == b || b == -1 })
			}
			if !slices.ContainsFunc(states[first:], isState) {
				t.Fatalf("seed %d: the reader sees none of states %d to %d", seed, first, len(states)-1)
			}
		}
		if strings.HasPrefix(string(mem.Bytes("0")), "stetname") {
			rewritten++
		}
		require.NoError(t, reader.Close())
		_, err = reader.ReadDir(".")
		require.ErrorIs(t, err, fs.ErrClosed)
		require.NoError(t, tree.Close(), "the reader disturbs the writer")
	}
	require.NotZero(t, rewritten)
}

// A reader changes nothing, and its files follow the writer.
func TestOpenRead_ReadsOnly(t *testing.T) {
	mem := disktest.New()
	d := &readDevice{mem: mem, meanwhile: func() {}}
	reader, err := flat.OpenRead(d)
	require.NoError(t, err)
	tree := open(t, mem)
	require.NoError(t, tree.Mkdir("d"))
	require.NoError(t, write(tree, "d/a", "text", false))
	temp, err := disk.CreateTemp(tree, "b")
	require.NoError(t, err)
	files := mem.Files()

	f, err := reader.Open("d/a")
	require.NoError(t, err)
	require.NoError(t, write(tree, "d/a", "longer text", false))
	require.Equal(t, names(t, tree), names(t, reader))
	size, err := f.Size()
	require.NoError(t, err)
	require.EqualValues(t, len("longer text"), size)
	require.NoError(t, tree.Rename("d/a", "d/c"))
	for name, want := range map[string]bool{"d/a": false, "d/c": true} {
		named, err := f.Named(name)
		require.NoError(t, err)
		require.Equal(t, want, named)
	}
	require.NoError(t, tree.Rename("d/c", "d/a"))

	_, err = f.WriteAt([]byte("text"), 0)
	require.ErrorIs(t, err, fs.ErrPermission)
	_, createErr := reader.Create("c")
	_, writeErr := reader.OpenWrite("d/a")
	_, lockErr := reader.Lock("d/a")
	for _, err := range []error{
		createErr, writeErr, lockErr, f.Sync(), reader.Rename("d/a", "c"), reader.Publish("d/a", "c"),
		reader.Remove("d/a"), reader.Mkdir("e"), reader.SyncDir("."),
	} {
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	for _, written := range []bool{false, true} {
		d.written = written
		locked, err := reader.Locked("d/a")
		require.NoError(t, err)
		require.Equal(t, written, locked)
	}
	locked, err := reader.Locked("missing")
	require.NoError(t, err)
	require.False(t, locked)
	require.Equal(t, files, mem.Files())

	require.NoError(t, tree.Remove("d/a"))
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = reader.Open("d/a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, f.Close())
	temp.Discard()
}

// OpenRead of a damaged list returns all durable names, or damage.
func TestOpenRead_DamagedNames(t *testing.T) {
	t.Parallel()
	mem := disktest.New()
	tree := open(t, mem)
	for i := range 6 {
		require.NoError(t, write(tree, fmt.Sprint("a", i), "text", true))
	}
	require.NoError(t, tree.SyncDir("."))
	want := names(t, tree)
	damaged := 0
	for at := range 300 {
		c := mem.Clone()
		b := slices.Clone(c.Bytes("1"))
		b[at] ^= 1
		c.Put("1", b)
		reader, err := flat.OpenRead(&readDevice{mem: c, meanwhile: func() {}})
		if err != nil {
			_, ok := errors.AsType[*disk.DamageError](err)
			require.True(t, ok, "%v", err)
			damaged++
			continue
		}
		require.Equal(t, want, names(t, reader))
	}
	require.Greater(t, damaged, 100)
}

// No two files get the same number.
func TestCreate_FileNumberIsUnused(t *testing.T) {
	mem := disktest.New()
	tree := open(t, mem)
	seen := map[string]bool{}
	for i := range 200 {
		require.NoError(t, write(tree, "a", strings.Repeat("y", i), true))
		for _, number := range mem.Files() {
			if number > "1" || len(number) > 1 {
				require.False(t, seen[number], number)
				seen[number] = true
			}
		}
		require.NoError(t, tree.Remove("a"))
		if i%20 == 19 {
			for range 40 { // Fill the list until a new one begins.
				require.NoError(t, tree.Mkdir(strings.Repeat("x", 3000)))
				require.NoError(t, tree.Remove(strings.Repeat("x", 3000)))
			}
		}
		if i%3 == 0 {
			require.NoError(t, tree.Close())
			tree = open(t, mem)
		}
	}
}
