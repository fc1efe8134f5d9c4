package persist_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A boundRun runs a random program on a store with some retention, and records every state that the
// program commits.
type boundRun struct {
	t       *testing.T
	rng     *rand.Rand
	files   disk.FS
	options persist.Options
	now     time.Time

	world   *storetest.World
	store   *persist.Store
	states  map[uint64]boundState // Committed states by record.
	named   map[string]ecs.Digest
	newest  uint64 // The last record.
	marks   int    // Number of ticks with marks.
	before  int    // Marks that were pruned in earlier openings.
	left    int    // Branches that were pruned in earlier openings.
	checked int    // Number of snapshots checked.
	most    int64  // The largest size of the store.
}

// A boundState is the state after a record.
type boundState struct {
	parent, tick uint64
	time         time.Time
	digest       ecs.Digest
}

// retentions returns retentions with very different settings. bytes is a bound for some of them.
func retentions(bytes int64) []persist.Retention {
	return []persist.Retention{
		{}, {Bytes: bytes}, {Bytes: 1}, {Last: 2}, {Ticks: 30}, {Age: 40 * time.Minute}, {KeepAll: true},
		{Last: 3, Every: time.Hour}, {Ticks: 100, Bytes: bytes}, {Every: 30 * time.Minute, Bytes: bytes},
		{Age: time.Hour, Ticks: 20, Last: 2, Every: time.Hour, Bytes: bytes},
	}
}

// Retention must keep required data, for example slots, even above the bound. It keeps requested
// data, for example the last 30 ticks, if the bound allows it. All states that the store reports
// can be read and are correct.
func TestRetention_KeepsBoundAndRequiredData(t *testing.T) {
	const bytes = 160 << 10
	for i, retain := range retentions(bytes) {
		t.Run(fmt.Sprintf("%+v", retain), func(t *testing.T) {
			t.Parallel()
			for seed := range deep.Or[uint64](1, 20) {
				r := &boundRun{t: t, rng: rand.New(rand.NewPCG(seed, uint64(i))), files: disk.Memory(),
					now: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), states: map[uint64]boundState{}, named: map[string]ecs.Digest{}}
				r.options = persist.Bounded(persist.Options{
					Sync: journal.SyncNever, SnapshotBytes: []int64{3000, 6000, 0}[(seed+uint64(i))%3], Retain: retain,
					Now: func() time.Time { return r.now },
				}, bytes)
				r.open("")
				r.states[0] = boundState{digest: storetest.Persistent(r.world.World)}
				for range 400 {
					r.step()
				}
				r.close()
				require.Greater(t, r.checked, 1)
				t.Logf("seed %d: %d snapshots, at most %d bytes, %d marks and %d branches pruned", seed, r.checked, r.most, r.before, r.left)
			}
		})
	}
}

func (r *boundRun) open(at string) {
	r.t.Helper()
	r.options.At = at
	r.world = storetest.New(12)
	var err error
	r.store, err = persist.Open(storetest.Background, ".", r.world.World, storetest.In(r.files, r.options))
	require.NoError(r.t, err)
}

// close closes the store and resets the counters.
func (r *boundRun) close() {
	r.t.Helper()
	r.world.ReleaseAll()
	if r.world.Raw().Dirty() {
		r.commit()
	}
	r.store.Settle()
	m := r.store.Metrics()
	r.before, r.left = r.before+m.PrunedMarks, r.left+m.PrunedBranches
	storetest.CloseStore(r.t, r.store)
}

// step does a random action, and checks the store if there is a new snapshot.
func (r *boundRun) step() {
	r.t.Helper()
	switch k := r.rng.IntN(60); {
	case k == 0:
		_ = r.world.History().Rewind(1 + r.rng.IntN(8))
	case k == 1 && len(r.named) < 3:
		r.world.ReleaseAll()
		if r.world.Raw().Dirty() {
			r.commit()
		}
		name := fmt.Sprint("name", len(r.named))
		_, err := r.store.SaveSlot(storetest.Background, name, "")
		require.NoError(r.t, err)
		r.named[name] = storetest.Persistent(r.world.World)
		r.look()
	case k == 2:
		r.close()
		at := ""
		if r.rng.IntN(3) == 0 {
			at = r.somewhere()
		}
		r.open(at)
	default:
		r.world.Do(storetest.RandomActions(r.rng, 6)...)
		if r.world.Len() < 30 {
			r.world.Fill(30)
		}
		if r.rng.IntN(10) == 0 {
			require.NoError(r.t, r.store.Mark("m"))
			r.marks++
		}
		before := r.store.Metrics().Snapshots
		r.commit()
		_, err := r.store.Written(storetest.Background)
		require.NoError(r.t, err)
		if r.store.Metrics().Snapshots > before {
			r.look()
		}
	}
}

