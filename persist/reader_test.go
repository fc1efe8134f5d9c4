package persist_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/repair"
)

// docs/reader.py reads stores. It was written from docs/FORMAT.md, not from this code. If the two
// readers disagree about a store, the document or one of the readers is wrong.

// readerDoc is the output of reader.py for a store.
type readerDoc struct {
	Problems   []string
	Clean      bool
	Tick       uint64
	Digest     string
	Alive      []string
	Components []struct {
		Name     string
		Resource bool
		Entities []*string
		Rows     []json.RawMessage
	}
}

// python runs Python, or skips the test if Python is missing.
func python(t *testing.T, input string, args ...string) []byte {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("docs/reader.py needs python3, which is missing")
	}
	cmd := exec.Command(name, append([]string{"-B"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	return out
}

// eachByReader evaluates a Python expression with the names of reader.py for each line of input.
// Each line holds bytes in hexadecimal, and the expression gets these bytes as the variable b.
func eachByReader(t *testing.T, expression, input string) string {
	t.Helper()
	program := "import sys; sys.path.insert(0, '../docs')\nfrom reader import *\nfor line in sys.stdin:\n b = bytes.fromhex(line); print(" + expression + ")"
	return string(python(t, input, "-c", program))
}

// readByReader returns the output of reader.py for stores and saves.
func readByReader(t *testing.T, paths ...string) []readerDoc {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(python(t, "", append([]string{"../docs/reader.py"}, paths...)...)), []byte("\n"))
	require.Len(t, lines, len(paths))
	docs := make([]readerDoc, len(paths))
	for i, line := range lines {
		require.NoError(t, json.Unmarshal(line, &docs[i]))
	}
	return docs
}

// sumsOf returns the checksums of b.
func sumsOf(b []byte) string {
	f := fnv.New64a()
	f.Write(b)
	return fmt.Sprintf("%08x %016x %016x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)), f.Sum64(), xxh3.Hash(b))
}

func TestPythonReader_Checksums(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var input, want strings.Builder
	for _, n := range []int{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 96, 97, 128, 129, 144, 239, 240, 241, 255, 256, 257, 1023, 1024, 1025, 1088, 2048, 2049, 10000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		fmt.Fprintf(&input, "%x\n", b)
		fmt.Fprintln(&want, sumsOf(b))
	}
	require.Equal(t, want.String(), eachByReader(t, "f'{crc32c(b):08x} {fnv1a(b):016x} {xxh3(b):016x}'", input.String()))
}

func TestPythonReader_ZeroValues(t *testing.T) {
	t.Parallel()
	var input, want strings.Builder
	for _, v := range []any{
		varied{}, plainRow{}, "", []byte(nil), [3]string{}, [20]*int{}, [70000]string{}, map[string]bool(nil), struct{}{}, [0]string{},
		struct{ S []complex128 }{}, struct {
			Inner                                    [2]struct{ A, B *ecs.Entity }
			ALongNameThatTakesMoreThanThirtyOneBytes string
		}{},
	} {
		layout, err := layout.Of(reflect.TypeOf(v))
		require.NoError(t, err)
		fmt.Fprintf(&input, "%x\n", layout.Append(nil))
		fmt.Fprintf(&want, "%x\n", layout.AppendZero(nil))
	}
	require.Equal(t, want.String(), eachByReader(t, "zero(whole(b)).hex()", input.String()))
}

// formatText has the contents of the examples at the end of docs/FORMAT.md.
type formatText struct {
	sums    string            // One line each: number of bytes, and their checksums.
	digests map[string]string // Digests by name.
	files   map[string]string
}

var (
	textSum    = regexp.MustCompile(`^ {4} *\d+  [0-9a-f]{8}  [0-9a-f]{16}  [0-9a-f]{16}$`)
	textDigest = regexp.MustCompile(`^ {4}(\w+) +([0-9a-f]{16})$`)
	textFile   = regexp.MustCompile("^`([a-z]+/[0-9]{8}[.][a-z]+)`, (\\d+) bytes:$")
	textBytes  = regexp.MustCompile(`^ {4} *(\d+)  ((?:[0-9a-f]{2} )*[0-9a-f]{2})(?:   *\S.*)?$`)
)

func readFormatText(t *testing.T) (text formatText) {
	t.Helper()
	all, err := os.ReadFile("../docs/FORMAT.md")
	require.NoError(t, err)
	_, examples, found := strings.Cut(string(all), "\n## Examples\n")
	require.True(t, found)
	text.digests, text.files = map[string]string{}, map[string]string{}
	var name string
	var data []byte
	for line := range strings.Lines(examples) {
		line = strings.TrimRight(line, "\n")
		if m := textFile.FindStringSubmatch(line); m != nil {
			size, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			name, data = m[1], make([]byte, size)
		} else if m := textDigest.FindStringSubmatch(line); m != nil {
			text.digests[m[1]] = m[2]
		} else if textSum.MatchString(line) {
			text.sums += strings.Join(strings.Fields(line), " ") + "\n"
		} else if m := textBytes.FindStringSubmatch(line); m != nil {
			at, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			b, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
			require.NoError(t, err)
			require.LessOrEqual(t, at+len(b), len(data), line)
			copy(data[at:], b)
			text.files[name] = string(data)
		} else {
			require.False(t, name != "" && strings.HasPrefix(line, "    "), "unexpected line %q", line)
		}
	}
	return text
}

// Decoding the example bytes gives the contents that the document describes.
func TestFormatDoc_Examples(t *testing.T) {
	t.Parallel()
	text := readFormatText(t)
	var sums strings.Builder
	for line := range strings.Lines(text.sums) {
		n, err := strconv.Atoi(strings.Fields(line)[0])
		require.NoError(t, err)
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		fmt.Fprintln(&sums, n, sumsOf(b))
	}
	require.NotEmpty(t, text.sums)
	require.Equal(t, sums.String(), text.sums)

	dir := filepath.Join(t.TempDir(), "store")
	require.Len(t, text.files, 2)
	storetest.WriteTree(t, dir, text.files)
	v := storetest.Verified(t, dir)
	require.True(t, v.Log().Clean)
	im := stateAt(t, dir)
	digests := im.Digests()
	got := map[string]string{"registry": digests.Registry.String(), "world": digests.World.String()}
	for _, d := range digests.Storages {
		got[d.Name] = d.Digest.String()
	}
	require.Equal(t, text.digests, got)

	type Position struct{ X, Y float32 }
	type Link struct {
		To    ecs.Entity
		Phase complex64
		Text  string
	}
	type Seed uint64
	w := ecs.NewWorld(ecs.Options{})
	positions, links := ecs.MustRegister[Position](w), ecs.MustRegister[Link](w)
	seed := ecs.Must(ecs.RegisterResource(w, Seed(7)))
	first := w.Create()
	positions.Set(first, Position{1, -2})
	require.Equal(t, v.Snapshots()[0].Digest, w.Digest())
	second := w.Create()
	links.Set(second, Link{first, 1 - 2i, "to"})
	positions.Set(second, Position{0.5, 3})
	w.Destroy(w.Create())
	seed.Set(300)
	w.Commit()
	require.Equal(t, digests.World, w.Digest())

	require.Equal(t, text.digests["world"], readByReader(t, dir)[0].Digest)
}

func TestPythonReader_OldStores(t *testing.T) {
	t.Parallel()
	agree(t, keptStore, keptSave, "testdata/evolution-1/store", "testdata/evolution-1/save", "../internal/dump/testdata/store-1")
}

func TestPythonReader_RandomStores(t *testing.T) {
	t.Parallel()
	var paths []string
	for seed := range uint64(6) {
		dir := filepath.Join(t.TempDir(), "store")
		writeRandom(t, dir, rand.New(rand.NewPCG(seed, 7)))
		save := filepath.Join(filepath.Dir(dir), "save")
		require.NoError(t, repair.SaveImage(storetest.Background, inspect.NewImage(stateAt(t, dir)), save))
		paths = append(paths, dir, save)
	}
	agree(t, paths...)
}

// The store has branches and several pages of each sort, some of them in other files.
func TestPythonReader_ManyPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := newVariedWorld(0)
	s := storetest.Open(t, dir, w.World, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	w.Fill(4200)
	require.NoError(t, s.Commit())
	storetest.SnapshotOf(t, s)
	w.Position.Set(w.Entities()[4199], storetest.Position{X: 1})
	w.Destroy(w.Entities()[17])
	require.NoError(t, s.Commit())
	require.Positive(t, storetest.SnapshotOf(t, s).Shared)
	w.fill(rand.New(rand.NewPCG(1, 1)))
	require.NoError(t, s.Commit())
	storetest.CloseStore(t, s)
	agree(t, dir)
}

// After a crash, both readers find the torn end at the same place.
func TestPythonReader_TornEnd(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(8)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncAlways})
	for range 4 {
		w.Fill(3)
		require.NoError(t, s.Commit())
		require.NoError(t, s.Sync(storetest.Background))
	}
	killed := storetest.ReadTree(t, dir)
	storetest.CloseStore(t, s)
	var paths []string
	with := func(tree map[string]string, segment string) {
		tree = maps.Clone(tree)
		tree["journal/00000001.seg"] = segment
		paths = append(paths, filepath.Join(t.TempDir(), "store"))
		storetest.WriteTree(t, paths[len(paths)-1], tree)
	}
	for _, tree := range []map[string]string{killed, storetest.ReadTree(t, dir)} {
		segment := tree["journal/00000001.seg"]
		for _, less := range []int{0, 1, 7, 40, 48, 49, 96, 97, 150, 400} {
			with(tree, segment[:len(segment)-less])
		}
	}

	// Here no tick was acknowledged as durable. So damage is no error: the journal ends at the
	// first bad byte.
	dir = filepath.Join(t.TempDir(), "store")
	w = storetest.New(0)
	s = storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1, Sync: journal.SyncNever})
	for range 4 {
		w.Fill(3)
		require.NoError(t, s.Commit())
	}
	const ledger = "journal/00000001.ledger"
	running := storetest.ReadTree(t, dir)[ledger]
	storetest.CloseStore(t, s)
	tree := storetest.ReadTree(t, dir)
	// This ledger is from the open store, so it marks no segment as complete.
	tree[ledger] = running
	segment := tree["journal/00000001.seg"]
	segment = segment[:len(segment)-96] // Remove the seals.
	for at := len(segment) - 5; at > int(binary.LittleEndian.Uint64([]byte(segment[56:]))); at -= 177 {
		with(tree, storetest.Flip(segment, at, 3))
	}
	docs := readByReader(t, paths...)
	for i, path := range paths {
		v, err := inspect.OpenReadOnly(storetest.Background, path)
		require.NoError(t, err)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.Equal(t, im.Digest().String(), docs[i].Digest, "%s: %v", path, docs[i].Problems)
		require.Equal(t, v.Log().Clean, docs[i].Clean, path)
		require.Equal(t, len(v.Damage()) > 0, len(docs[i].Problems) > 0, "%s: %v, the reader says %q", path, v.Damage(), docs[i].Problems)
		require.NoError(t, v.Close())
	}
}

