package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// These tests run every command on damaged stores. They compare the JSON output with that for the
// undamaged store, and check three rules:
//
//	truth         a printed state, tick or file equals the original
//	completeness  a state is printed if undamaged records lead to it from an undamaged snapshot
//	no silence    an incomplete answer exits with 4, names the damage and suggests a remedy
//
// The states of the undamaged store are compared with a simple model.

// url and saveURL are the paths of the store and of a save.
const (
	url     = "mem://store/."
	saveURL = "mem://saves/game.save"
)

// A plainState is a state of the model.
type plainState struct {
	tick     uint64
	entities map[string]map[string]any // By entity and component, as decoded JSON values.
	score    float64
}

func (p *plainState) clone() *plainState {
	c := &plainState{p.tick, map[string]map[string]any{}, p.score}
	for e, components := range p.entities {
		c.entities[e] = maps.Clone(components)
	}
	return c
}

// An original is an undamaged store with its known contents.
type original struct {
	t       *testing.T
	files   *disktest.Mem
	log     *journal.Log
	shots   []inspect.SnapshotInfo
	model   map[uint64]*plainState
	digests map[uint64]ecs.Digest
	answers map[string]answer
	head    uint64
	seqs    []uint64 // Numbers of all records that have a state.
}

// An answer is the output and the exit status of a command.
type answer struct {
	code     int
	out, err string
}

// runOn runs a command on a store in memory. It checks that the command does not change the store.
func runOn(t *testing.T, files *disktest.Mem, args ...string) (a answer) {
	var out, err bytes.Buffer
	openers := map[string]Opener{"mem": func(_ context.Context, url string) (disk.FS, string, error) { return files, path.Base(url), nil }}
	before := files.Changes()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%q panics: %v\n%s", args, p, debug.Stack())
		}
		if files.Changes() != before {
			t.Errorf("%q changed the store", args)
		}
	}()
	a.code = run(context.Background(), func() {}, openers, args, &out, &err)
	a.out, a.err = out.String(), err.String()
	return a
}

// run runs a command on the undamaged store.
func (w *original) run(args ...string) answer {
	key := strings.Join(args, "\x00")
	a, ok := w.answers[key]
	if !ok {
		a = runOn(w.t, w.files, args...)
		w.answers[key] = a
	}
	return a
}

