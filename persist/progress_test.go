package persist

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
)

// heard notes the phases that are told, and checks what is told of each.
type heard struct {
	t      testing.TB
	phases []Phase
	last   Progress
	after  func(Progress)
}

func (h *heard) context() context.Context { return WithProgress(background, h.report) }

func (h *heard) report(p Progress) {
	if len(h.phases) == 0 || p.Phase != h.last.Phase || p.Done == 0 && h.last.Done > 0 {
		h.end()
		h.phases = append(h.phases, p.Phase)
		require.Zero(h.t, p.Done, p.Phase)
	} else {
		require.Equal(h.t, h.last.Total, p.Total, p.Phase)
		require.GreaterOrEqual(h.t, p.Done, h.last.Done, p.Phase)
	}
	h.last = p
	if h.after != nil {
		h.after(p)
	}
}

// end checks that the last phase was told to its end.
func (h *heard) end() {
	require.Equal(h.t, h.last.Total, h.last.Done, h.last.Phase)
}

// only returns the phases told that are among those named.
func (h *heard) only(names ...Phase) (phases []Phase) {
	for _, p := range h.phases {
		for _, name := range names {
			if p == name {
				phases = append(phases, p)
			}
		}
	}
	return phases
}

// longStore returns a closed store whose recovery replays ticks, and its world.
func longStore(t testing.TB, ticks int) (string, *testWorld) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	s := open(t, dir, w, Options{Sync: journal.SyncNever(), SnapshotBytes: -1})
	for range ticks {
		w.fill(3)
		require.NoError(t, s.Commit())
	}
	closeStore(t, s)
	return dir, w
}

func TestOpeningTellsOfTheJournalFirstAndThenOfTheTicks(t *testing.T) {
	dir, _ := longStore(t, 500)
	h := &heard{t: t}
	s, err := Open(h.context(), dir, newTestWorld(0).World, Options{})
	require.NoError(t, err)
	closeStore(t, s)
	h.end()
	require.Equal(t, []Phase{PhaseScan, PhaseReplay}, h.only(PhaseScan, PhaseReplay))
	require.Equal(t, Progress{PhaseReplay, 500, 500}, h.last)
}

func TestVerifyingTellsOfBytesAndThenOfTicks(t *testing.T) {
	dir, _ := longStore(t, 500)
	h := &heard{t: t}
	v, err := OpenReadOnly(h.context(), dir)
	require.NoError(t, err)
	defer v.Close()
	require.Equal(t, []Phase{PhaseScan}, h.phases)
	r, err := v.Verify(h.context())
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	h.end()
	require.Equal(t, []Phase{PhaseScan, PhaseVerify, PhaseReplay}, h.phases)
}

func TestAPhaseIsToldAFewHundredTimesAtMost(t *testing.T) {
	dir, _ := longStore(t, 1000)
	told := map[Phase]int{}
	s, err := Open(WithProgress(background, func(p Progress) { told[p.Phase]++ }), dir, newTestWorld(0).World, Options{})
	require.NoError(t, err)
	closeStore(t, s)
	for phase, n := range told {
		require.LessOrEqual(t, n, progressSteps+2, phase)
	}
	require.Greater(t, told[PhaseReplay], progressSteps/2)
}

func TestPartsOfAPhaseAreCountedTogether(t *testing.T) {
	var got []int64
	p := startProgress(WithProgress(background, func(p Progress) { got = append(got, p.Done) }), PhaseVerify, 1000)
	inner := startProgress(p.part(background, 600), PhaseLoad, 3)
	inner.add(1)
	inner.add(2)
	p.upTo(600)
	p.upTo(100)
	p.add(400)
	require.Equal(t, []int64{0, 200, 600, 1000}, got)
	require.Nil(t, startProgress(quiet(p.part(background, 600)), PhaseLoad, 3))
	require.Nil(t, startProgress(background, PhaseLoad, 3))
}

// An Open whose context ends leaves all as it was, wherever it ends.
func TestTheEndOfTheContextEndsAnOpening(t *testing.T) {
	dir, _ := longStore(t, 300)
	before := readTree(t, dir)
	for _, phase := range []Phase{PhaseScan, PhaseReplay} {
		w := newTestWorld(3)
		w.rules.Set(rules{"mine", 9})
		digest := w.Digest()
		ctx, cancel := context.WithCancel(background)
		told := 0
		_, err := Open(WithProgress(ctx, func(p Progress) {
			if p.Phase == phase {
				cancel()
				told++
			}
		}), dir, w.World, Options{})
		require.ErrorIs(t, err, context.Canceled, phase)
		require.Equal(t, 1, told, phase)
		require.Equal(t, digest, w.Digest(), phase)
		require.Equal(t, before, readTree(t, dir), phase)
		s := open(t, copyDir(t, dir), newTestWorld(0), Options{}) // The lock is free, too.
		closeStore(t, s)
	}
	s := open(t, dir, newTestWorld(0), Options{})
	closeStore(t, s)
}

func TestTheEndOfTheContextEndsAVerification(t *testing.T) {
	dir, _ := longStore(t, 300)
	for _, phase := range []Phase{PhaseScan, PhaseVerify, PhaseReplay} {
		ctx, cancel := context.WithCancel(background)
		told := 0
		ctx = WithProgress(ctx, func(p Progress) {
			if p.Phase == phase {
				cancel()
				told++
			}
		})
		v, err := OpenReadOnly(ctx, dir)
		if err == nil {
			_, err = v.Verify(ctx)
			require.NoError(t, v.Close())
		}
		require.ErrorIs(t, err, context.Canceled, phase)
		require.LessOrEqual(t, told, 2, phase)
	}
}

func TestACreationWhoseContextEndedMakesNoStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newTestWorld(0)
	w.fill(3)
	digest := w.Digest()
	ended, cancel := context.WithCancel(background)
	cancel()
	_, err := Open(ended, dir, w.World, Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, digest, w.Digest())
	s := open(t, dir, w, Options{})
	require.True(t, s.Report().Fresh)
	closeStore(t, s)
}