// A snapshot can have NoRewind values of an entity that is dead at the head. For such a snapshot,
// the test goes back to a tick with that entity.
func TestPythonReader_DeadEntities(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(4)
	s := storetest.Open(t, dir, w, persist.Options{SnapshotBytes: -1})
	first, second := w.Create(), w.Create()
	w.Heat.Set(second, storetest.Heat{Degrees: 2})
	require.NoError(t, s.Commit())
	w.Destroy(first)
	require.NoError(t, s.Commit())
	require.NoError(t, w.History().Seek(1))
	w.Heat.Set(first, storetest.Heat{Degrees: 1})
	w.Mood.Set(first, storetest.Mood{Level: 1})
	w.Mood.Set(second, storetest.Mood{Level: 2})
	storetest.SnapshotOf(t, s)
	require.NoError(t, w.History().Seek(2))
	storetest.CloseStore(t, s)
	im := stateAt(t, dir)
	require.Equal(t, []ecs.Entity{second}, im.Find("heat").Entities)
	require.Equal(t, []ecs.Entity{ecs.Vacant, second}, im.Find("mood").Entities)
	agree(t, dir)
}

func TestPythonReader_DamagedStore(t *testing.T) {
	t.Parallel()
	d := storetest.NewSample(t).Damaged(t)
	rng := rand.New(rand.NewPCG(5, 5))
	var names, paths []string
	for name, data := range d.Tree {
		if data == "" {
			continue
		}
		for i := range 24 {
			tree := map[string]string{}
			for file, data := range d.Tree {
				tree[file] = data
			}
			at := rng.IntN(len(data))
			if name == "journal/00000002.seg" {
				// Damage in the last sector would look like a torn write, and would not be
				// reported.
				at = rng.IntN(len(data) - sectorOf)
			}
			tree[name] = storetest.Flip(data, at, rng.IntN(8))
			to := filepath.Join(t.TempDir(), strconv.Itoa(i))
			storetest.WriteTree(t, to, tree)
			names, paths = append(names, fmt.Sprintf("byte %d of %s", at, name)), append(paths, to)
		}
	}
	for i, doc := range readByReader(t, paths...) {
		file := names[i][strings.LastIndex(names[i], " ")+1:]
		require.True(t, slices.ContainsFunc(doc.Problems, func(p string) bool { return strings.Contains(p, file) }), "%s: %q", names[i], doc.Problems)
		if doc.Digest != "" {
			require.Equal(t, d.Digest.String(), doc.Digest, names[i])
		}
	}
}

