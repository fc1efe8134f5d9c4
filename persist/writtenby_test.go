package persist_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// goOn opens the store in dir, commits a tick, closes it, and returns the report of Open.
func goOn(t *testing.T, dir string) persist.Report {
	t.Helper()
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{})
	type Number struct{ N int64 }
	numbers := ecs.MustRegister[Number](w)
	s, err := persist.Open(ctx, dir, w, persist.Options{})
	require.NoError(t, err)
	numbers.Set(w.Create(), Number{1})
	require.NoError(t, s.Commit())
	require.NoError(t, s.Close(ctx))
	return s.Report()
}

// openedBy opens the journal of the store in dir with another writer description.
func openedBy(t *testing.T, dir, writer string) {
	t.Helper()
	ctx := context.Background()
	files, err := disk.Open(filepath.Join(dir, "journal"))
	require.NoError(t, err)
	defer files.Close()
	log, err := journal.Scan(ctx, files, 0, nil)
	require.NoError(t, err)
	payload, err := log.Payload(log.Preambles[len(log.Preambles)-1], nil)
	require.NoError(t, err)
	j, err := journal.Open(files, log, journal.Options{Writer: writer, Preamble: func() []byte { return payload }})
	require.NoError(t, err)
	require.NoError(t, j.Close(ctx, log.Head))
}

func builds(t *testing.T, dir string) []string {
	t.Helper()
	v, err := inspect.OpenReadOnly(context.Background(), dir)
	require.NoError(t, err)
	defer v.Close()
	return v.Builds()
}

func TestOpen_StoreOfAnotherMachine(t *testing.T) {
	const mac = "go1.26.8 darwin/arm64 fused math:e83c example.com/game@v1.2.3"
	dir := t.TempDir()
	require.Empty(t, goOn(t, dir).Build)
	require.Equal(t, []string{build.Here()}, builds(t, dir))
	require.Empty(t, goOn(t, dir).Build, "this machine wrote it")

	for writer, want := range map[string]string{
		mac:                                   mac,
		"":                                    "", // An earlier program.
		"\x1b[31mred":                         "",
		"go9.9 plan9/arm64 unfused math:beef": "go9.9 plan9/arm64 unfused math:beef",
		"go9.9 plan9/arm64 " + build.Floats(build.Here()): "", // Floats are the same.
	} {
		openedBy(t, dir, writer)
		all := builds(t, dir)
		require.Equal(t, build.Check(writer) == nil, slices.Contains(all, writer), "%q in %q", writer, all)
		report := goOn(t, dir)
		require.Equal(t, want, report.Build, "%q", writer)
		require.Equal(t, want != "", strings.Contains(report.String(), "floating-point results may differ"), "%v", report)
	}
}

func TestPlayer_BuildOfRecordedTick(t *testing.T) {
	dir := t.TempDir()
	goOn(t, dir)
	p, err := inspect.OpenPlayer(context.Background(), dir, ecs.NewWorld(ecs.Options{}), inspect.PlayerOptions{})
	require.NoError(t, err)
	defer p.Close()
	require.Empty(t, p.Build(), "the base is no record")
	for p.Tick() < p.End() {
		require.NoError(t, p.Step(context.Background()))
	}
	require.Equal(t, build.Here(), p.Build())
}

// If another machine recorded a tick, the two saves of that tick name the builds of both machines.
func TestPlayerSaveBoth_NamesBuilds(t *testing.T) {
	dir := t.TempDir()
	was := build.Here
	defer func() { build.Here = was }()
	build.Here = func() string { return "go1.26.8 darwin/arm64 fused math:e83c" }
	goOn(t, dir)
	mac := build.Here()
	build.Here = was

	p, err := inspect.OpenPlayer(t.Context(), dir, ecs.NewWorld(ecs.Options{}), inspect.PlayerOptions{})
	require.NoError(t, err)
	defer p.Close()
	saved := func() (builds []string) {
		command, err := p.SaveBoth(t.Context(), t.TempDir())
		require.NoError(t, err)
		for _, file := range strings.Fields(command)[2:] {
			v, err := inspect.OpenReadOnly(t.Context(), file)
			require.NoError(t, err)
			require.Equal(t, v.Snapshots()[0].Build, v.Build(v.Head()))
			builds = append(builds, v.Build(v.Head()))
			require.NoError(t, v.Close())
		}
		return builds
	}
	require.Equal(t, []string{"", was()}, saved(), "the base is no record")
	require.NoError(t, p.Step(t.Context()))
	require.Equal(t, []string{mac, was()}, saved())
}

func TestSave_RecordsBuild(t *testing.T) {
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{})
	w.Create()
	dir := t.TempDir()
	for file, options := range map[string]persist.FileOptions{"plain": {}, "named": {Build: true}, "small": {Build: true, Compress: true}} {
		file := filepath.Join(dir, file)
		require.NoError(t, persist.Save(ctx, file, w, options))
		v, err := inspect.OpenReadOnly(ctx, file)
		require.NoError(t, err)
		want := ""
		if options.Build {
			want = build.Here()
		}
		require.Equal(t, want, v.Snapshots()[0].Build)
		require.NoError(t, v.Close())
		other := ecs.NewWorld(ecs.Options{})
		require.NoError(t, persist.Load(ctx, file, other))
		require.Equal(t, w.Digest(), other.Digest())
	}
}
