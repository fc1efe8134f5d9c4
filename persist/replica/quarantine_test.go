package replica

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
)

// A part has quarantined bytes of a file. The first byte was at this offset (from).
type part struct {
	from    int64
	content []byte
}

// partsAside returns the quarantined bytes of a file below a directory, sorted by offset.
func partsAside(m *disktest.Mem, dir, name string) (parts []part) {
	if whole := dir + "/" + name; slices.Contains(m.Files(), whole) {
		parts = append(parts, part{0, m.Bytes(whole)})
	}
	for _, file := range m.Files() {
		offset, ok := strings.CutPrefix(file, dir+"/"+name+fromMark)
		if from, err := strconv.ParseInt(offset, 10, 64); ok && err == nil {
			parts = append(parts, part{from, m.Bytes(file)})
		}
	}
	slices.SortFunc(parts, func(x, y part) int { return int(x.from - y.from) })
	return parts
}

// An asideProgram is the store of a former owner, and the later operations of the log on that
// store. Bytes of the log are below 128. Most unconfirmed bytes are 128 or above.
type asideProgram struct {
	files map[string][]byte // Contents of the files on this machine.
	sizes map[string]int64  // Sizes of the files in the log at the end of the ownership.
	ops   []op              // The later operations of the log.
	log   map[string][]byte // Contents of the files in the log after ops.
	// Every content that the log gave a file.
	was map[string][][]byte
}

func newAsideProgram(r *rand.Rand) *asideProgram {
	p := &asideProgram{map[string][]byte{}, map[string]int64{}, nil, map[string][]byte{}, map[string][][]byte{}}
	random := func(n, high int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(128) | high)
		}
		return b
	}
	names := []string{"journal/00000001.seg", "journal/00000002.seg", "snapshots/00000001.snap", "journal/LEDGER"}
	for i, name := range names {
		if i < 2 || r.IntN(2) == 0 {
			p.log[name] = random(r.IntN(300), 0)
			p.sizes[name] = int64(len(p.log[name]))
		}
		p.files[name] = bytes.Clone(p.log[name])
		if r.IntN(4) > 0 {
			p.files[name] = append(p.files[name], random(r.IntN(300), r.IntN(2)<<7)...)
		}
		if p.files[name] == nil {
			p.files[name] = []byte{}
		}
		if _, has := p.log[name]; has {
			p.was[name] = append(p.was[name], bytes.Clone(p.log[name]))
		}
	}
	gone := map[string]bool{}
	for range 1 + r.IntN(12) {
		name := names[r.IntN(len(names))]
		content, has := p.log[name]
		here := p.files[name]
		switch k := r.IntN(10); {
		case gone[name]:
			continue
		case !has:
			content = append(bytes.Clone(here[:r.IntN(len(here)+1)]), random(r.IntN(40), 0)...)
			p.ops = append(p.ops, op{opPart, name, 0, bytes.Clone(content)}, op{kind: opWhole, name: name, number: uint64(len(content))})
		case k == 0:
			gone[name] = true
			delete(p.log, name)
			p.ops = append(p.ops, op{kind: opRemove, name: name})
			continue
		default:
			at := len(content)
			// Sometimes overwrite earlier bytes, which a real journal never does.
			if k == 1 && at <= len(here) {
				at = r.IntN(at + 1)
			}
			data := random(r.IntN(60), 0)
			// The new bytes begin like the bytes on this machine.
			if at < len(here) {
				copy(data, here[at:min(len(here), at+r.IntN(80))])
			}
			p.ops = append(p.ops, op{opWrite, name, uint64(at), data})
			content = append(bytes.Clone(content[:at]), append(data, content[min(len(content), at+len(data)):]...)...)
		}
		p.log[name] = content
		p.was[name] = append(p.was[name], bytes.Clone(content))
	}
	return p
}

// write creates a disk that has the store.
func (p *asideProgram) write(t *testing.T) *disktest.Mem {
	mem := disktest.New()
	x := newReplicaFiles(mem, storeDir, &quarantine{top: mem})
	require.NoError(t, x.make())
	for name, content := range p.files {
		require.NoError(t, writeFile(mem, x.path(name), bytes.NewReader(content)))
	}
	require.NoError(t, x.sync())
	return mem
}

// follow brings the store to the end of the log.
func (p *asideProgram) follow(mem *disktest.Mem, a *quarantine) error {
	x := newReplicaFiles(mem, storeDir, a)
	maps.Copy(x.sizes, p.sizes)
	for i := range p.ops {
		if err := x.applyOp(&p.ops[i]); err != nil {
			return err
		}
	}
	if err := x.tidyDirs(); err != nil {
		return err
	}
	return x.sync()
}

// lowest returns the offset from which a file must be quarantined, or -1 if the log never had the
// file. The log may have given the file several contents in turn. The offset is the first byte that
// differs from one of these contents, but at most the length of the last one.
func (p *asideProgram) lowest(name string) int64 {
	was := p.was[name]
	if len(was) == 0 {
		return -1
	}
	here := p.files[name]
	lowest := len(here)
	for _, content := range was {
		n := min(len(here), len(content))
		if same := firstDifference(here[:n], content[:n]); same < n {
			lowest = min(lowest, same)
		}
	}
	return int64(min(lowest, len(was[len(was)-1])))
}

