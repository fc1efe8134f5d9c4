package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// testOptions are the options of a small factory without reports.
func testOptions() options {
	return options{plants: 5, workers: 1, report: 100, every: 16, out: io.Discard}
}

// newTest returns a factory with a random seed, which decides when machines break.
func newTest(t *testing.T, o options) *factory {
	t.Helper()
	f, seed := newFactory(ecs.Options{}, o), rand.Uint64()
	t.Logf("seed %d", seed)
	f.systems.Seed(seed)
	return f
}

func (f *factory) ticks(n int) {
	for range n {
		f.systems.Step(struct{}{})
		f.world.Commit()
	}
}

// requireBalance checks that no item appeared or vanished, and that no machine has too many items.
func (f *factory) requireBalance(t *testing.T) {
	t.Helper()
	var held, want [items]int64
	for _, b := range f.Belt.All() {
		if b.Item != None {
			held[b.Item]++
		}
	}
	for _, c := range f.Chest.All() {
		held[c.Item] += c.Count
	}
	for e, m := range f.Machine.All() {
		for item, n := range m.Stock {
			portion := recipes[m.Makes].needs[item]
			if Item(item) == m.Makes {
				portion = recipes[m.Makes].yield
			}
			if n < 0 || n > limit*portion {
				t.Fatalf("tick %d: %v has %d %v", f.world.Tick(), e, n, Item(item))
			}
			held[item] += int64(n)
		}
	}
	totals := f.Totals.Get()
	for i := range want {
		want[i] = totals.Made[i] - totals.Used[i] - totals.Shipped[i] - totals.Lost[i]
	}
	require.Equal(t, want, held, "tick %d", f.world.Tick())
}

func TestFactory_ItemsBalance(t *testing.T) {
	o := testOptions()
	o.plants = 20
	f := newTest(t, o)
	for range 1000 {
		f.ticks(1)
		f.requireBalance(t)
	}
	totals := f.Totals.Get()
	for item := Iron; item < items; item++ {
		require.Positive(t, totals.Made[item], item)
	}
	require.Positive(t, totals.Shipped[Motor])
	require.Positive(t, totals.Lost[Iron])
	require.EqualValues(t, 30, totals.Built)
	require.Positive(t, totals.Breaks)
}

// An item moves by at most one belt per tick. After a belt was removed, the system carry() visits
// the belts in another order. The rule still holds then.
func TestCarry_ItemMovesOneBeltPerTick(t *testing.T) {
	f := newTest(t, testOptions())
	f.ticks(1)
	f.world.Destroy(f.Belt.Entities()[beltLen+1])
	moved := 0
	for range 1000 {
		before := map[ecs.Entity]Item{}
		for e, b := range f.Belt.All() {
			before[e] = b.Item
		}
		f.ticks(1)
		for e, b := range f.Belt.All() {
			from, _ := f.feeders.First(e)
			if item, isBelt := before[from]; isBelt && b.Item != None && b.Since == f.world.Tick() {
				require.Equal(t, b.Item, item, "tick %d: from %v to %v", f.world.Tick(), from, e)
				moved++
			}
		}
	}
	require.Greater(t, moved, 10000)
}

func TestCarry_LineTakesOneTickPerBelt(t *testing.T) {
	f := newTest(t, testOptions())
	machine := f.firstMiner(t)
	for n := range 1 + beltLen {
		require.Zero(t, f.arrived(machine, Iron), n)
		f.ticks(1)
		machine = f.firstMiner(t)
	}
	require.EqualValues(t, 1, f.arrived(machine, Iron))
}

// firstMiner returns the first miner, or None in a new world.
func (f *factory) firstMiner(t *testing.T) ecs.Entity {
	t.Helper()
	for e, m := range f.Machine.All() {
		if m.Makes == Iron {
			return e
		}
	}
	return ecs.None
}

// arrived returns how many items the next machine after a miner has received.
func (f *factory) arrived(miner ecs.Entity, item Item) int32 {
	for next := range f.feeders.Ancestors(miner) {
		if m, ok := f.Machine.Get(next); ok {
			return m.Stock[item]
		}
	}
	return 0
}

// renew destroys all parts of the plant that it replaces.
func TestRenew_DestroysAllParts(t *testing.T) {
	f := newTest(t, testOptions())
	f.ticks(99)
	plants := map[ecs.Entity]bool{}
	for e := range f.Plant.All() {
		plants[e] = true
	}
	size := f.world.Len()
	f.ticks(1)
	require.Equal(t, size, f.world.Len())
	require.Equal(t, 5, f.Plant.Len())
	kept := 0
	for e := range f.Plant.All() {
		if plants[e] {
			kept++
		}
	}
	require.Equal(t, 4, kept)
	for e, p := range f.PartOf.All() {
		require.True(t, f.Plant.Has(p.Plant), e)
	}
	for e, feeds := range f.Feeds.All() {
		require.True(t, f.world.Alive(feeds.To), e)
	}
	require.Equal(t, 5*(6*beltLen+6), f.Feeds.Len())
}