// newOriginal creates the store. With closed, the program closes the store; otherwise it is killed.
// Each column is a record with its tick, its mark and the number of its snapshot:
//
//	record    1 2 3   4 5        6    7            8 | 9 10   11        12 | 13   14 15
//	tick      1 2 3   4 5        4    5            6 | 7 8    9         9  | 10   11 12
//	mark                         boss                |                     | late
//	snapshot      2                   3 milestone    |    4                |
//
// Record 6 is a child of record 3, and record 12 of record 10. So records 4, 5 and 11 were rewound.
// At each bar, the store was closed and opened again.
func newOriginal(t *testing.T, closed bool) *original {
	ctx := context.Background()
	w := &original{t: t, files: disktest.New(), model: map[uint64]*plainState{}, digests: map[uint64]ecs.Digest{}, answers: map[string]answer{}}
	now := &plainState{entities: map[string]map[string]any{}}
	w.model[0] = now.clone()
	var (
		s     *sample
		store *persist.Store
		tick  = clock()
	)
	begin := func() {
		var err error
		s = newSample()
		store, err = persist.Open(ctx, ".", s.world, persist.Options{Files: w.files, Now: tick, SnapshotBytes: -1, Sync: journal.SyncAlways})
		require.NoError(t, err)
	}
	commit := func(do func() error, plain func()) {
		require.NoError(t, do())
		plain()
		require.NoError(t, store.Commit())
		now.tick++
		w.head++
		w.model[w.head], w.digests[w.head] = now.clone(), s.world.Digest()
	}
	back := func(ticks int, seq uint64) {
		require.NoError(t, s.world.History().Rewind(ticks))
		now = w.model[seq].clone()
	}
	moved := func() {
		for _, components := range now.entities {
			if _, ok := components["Frozen"]; ok {
				p := maps.Clone(components["Position"].(map[string]any))
				p["X"] = p["X"].(float64) + 100
				components["Position"] = p
			}
		}
		now.score += 7
	}
	created := func() {
		e := "6v2"
		if now.entities[e] != nil {
			e = "1v2"
		}
		now.entities[e] = map[string]any{"Target": map[string]any{"Of": "0v1", "Info": map[string]any{"Range": 12.0}}}
	}
	move := func() { commit(s.move, moved) }
	create := func() { commit(s.recycle, created) }
	mark := func(name string) { require.NoError(t, store.Mark(name)) }
	snapshot := func() {
		_, err := store.Snapshot(ctx)
		require.NoError(t, err)
	}
	end := func() { require.NoError(t, store.Close(ctx)) }

	begin()
	w.digests[0] = s.world.Digest()
	commit(s.begin, func() {
		for i := range 8 {
			c := map[string]any{"Position": map[string]any{"X": float64(i), "Y": 0.5}}
			if i%2 == 0 {
				c["Health"] = float64(10 * i)
			}
			if i%3 == 0 {
				c["Label"] = map[string]any{"Text": "orc", "Tags": []any{"big", "green"}}
			}
			if i%4 == 0 {
				c["Frozen"] = map[string]any{}
			}
			now.entities[fmt.Sprintf("%dv1", i)] = c
		}
	})
	move()
	commit(s.destroy, func() {
		delete(now.entities, "1v1")
		delete(now.entities, "6v1")
		delete(now.entities["2v1"], "Health")
	})
	snapshot()
	move()
	move()
	back(2, 3)
	mark("boss")
	create()
	move()
	_, err := store.SaveSlot(ctx, "milestone", "")
	require.NoError(t, err)
	commit(s.relabel, func() {
		for _, components := range now.entities {
			delete(components, "Label")
		}
		now.entities["7v1"]["Label"] = map[string]any{"Text": "a \"quoted\"\nname", "Tags": nil}
	})
	end()
	begin()
	move()
	move()
	snapshot()
	move()
	back(1, 10)
	create()
	end()
	begin()
	mark("late")
	move()
	move()
	move()
	require.NoError(t, store.Sync(ctx))
	killed := w.files.Clone()
	if end(); !closed {
		w.files = killed
	}
	w.compareWithModel()
	return w
}

// compareWithModel compares the states that commands print with the model.
func (w *original) compareWithModel() {
	v, err := inspect.OpenFS(context.Background(), w.files, ".")
	require.NoError(w.t, err)
	w.log, w.shots = v.Log(), v.Snapshots()
	require.Empty(w.t, v.Damage())
	require.Len(w.t, w.log.Segments, 3)
	require.Len(w.t, w.shots, 4)
	require.NotEmpty(w.t, w.shots[3].Files, "the snapshot refers to no other file")
	require.Len(w.t, v.Tips(), 3)
	for seq := range w.head + 1 {
		w.seqs = append(w.seqs, seq)
		im, err := v.At(context.Background(), seq)
		require.NoError(w.t, err)
		require.Equal(w.t, w.digests[seq], im.Digest(), "record %d", seq)
		var doc struct {
			Tick     uint64
			Entities []struct {
				Entity     string
				Components []struct {
					Name  string
					Value any
				}
			}
		}
		require.NoError(w.t, json.Unmarshal([]byte(w.run("ls", url, "--at", at(seq), "--limit", "0", "--json").out), &doc))
		got := &plainState{doc.Tick, map[string]map[string]any{}, w.model[seq].score}
		for _, e := range doc.Entities {
			components := map[string]any{}
			for _, c := range e.Components {
				components[c.Name] = c.Value
			}
			got.entities[e.Entity] = components
		}
		require.Equal(w.t, w.model[seq], got, "record %d", seq)
	}
}

// at returns the point that names the state of a record.
func at(seq uint64) string { return fmt.Sprintf("record:%d", seq) }

// A damage is a change of one file, with its effects.
type damage struct {
	name  string
	file  string // The damaged file.
	files *disktest.Mem
	lost  map[uint64]bool // Records with damaged bytes.
	// Intact records that cannot be read, because the preamble with their schema is damaged.
	blind map[uint64]bool
	bad   map[uint32]bool // Damaged snapshot files.
	// True if the headers of all records are valid, so commands know all parents.
	knows bool
	// True if no data of a world is damaged.
	harmless bool
}