// commit ends a tick and records its state.
func (r *boundRun) commit() {
	r.t.Helper()
	r.now = r.now.Add(time.Minute)
	parent := r.world.Raw().Seq()
	require.NoError(r.t, r.store.Commit())
	r.newest = r.world.Raw().Seq()
	r.states[r.newest] = boundState{parent, r.world.Tick(), r.now, storetest.Persistent(r.world.World)}
}

// somewhere returns a random state that the store reports as available.
func (r *boundRun) somewhere() string {
	r.t.Helper()
	v := r.view()
	defer v.Close()
	first, err := v.Resolve("@first")
	require.NoError(r.t, err)
	way := []uint64{v.Head()}
	for way[len(way)-1] > first {
		way = append(way, r.states[way[len(way)-1]].parent)
	}
	require.Equal(r.t, first, way[len(way)-1])
	return fmt.Sprintf("record:%d", way[r.rng.IntN(len(way))])
}

// look compares the store with the states that the program committed.
func (r *boundRun) look() {
	r.t.Helper()
	require.NoError(r.t, r.store.Sync(storetest.Background))
	m := r.store.Metrics()
	kept := m.Kept
	r.checked++
	r.most = max(r.most, m.DiskBytes)
	require.NoError(r.t, m.LastSnapshot.RemoveErr)
	require.Equal(r.t, kept.Bytes, m.DiskBytes)
	require.Equal(r.t, r.snapshotBytes(), m.SnapshotBytes)
	v := r.view()
	defer v.Close()
	require.Empty(r.t, v.Damage())
	r.at(v, v.Head(), r.states[v.Head()].digest)
	r.lookAtNames(v)
	if r.world.Raw().Seq() != r.newest {
		// The world was rewound, and no record continues its state yet. So the store's head is a
		// newer state.
		return
	}
	r.lookAtBound(kept)
	r.lookAtMusts(v)
	r.lookAtWishes(v, kept)
	r.lookAtClaims(v, kept)
	marks, err := v.Marks(storetest.Background)
	require.NoError(r.t, err)
	marked := map[uint64]bool{}
	for _, m := range marks {
		marked[m.Seq] = true
	}
	require.Equal(r.t, r.marks, len(marked)+r.before+m.PrunedMarks, "marks are in the journal or counted as pruned")
	require.Equal(r.t, r.branches(), r.tips(v)+r.left+m.PrunedBranches, "branches are in the journal or counted as pruned")
}

// view opens the store for reading.
func (r *boundRun) view() *inspect.View {
	r.t.Helper()
	v, err := inspect.OpenFS(storetest.Background, r.files, ".")
	require.NoError(r.t, err)
	return v
}

// snapshotBytes returns the total size of the snapshot files.
func (r *boundRun) snapshotBytes() (n int64) {
	r.t.Helper()
	entries, err := r.files.ReadDir(catalog.SnapshotDir)
	require.NoError(r.t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(r.t, err)
		n += info.Size()
	}
	return n
}

// lookAtBound checks that the kept data is within the bound or is required.
func (r *boundRun) lookAtBound(kept persist.RetentionStatus) {
	r.t.Helper()
	retain := r.options.Retain
	if bounded := !retain.KeepAll && (retain.Bytes > 0 || retain.Last+retain.Ticks+int(retain.Age) == 0); !bounded {
		require.Zero(r.t, kept.Bound)
		return
	}
	require.Positive(r.t, kept.Bound)
	if kept.Bytes > kept.Bound && !strings.HasSuffix(kept.Reason, "whatever the bound") {
		require.Regexp(r.t, "^all data, because (no two snapshots without a shared file exist|the store was above the default bound)", kept.Reason)
	}
}

