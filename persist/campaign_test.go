package persist_test

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

var (
	flipCount = flag.Int("flips", 0, "how often the campaign damages a large store, after every bit of a small one; 0: a share of that")
	flipSeed  = flag.Uint64("flipseed", 0, "the seed of the campaign; 0: a new one")
)

// share returns the number of cases to try: all of them with -flips, otherwise not more than the
// parameter few.
func share(all, few int) int {
	if *flipCount > 0 {
		return all
	}
	return min(all, few)
}

// A campaign damages the files of a store in memory, one at a time, and checks that the damage is
// detected.
type campaign struct {
	t      testing.TB
	rng    *rand.Rand
	tree   map[string][]byte // The undamaged files.
	names  []string          // Names of the files to damage, sorted.
	files  *disktest.Mem
	accept map[ecs.Digest]bool // The states that may be recovered.
	newest ecs.Digest          // The state without damage.
	count  map[string]int
}

func newCampaign(t testing.TB, tree map[string]string, newest ecs.Digest, others ...ecs.Digest) *campaign {
	seed := cmp.Or(*flipSeed, rand.Uint64())
	t.Logf("-flipseed %d", seed)
	c := &campaign{
		t: t, rng: rand.New(rand.NewPCG(seed, 3)), tree: map[string][]byte{}, files: disktest.New(),
		accept: map[ecs.Digest]bool{newest: true}, newest: newest, count: map[string]int{},
	}
	for _, d := range others {
		c.accept[d] = true
	}
	require.NoError(t, c.files.Mkdir(catalog.JournalDir))
	require.NoError(t, c.files.Mkdir(catalog.SnapshotDir))
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if path.Dir(name) != "." && name[len(name)-1] != '/' {
			c.tree[name] = []byte(tree[name])
			c.names = append(c.names, name)
			c.files.Put(name, c.tree[name])
		}
	}
	c.opens(c.files.Clone(), "nothing", true)
	return c
}

// pick returns a random file; longer ones are more likely.
func (c *campaign) pick() string {
	total := 0
	for _, name := range c.names {
		total += len(c.tree[name])
	}
	at := c.rng.IntN(total)
	for _, name := range c.names {
		if at -= len(c.tree[name]); at < 0 {
			return name
		}
	}
	panic("no file")
}

// with replaces the content of the named file by data, calls f, and restores the file.
func (c *campaign) with(name string, data []byte, f func()) {
	c.files.Put(name, data)
	f()
	c.files.Put(name, c.tree[name])
}

// flip flips one bit and checks that every reader of the file reports damage at that bit.
func (c *campaign) flip(name string, bit int) {
	data := slices.Clone(c.tree[name])
	data[bit/8] ^= 1 << (bit % 8)
	c.count["bits flipped"]++
	c.with(name, data, func() { c.noticed(name, int64(bit/8), int64(bit/8)+1) })
}

// zero overwrites a sector with zeros.
func (c *campaign) zero(name string, sector int) {
	from := sector * 512
	to := min(from+512, len(c.tree[name]))
	data := slices.Clone(c.tree[name])
	clear(data[from:to])
	first, last := differ(data, c.tree[name])
	if first < 0 {
		return
	}
	if seals := len(data) - 96; name == c.lastSegment() && last >= seals {
		// The seals at the end of the segment say that the store was closed. Damage to the seals
		// alone must not prevent opening. Damage before the seals must be noticed.
		if last = seals - 1; first >= seals {
			c.count["seals zeroed"]++
			c.with(name, data, func() { c.opens(c.files.Clone(), "seals zeroed", true) })
			return
		}
	}
	c.count["sectors zeroed"]++
	c.with(name, data, func() { c.noticed(name, int64(first), int64(last)+1) })
}

