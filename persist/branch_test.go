package persist

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// headOf returns the record and the state that recovery of dir leads to.
func headOf(t testing.TB, dir string) (uint64, ecs.Digest) {
	t.Helper()
	v := verified(t, dir)
	im, err := v.At(background, v.Head())
	require.NoError(t, err)
	return v.Head(), im.Digest()
}

// branching returns a closed store of ten ticks with a snapshot at the seventh,
// and the digests by record.
func branching(t testing.TB) (string, map[uint64]ecs.Digest) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	digests := map[uint64]ecs.Digest{0: persistent(w.World)}
	for i := range uint64(10) {
		w.fill(2)
		require.NoError(t, s.Commit())
		digests[i+1] = persistent(w.World)
		if i == 6 {
			s.ForgetPages() // In full.
			snapshotOf(t, s)
		}
	}
	closeStore(t, s)
	return dir, digests
}

func TestAStoreOpenedAtAnOlderTickBranchesThere(t *testing.T) {
	dir, digests := branching(t)
	w := newTestWorld(5)
	s := open(t, dir, w, Options{At: "4"})
	require.Equal(t, digests[4], persistent(w.World))
	require.Equal(t, uint64(4), s.Report().Tick)
	require.Equal(t, "snapshots/00000001.snap", s.Report().Snapshot)

	crashed := copyDir(t, dir) // Nothing was committed: the newest state is what it was.
	head, digest := headOf(t, crashed)
	require.Equal(t, uint64(10), head)
	require.Equal(t, digests[10], digest)

	w.fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(background))
	crashed = copyDir(t, dir) // Now it is the branch.
	head, digest = headOf(t, crashed)
	require.Equal(t, uint64(11), head)
	require.Equal(t, persistent(w.World), digest)
	closeStore(t, s)

	v := verified(t, dir)
	commits, err := v.Commits(1, 11)
	require.NoError(t, err)
	require.Len(t, commits, 11)
	require.Equal(t, uint64(4), commits[10].Parent)
	require.Equal(t, uint64(5), commits[10].Tick)
	for i, c := range commits {
		require.Equal(t, i < 4 || i == 10, c.OnHead, c.Seq)
	}
	for seq, digest := range digests { // The branch left behind can still be read,
		im, err := v.At(background, seq)
		require.NoError(t, err)
		require.Equal(t, digest, im.Digest(), seq)
	}
	s = open(t, dir, newTestWorld(0), Options{At: "seq:9"}) // and gone back to.
	require.Equal(t, digests[9], persistent(s.World()))
	closeStore(t, s)
	head, digest = headOf(t, dir)
	require.Equal(t, uint64(9), head)
	require.Equal(t, digests[9], digest)
}

func TestClosingAtAnOlderTickSealsTheJournalThere(t *testing.T) {
	for point, want := range map[string]uint64{"@latest~3": 7, "@first": 0, "snap:2": 7, "6": 6, "@latest": 10} {
		dir, digests := branching(t)
		s := open(t, dir, newTestWorld(0), Options{At: point})
		require.Equal(t, digests[want], persistent(s.World()), point)
		closeStore(t, s)
		head, digest := headOf(t, dir)
		require.Equal(t, want, head, point)
		require.Equal(t, digests[want], digest, point)
		w := newTestWorld(0)
		s = open(t, dir, w, Options{})
		require.True(t, s.Report().Clean)
		require.Equal(t, digests[want], persistent(w.World), point)
		closeStore(t, s)
	}
}

func TestAPointThatIsNotThereLeavesEverythingAsItWas(t *testing.T) {
	dir, _ := branching(t)
	before := readTree(t, dir)
	for point, want := range map[string]error{"99": ErrNotFound, "seq:11": ErrNotFound, "noon": ErrPoint, "snap:9": ErrNotFound} {
		w := newTestWorld(0)
		digest := w.Digest()
		_, err := Open(background, dir, w.World, Options{At: point})
		require.ErrorIs(t, err, want, point)
		require.Equal(t, digest, w.Digest())
		require.Equal(t, before, readTree(t, dir))
	}
	fresh := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	w.fill(2)
	_, err := Open(background, fresh, w.World, Options{At: "3"})
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, filesOf(t, fresh, "*/*"))
	s := open(t, fresh, w, Options{}) // The directory is still a new one.
	require.True(t, s.Report().Fresh)
	closeStore(t, s)
}

