package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// parsed is one metric, as a reader of the page sees it.
type parsed struct {
	help, kind string
	samples    map[string]float64 // The values by the name of the store.
}

var (
	nameOf   = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	sampleOf = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)\{store="((?:[^"\\]|\\["\\n])*)"\} (\S+)$`)
	helpOf   = regexp.MustCompile(`^(?:[^\\]|\\[\\n])*$`)
)

// parse reads a page strictly. Each metric must begin with its help and its type, and occur once.
// Text must be escaped by the rules of the format.
func parse(text string) (map[string]*parsed, error) {
	all := map[string]*parsed{}
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line has no end")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	name := ""
	for i, line := range lines {
		fields := strings.SplitN(line, " ", 4)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			if name = fields[2]; !nameOf.MatchString(name) || all[name] != nil || len(fields) < 4 || !helpOf.MatchString(fields[3]) {
				return nil, fmt.Errorf("line %d: help %q", i, line)
			}
			all[name] = &parsed{help: unescaped(fields[3]), samples: map[string]float64{}}
		case strings.HasPrefix(line, "# TYPE "):
			if len(fields) != 4 || fields[2] != name || all[name].kind != "" || !slices.Contains([]string{"counter", "gauge"}, fields[3]) {
				return nil, fmt.Errorf("line %d: type %q", i, line)
			}
			all[name].kind = fields[3]
		default:
			s := sampleOf.FindStringSubmatch(line)
			if s == nil || s[1] != name || all[name].kind == "" {
				return nil, fmt.Errorf("line %d: sample %q", i, line)
			}
			store := unescaped(s[2])
			value, err := strconv.ParseFloat(s[3], 64)
			if _, twice := all[name].samples[store]; err != nil || twice {
				return nil, fmt.Errorf("line %d: value %q: %w", i, line, err)
			}
			all[name].samples[store] = value
		}
	}
	return all, nil
}

func unescaped(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(s)
}

func TestMetricsPage_EscapesStoreNames(t *testing.T) {
	names := []string{"world", "", `a "quoted" \ one`, "two\nlines", `\n`, "Łódź", "not \xff utf-8", "x} 7"}
	read := make([]persist.Metrics, len(names))
	for i := range read {
		read[i].Tick = uint64(i + 1)
		read[i].SyncTotal = time.Duration(i) * 1500 * time.Microsecond
		read[i].JournalBytes = 1 << (40 + i)
	}
	all, err := parse(string(exposition(names, read)))
	require.NoError(t, err)
	require.Len(t, all, len(families))
	for i, name := range names {
		name = strings.ToValidUTF8(name, "\uFFFD")
		require.EqualValues(t, i+1, all["stet_tick"].samples[name], "%q", name)
		require.InDelta(t, float64(float64(i)*0.0015), all["stet_sync_seconds_total"].samples[name], 1e-12)
		require.EqualValues(t, int64(1)<<(40+i), int64(all["stet_journal_bytes"].samples[name]))
	}
	for name, f := range all {
		require.Len(t, f.samples, len(names), name)
	}
}

// Names follow the rules of Prometheus. A value that never decreases is a counter, whose name ends
// with _total. The name of a value with a unit includes the base unit.
func TestMetricsPage_NamesFollowRules(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range families {
		require.Regexp(t, `^stet_[a-z]+(_[a-z]+)*$`, f.name)
		require.False(t, seen[f.name], f.name)
		seen[f.name] = true
		require.Equal(t, f.kind == counter, strings.HasSuffix(f.name, "_total"), f.name)
		require.Contains(t, []string{counter, gauge}, f.kind)
		require.True(t, strings.HasSuffix(f.help, "."), f.help)
		require.NotRegexp(t, `_(ms|millis\w*|micros\w*|nanos\w*|kb|mb|mib)(_|$)`, f.name)
	}
}

// A store is scraped while it is open, and after it was closed.
func TestMetricsPage_OpenAndClosedStore(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister[place](w)
	store, err := persist.Open(t.Context(), filepath.Join(t.TempDir(), "store"), w, persist.Options{})
	require.NoError(t, err)
	for range 5 {
		places.Set(w.Create(), place{})
		require.NoError(t, store.Commit())
	}
	require.NoError(t, store.Sync(t.Context()))
	server := httptest.NewServer(Page{"world": store})
	defer server.Close()
	scrape := func() map[string]*parsed {
		r, err := http.Get(server.URL)
		require.NoError(t, err)
		defer r.Body.Close()
		require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", r.Header.Get("Content-Type"))
		all, err := parse(readAll(t, r))
		require.NoError(t, err)
		return all
	}
	all, m := scrape(), store.Metrics()
	value := func(name string) float64 { return all[name].samples["world"] }
	require.EqualValues(t, 5, value("stet_tick"))
	require.EqualValues(t, 5, value("stet_durable_tick"))
	require.Zero(t, value("stet_lag_ticks"))
	require.Zero(t, value("stet_failed"))
	require.EqualValues(t, 1, value("stet_snapshots_total"))
	require.Positive(t, value("stet_syncs_total"))
	require.InDelta(t, m.SyncMax.Seconds(), value("stet_sync_max_seconds"), 1e-9)
	require.EqualValues(t, m.SnapshotBytes, value("stet_snapshot_bytes"))
	require.Equal(t, value("stet_disk_bytes"), value("stet_journal_bytes")+value("stet_snapshot_bytes"))

	require.NoError(t, store.Close(t.Context()))
	all = scrape()
	require.EqualValues(t, 5, value("stet_tick"), "the last tick")

	r, err := http.Post(server.URL, "text/plain", nil)
	require.NoError(t, err)
	r.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
	require.Equal(t, "GET, HEAD", r.Header.Get("Allow"))
}

// The test gives each field a different value, and checks the page for this value.
func TestMetricsPage_ValueOfEachMetric(t *testing.T) {
	m := persist.Metrics{
		Tick: 1, DurableTick: 2, LagTicks: 3, JournalSegments: 4, JournalBytes: 5, QueuedBytes: 6,
		Syncs: 7, SyncLast: 8 * time.Second, SyncMax: 9 * time.Second, SyncTotal: 10 * time.Second,
		Snapshots: 11, SnapshotsFailed: 12, LastSnapshot: persist.SnapshotResult{Tick: 13, Bytes: 14},
		SnapshotStall: 15 * time.Second, SnapshotBytes: 16, DiskBytes: 17,
		Kept: persist.RetentionStatus{Bound: 18, Tick: 19}, PrunedMarks: 20, PrunedBranches: 21, LocalTick: 22,
	}
	want := map[string]float64{
		"stet_tick": 1, "stet_durable_tick": 2, "stet_lag_ticks": 3, "stet_journal_segments": 4, "stet_journal_bytes": 5,
		"stet_queued_bytes": 6, "stet_syncs_total": 7, "stet_sync_last_seconds": 8, "stet_sync_max_seconds": 9,
		"stet_sync_seconds_total": 10, "stet_snapshots_total": 11, "stet_snapshots_failed_total": 12,
		"stet_last_snapshot_tick": 13, "stet_last_snapshot_bytes": 14, "stet_snapshot_stall_seconds": 15,
		"stet_snapshot_bytes": 16, "stet_disk_bytes": 17, "stet_bound_bytes": 18, "stet_kept_tick": 19,
		"stet_pruned_marks_total": 20, "stet_pruned_branches_total": 21, "stet_local_tick": 22, "stet_failed": 0, "stet_snapshotting": 0,
	}
	all, err := parse(string(exposition([]string{"world"}, []persist.Metrics{m})))
	require.NoError(t, err)
	got := map[string]float64{}
	for name, f := range all {
		got[name] = f.samples["world"]
	}
	require.Equal(t, want, got)
}

func TestMetricsPage_FailedStore(t *testing.T) {
	all, err := parse(string(exposition([]string{"a", "b"}, []persist.Metrics{{}, {Err: errors.New("full"), Snapshotting: true}})))
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"a": 0, "b": 1}, all["stet_failed"].samples)
	require.Equal(t, map[string]float64{"a": 0, "b": 1}, all["stet_snapshotting"].samples)
}
