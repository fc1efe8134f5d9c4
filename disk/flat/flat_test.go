package flat_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/disk/flat"
	"github.com/stet-ecs/stet/internal/deep"
)

func open(t testing.TB, mem disk.FS) disk.FS {
	t.Helper()
	tree, err := flat.Open(disktest.Numbered(mem))
	require.NoError(t, err)
	return tree
}

// write creates or overwrites a file, and syncs it if sync is true.
func write(tree disk.FS, name, text string, sync bool) error {
	f, err := tree.OpenWrite(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = tree.Create(name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	if sync && err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// directory stands for the contents of a directory.
const directory = disktest.Directory

// names returns all names of a tree, and for each file its contents.
func names(t testing.TB, tree disk.FS) map[string]string {
	t.Helper()
	all, err := disktest.Contents(tree)
	require.NoError(t, err)
	return all
}

// A model predicts the names in a tree. It has the states since the last durable state, oldest
// first.
type model struct {
	states  []map[string]string
	synced  map[string]bool // The contents of these files are durable.
	content int
}

func (m *model) now() map[string]string { return m.states[len(m.states)-1] }

// step makes a random call on the tree and in the model. It returns the error of the tree.
func (m *model) step(rng *rand.Rand, tree disk.FS) error {
	pick := func() string {
		return []string{"a", "b", "c", "d", "d/a", "d/b", "e", "e/a"}[rng.IntN(8)]
	}
	state, from, to := maps.Clone(m.now()), pick(), pick()
	_, isFrom := state[from]
	_, isTo := state[to]
	parent := func(name string) bool { d := path.Dir(name); return d == "." || state[d] == directory }
	var err error
	switch rng.IntN(10) {
	case 0:
		if isFrom || !parent(from) {
			return nil
		}
		err, state[from] = tree.Mkdir(from), directory
	case 1:
		if !isFrom || slices.ContainsFunc(slices.Collect(maps.Keys(state)), func(n string) bool { return strings.HasPrefix(n, from+"/") }) {
			return nil
		}
		err = tree.Remove(from)
		delete(state, from)
	case 2, 3:
		if !isFrom || from == to || !parent(to) || strings.HasPrefix(to, from+"/") || isTo && (state[from] == directory || state[to] == directory) {
			return nil
		}
		err = tree.Rename(from, to)
		for name, content := range m.now() {
			if below, ok := strings.CutPrefix(name, from); ok && (below == "" || below[0] == '/') {
				delete(state, name)
				state[to+below] = content
			}
		}
		delete(state, from)
	case 4:
		if err := tree.SyncDir("."); err != nil {
			return err
		}
		m.states = m.states[len(m.states)-1:]
		return nil
	default:
		if state[from] == directory || !parent(from) {
			return nil
		}
		// All contents have the same length, so a write replaces every byte.
		m.content++
		text, sync := fmt.Sprintf("%08d", m.content), rng.IntN(2) == 0
		err, state[from] = write(tree, from, text, sync), text
		// After a crash, the overwritten file may have the old or the new content.
		for _, s := range m.states {
			if s[from] != "" && s[from] != directory {
				m.synced[s[from]] = false
			}
		}
		m.synced[text] = sync && err == nil
	}
	m.states = append(m.states, state)
	return err
}

// fits reports whether a tree after a crash equals one of the states and has all durable contents.
func (m *model) fits(got map[string]string) bool {
	return slices.ContainsFunc(m.states, func(s map[string]string) bool {
		if len(s) != len(got) {
			return false
		}
		for name, content := range s {
			have, ok := got[name]
			if !ok || (content == directory) != (have == directory) || m.synced[content] && have != content {
				return false
			}
		}
		return true
	})
}

// After a crash, the tree has the names of one of its states since the last SyncDir. Contents that
// were durable before the crash are complete.
func TestOpen_AfterCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(400, 20_000)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		mem := disktest.New()
		m := &model{states: []map[string]string{{}}, synced: map[string]bool{}}
		for range 1 + rng.IntN(3) {
			tree := open(t, mem)
			for range rng.IntN(60) {
				require.NoError(t, m.step(rng, tree), "seed %d", seed)
			}
			require.Equal(t, m.now(), names(t, tree), "seed %d", seed)
			if rng.IntN(2) == 0 {
				mem = mem.Crash()
			} else {
				mem = mem.CrashSeed(rng.Uint64())
			}
			got := names(t, open(t, mem))
			if !m.fits(got) {
				t.Fatalf("seed %d: after a crash: %v\nwant one of %v\ndurable contents: %v", seed, got, m.states, m.synced)
			}
			m.states, m.synced = []map[string]string{got}, map[string]bool{}
		}
	}
}

// noDirSync is a file system whose names become durable late, as in some browsers.
type noDirSync struct{ *disktest.Mem }

func (noDirSync) SyncDir(string) error { return nil }

// If a power cut removes files that are new on the device, all durable names survive. Meanwhile,
// new lists of names begin.
func TestOpen_PowerCutRemovesNewFiles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(60, 3_000)) {
		rng := rand.New(rand.NewPCG(seed, 4))
		mem := disktest.New()
		tree := open(t, noDirSync{mem})
		require.NoError(t, mem.SyncDir(".")) // The lists are old now.
		states := []map[string]bool{{}}
		for range rng.IntN(150) {
			state, name := maps.Clone(states[len(states)-1]), fmt.Sprint(rng.IntN(8), strings.Repeat("x", 2500))
			switch {
			case rng.IntN(6) == 0:
				require.NoError(t, tree.SyncDir("."))
				states = states[len(states)-1:]
				continue
			case state[name]:
				delete(state, name)
				require.NoError(t, tree.Remove(name)) // Remove makes all names durable.
				states = []map[string]bool{state}
			default:
				state[name] = true
				require.NoError(t, write(tree, name, "text", true))
				states = append(states, state)
			}
		}
		got := map[string]bool{}
		for name := range names(t, open(t, noDirSync{mem.CrashSeed(seed)})) {
			got[name] = true
		}
		if !slices.ContainsFunc(states, func(s map[string]bool) bool { return maps.Equal(s, got) }) {
			t.Fatalf("seed %d: %d names, want one of %d states", seed, len(got), len(states))
		}
	}
}