func TestSnapshotsOfABranchAreNotTakenForThoseOfAnother(t *testing.T) {
	dir, digests := branching(t)
	w := newTestWorld(0)
	s := open(t, dir, w, Options{At: "@latest~6", SnapshotBytes: -1})
	snapshotOf(t, s) // Of record 4, in file 3, later than the one of record 7.
	w.fill(1)
	require.NoError(t, s.Commit())
	want := persistent(w.World)
	closeStore(t, s)
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, want, persistent(again.World))
	require.Equal(t, "snapshots/00000003.snap", s.Report().Snapshot)
	closeStore(t, s)
	v := verified(t, dir)
	im, err := v.At(background, 10)
	require.NoError(t, err)
	require.Equal(t, digests[10], im.Digest())
}

// What lies on the branch that was left leads to no tick of this one: it is not
// counted among what must stay.
func TestSnapshotsOfABranchThatWasLeftAreNotKeptForThisOne(t *testing.T) {
	dir, _ := branching(t)
	w := newTestWorld(0)
	s := open(t, dir, w, Options{At: "4", SnapshotBytes: -1, Retain: Retention{Last: 1}})
	w.fill(1)
	require.NoError(t, s.Commit())
	s.ForgetPages() // In full.
	require.Equal(t, []string{"snapshots/00000002.snap"}, snapshotOf(t, s).Removed)
	closeStore(t, s)
	require.NoError(t, flipAt(filepath.Join(dir, "snapshots/00000003.snap"), 9000))
	require.Equal(t, persistent(w.World), persistent(opened(t, dir).World))
}

// A component that was registered after the point is none of the branch, whose
// own components may have its number.
func TestABranchHasTheComponentsOfItsPoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := ecs.NewWorld(ecs.Options{})
	p, _ := known(w)
	s, err := Open(background, dir, w, Options{})
	require.NoError(t, err)
	e := w.Create()
	p.Set(e, position{1, 1})
	require.NoError(t, s.Commit())
	late := ecs.MustRegister[bag](w, ecs.CloneWith(cloneBag))
	late.Set(e, bag{Name: "late"})
	require.NoError(t, s.Commit())
	closeStore(t, s)

	w = ecs.NewWorld(ecs.Options{})
	known(w)
	other := ecs.MustRegister[rank](w)
	s, err = Open(background, dir, w, Options{At: "1"})
	require.NoError(t, err)
	require.Empty(t, s.Report().Unknown)
	other.Set(e, rank{3})
	require.NoError(t, s.Commit())
	closeStore(t, s)
	v := verified(t, dir)
	im, err := v.At(background, 2)
	require.NoError(t, err)
	require.NotNil(t, im.Find("bag"))
	im, err = v.At(background, 3)
	require.NoError(t, err)
	require.Nil(t, im.Find("bag"))
	require.Equal(t, w.Digest(), im.Digest())
}

// Random programs commit, rewind, go to any record, close and crash; the naive
// twin is a list of digests by record.
func TestBranchesOfRandomProgramsLeadToTheStatesCommitted(t *testing.T) {
	for i := range uint64(6) {
		rng := rand.New(rand.NewPCG(i, 17))
		dir := filepath.Join(t.TempDir(), "store")
		digests := map[ecs.Digest]bool{}
		bySeq := map[uint64]ecs.Digest{}
		head, at := uint64(0), ""
		for round := range 6 {
			w := newTestWorld(8)
			s := open(t, dir, w, Options{At: at, Sync: journal.SyncNever(), SnapshotBytes: 6000})
			if round == 0 {
				bySeq[0] = persistent(w.World)
			}
			require.Equal(t, bySeq[head], persistent(w.World), "seed %d, round %d, at %q", i, round, at)
			for range rng.IntN(8) {
				w.do(randomActions(rng, 8)...)
				w.seed.Set(seed(rng.Uint64()))
				w.releaseAll()
				head = s.Journal().Next()
				require.NoError(t, s.Commit())
				bySeq[head] = persistent(w.World)
				if rng.IntN(4) == 0 && w.History().Rewind(1) == nil {
					head = w.Mark()
				}
			}
			digests[bySeq[head]] = true
			closeStore(t, s)
			verified(t, dir)
			at = ""
			if seqs := slices.Sorted(maps.Keys(bySeq)); rng.IntN(3) > 0 {
				head = seqs[rng.IntN(len(seqs))]
				at = fmt.Sprint("seq:", head)
			}
		}
	}
}