const sectorOf = 512

// agree compares the output of reader.py for stores and saves with that of package inspect.
func agree(t *testing.T, paths ...string) {
	t.Helper()
	for i, doc := range readByReader(t, paths...) {
		v, err := inspect.OpenReadOnly(storetest.Background, paths[i])
		require.NoError(t, err)
		im, err := v.At(storetest.Background, v.Head())
		require.NoError(t, err)
		require.NoError(t, v.Close())
		require.Empty(t, doc.Problems, paths[i])
		require.True(t, doc.Clean)
		require.Equal(t, im.Tick, doc.Tick, paths[i])
		require.Equal(t, im.Digest().String(), doc.Digest, paths[i])
		require.Len(t, doc.Alive, im.Living)
		require.Len(t, doc.Components, len(im.Components))
		for n, c := range im.Components {
			got := doc.Components[n]
			require.Equal(t, c.Name, got.Name)
			require.Equal(t, c.Resource, got.Resource)
			require.Len(t, got.Rows, c.Len(), "%s: %s", paths[i], c.Name)
			require.Len(t, got.Entities, len(c.Entities()))
			for row := range got.Rows {
				if !c.Resource && c.Entities()[row] != ecs.Vacant {
					require.Equal(t, c.Entities()[row].String(), *got.Entities[row])
				}
				value, err := c.Value(row)
				require.NoError(t, err)
				want, err := value.MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, plain(t, want), plain(t, got.Rows[row]), "%s: row %d of %s", paths[i], row, c.Name)
			}
		}
	}
}