// If a call of the device fails, the call of the tree fails too. Later calls succeed, and no
// durable name or content is lost.
func TestTree_FailedDeviceCall(t *testing.T) {
	t.Parallel()
	failure := errors.New("no space")
	for seed := range uint64(deep.Or(300, 10_000)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		mem := disktest.New()
		m := &model{states: []map[string]string{{}}, synced: map[string]bool{}}
		tree := open(t, mem)
		failed := 0
		for range 80 {
			armed := mem.Calls() + 1 + rng.IntN(4)
			if rng.IntN(4) == 0 {
				mem.Fail(armed, failure)
			}
			before := maps.Clone(m.now())
			if err := m.step(rng, tree); err != nil {
				require.ErrorIs(t, err, failure, "seed %d", seed)
				failed++
				mem.Fail(armed, nil)
				now := names(t, tree)
				if len(now) != len(before) && len(now) != len(m.now()) {
					t.Fatalf("seed %d: %v became %v", seed, before, now)
				}
				// The write has failed, but the file may exist and may have some of the bytes.
				m.states = append(m.states, now)
			}
			mem.Fail(armed, nil)
		}
		require.Equal(t, m.now(), names(t, tree), "seed %d", seed)
		got := names(t, open(t, mem.CrashSeed(seed)))
		require.True(t, m.fits(got), "seed %d, %d failures: %v\nwant one of %v", seed, failed, got, m.states)
	}
}

// A brokenDevice fails to sync a file, or to overwrite its header, when fails() returns true.
type brokenDevice struct {
	flat.Device
	fails func(number uint64) bool
}

type brokenFile struct {
	flat.File
	fails func() bool
}

func (d brokenDevice) Open(number uint64) (flat.File, error) {
	f, err := d.Device.Open(number)
	return brokenFile{f, func() bool { return d.fails(number) }}, err
}

func (f brokenFile) WriteAt(b []byte, at int64) (int, error) {
	if len(b) < 100 && f.fails() {
		return 0, errors.New("broken")
	}
	return f.File.WriteAt(b, at)
}

func (f brokenFile) Sync() error {
	if f.fails() {
		return errors.New("broken")
	}
	return f.File.Sync()
}