// damages returns all damages to test, for each record and for each file.
func (w *original) damages() (all []*damage) {
	for i := range w.log.Segments {
		all = append(all, w.recordDamages(i)...)
	}
	for _, name := range w.files.Files() {
		all = append(all, w.fileDamages(name)...)
	}
	for _, dir := range []string{"journal", "snapshots"} {
		d := w.damaged("removed all of", dir, func([]byte) []byte { return nil })
		for _, name := range w.files.Files() {
			if filepath.Dir(name) == dir {
				d.replaceFile(name, nil)
				w.markLost(d, name)
			}
		}
		d.harmless = false
		all = append(all, d)
	}
	// A killed program may leave an incomplete end of the journal, which is not damage.
	if !w.log.Clean {
		last := "journal/" + w.log.Segments[len(w.log.Segments)-1].Name
		all = slices.DeleteFunc(all, func(d *damage) bool { return d.file == last && d.lost[w.head] })
	}
	return all
}

// damaged returns a copy of the store with one file changed by f. If f returns nil, the file is
// removed.
func (w *original) damaged(what, name string, f func(data []byte) []byte) *damage {
	d := &damage{name: what + " " + name, file: name, files: w.files.Clone(), lost: map[uint64]bool{}, blind: map[uint64]bool{}, bad: map[uint32]bool{}}
	d.replaceFile(name, f(d.files.Bytes(name)))
	return d
}

func (d *damage) replaceFile(name string, data []byte) {
	if data == nil {
		_ = d.files.Remove(name)
	} else {
		d.files.Put(name, data)
	}
}

// recordDamages returns the damages of each record of a segment, and of each preamble. A preamble
// is a record with the schema of the records after it.
func (w *original) recordDamages(i int) (all []*damage) {
	const header = 48
	segment := w.log.Segments[i]
	file := "journal/" + segment.Name
	mine := func(e journal.Entry) bool { return e.Segment != i }
	entries := slices.DeleteFunc(slices.Clone(w.log.Entries), mine)
	preambles := slices.DeleteFunc(slices.Clone(w.log.Preambles), mine)
	for _, e := range slices.Concat(preambles, entries) {
		what := fmt.Sprintf("record %d of", e.ID.Seq)
		isPreamble := e.Flags&journal.FlagPreamble != 0
		if isPreamble {
			what = "the preamble of"
		}
		end := e.Offset + header + (int64(e.Length)+7)&^7
		for how, f := range map[string]func(b []byte) []byte{
			"header":  func(b []byte) []byte { b[e.Offset+20] ^= 4; return b },
			"payload": func(b []byte) []byte { b[e.Offset+header+int64(e.Length)/2] ^= 4; return b },
			"zeroed":  func(b []byte) []byte { clear(b[e.Offset:end]); return b },
			"cut before": func(b []byte) []byte {
				return b[:e.Offset]
			},
		} {
			d := w.damaged(how+" "+what, file, f)
			d.knows = how == "payload"
			for _, other := range entries {
				switch {
				case how == "cut before" && other.Offset >= e.Offset, !isPreamble && other.ID == e.ID:
					d.lost[other.ID.Seq] = true
				case isPreamble:
					d.blind[other.ID.Seq] = true
				}
			}
			all = append(all, d)
		}
	}
	// Sort, because the map order is random.
	slices.SortFunc(all, func(a, b *damage) int { return strings.Compare(a.name, b.name) })
	return all
}

