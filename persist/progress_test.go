package persist_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// heard records the reported phases, and checks the progress of each.
type heard struct {
	t      testing.TB
	phases []string
	last   persist.Progress
	after  func(persist.Progress)
}

func (h *heard) context() context.Context {
	return persist.WithProgress(storetest.Background, h.report)
}

func (h *heard) report(p persist.Progress) {
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

// end checks that the last phase was reported to its end.
func (h *heard) end() {
	require.Equal(h.t, h.last.Total, h.last.Done, h.last.Phase)
}

// only returns those reported phases that are in names.
func (h *heard) only(names ...string) (phases []string) {
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
func longStore(t testing.TB, ticks int) (string, *storetest.World) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	s := storetest.Open(t, dir, w, persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1})
	for range ticks {
		w.Fill(3)
		require.NoError(t, s.Commit())
	}
	storetest.CloseStore(t, s)
	return dir, w
}

func TestProgress_PhasesOfOpen(t *testing.T) {
	dir, _ := longStore(t, 500)
	h := &heard{t: t}
	s, err := persist.Open(h.context(), dir, storetest.New(0).World, persist.Options{})
	require.NoError(t, err)
	storetest.CloseStore(t, s)
	h.end()
	require.Equal(t, []string{progress.PhaseScan, progress.PhaseReplay}, h.only(progress.PhaseScan, progress.PhaseReplay))
	require.Equal(t, persist.Progress{Phase: progress.PhaseReplay, Done: 500, Total: 500}, h.last)
}

func TestProgress_PhasesOfVerify(t *testing.T) {
	dir, _ := longStore(t, 500)
	h := &heard{t: t}
	v, err := inspect.OpenReadOnly(h.context(), dir)
	require.NoError(t, err)
	defer v.Close()
	require.Equal(t, []string{progress.PhaseScan}, h.phases)
	r, err := v.Verify(h.context())
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	h.end()
	require.Equal(t, []string{progress.PhaseScan, progress.PhaseVerify, progress.PhaseReplay}, h.phases)
}

func TestProgress_CallsAreRare(t *testing.T) {
	dir, _ := longStore(t, 1000)
	told := map[string]int{}
	s, err := persist.Open(persist.WithProgress(storetest.Background, func(p persist.Progress) { told[p.Phase]++ }), dir, storetest.New(0).World, persist.Options{})
	require.NoError(t, err)
	storetest.CloseStore(t, s)
	for phase, n := range told {
		require.LessOrEqual(t, n, progress.Steps+2, phase)
	}
	require.Greater(t, told[progress.PhaseReplay], progress.Steps/2)
}

func TestProgress_InnerPhaseCountsAsPart(t *testing.T) {
	var got []int64
	p := progress.Start(persist.WithProgress(storetest.Background, func(p persist.Progress) { got = append(got, p.Done) }), progress.PhaseVerify, 1000)
	inner := progress.Start(p.Part(storetest.Background, 600), progress.PhaseLoad, 3)
	inner.Add(1)
	inner.Add(2)
	p.UpTo(600)
	p.UpTo(100)
	p.Add(400)
	require.Equal(t, []int64{0, 200, 600, 1000}, got)
	require.Nil(t, progress.Start(progress.Quiet(p.Part(storetest.Background, 600)), progress.PhaseLoad, 3))
	require.Nil(t, progress.Start(storetest.Background, progress.PhaseLoad, 3))
}

// If the context of an Open ends, at any time, Open leaves everything unchanged.
func TestOpen_ContextEnds(t *testing.T) {
	dir, _ := longStore(t, 300)
	before := storetest.ReadTree(t, dir)
	for _, phase := range []string{progress.PhaseScan, progress.PhaseReplay} {
		w := storetest.New(3)
		w.Rules.Set(storetest.Rules{Name: "mine", Limit: 9})
		digest := w.Digest()
		ctx, cancel := context.WithCancel(storetest.Background)
		told := 0
		_, err := persist.Open(persist.WithProgress(ctx, func(p persist.Progress) {
			if p.Phase == phase {
				cancel()
				told++
			}
		}), dir, w.World, persist.Options{})
		require.ErrorIs(t, err, context.Canceled, phase)
		require.Equal(t, 1, told, phase)
		require.Equal(t, digest, w.Digest(), phase)
		require.Equal(t, before, storetest.ReadTree(t, dir), phase)
		// The failed Open also released the lock.
		s := storetest.Open(t, storetest.CopyDir(t, dir), storetest.New(0), persist.Options{})
		storetest.CloseStore(t, s)
	}
	s := storetest.Open(t, dir, storetest.New(0), persist.Options{})
	storetest.CloseStore(t, s)
}

func TestVerify_ContextEnds(t *testing.T) {
	dir, _ := longStore(t, 300)
	for _, phase := range []string{progress.PhaseScan, progress.PhaseVerify, progress.PhaseReplay} {
		ctx, cancel := context.WithCancel(storetest.Background)
		told := 0
		ctx = persist.WithProgress(ctx, func(p persist.Progress) {
			if p.Phase == phase {
				cancel()
				told++
			}
		})
		v, err := inspect.OpenReadOnly(ctx, dir)
		if err == nil {
			_, err = v.Verify(ctx)
			require.NoError(t, v.Close())
		}
		require.ErrorIs(t, err, context.Canceled, phase)
		require.LessOrEqual(t, told, 2, phase)
	}
}

func TestCreate_ContextEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := storetest.New(0)
	w.Fill(3)
	digest := w.Digest()
	ended, cancel := context.WithCancel(storetest.Background)
	cancel()
	_, err := persist.Open(ended, dir, w.World, persist.Options{})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, digest, w.Digest())
	s := storetest.Open(t, dir, w, persist.Options{})
	require.True(t, s.Report().Fresh)
	storetest.CloseStore(t, s)
}