// A new list of names cannot be made durable. Then the tree continues with the old list, or SyncDir
// fails.
func TestTree_NewNameListCannotBeSynced(t *testing.T) {
	t.Parallel()
	kept, failed := 0, 0
	for seed := range uint64(deep.Or(50, 5_000)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		mem := disktest.New()
		broken, always := false, rng.IntN(2) == 0
		tree, err := flat.Open(brokenDevice{disktest.Numbered(mem), func(number uint64) bool {
			// The tree begins with list 1, so list 0 is the new list. Its calls fail. If always is
			// false, only half of them fail.
			return number == 0 && broken && (always || rng.IntN(2) == 0)
		}})
		require.NoError(t, err)
		broken = true
		want := map[string]string{}
		for i := range 40 {
			name := fmt.Sprint(i, strings.Repeat("x", 2500))
			require.NoError(t, tree.Mkdir(name))
			want[name] = directory
		}
		if tree.SyncDir(".") != nil {
			failed++
			continue
		}
		kept++
		// Check after a power cut and after a kill.
		for _, after := range []*disktest.Mem{mem.CrashSeed(seed), mem.Clone()} {
			require.True(t, maps.Equal(want, names(t, open(t, after))), "seed %d", seed)
		}
	}
	t.Logf("%d kept, %d failed", kept, failed)
	require.True(t, kept > 5 && failed > 5)
}

// After a bit flip in the list of names, Open either returns one of the last two states, or reports
// damage. If it reports damage, it removes nothing.
func TestOpen_DamagedNames(t *testing.T) {
	t.Parallel()
	mem := disktest.New()
	tree := open(t, mem)
	require.NoError(t, tree.Close())
	tree = open(t, mem)
	require.NoError(t, tree.Mkdir("d"))
	for i := range 6 {
		require.NoError(t, write(tree, fmt.Sprint("d/", i), "text", true))
	}
	require.NoError(t, tree.Rename("d/1", "d/x"))
	require.NoError(t, tree.SyncDir("."))
	want := names(t, tree)
	require.NoError(t, tree.Remove("d/2"))
	last := names(t, tree)
	damaged := 0
	for _, list := range slices.DeleteFunc(mem.Files(), func(name string) bool { return len(name) > 1 || name > "1" }) {
		used := len(bytes.TrimRight(mem.Bytes(list), "\x00"))
		for at := range used + 20 { // Flip bits in 20 of the zeros after the list, too.
			for _, bit := range []byte{1, 0x80} {
				c := mem.Clone()
				b := slices.Clone(c.Bytes(list))
				b[at] ^= bit
				c.Put(list, b)
				files := c.Files()
				again, err := flat.Open(disktest.Numbered(c))
				if err != nil {
					_, ok := errors.AsType[*disk.DamageError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, files, c.Files())
					damaged++
					continue
				}
				got := names(t, again)
				if !maps.Equal(got, want) && !maps.Equal(got, last) {
					t.Fatalf("byte %d of list %s: %v", at, list, got)
				}
			}
		}
	}
	require.Greater(t, damaged, 100)
}

// The list of names stays short, however many names change.
func TestTree_NameListStaysShort(t *testing.T) {
	mem := disktest.New()
	tree := open(t, mem)
	for i := range 20_000 {
		require.NoError(t, write(tree, "a", "text", false))
		require.NoError(t, tree.Rename("a", "b"))
		if i%100 == 0 {
			require.NoError(t, tree.SyncDir("."))
		}
	}
	require.NoError(t, tree.SyncDir("."))
	require.Len(t, mem.Files(), 3) // The two lists, and the file b.
	for _, name := range mem.Files() {
		require.Less(t, len(mem.Bytes(name)), 200<<10)
	}
	require.Equal(t, map[string]string{"b": "text"}, names(t, open(t, mem)))
}

// An open handle keeps the bytes of a removed file. The device loses the file when the removal is
// durable and the last handle is closed.
func TestRemove_OpenFile(t *testing.T) {
	mem := disktest.New()
	tree := open(t, mem)
	require.NoError(t, write(tree, "a", "text", true))
	f, err := tree.Open("a")
	require.NoError(t, err)
	require.NoError(t, tree.Remove("a"))
	require.NoError(t, tree.SyncDir("."))
	b := make([]byte, 4)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
	require.Len(t, mem.Files(), 3) // The two lists, and the removed file.
	require.NoError(t, f.Close())
	require.Len(t, mem.Files(), 2)
}

func TestTree_ClosedReturnsError(t *testing.T) {
	tree := open(t, disktest.New())
	require.NoError(t, tree.Close())
	require.NoError(t, tree.Close())
	_, err := tree.Create("a")
	require.Error(t, err)
	require.Error(t, tree.Mkdir("a"))
	require.Error(t, tree.SyncDir("."))
}

