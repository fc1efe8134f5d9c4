package persist_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist"
)

// figures returns Metrics in which no two fields are equal.
func figures() persist.Metrics {
	return persist.Metrics{
		Tick: 12, DurableTick: 10, LocalTick: 11, LagTicks: 2, Err: errors.New(`no "space" left`),
		JournalSegments: 3, JournalBytes: 4096, QueuedBytes: 128,
		Syncs: 5, SyncLast: 2 * time.Millisecond, SyncMax: 1500 * time.Millisecond, SyncTotal: 2 * time.Second,
		Snapshots: 6, SnapshotsFailed: 7, Snapshotting: true,
		LastSnapshot: persist.SnapshotResult{Tick: 9, Slot: "quick", Name: "snapshots/00000008.snap", Written: 13, Shared: 14, Bytes: 15, Files: []string{"snapshots/00000008.snap", "snapshots/00000003.snap"},
			Err: persist.ErrAbandoned, Removed: []string{"snapshots/00000001.snap"}, RemoveErr: errors.New("removed by\nanother"), Lost: []string{"snapshots/00000002.snap"}},
		SnapshotStall: 250 * time.Microsecond, SnapshotBytes: 16, DiskBytes: 4112,
		Kept:        persist.RetentionStatus{Bytes: 4113, Bound: 5000, Record: 17, Tick: 18, Reason: "all <there> is"},
		PrunedMarks: 19, PrunedBranches: 20,
	}
}

// The member names that dashboards read do not change.
func TestMetrics_JSONMemberNames(t *testing.T) {
	const want = `{
	"tick": 12, "durable_tick": 10, "local_tick": 11, "lag_ticks": 2, "error": "no \"space\" left",
	"journal_segments": 3, "journal_bytes": 4096, "queued_bytes": 128,
	"syncs": 5, "sync_last_seconds": 0.002, "sync_max_seconds": 1.5, "sync_seconds": 2,
	"snapshots": 6, "snapshots_failed": 7, "snapshotting": true,
	"last_snapshot": {"tick": 9, "slot": "quick", "name": "snapshots/00000008.snap", "written_pages": 13, "shared_pages": 14, "bytes": 15, "files": ["snapshots/00000008.snap", "snapshots/00000003.snap"],
		"error": "persist: snapshot abandoned: the world went back to before it", "removed": ["snapshots/00000001.snap"], "remove_error": "removed by\nanother", "lost": ["snapshots/00000002.snap"]},
	"snapshot_stall_seconds": 0.00025, "snapshot_bytes": 16, "disk_bytes": 4112,
	"kept": {"bytes": 4113, "bound_bytes": 5000, "record": 17, "tick": 18, "reason": "all <there> is"},
	"pruned_marks": 19, "pruned_branches": 20}`
	m := figures()
	got, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, want, string(got))
	for part, of := range map[any]string{any(&m.LastSnapshot): "last_snapshot", any(&m.Kept): "kept"} {
		var all map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(got, &all))
		alone, err := json.Marshal(part)
		require.NoError(t, err)
		require.JSONEq(t, string(all[of]), string(alone))
	}

	none, err := json.Marshal(persist.Metrics{})
	require.NoError(t, err)
	require.Equal(t, members(t, got), members(t, none), "all members are always present")
	require.Contains(t, string(none), `"removed":[]`)
	require.NotContains(t, string(none), "null")
}

// members returns the names of the members of an object, including those of nested objects.
func members(t *testing.T, text []byte) (names []string) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return names
		}
		if name, ok := token.(string); ok && strings.Contains(string(text), `"`+name+`":`) {
			names = append(names, name)
		}
	}
}

// Every field of Metrics is in the output. The test fails if LogValue lacks a new field.
func TestMetrics_AllFieldsInJSON(t *testing.T) {
	for _, v := range []slog.LogValuer{persist.Metrics{}, persist.SnapshotResult{}, persist.RetentionStatus{}} {
		require.Len(t, v.LogValue().Group(), reflect.TypeOf(v).NumField(), "%T", v)
	}
	seen := map[string]bool{}
	for _, a := range figures().LogValue().Group() {
		require.False(t, seen[a.Key], "%s occurs twice", a.Key)
		require.NotZero(t, a.Value.Any(), a.Key)
		seen[a.Key] = true
	}
}

// A log has the same members as JSON.
func TestMetrics_LogValueEqualsJSON(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("store", "metrics", figures())
	var line struct{ Metrics json.RawMessage }
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	want, err := json.Marshal(figures())
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(line.Metrics))
}