// differ returns the first and the last index at which a and b differ; -1 means that they are
// equal.
func differ(a, b []byte) (first, last int) {
	first, last = -1, -1
	for i := range a {
		if a[i] != b[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// noticed checks that a reader of a file reports damage that overlaps bytes [from, to).
func (c *campaign) noticed(name string, from, to int64) {
	c.t.Helper()
	ranges := c.reported(name)
	for _, r := range ranges {
		if r.Offset < to && from < r.Offset+r.Length {
			return
		}
	}
	c.t.Fatalf("bytes %d to %d of %s: reported %v", from, to, name, ranges)
}

// reported returns the damage that reading a file finds.
func (c *campaign) reported(name string) (ranges []*persist.DamageError) {
	if path.Dir(name) == catalog.SnapshotDir {
		_, err := pagefile.Check(storetest.Background, c.files, name)
		for _, e := range storetest.Flat(err) {
			if d, ok := errors.AsType[*persist.DamageError](e); ok {
				ranges = append(ranges, d)
			}
		}
		return ranges
	}
	log, err := journal.Scan(storetest.Background, disk.Sub(c.files, catalog.JournalDir), 0, nil)
	require.NoError(c.t, err)
	defer log.Close()
	for _, p := range log.Problems {
		var d *persist.DamageError
		if errors.As(p.In(catalog.JournalDir), &d) && d.File == name {
			ranges = append(ranges, d)
		}
	}
	return ranges
}

// verified runs all checks and returns their findings.
func (c *campaign) verified(files *disktest.Mem) []error {
	v, err := inspect.OpenFS(storetest.Background, files, ".")
	if err != nil {
		return []error{err}
	}
	defer v.Close()
	r, err := v.Verify(storetest.Background)
	require.NoError(c.t, err)
	return r.Problems
}

// opens opens the damaged store for writing. The store must recover an accepted state and continue,
// or refuse and change nothing. If Open refuses, the other checks must find the damage too. If
// exactly is set, only the newest state is accepted.
func (c *campaign) opens(files *disktest.Mem, how string, exactly bool) (opened bool) {
	c.t.Helper()
	before := files.Clone()
	w := storetest.New(0)
	s, err := persist.OpenFiles(storetest.Background, files, w.World, persist.Options{SnapshotBytes: -1})
	if err != nil {
		require.True(c.t, errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNotFound), "%s: %v", how, err)
		require.Equal(c.t, before.Files(), files.Files(), "%s: a refused Open changed the directory", how)
		require.Contains(c.t, err.Error(), "/", "%s: no file is named: %v", how, err)
		require.NotEmpty(c.t, c.verified(before), "%s: refused (%v), but the checks found no damage", how, err)
		return false
	}
	digest := storetest.Persistent(w.World)
	require.True(c.t, digest == c.newest || !exactly && c.accept[digest], "%s: opened with digest %v\n%v", how, digest, s.Report())
	w.Create()
	require.NoError(c.t, s.Commit())
	require.NoError(c.t, s.Journal().Close(storetest.Background, w.Raw().Seq()))
	return true
}

// thorough flips a bit and runs all checks of the store, not only those of the damaged file.
func (c *campaign) thorough(name string, bit int) {
	data := slices.Clone(c.tree[name])
	data[bit/8] ^= 1 << (bit % 8)
	how := fmt.Sprintf("bit %d of byte %d of %s", bit%8, bit/8, name)
	c.count["opened with a flip"]++
	c.with(name, data, func() {
		problems := c.verified(c.files)
		require.True(c.t, slices.ContainsFunc(problems, func(err error) bool {
			return strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "offset")
		}), "%s: %v", how, problems)
		c.opens(c.files.Clone(), how, true)
	})
}

// cut truncates a file. If only the seals of the last segment are cut off, the store looks as if it
// was not closed. No tick is lost then.
func (c *campaign) cut(name string, size int) {
	files := c.files.Clone()
	files.Put(name, c.tree[name][:size])
	how := fmt.Sprintf("%s cut to %d of %d bytes", name, size, len(c.tree[name]))
	c.count["files cut"]++
	if name != c.lastSegment() || size < len(c.tree[name])-96 {
		require.NotEmpty(c.t, c.verified(files), how)
	}
	c.opens(files, how, true)
}

func (c *campaign) lastSegment() (last string) {
	for _, name := range c.names {
		if path.Dir(name) == catalog.JournalDir {
			last = name
		}
	}
	return last
}

// exchange swaps two files, copies a file to a free name, or removes a file.
func (c *campaign) exchange() {
	files := c.files.Clone()
	a, b := c.names[c.rng.IntN(len(c.names))], c.names[c.rng.IntN(len(c.names))]
	var how string
	switch c.rng.IntN(4) {
	case 0:
		files.Put(a, c.tree[b])
		files.Put(b, c.tree[a])
		how = a + " and " + b + " exchanged"
	case 1:
		files.Put(a, c.tree[b])
		how = b + " also under the name of " + a
	case 2:
		n := 1 + c.rng.IntN(len(c.names)+3)
		name := catalog.SnapshotName(uint32(n))
		if path.Dir(a) == catalog.JournalDir {
			name = fmt.Sprintf("%s/%08d%s", catalog.JournalDir, n, path.Ext(a))
		}
		files.Put(name, c.tree[a])
		how = a + " also as " + name
	case 3:
		require.NoError(c.t, files.Remove(a))
		how = a + " missing"
	}
	if !c.differs(files) {
		return // A file was swapped with itself or copied to its own name.
	}
	c.count["files exchanged, doubled or missing"]++
	require.NotEmpty(c.t, c.verified(files), how)
	c.opens(files, how, true)
}

// differs reports whether a file of the store is changed, missing or new.
func (c *campaign) differs(files *disktest.Mem) bool {
	if !slices.Equal(files.Files(), c.files.Files()) {
		return true
	}
	return slices.ContainsFunc(c.names, func(name string) bool { return !bytes.Equal(files.Bytes(name), c.tree[name]) })
}

func (c *campaign) report() {
	for _, what := range slices.Sorted(maps.Keys(c.count)) {
		c.t.Logf("%s: %d", what, c.count[what])
	}
}

func files(t testing.TB, dir string) disk.FS {
	t.Helper()
	f, err := disk.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// earlier returns the digests of all ancestors of the head.
func earlier(t testing.TB, dir string) (digests []ecs.Digest) {
	v := storetest.Verified(t, dir)
	seqs := []uint64{0}
	for _, e := range v.Log().Entries {
		seqs = append(seqs, e.ID.Seq)
	}
	for _, seq := range seqs {
		if im, err := v.At(storetest.Background, seq); err == nil {
			digests = append(digests, im.Digest())
		}
	}
	return digests
}

func TestDamage_EveryBitOfSmallStore(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	c := newCampaign(t, s.Tree, s.Digest, earlier(t, s.Dir)...)
	for _, name := range c.names {
		bits := 8 * len(c.tree[name])
		step := max(1, bits/share(bits, 400))
		for bit := c.rng.IntN(step); bit < bits; bit += step {
			c.flip(name, bit)
		}
		for range share(2000, 6) {
			c.thorough(name, c.rng.IntN(bits))
		}
		for sector := range (len(c.tree[name]) + 511) / 512 {
			c.zero(name, sector)
		}
		for range share(500, 10) {
			c.cut(name, c.rng.IntN(len(c.tree[name])))
		}
	}
	for range share(2000, 30) {
		c.exchange()
	}
	c.report()
}

// A link in place of a file is reported as damage, wherever it leads.
func TestDamage_EveryFileLinked(t *testing.T) {
	t.Parallel()
	s := storetest.NewSample(t)
	for name, data := range s.Tree {
		if data == "" || name == "LOCK" {
			continue
		}
		dir := storetest.CopyDir(t, s.Dir)
		at := filepath.Join(dir, name)
		require.NoError(t, os.Rename(at, filepath.Join(dir, "moved")))
		require.NoError(t, os.Symlink(filepath.Join(dir, "moved"), at))
		v, err := inspect.OpenReadOnly(storetest.Background, dir)
		require.NoError(t, err, name)
		r, err := v.Verify(storetest.Background)
		require.NoError(t, err, name)
		require.True(t, slices.ContainsFunc(r.Problems, func(err error) bool { return strings.Contains(err.Error(), name) }), "%s: %v", name, r.Problems)
		require.NoError(t, v.Close())
		w := storetest.New(0)
		store, err := persist.Open(storetest.Background, dir, w.World, persist.Options{})
		if err == nil {
			require.NotEmpty(t, store.Report().Skipped, name)
			require.Equal(t, s.Digest, storetest.Persistent(w.World), name)
			storetest.CloseStore(t, store)
		}
		info, err := os.Lstat(at)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, "%s was replaced", name)
	}
}

// After a bit is flipped, Open never returns a wrong state. The store may lose ticks that were not
// acknowledged as durable. The journal may have a durable mark after an acknowledged tick. Then
// losing that tick must be an error.
func TestDamage_EveryBitOfUncleanEnd(t *testing.T) {
	t.Parallel()
	r := newRun(t, 5)
	for range 3 {
		r.tick()
	}
	r.sync()
	name := storetest.Segments(t, r.dir)[0]
	// end waits until the given number of records and a durable mark after them are in the file. It
	// returns the offset at which the records end.
	end := func(records int) int {
		var last journal.Entry
		require.Eventually(t, func() bool {
			log, err := journal.Scan(storetest.Background, disk.Sub(files(t, r.dir), catalog.JournalDir), 0, nil)
			require.NoError(t, err)
			defer log.Close()
			last = log.Entries[len(log.Entries)-1]
			marked := log.Segments[0].Size - last.Offset - int64(last.Length)
			return len(log.Entries) == records && (records > 3 || marked >= 2*48)
		}, 30*time.Second, time.Millisecond)
		return int(last.Offset+48+int64(last.Length)+7) &^ 7
	}
	durable := end(3)
	r.tick()
	r.tick()
	end(5)
	tree := storetest.ReadTree(t, storetest.CopyDir(t, r.dir))
	var accept []ecs.Digest
	for d, commit := range r.digests {
		if commit >= r.synced {
			accept = append(accept, d)
		}
	}
	newest := storetest.Persistent(r.world.World)
	r.world.ReleaseAll()
	storetest.CloseStore(t, r.store)

	c := newCampaign(t, tree, newest, accept...)
	bits := 8 * len(tree[name])
	step := max(1, bits/share(bits, 400))
	for bit := c.rng.IntN(step); bit < bits; bit += step {
		if bit/8 < durable {
			c.flip(name, bit)
			continue
		}
		c.count["bits flipped that nothing vouches for"]++
		data := slices.Clone(c.tree[name])
		data[bit/8] ^= 1 << (bit % 8)
		files := c.files.Clone()
		files.Put(name, data)
		require.True(t, c.opens(files, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), false))
	}
	c.report()
}