// Open returns a tree or an error for any bytes in the list of names. If it returns a tree, a
// second Open returns the same names.
func FuzzOpen(f *testing.F) {
	mem := disktest.New()
	tree, err := flat.Open(disktest.Numbered(mem))
	require.NoError(f, err)
	require.NoError(f, tree.Mkdir("d"))
	require.NoError(f, write(tree, "d/a", "text", true))
	require.NoError(f, tree.SyncDir("."))
	require.NoError(f, tree.Rename("d", "e"))
	for _, name := range mem.Files() {
		f.Add(mem.Bytes(name))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		mem := disktest.New()
		mem.Put("0", list)
		tree, err := flat.Open(disktest.Numbered(mem))
		if err != nil {
			return
		}
		got := names(t, tree)
		require.Equal(t, got, names(t, open(t, mem)))
	})
}

// Open removes temporary files and directories, because their writer has ended.
func TestOpen_RemovesUnfinishedFiles(t *testing.T) {
	mem := disktest.New()
	tree := open(t, mem)
	require.NoError(t, write(tree, "a", "text", true))
	temp, err := disk.CreateTemp(tree, "b")
	require.NoError(t, err)
	_, err = temp.File.WriteAt([]byte("unfinished"), 0)
	require.NoError(t, err)
	dir := disk.TempName("d")
	require.NoError(t, tree.Mkdir(dir))
	require.NoError(t, write(tree, dir+"/c", "unfinished", true))
	require.NoError(t, tree.SyncDir("."))
	again := open(t, mem.Clone())
	require.Equal(t, map[string]string{"a": "text"}, names(t, again))
}

// A fullDevice is a device on which no file can grow while *d.full is true.
type fullDevice struct {
	flat.Device
	full *bool
}

type fullFile struct {
	flat.File
	full *bool
}

func (d fullDevice) Open(number uint64) (flat.File, error) {
	f, err := d.Device.Open(number)
	return fullFile{f, d.full}, err
}

func (f fullFile) WriteAt(b []byte, at int64) (int, error) {
	if size, err := f.Size(); *f.full && (err != nil || at+int64(len(b)) > size) {
		return 0, syscall.ENOSPC
	}
	return f.File.WriteAt(b, at)
}

// Open and Remove succeed on a full device. Remove frees the space of the file immediately.
func TestRemove_FullDevice(t *testing.T) {
	mem, full := disktest.New(), false
	device := func() flat.Device { return fullDevice{disktest.Numbered(mem), &full} }
	tree, err := flat.Open(device())
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, write(tree, name, "text", true))
	}
	full = true
	require.ErrorIs(t, write(tree, "d", "text", true), syscall.ENOSPC)
	require.NoError(t, tree.Remove("a"))
	require.Len(t, mem.Files(), 5) // The two lists, b, c, and an empty d.
	require.NoError(t, tree.Close())
	tree, err = flat.Open(device())
	require.NoError(t, err)
	require.NoError(t, tree.Remove("b"))
	require.NoError(t, tree.Rename("c", "d"))
	require.NoError(t, tree.SyncDir("."))
	require.Len(t, mem.Files(), 3)
	require.Equal(t, map[string]string{"d": "text"}, names(t, tree))
}

// Names that are not clean, and names that get too long, do not damage the list.
func TestTree_UncleanAndLongNames(t *testing.T) {
	mem := disktest.New()
	tree := open(t, mem)
	require.NoError(t, tree.Mkdir("d"))
	require.NoError(t, write(tree, "d/a", "text", true))
	require.Error(t, tree.Remove("d/"))
	require.Error(t, tree.Remove("./d"))
	require.Error(t, tree.Rename("./d", "d/x"))
	require.NoError(t, tree.Mkdir("d/"+strings.Repeat("x", 3000)))
	require.ErrorIs(t, tree.Rename("d", strings.Repeat("y", 3000)), fs.ErrInvalid)
	require.NoError(t, tree.Rename("./d", "e"))
	want := names(t, tree)
	for range 3 {
		require.NoError(t, tree.Close())
		tree = open(t, mem)
		require.Equal(t, want, names(t, tree))
	}
	l, err := tree.Lock("l")
	require.NoError(t, err)
	require.NoError(t, tree.Close())
	held, err := l.Held()
	require.False(t, held || err != nil)
}