func TestQuarantine_UnconfirmedBytes(t *testing.T) {
	tails, wholes := 0, 0
	for seed := range uint64(1000) {
		p := newAsideProgram(rand.New(rand.NewPCG(seed, 1)))
		mem := p.write(t)
		a := &quarantine{top: mem}
		require.NoError(t, p.follow(mem, a), "seed %d", seed)
		sum := int64(0)
		for name, here := range p.files {
			content, has := p.log[name]
			require.Equal(t, has, slices.Contains(mem.Files(), storeDir+"/"+name), "seed %d: %s", seed, name)
			require.True(t, bytes.Equal(content, mem.Bytes(storeDir+"/"+name)), "seed %d: %s is not the log's", seed, name)
			parts, lowest := partsAside(mem, a.dir, name), p.lowest(name)
			var joined []byte
			for _, x := range parts {
				require.EqualValues(t, max(lowest, 0)+int64(len(joined)), x.from, "seed %d: %s has a gap", seed, name)
				joined = append(joined, x.content...)
			}
			require.True(t, bytes.Equal(here[max(lowest, 0):], joined), "seed %d: %s from %d on", seed, name, lowest)
			sum += int64(len(joined))
			if lowest > 0 && len(joined) > 0 {
				tails++
			}
			if lowest < 0 {
				wholes++
				require.True(t, bytes.Equal(here, mem.Bytes(a.dir+"/"+name)), "seed %d: a file that the log never had is moved completely", seed)
			}
		}
		require.Equal(t, sum, a.bytes, "seed %d", seed)
	}
	require.Greater(t, tails, 300)
	require.Greater(t, wholes, 30)
}

// A complete store replaces a store that may have more data than the log. All differences are
// quarantined.
func TestQuarantine_ReplacedStore(t *testing.T) {
	for seed := range uint64(300) {
		p := newAsideProgram(rand.New(rand.NewPCG(seed, 2)))
		mem := p.write(t)
		a := &quarantine{top: mem}
		next := newReplicaFiles(mem, nextDir, a)
		require.NoError(t, next.make())
		for name, content := range p.log {
			require.NoError(t, next.applyOp(&op{opPart, name, 0, content}))
			require.NoError(t, next.applyOp(&op{kind: opWhole, name: name, number: uint64(len(content))}))
		}
		require.NoError(t, next.sync())
		require.NoError(t, a.replace(newReplicaFiles(mem, storeDir, a), next))
		for name, here := range p.files {
			content, has := p.log[name]
			parts := partsAside(mem, a.dir, name)
			if !has {
				require.Len(t, parts, 1, "seed %d: %s", seed, name)
				require.True(t, bytes.Equal(here, parts[0].content), "seed %d: %s", seed, name)
				continue
			}
			n := min(len(here), len(content))
			same := firstDifference(here[:n], content[:n])
			if same == len(here) {
				require.Empty(t, parts, "seed %d: %s", seed, name)
				continue
			}
			require.Equal(t, []part{{int64(same), here[same:]}}, parts, "seed %d: %s", seed, name)
		}
	}
}

// After a crash at any call and another follow, every unconfirmed byte still exists at its offset.
func TestQuarantine_CrashAtAnyCall(t *testing.T) {
	crashes := 0
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := newAsideProgram(r)
		mem := p.write(t)
		for n := range 4 { // Older directories, some of which exceed the limits.
			for _, name := range []string{"7", "8"} {
				mem.Put(fmt.Sprintf("aside/%d/journal/00000001.seg.from-%s", n+3, name), bytes.Repeat([]byte{byte(n)}, 100))
			}
		}
		var after []*disktest.Mem
		mem.OnCall(func(int, string) { after = append(after, mem.Crash(), mem.CrashSeed(r.Uint64())) })
		require.NoError(t, p.follow(mem, &quarantine{top: mem, maxDirs: 3, maxBytes: 1 << 20}))
		mem.OnCall(nil)
		for i, m := range append(after, mem.Crash()) {
			p.recoverable(t, m, fmt.Sprintf("seed %d, crash %d", seed, i))
			if err := p.follow(m, &quarantine{top: m, maxDirs: 10}); err != nil {
				require.ErrorIs(t, err, errGap, "seed %d, crash %d", seed, i)
			}
			p.recoverable(t, m.Crash(), fmt.Sprintf("seed %d, crash %d, followed again", seed, i))
			crashes++
		}
	}
	require.Greater(t, crashes, 500)
}