// lookAtNames checks that the named snapshots exist.
func (r *boundRun) lookAtNames(v *inspect.View) {
	r.t.Helper()
	for name, want := range r.named {
		seq, err := v.Resolve("snap:" + name)
		require.NoError(r.t, err)
		r.at(v, seq, want)
	}
}

// lookAtMusts checks that required data exists: retention keeps it even beyond the bound.
func (r *boundRun) lookAtMusts(v *inspect.View) {
	r.t.Helper()
	for seq := r.world.Raw().Seq(); ; seq = r.states[seq].parent {
		r.at(v, seq, r.states[seq].digest)
		if oldest, _ := r.world.Raw().Held(r.store); seq <= oldest {
			break
		}
	}
	if r.options.Retain.KeepAll {
		return
	}
	newest := v.Snapshots()[len(v.Snapshots())-1]
	files := r.filesOf(&newest)
	if !slices.ContainsFunc(v.Snapshots(), func(s inspect.SnapshotInfo) bool {
		return !slices.ContainsFunc(r.filesOf(&s), func(n uint32) bool { return slices.Contains(files, n) }) && r.leadsToHead(s.ID.Seq)
	}) {
		require.Regexp(r.t, "no two snapshots without|the store was above", r.store.Metrics().Kept.Reason)
	}
}

func (r *boundRun) filesOf(s *inspect.SnapshotInfo) []uint32 {
	return append([]uint32{s.Number}, s.Files...)
}

// leadsToHead reports whether the record with seq from is an ancestor of the world's state.
func (r *boundRun) leadsToHead(from uint64) bool {
	seq := r.world.Raw().Seq()
	for seq > from {
		seq = r.states[seq].parent
	}
	return seq == from
}

// lookAtWishes checks that the requested data exists, unless the bound prevents it.
func (r *boundRun) lookAtWishes(v *inspect.View, kept persist.RetentionStatus) {
	r.t.Helper()
	retain, newest := r.options.Retain, v.Snapshots()[len(v.Snapshots())-1]
	if kept.Reason != "the data that Retain requests" {
		return
	}
	if retain.Ticks > 0 {
		require.LessOrEqual(r.t, kept.Tick+uint64(retain.Ticks), newest.Tick)
	}
	if retain.Age > 0 {
		require.GreaterOrEqual(r.t, newest.Time.Sub(r.states[kept.Record].time), retain.Age)
	}
	if retain.Last > 0 {
		on := 0
		for _, s := range v.Snapshots() {
			if r.leadsToHead(s.ID.Seq) {
				on++
			}
		}
		require.GreaterOrEqual(r.t, on, retain.Last)
	}
}

// lookAtClaims checks that the reported states exist, and that older states are reported as pruned.
func (r *boundRun) lookAtClaims(v *inspect.View, kept persist.RetentionStatus) {
	r.t.Helper()
	first, err := v.Resolve("@first")
	require.NoError(r.t, err)
	require.Equal(r.t, kept.Record, first)
	head := r.world.Raw().Seq()
	for seq := head; ; seq = r.states[seq].parent {
		if seq == first || r.rng.IntN(20) == 0 {
			r.at(v, seq, r.states[seq].digest)
		}
		if seq <= first {
			break
		}
	}
	if first == 0 {
		return
	}
	there := map[uint64]bool{}
	for _, s := range v.Snapshots() {
		there[s.ID.Seq] = true
	}
	for range 5 {
		gone := r.rng.Uint64N(first)
		if there[gone] {
			continue
		}
		seq, err := v.Resolve(fmt.Sprintf("record:%d", gone))
		if err == nil {
			_, err = v.At(storetest.Background, seq)
		}
		if err == nil { // A named or periodic snapshot has this state.
			continue
		}
		require.ErrorIs(r.t, err, persist.ErrNotFound)
		require.ErrorContains(r.t, err, fmt.Sprintf("pruned; the oldest is record %d, tick %d", first, kept.Tick))
	}
}

// at checks that a state can be read and is correct.
func (r *boundRun) at(v *inspect.View, seq uint64, want ecs.Digest) {
	r.t.Helper()
	im, err := v.At(storetest.Background, seq)
	require.NoError(r.t, err, "record %d", seq)
	require.Equal(r.t, want, im.Digest(), "record %d", seq)
}