// When a machine is destroyed, the relation removes the component Feeds of the belt that leads to
// the machine. The factory still runs.
func TestFeeds_MachineRemoved(t *testing.T) {
	f := newTest(t, testOptions())
	f.ticks(1)
	var machine ecs.Entity
	for e, m := range f.Machine.All() {
		if m.Makes == Gear {
			machine = e
		}
	}
	require.Equal(t, 1, f.feeders.Len(machine))
	require.True(t, f.world.Destroy(machine))
	require.Equal(t, 5*(6*beltLen+6)-2, f.Feeds.Len())
	made := f.Totals.Get().Made
	f.ticks(50)
	require.NotEqual(t, made, f.Totals.Get().Made)
	require.Equal(t, 5*(6*beltLen+6)-2, f.Feeds.Len())
}

// A broken machine makes nothing until it is repaired.
func TestWear_BrokenMachines(t *testing.T) {
	f := newTest(t, testOptions())
	f.ticks(50)
	for _, e := range f.Machine.Entities() {
		f.Broken.Set(e, Broken{Until: 70})
	}
	made := f.Totals.Get().Made
	f.ticks(20)
	require.Equal(t, made, f.Totals.Get().Made)
	require.Less(t, f.Broken.Len(), f.Machine.Len()/2)
	f.ticks(10)
	require.Greater(t, f.Totals.Get().Made[Iron], made[Iron])
}

func TestWorkers_SameDigests(t *testing.T) {
	var all []*factory
	for _, workers := range []int{1, 2, 4} {
		o := testOptions()
		o.workers = workers
		all = append(all, newFactory(ecs.Options{}, o))
	}
	for range 400 {
		for _, f := range all {
			f.ticks(1)
			require.Equal(t, all[0].world.Digest(), f.world.Digest(), "tick %d", f.world.Tick())
		}
	}
}

// SyncTest runs each tick again with other permitted orders of the systems, and compares the
// results.
func TestSystems_Deterministic(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFactory(ecs.Options{History: 4}, testOptions())
	test, err := f.systems.SyncTest(4)
	require.NoError(t, err)
	test.Shuffle(seed)
	for range 210 {
		require.NoError(t, test.Step(struct{}{}))
	}
}