// fileDamages returns damages of a whole file.
func (w *original) fileDamages(name string) (all []*damage) {
	add := func(what string, f func([]byte) []byte) *damage {
		d := w.damaged(what, name, f)
		w.markLost(d, name)
		all = append(all, d)
		return d
	}
	add("removed", func([]byte) []byte { return nil })
	add("emptied", func([]byte) []byte { return []byte{} })
	add("cut to half", func(b []byte) []byte { return b[:len(b)/2] })
	add("foreign", func([]byte) []byte { return []byte(strings.Repeat("root:x:0:0:root:/root:/bin/sh\n", 200)) })
	if other := w.similarFile(name); other != "" {
		d := add("swapped with "+filepath.Base(other)+":", func([]byte) []byte { return w.files.Bytes(other) })
		d.replaceFile(other, w.files.Bytes(name))
		w.markLost(d, other)
	}
	// Flip a bit in each page of a snapshot, or in the header of a segment.
	for i := 0; i < len(w.files.Bytes(name)); i += 4096 {
		d := add(fmt.Sprintf("byte %d flipped in", i+40), func(b []byte) []byte { b[min(i+40, len(b)-1)] ^= 4; return b })
		if filepath.Ext(name) == ".seg" { // A segment has two headers.
			clear(d.lost)
		}
		d.knows = true
	}
	return all
}

// similarFile returns another file of the same kind as the given file, or "".
func (w *original) similarFile(name string) string {
	for _, other := range w.files.Files() {
		if other != name && filepath.Ext(other) == filepath.Ext(name) && filepath.Dir(other) == filepath.Dir(name) {
			return other
		}
	}
	return ""
}

// markLost marks all contents of a file as damaged.
func (w *original) markLost(d *damage, name string) {
	d.harmless = d.harmless || !strings.HasPrefix(name, "journal/") && !strings.HasPrefix(name, "snapshots/")
	for _, e := range w.log.Entries {
		if "journal/"+w.log.Segments[e.Segment].Name == name {
			d.lost[e.ID.Seq] = true
		}
	}
	for _, s := range w.shots {
		if s.Name == name {
			d.bad[s.Number] = true
		}
	}
}

// A trial is the test of one damaged store.
type trial struct {
	t        *testing.T
	original *original
	damage   *damage
	points   []uint64 // Records whose states the commands print.
}

// TestOracle_CommandsOnDamagedStores runs every command on every damaged store.
func TestOracle_CommandsOnDamagedStores(t *testing.T) {
	for _, c := range commands {
		if oracles[c.name()] == nil {
			t.Errorf("command %s has no oracle", c.name())
		}
	}
	rng := oracleRand(t)
	for _, closed := range []bool{true, false} {
		w := newOriginal(t, closed)
		all := w.damages()
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		n := deep.Or(8, len(all))
		for _, d := range all[:n] {
			t.Run(fmt.Sprintf("closed %t, %s", closed, strings.ReplaceAll(d.name, "/", " ")), func(t *testing.T) {
				x := &trial{t: t, original: w, damage: d}
				for _, i := range rng.Perm(len(w.seqs))[:deep.Or(3, 4)] {
					x.points = append(x.points, w.seqs[i])
				}
				for _, name := range slices.Sorted(maps.Keys(oracles)) {
					oracles[name](x)
				}
			})
		}
		t.Logf("closed %t: %d of %d damages", closed, n, len(all))
	}
}

// oracleRand returns a random source. It logs the seed, so that a test can be repeated.
func oracleRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if s := os.Getenv("STET_ORACLE"); s != "" {
		_, err := fmt.Sscan(s, &seed)
		require.NoError(t, err)
	}
	t.Logf("to repeat it: STET_ORACLE=%d go test ./internal/dump -run %s", seed, t.Name())
	return rand.New(rand.NewPCG(seed, 1))
}

// simpleCalls has the arguments of commands that only read.
var simpleCalls = map[string][]string{
	"branches": nil, "marks": nil,
	"arrays": {"Health"}, "bisect": {"score > 20"}, "blame": {"0v1"}, "diff": {"@latest"}, "export": nil, "history": {"0v1"},
	"info": nil, "log": nil, "ls": nil, "panel": {"Health"}, "plot": {"score"}, "query": {"Position.X > 3"}, "schema": nil, "show": {"0v1"}, "stats": nil, "tail": nil, "tree": nil, "verify": nil,
}