// recoverable fails the test unless every byte that this machine had still exists at its offset. It
// may be in the log, in the store or in the quarantine. Each quarantine directory must be complete.
func (p *asideProgram) recoverable(t *testing.T, m *disktest.Mem, when string) {
	dirs := map[string]bool{}
	for _, file := range m.Files() {
		if rest, ok := strings.CutPrefix(file, "aside/"); ok {
			dirs["aside/"+rest[:strings.IndexByte(rest, '/')]] = true
		}
	}
	for name, here := range p.files {
		found := make([]bool, len(here))
		look := func(from int64, content []byte) {
			for i := range content {
				if at := int(from) + i; at < len(here) && here[at] == content[i] {
					found[at] = true
				}
			}
		}
		look(0, m.Bytes(storeDir+"/"+name))
		for dir := range dirs {
			for _, x := range partsAside(m, dir, name) {
				look(x.from, x.content)
			}
		}
		for _, content := range p.was[name] { // The log has or had this content.
			look(0, content)
		}
		if at := slices.Index(found, false); at >= 0 {
			require.Failf(t, "lost", "%s: byte %d of %s", when, at, name)
		}
	}
	for n := range 4 {
		dir := fmt.Sprintf("aside/%d", n+3)
		if !dirs[dir] {
			require.Less(t, n, 2, "%s: the newest directories remain", when)
			continue
		}
		for _, name := range []string{"7", "8"} {
			require.Equal(t, bytes.Repeat([]byte{byte(n)}, 100), m.Bytes(dir+"/journal/00000001.seg.from-"+name), "%s: %s", when, dir)
		}
	}
}

func TestQuarantine_CountAndSizeLimits(t *testing.T) {
	for _, c := range []struct {
		dirs, bytes int
		sizes       []int // Sizes of the directories, in the order of their creation.
		kept        []int // Numbers of the directories that remain.
	}{
		{3, 1000, []int{10, 20, 30, 40, 50}, []int{3, 4, 5}},
		{8, 100, []int{10, 20, 30, 40, 50}, []int{4, 5}},
		{8, 100, []int{10, 90}, []int{1, 2}},
		{8, 100, []int{10, 91}, []int{2}},
		{8, 100, []int{10, 20, 500}, []int{3}},
		{8, 100, []int{500, 10, 20}, []int{2, 3}},
		{1, 100, []int{1, 2, 3}, []int{3}},
		{0, 0, slices.Repeat([]int{1}, maxQuarantines+3), []int{4, 5, 6, 7, 8, 9, 10, 11}},
	} {
		mem := disktest.New()
		for i, size := range c.sizes {
			a := &quarantine{top: mem, maxDirs: c.dirs, maxBytes: int64(c.bytes)}
			x := newReplicaFiles(mem, storeDir, a)
			if i == 0 {
				require.NoError(t, x.make())
			}
			const first, second = "journal/00000001.seg", "journal/00000002.seg"
			content := bytes.Repeat([]byte{byte(i)}, size)
			require.NoError(t, writeFile(mem, x.path(first), bytes.NewReader(content)))
			require.NoError(t, writeFile(mem, x.path(second), bytes.NewReader(nil)))
			x.sizes[first], x.sizes[second] = int64(size/2), 0
			require.NoError(t, x.tidyDirs())
			delete(x.sizes, first)
			require.NoError(t, x.tidyDirs())
			dir, bytes := a.dir, a.bytes
			require.Equal(t, fmt.Sprintf("aside/%d", i+1), dir)
			require.EqualValues(t, size, bytes)
		}
		var kept []int
		entries, err := mem.ReadDir(quarantineDir)
		require.NoError(t, err)
		for _, e := range entries {
			kept = append(kept, quarantineNumber(e.Name()))
		}
		slices.Sort(kept)
		require.Equal(t, c.kept, kept, "%+v", c)
	}
}

// Directories that a crash left empty or partly removed are not counted, and are removed. Files of
// other programs remain.
func TestQuarantine_CrashLeftovers(t *testing.T) {
	mem := disktest.New()
	for _, dir := range []string{"aside", "aside/1", "aside/2", "aside/2.removed", "aside/3", "aside/3/journal", "aside/12", "aside/notes", "aside/012"} {
		require.NoError(t, mem.Mkdir(dir))
	}
	const name = "journal/00000001.seg"
	mem.Put("aside/1/"+path.Base(name), []byte("first"))
	mem.Put("aside/2.removed/"+path.Base(name), []byte("second"))
	mem.Put("aside/3/"+name+fromMark+"7"+tempSuffix, []byte("unfini"))
	mem.Put("aside/notes/1", []byte("mine"))
	a := &quarantine{top: mem, maxDirs: 2}
	x := newReplicaFiles(mem, storeDir, a)
	require.NoError(t, x.make())
	require.NoError(t, writeFile(mem, x.path(name), strings.NewReader("never")))
	require.NoError(t, x.tidyDirs())
	require.Equal(t, "aside/13", a.dir)
	var there []string
	entries, err := mem.ReadDir(quarantineDir)
	require.NoError(t, err)
	for _, e := range entries {
		there = append(there, e.Name())
	}
	require.Equal(t, []string{"012", "1", "13", "notes"}, there)
}