// naiveReport computes a report from the events that the test has counted. It uses no totals,
// relations or filters.
func (f *factory) naiveReport(made map[Item]int64, built, breaks int) string {
	var b strings.Builder
	write := func(counts map[Item]int64) {
		for item := None; item < items; item++ {
			if counts[item] > 0 {
				fmt.Fprintf(&b, " %d %v", counts[item], item)
			}
		}
	}
	fmt.Fprintf(&b, "tick %d: made", f.world.Tick())
	write(made)
	fmt.Fprintf(&b, "; %d plants, %d built, %d breaks, %d broken\n", f.Plant.Len(), built, breaks, f.Broken.Len())
	jammed := map[Item]map[Item]int64{}
	full := func(m Machine) bool { return m.Stock[m.Makes]+recipes[m.Makes].yield > m.Limit*recipes[m.Makes].yield }
	for _, e := range f.world.Entities() {
		first, ok := f.Machine.Get(e)
		if !ok || !full(first) {
			continue
		}
		cause := None
		for next, ok := f.Feeds.Get(e); ok && cause == None; next, ok = f.Feeds.Get(next.To) {
			if m, ok := f.Machine.Get(next.To); ok && !full(m) {
				cause = m.Makes
			}
		}
		if jammed[cause] == nil {
			jammed[cause] = map[Item]int64{}
		}
		jammed[cause][first.Makes]++
	}
	for item := None; item < items; item++ {
		if counts := jammed[item]; len(counts) > 0 {
			fmt.Fprintf(&b, "tick %d: %v holds up", f.world.Tick(), item)
			write(counts)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestReport_EqualsNaiveReport(t *testing.T) {
	var out bytes.Buffer
	o := testOptions()
	o.plants, o.report, o.out = 20, 40, &out
	f := newTest(t, o)
	made, built, breaks, lines := map[Item]int64{}, 0, 0, 0
	for tick := 1; tick <= 1000; tick++ {
		f.ticks(1)
		for p := range f.Produced.Last() {
			made[p.Item] += int64(recipes[p.Item].yield)
		}
		for range f.Built.Last() {
			built++
		}
		for range f.Break.Last() {
			breaks++
		}
		if tick%40 > 0 {
			require.Empty(t, out.String())
			continue
		}
		require.Equal(t, f.naiveReport(made, built, breaks), out.String())
		lines += strings.Count(out.String(), "\n")
		out.Reset()
		clear(made)
	}
	require.Greater(t, lines, 2*1000/40, "the factory has bottlenecks")
}

// output runs the program, and returns what it prints.
func output(t *testing.T, o options) string {
	t.Helper()
	var out bytes.Buffer
	o.out = &out
	require.NoError(t, run(t.Context(), o))
	return out.String()
}

// lastDigest returns the digest in the last line of an output.
func lastDigest(t *testing.T, output string) (digest string) {
	t.Helper()
	_, line, ok := strings.Cut(output, "digest ")
	require.True(t, ok, output)
	digest, _, _ = strings.Cut(line, ",")
	return digest
}

// A run that is stopped and continued ends like an uninterrupted run. So does a run that is saved
// and loaded.
func TestRun_ContinuedAndLoaded(t *testing.T) {
	o := testOptions()
	o.ticks = 330
	want := lastDigest(t, output(t, o))
	dir := t.TempDir()
	o.dir = filepath.Join(dir, "store")
	for _, o.ticks = range []uint64{101, 110, 230} {
		o.save = filepath.Join(dir, fmt.Sprint(o.ticks))
		output(t, o)
	}
	o.ticks, o.save = 330, ""
	require.Equal(t, want, lastDigest(t, output(t, o)), "continued")

	o.load = filepath.Join(dir, "110")
	require.ErrorContains(t, run(t.Context(), o), "both world and directory hold a state")
	o.dir = ""
	require.Equal(t, want, lastDigest(t, output(t, o)), "loaded into memory")
	o.dir, o.ticks = filepath.Join(dir, "other"), 300
	output(t, o)
	o.load, o.ticks = "", 330
	require.Equal(t, want, lastDigest(t, output(t, o)), "loaded into a store, and continued")
}

func TestSave_LoadsSameWorld(t *testing.T) {
	o := testOptions()
	f := newTest(t, o)
	f.ticks(123)
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), file, f.world))
	g := newFactory(ecs.Options{}, o)
	require.NoError(t, persist.Load(t.Context(), file, g.world))
	require.Equal(t, f.world.Digest(), g.world.Digest())
	require.Empty(t, g.world.Raw().Converted())
	g.requireBalance(t)
}

func TestRun_WrongOptions(t *testing.T) {
	o := testOptions()
	o.plants = 0
	require.ErrorContains(t, run(context.Background(), o), "wants")
}

// The README shows the plan of the systems.
func TestExplain_InReadme(t *testing.T) {
	o := testOptions()
	o.explain = true
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "\n    "+strings.ReplaceAll(strings.TrimSpace(output(t, o)), "\n", "\n    ")+"\n")
}

// BenchmarkTick measures a tick of the whole factory, and what it adds to the journal.
func BenchmarkTick(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			o := testOptions()
			o.plants, o.workers = 510, workers
			f := newFactory(ecs.Options{}, o)
			f.ticks(300)
			for b.Loop() {
				f.ticks(1)
			}
			b.Log(f.systems.Times())
		})
	}
	for _, every := range []int{0, 4, 16} {
		b.Run(fmt.Sprintf("every=%d", every), func(b *testing.B) {
			o := testOptions()
			o.plants = 510
			f := newFactory(ecs.Options{}, o)
			f.ticks(304)
			store, err := persist.Open(b.Context(), b.TempDir(), f.world, persist.Options{CommitEvery: every})
			require.NoError(b, err)
			before := store.Metrics().JournalBytes
			n := 0
			for b.Loop() {
				f.systems.Step(struct{}{})
				require.NoError(b, store.Commit())
				n++
			}
			require.NoError(b, store.Sync(b.Context()))
			b.ReportMetric(float64(store.Metrics().JournalBytes-before)/float64(n), "journal-B/tick")
			require.NoError(b, store.Close(b.Context()))
		})
	}
}

func BenchmarkSave(b *testing.B) {
	o := testOptions()
	o.plants = 510
	f := newFactory(ecs.Options{}, o)
	f.ticks(1000)
	for _, compress := range []bool{false, true} {
		b.Run(fmt.Sprintf("compress=%v", compress), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "save")
			for b.Loop() {
				require.NoError(b, persist.Save(b.Context(), file, f.world, persist.FileOptions{Compress: compress}))
			}
			info, err := os.Stat(file)
			require.NoError(b, err)
			b.ReportMetric(float64(info.Size()), "bytes")
		})
	}
}