// plain parses JSON and normalizes numbers: integers by their digits, others by value.
func plain(t *testing.T, text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", text)
	return plainValue(v)
}

func plainValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if _, err := strconv.ParseUint(strings.TrimPrefix(v.String(), "-"), 10, 64); err == nil {
			return v.String()
		}
		f, _ := v.Float64()
		if f == float64(int64(f)) {
			return strconv.FormatInt(int64(f), 10)
		}
		return f
	case []any:
		for i := range v {
			v[i] = plainValue(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainValue(v[k])
		}
	}
	return v
}

// A varied holds a field of every kind of layout, so its rows are msgpack.
type varied struct {
	Yes    bool
	I8     int8
	I16    int16
	I32    int32
	I64    int64
	U8     uint8
	U16    uint16
	U32    uint32
	U64    uint64
	F32    float32
	F64    float64
	C64    complex64
	C128   complex128
	Who    ecs.Entity
	Text   string
	Bytes  []byte
	Array  [2]int16
	Slice  []ecs.Entity
	Map    map[ecs.Entity]complex64
	Points *position3
}

type position3 struct{ X, Y, Z float64 }

// A plainRow holds the scalars of varied, so its rows are packed.
type plainRow struct {
	Yes  [2]bool
	I8   int8
	I64  int64
	U64  uint64
	F32  float32
	C64  complex64
	C128 complex128
	Who  ecs.Entity
}