// Where durable ticks cannot be read, an older state is a way to go on.
func TestAnOlderTickIsAWayPastDamage(t *testing.T) {
	dir, digests := branching(t)
	v := verified(t, dir)
	e, _ := v.Log().Find(9)
	segment := filepath.Join(dir, segments(t, dir)[0])
	data, err := os.ReadFile(segment)
	require.NoError(t, err)
	data[e.Offset+60] ^= 1
	require.NoError(t, os.WriteFile(segment, data, 0o600))
	_, err = Open(background, dir, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrCorrupt)

	w := newTestWorld(0)
	s := open(t, dir, w, Options{At: "seq:8"})
	require.Equal(t, digests[8], persistent(w.World))
	require.Len(t, s.Report().Skipped, 1)
	require.ErrorIs(t, s.Report().Skipped[0], ErrCorrupt)
	crashed := copyDir(t, dir)
	_, err = Open(background, crashed, newTestWorld(0).World, Options{})
	require.ErrorIs(t, err, ErrCorrupt) // Nothing was decided yet.
	elsewhere := newTestWorld(0)
	closeStore(t, open(t, crashed, elsewhere, Options{At: "seq:8"})) // Though it was not closed.
	require.Equal(t, digests[8], persistent(elsewhere.World))
	w.fill(1)
	require.NoError(t, s.Commit())
	require.NoError(t, s.Sync(background))
	crashed = copyDir(t, dir)
	closeStore(t, s)
	for _, dir := range []string{crashed, dir} {
		again := newTestWorld(0)
		s = open(t, dir, again, Options{})
		require.Equal(t, w.Digest(), again.Digest())
		closeStore(t, s)
	}
}

// Damage to ticks that were rewound long ago hides nothing of the state.
func TestDamageToRewoundTicksDoesNotKeepFromOpening(t *testing.T) {
	dir, _ := branching(t)
	w := newTestWorld(0)
	s := open(t, dir, w, Options{At: "4"})
	w.fill(1)
	require.NoError(t, s.Commit())
	closeStore(t, s)
	v := verified(t, dir)
	e, _ := v.Log().Find(9)
	segment := filepath.Join(dir, segments(t, dir)[0])
	data, err := os.ReadFile(segment)
	require.NoError(t, err)
	data[e.Offset+60] ^= 1
	require.NoError(t, os.WriteFile(segment, data, 0o600))
	again := newTestWorld(0)
	s = open(t, dir, again, Options{})
	require.Equal(t, w.Digest(), again.Digest())
	require.Len(t, s.Report().Skipped, 1)
	closeStore(t, s)
}

// A tick whose record is damaged, but whose state is in a snapshot, can be gone on
// from: the next record says which state it continues.
func TestAStoreGoesOnFromASnapshotOfADamagedRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{SnapshotBytes: -1})
	for range 2 {
		w.fill(2)
		require.NoError(t, s.Commit())
	}
	snapshotOf(t, s)
	closeStore(t, s)
	v := verified(t, dir)
	e, _ := v.Log().Find(2)
	require.NoError(t, flipAt(filepath.Join(dir, segments(t, dir)[0]), int(e.Offset)+8))
	for range 3 {
		again := newTestWorld(0)
		s := open(t, dir, again, Options{SnapshotBytes: -1})
		require.Equal(t, persistent(w.World), persistent(again.World))
		require.NotEmpty(t, s.Report().Skipped)
		w = again
		w.fill(1)
		require.NoError(t, s.Commit())
		closeStore(t, s)
	}
}