// TestOracle_CommandsOnDamagedSaves runs every command on every damaged save. The output must be
// empty, or equal that for the undamaged save.
func TestOracle_CommandsOnDamagedSaves(t *testing.T) {
	rng := oracleRand(t)
	w := &original{t: t, files: disktest.New(), log: new(journal.Log), answers: map[string]answer{}}
	s := newSample()
	for _, step := range []func() error{s.begin, s.move, s.destroy} {
		require.NoError(t, step())
		s.world.Commit()
	}
	name := path.Base(saveURL)
	require.NoError(t, persist.Save(context.Background(), name, s.world, persist.FileOptions{Files: w.files}))
	all := w.fileDamages(name)
	for range deep.Or(10, 100) {
		at, bit := rng.IntN(len(w.files.Bytes(name))), rng.IntN(8)
		all = append(all, w.damaged(fmt.Sprintf("bit %d of byte %d flipped in", bit, at), name, func(b []byte) []byte { b[at] ^= 1 << bit; return b }))
	}
	for _, d := range all {
		d.harmless = false
		t.Run(d.name, func(t *testing.T) {
			x := &trial{t: t, original: w, damage: d}
			for command, args := range simpleCalls {
				args := append([]string{command, saveURL}, args...)
				x.save(args, runOn(t, d.files, append(args, "--json")...))
			}
			x.recoverSave(s.world.Digest())
		})
	}
}

// save checks the answer of a command on a damaged save.
func (x *trial) save(args []string, a answer) {
	want := x.original.run(append(args, "--json")...)
	none := x.damage.files.Bytes(path.Base(saveURL)) == nil || strings.HasPrefix(x.damage.name, "foreign")
	switch {
	case none && a.code != exitNotFound || !none && a.code != want.code && a.code != exitCorrupt && a.code != exitNotFound:
		x.fail(a, args, "the exit status differs from that for the undamaged save")
	case a.code == exitOK && a.out != want.out:
		x.fail(a, args, "the output differs from that for the undamaged save, without an error: %s", want.out)
	case a.code == exitCorrupt && !strings.Contains(a.err+a.out, path.Base(saveURL)):
		x.fail(a, args, "the error does not name the damage")
	case a.out != "" && a.out != want.out && args[0] != "verify":
		x.fail(a, args, "the output for the undamaged save is different: %s", want.out)
	case args[0] == "verify" && a.code == exitOK:
		x.fail(a, args, "the save is damaged")
	}
}

// recoverSave recovers a damaged save and checks the result.
func (x *trial) recoverSave(digest ecs.Digest) {
	out := filepath.Join(x.t.TempDir(), "out")
	args := []string{"recover", saveURL, "-o", out, "--json"}
	switch a := runOn(x.t, x.damage.files, args...); {
	case a.code == exitOK && x.digestOf(out) != digest:
		x.fail(a, args, "the saved state differs from the original")
	case strings.Contains(a.err, "--partial"):
		if b := runOn(x.t, x.damage.files, append(args, "--partial")...); b.code != exitProblem {
			x.fail(b, args, "recover --partial fails")
		}
	}
}

// No command reports damage for a file that is neither a store nor a save.
func TestCommands_FileNeitherStoreNorSave(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("root:x:0:0:root:/root:/bin/sh\n", 200)), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "diary", "journal"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "diary", "journal", "monday.txt"), []byte("dear diary"), 0o600))
	for _, c := range commands {
		args, reads := simpleCalls[c.name()]
		switch c.name() {
		case "compact", "recover":
			args, reads = []string{"-o", filepath.Join(dir, "out")}, true
		case "edit":
			args, reads = []string{"Health = 5", "--dry-run"}, true
		case "serve", "mcp": // With an existing store, these commands run until an interrupt.
			args, reads = nil, true
		case "import", "man": // These commands do not read a store.
		default:
			require.True(t, reads, "how is %s called?", c.name())
		}
		if !reads {
			continue
		}
		for _, name := range []string{text, filepath.Join(dir, "empty"), filepath.Join(dir, "diary"), filepath.Join(dir, "missing"), os.DevNull} {
			a := runOn(t, disktest.New(), append([]string{c.name(), name}, args...)...)
			if a.code != exitNotFound || a.out != "" || !strings.Contains(a.err, name) {
				t.Errorf("%s %s exits with %d: %s%s", c.name(), name, a.code, a.out, a.err)
			}
		}
	}
}
