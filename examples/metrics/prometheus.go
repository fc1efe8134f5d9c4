package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/persist"
)

// A Page shows the metrics of stores, by their names, in the text format of Prometheus. It needs no
// client library. Each metric has a line of help, a line with its type, and one sample for each
// store:
//
//	# HELP stet_lag_ticks Records of the journal that are not durable yet.
//	# TYPE stet_lag_ticks gauge
//	stet_lag_ticks{store="overworld"} 3
//
// The metrics of a store may be read while its world runs, and after the store was closed. The map
// must not change after the page is first served.
type Page map[string]*persist.Store

// A family is one metric of all stores.
type family struct {
	name string // The name includes the unit, and the suffix _total for a counter.
	kind string // "counter" or "gauge".
	help string
	of   func(m *persist.Metrics) float64
}

const (
	counter = "counter"
	gauge   = "gauge"
)

// families are the metrics on the page. Times are in seconds, as Prometheus recommends.
var families = []family{
	{"stet_tick", gauge, "Current tick of the world.", func(m *persist.Metrics) float64 { return float64(m.Tick) }},
	{"stet_durable_tick", gauge, "Newest tick that survives any crash.", func(m *persist.Metrics) float64 { return float64(m.DurableTick) }},
	{"stet_local_tick", gauge, "Newest tick that is durable on this machine.", func(m *persist.Metrics) float64 { return float64(m.LocalTick) }},
	{"stet_lag_ticks", gauge, "Records of the journal that are not durable yet.", func(m *persist.Metrics) float64 { return float64(m.LagTicks) }},
	{"stet_failed", gauge, "1 if the journal has failed: later ticks are not saved.", func(m *persist.Metrics) float64 { return one(m.Err != nil) }},
	{"stet_journal_segments", gauge, "Files of the journal.", func(m *persist.Metrics) float64 { return float64(m.JournalSegments) }},
	{"stet_journal_bytes", gauge, "Bytes in the files of the journal.", func(m *persist.Metrics) float64 { return float64(m.JournalBytes) }},
	{"stet_queued_bytes", gauge, "Bytes that wait to be written to the journal.", func(m *persist.Metrics) float64 { return float64(m.QueuedBytes) }},
	{"stet_syncs_total", counter, "Calls of fsync for the journal.", func(m *persist.Metrics) float64 { return float64(m.Syncs) }},
	{"stet_sync_seconds_total", counter, "Time that all calls of fsync for the journal took.", func(m *persist.Metrics) float64 { return m.SyncTotal.Seconds() }},
	{"stet_sync_last_seconds", gauge, "Time that the last call of fsync took.", func(m *persist.Metrics) float64 { return m.SyncLast.Seconds() }},
	{"stet_sync_max_seconds", gauge, "Time that the longest call of fsync took.", func(m *persist.Metrics) float64 { return m.SyncMax.Seconds() }},
	{"stet_snapshots_total", counter, "Snapshots finished.", func(m *persist.Metrics) float64 { return float64(m.Snapshots) }},
	{"stet_snapshots_failed_total", counter, "Snapshots that failed or were abandoned.", func(m *persist.Metrics) float64 { return float64(m.SnapshotsFailed) }},
	{"stet_snapshotting", gauge, "1 while a snapshot runs.", func(m *persist.Metrics) float64 { return one(m.Snapshotting) }},
	{"stet_last_snapshot_tick", gauge, "Tick of the last snapshot that finished or failed.", func(m *persist.Metrics) float64 { return float64(m.LastSnapshot.Tick) }},
	{"stet_last_snapshot_bytes", gauge, "Bytes of the last snapshot, 0 if it failed.", func(m *persist.Metrics) float64 { return float64(m.LastSnapshot.Bytes) }},
	{"stet_snapshot_stall_seconds", gauge, "Longest delay that the last or the current snapshot added to a commit.", func(m *persist.Metrics) float64 { return m.SnapshotStall.Seconds() }},
	{"stet_snapshot_bytes", gauge, "Bytes in the files of snapshots.", func(m *persist.Metrics) float64 { return float64(m.SnapshotBytes) }},
	{"stet_disk_bytes", gauge, "Bytes of journal and snapshots.", func(m *persist.Metrics) float64 { return float64(m.DiskBytes) }},
	{"stet_bound_bytes", gauge, "Size limit of the journal and the snapshots in bytes, 0 without a limit.", func(m *persist.Metrics) float64 { return float64(m.Kept.Bound) }},
	{"stet_kept_tick", gauge, "Oldest tick from which on every tick can be restored.", func(m *persist.Metrics) float64 { return float64(m.Kept.Tick) }},
	{"stet_pruned_marks_total", counter, "Ticks with marks that were removed with old journal files.", func(m *persist.Metrics) float64 { return float64(m.PrunedMarks) }},
	{"stet_pruned_branches_total", counter, "Ends of branches that were removed with old journal files.", func(m *persist.Metrics) float64 { return float64(m.PrunedBranches) }},
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ServeHTTP answers a request of Prometheus.
func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics are only read", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.text()) // An error means that the client has disconnected.
}

// text returns the page. It reads the metrics of each store once, so that they are consistent.
func (p Page) text() []byte {
	names := slices.Sorted(maps.Keys(p))
	read := make([]persist.Metrics, len(names))
	for i, name := range names {
		read[i] = p[name].Metrics()
	}
	return exposition(names, read)
}

// exposition returns the metrics of the stores with these names, in the text format.
func exposition(names []string, read []persist.Metrics) []byte {
	var b bytes.Buffer
	for _, f := range families {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", f.name, helpText.Replace(f.help), f.name, f.kind)
		for i, name := range names {
			value := strconv.FormatFloat(f.of(&read[i]), 'g', -1, 64)
			fmt.Fprintf(&b, "%s{store=\"%s\"} %s\n", f.name, labelText.Replace(strings.ToValidUTF8(name, "\uFFFD")), value)
		}
	}
	return b.Bytes()
}

// helpText escapes a line of help, and labelText escapes the value of a label.
var (
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelText = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)