// branches counts the tips of all branches that were ever written.
func (r *boundRun) branches() (n int) {
	continued := map[uint64]bool{r.world.Raw().Seq(): true, 0: true}
	for _, s := range r.states {
		continued[s.parent] = true
	}
	for seq := range r.states {
		if !continued[seq] {
			n++
		}
	}
	return n
}

// tips counts the branch tips in the journal.
func (r *boundRun) tips(v *inspect.View) (n int) {
	for _, e := range v.Tips() {
		if e.ID.Seq != r.world.Raw().Seq() {
			n++
		}
	}
	return n
}

// Without a configured bound, a store above the default bound is not pruned, and the report says
// so.
func TestRetention_AboveDefaultBound(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	run := func(retain persist.Retention) (persist.Report, persist.Metrics, int) {
		w := storetest.New(0)
		s := storetest.Open(t, dir, w, persist.Bounded(persist.Options{Sync: journal.SyncNever, SnapshotBytes: 4000, Retain: retain}, 100<<10))
		removed := 0
		for range 60 {
			w.Clear()
			w.Fill(30)
			require.NoError(t, s.Mark("m"))
			require.NoError(t, s.Commit())
			r, err := s.Written(storetest.Background)
			require.NoError(t, err)
			removed += len(r.Removed)
		}
		m, report := s.Metrics(), s.Report()
		storetest.CloseStore(t, s)
		return report, m, removed
	}
	report, _, removed := run(persist.Retention{KeepAll: true})
	require.Zero(t, report.Kept.Bound)
	require.Zero(t, removed)
	bound := int64(0)
	for range 2 {
		report, m, removed := run(persist.Retention{})
		bound = report.Kept.Bound
		require.Zero(t, removed)
		require.Greater(t, report.Kept.Bytes, report.Kept.Bound)
		require.Contains(t, report.String(), fmt.Sprintf("set Retain: persist.Retention{Bytes: %d} to remove the oldest data, or {KeepAll: true}", report.Kept.Bound))
		require.Equal(t, report.Kept.Reason, m.Kept.Reason)
		require.Zero(t, m.PrunedMarks)
	}
	report, m, removed := run(persist.Retention{Bytes: bound})
	require.Contains(t, report.String(), "the next snapshot removes the other data")
	require.Positive(t, removed)
	require.Positive(t, m.PrunedMarks)
	require.LessOrEqual(t, m.DiskBytes, m.Kept.Bound)

	// A store within the default bound stays within it.
	dir = filepath.Join(t.TempDir(), "store")
	for range 4 {
		report, m, removed = run(persist.Retention{})
		require.NotContains(t, report.String(), "kept")
		require.LessOrEqual(t, m.DiskBytes, m.Kept.Bound)
	}
	require.Positive(t, removed)
}

// A snapshot is copied over several ticks, and each tick adds to the journal. If retention limits
// the data, the copy must finish within few ticks.
func TestSnapshot_PaceUnderRetention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retain persist.Retention
		// The number of commits that copy 4 MiB, without the commit that begins the copy. Each tick
		// journals 4 MiB.
		commits int
	}{
		"bytes": {persist.Retention{Bytes: 128 << 20}, 2}, // A 16th of Bytes is 8 MiB.
		"last":  {persist.Retention{Last: 1}, 1},          // A snapshot is due after 6 MiB.
		"ticks": {persist.Retention{Ticks: 9}, 1},
		"all":   {persist.Retention{KeepAll: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := ecs.NewWorld(ecs.Options{})
			cells := ecs.MustRegister(w, ecs.Component[[64]byte]{Name: "cells"})
			for range 64 << 10 {
				cells.Set(w.Create(), [64]byte{})
			}
			s, err := persist.Open(storetest.Background, filepath.Join(t.TempDir(), "store"), w,
				persist.Options{Sync: journal.SyncNever, SnapshotBytes: 6 << 20, Retain: c.retain})
			require.NoError(t, err)
			commit := func() {
				for i, rows := 0, cells.MutValues(); i < len(rows); i++ {
					rows[i][0]++
				}
				require.NoError(t, s.Commit())
			}
			for !s.Copying() {
				commit()
			}
			commits := 0
			// The commit that ends a copy may begin the next copy. So count until the number of the
			// copied snapshot changes.
			for number := s.Copied(); s.Copied() == number; commits++ {
				commit()
			}
			require.LessOrEqual(t, commits, c.commits)
			require.Greater(t, commits, c.commits-2)
			require.NoError(t, s.Close(storetest.Background))
		})
	}
}