// Damage is also detected in a large store. It has files of many blocks, several segments, and
// several generations of shared pages.
func TestDamage_FlipsInLargeStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(1, 1))
	w := storetest.New(4)
	for opening := range 3 {
		if opening > 0 {
			w = storetest.New(4)
		}
		s := storetest.Open(t, dir, w, persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}, 100_000))
		for range 8 {
			w.Fill(share(600, 150))
			for range 20 {
				w.Position.Set(w.Entities()[rng.IntN(w.Len())], storetest.Position{X: rng.Float32(), Y: 1})
			}
			require.NoError(t, s.Commit())
			if rng.IntN(4) == 0 {
				_ = w.History().Rewind(1)
			}
		}
		_, err := s.Snapshot(storetest.Background)
		require.NoError(t, err)
		storetest.CloseStore(t, s)
	}
	c := newCampaign(t, storetest.ReadTree(t, dir), storetest.Persistent(w.World), earlier(t, dir)...)
	total := 0
	for _, name := range c.names {
		total += len(c.tree[name])
	}
	t.Logf("%d files, %d bytes", len(c.names), total)
	n := cmp.Or(*flipCount, 100)
	for i := range n {
		name := c.pick()
		switch {
		case i%500 == 0:
			c.thorough(name, c.rng.IntN(8*len(c.tree[name])))
		case i%500 == 1:
			c.cut(name, c.rng.IntN(len(c.tree[name])))
		case i%500 == 2:
			c.exchange()
		case i%10 == 3:
			c.zero(name, c.rng.IntN((len(c.tree[name])+511)/512))
		default:
			c.flip(name, c.rng.IntN(8*len(c.tree[name])))
		}
	}
	c.report()
}