// A variedWorld has varied and plainRow in addition to the components of other tests. The storage
// of varied rows is Indexed: it has gaps, which hold zero values of every kind.
type variedWorld struct {
	*storetest.World
	varied *ecs.Storage[varied]
	rows   *ecs.Storage[plainRow]
}

func newVariedWorld(history int) variedWorld {
	w := storetest.New(history)
	clone := func(v varied) varied { return v } // No test writes through shared values.
	return variedWorld{w, ecs.MustRegister(w.World, ecs.Component[varied]{Kind: ecs.Indexed, Clone: clone}), ecs.MustRegister(w.World, ecs.Component[plainRow]{Version: 2})}
}

func (w variedWorld) fill(rng *rand.Rand) {
	n := len(w.Entities())
	if n == 0 {
		return
	}
	e, x := w.Entities()[rng.IntN(n)], rng.Uint64()>>rng.IntN(64)
	v := varied{Yes: true, I8: int8(x), I16: int16(x), I32: int32(x), I64: -int64(x), U8: uint8(x), U16: uint16(x), U32: uint32(x), U64: x,
		F32: rng.Float32(), F64: rng.Float64(), C64: complex(rng.Float32(), -1), C128: complex(1, rng.Float64()), Who: e, Text: storetest.Names[x%5]}
	if x%2 == 0 {
		v.Bytes, v.Slice, v.Points = []byte{1, 2, 3}, []ecs.Entity{e, 0}, &position3{1, 2, rng.Float64()}
		v.Map = map[ecs.Entity]complex64{e: 1, 7: -2i}
	}
	w.varied.Set(e, v)
	w.rows.Set(e, plainRow{[2]bool{true, false}, v.I8, v.I64, v.U64, v.F32, v.C64, v.C128, e})
}

// writeRandom writes a store with branches, rewinds, marks, inputs, several openings, and snapshots
// that share pages.
func writeRandom(t *testing.T, dir string, rng *rand.Rand) {
	t.Helper()
	for range 3 {
		w := newVariedWorld(6)
		s := storetest.Open(t, dir, w.World, persist.Segmented(persist.Options{SnapshotBytes: -1}, 6000))
		for range 12 {
			w.Do(storetest.RandomActions(rng, 8)...)
			w.fill(rng)
			switch rng.IntN(8) {
			case 0:
				require.NoError(t, s.Mark("a mark"))
			case 1:
				require.NoError(t, s.Input("press", []byte{1, 2}))
			}
			require.NoError(t, s.Commit())
			w.ReleaseAll()
			switch rng.IntN(5) {
			case 0:
				storetest.SnapshotOf(t, s)
			case 1:
				h := w.History()
				_ = h.Seek(max(h.Oldest(), h.Newest()-min(h.Newest(), uint64(rng.IntN(4)))))
			}
		}
		storetest.CloseStore(t, s)
	}
}