// A store above the default bound is not pruned. This is also true for the snapshot that a
// conversion writes.
func TestRetention_ConvertedStoreAboveBound(t *testing.T) {
	t.Parallel()
	type small struct{ X, Y int32 }
	type large struct{ X, Y int64 }
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	at := ecs.MustRegister(w, ecs.Component[small]{Name: "at"})
	kept := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: 10_000, Retain: persist.Retention{KeepAll: true}}, 10_000)
	s, err := persist.Open(storetest.Background, dir, w, kept)
	require.NoError(t, err)
	for range 100 {
		at.Set(w.Create(), small{})
	}
	for range 600 {
		rows := at.MutValues()
		for i := range rows {
			rows[i].X++
		}
		require.NoError(t, s.Commit())
		_, err := s.Written(storetest.Background)
		require.NoError(t, err)
	}
	storetest.CloseStore(t, s)
	files := func() (all []string) {
		for _, pattern := range []string{"journal/*.seg", "snapshots/*"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			all = append(all, found...)
		}
		return all
	}
	before := files()
	w = ecs.NewWorld(ecs.Options{})
	ecs.MustRegister(w, ecs.Component[large]{Name: "at"})
	s, err = persist.Open(storetest.Background, dir, w, persist.Bounded(persist.Options{}, 50_000))
	require.NoError(t, err)
	require.NotEmpty(t, s.Report().Converted)
	require.Contains(t, s.Report().Kept.Reason, "above the default bound")
	storetest.CloseStore(t, s)
	require.Subset(t, files(), before)
}

// The error for a pruned point says that it was pruned, and names the oldest point.
func TestGoto_PrunedPoint(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	options := persist.Segmented(persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1, Retain: persist.Retention{Last: 1}}, 1)
	s := storetest.Open(t, dir, w, options)
	for range 9 {
		w.Fill(10)
		require.NoError(t, s.Mark("early"))
		require.NoError(t, s.Commit())
	}
	for range 2 {
		w.Fill(10)
		require.NoError(t, s.Commit())
		s.ForgetPages()
		storetest.SnapshotOf(t, s)
	}
	w.Fill(10)
	require.NoError(t, s.Commit())
	require.Equal(t, 9, s.Metrics().PrunedMarks)
	storetest.CloseStore(t, s)
	v := view(t, dir)
	for point, what := range map[string]string{
		"3": "tick 3 was", "record:3": "record 3 was", "record:0": "record 0 was", "snap:1": "snapshot 1 was",
		"@latest~7": "the tick 7 before @latest was", "@-5h": "the state 5h0m0s before the newest one was",
	} {
		_, err := v.Resolve(point)
		require.ErrorIs(t, err, persist.ErrNotFound)
		require.ErrorContains(t, err, what+" pruned; the oldest is record 10, tick 10")
		_, err = persist.Open(storetest.Background, dir, storetest.New(0).World, persist.Options{At: point})
		require.ErrorContains(t, err, what+" pruned; the oldest is record 10, tick 10")
	}
	_, err := v.At(storetest.Background, 3)
	require.ErrorContains(t, err, "record 3 was pruned; the oldest is record 10, tick 10")
	_, err = v.Resolve("mark:early")
	require.ErrorContains(t, err, `mark "early"; there are none; those before record 10, tick 10, were pruned`)
	_, err = v.Resolve("77")
	require.ErrorContains(t, err, "tick 77; the path to the newest state ends with tick 12")
	first, err := v.Resolve("@first")
	require.NoError(t, err)
	require.EqualValues(t, 10, first)
	p, err := inspect.OpenPlayer(storetest.Background, dir, storetest.New(0).World, inspect.PlayerOptions{})
	require.NoError(t, err)
	defer p.Close()
	require.ErrorContains(t, p.Seek(storetest.Background, 3), "tick 3 was pruned; the oldest is record 10, tick 10")
}
