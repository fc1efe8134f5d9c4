package persist

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Logs and JSON have the metrics of a store under the same names, in the same order and in the same
// units. LogValue defines names, order and units for both.

// LogValue returns m as a group of [log/slog], so that a logger accepts it directly:
//
//	logger.Info("store", "metrics", store.Metrics())
//
// The members are named as in [Metrics.MarshalJSON].
func (m Metrics) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Uint64("tick", m.Tick),
		slog.Uint64("durable_tick", m.DurableTick),
		slog.Uint64("local_tick", m.LocalTick),
		slog.Uint64("lag_ticks", m.LagTicks),
		textOf("error", m.Err),
		slog.Int("journal_segments", m.JournalSegments),
		slog.Int64("journal_bytes", m.JournalBytes),
		slog.Int64("queued_bytes", m.QueuedBytes),
		slog.Uint64("syncs", m.Syncs),
		seconds("sync_last_seconds", m.SyncLast),
		seconds("sync_max_seconds", m.SyncMax),
		seconds("sync_seconds", m.SyncTotal),
		slog.Int("snapshots", m.Snapshots),
		slog.Int("snapshots_failed", m.SnapshotsFailed),
		slog.Bool("snapshotting", m.Snapshotting),
		slog.Attr{Key: "last_snapshot", Value: m.LastSnapshot.LogValue()},
		seconds("snapshot_stall_seconds", m.SnapshotStall),
		slog.Int64("snapshot_bytes", m.SnapshotBytes),
		slog.Int64("disk_bytes", m.DiskBytes),
		slog.Attr{Key: "kept", Value: m.Kept.LogValue()},
		slog.Int("pruned_marks", m.PrunedMarks),
		slog.Int("pruned_branches", m.PrunedBranches),
	)
}

// LogValue returns r as a group of [log/slog].
func (r SnapshotResult) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Uint64("tick", r.Tick),
		slog.String("slot", r.Slot),
		slog.String("name", r.Name),
		slog.Int("written_pages", r.Written),
		slog.Int("shared_pages", r.Shared),
		slog.Int64("bytes", r.Bytes),
		slog.Any("files", append([]string{}, r.Files...)),
		textOf("error", r.Err),
		slog.Any("removed", append([]string{}, r.Removed...)),
		textOf("remove_error", r.RemoveErr),
		slog.Any("lost", append([]string{}, r.Lost...)),
	)
}

// LogValue returns k as a group of [log/slog].
func (k RetentionStatus) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("bytes", k.Bytes),
		slog.Int64("bound_bytes", k.Bound),
		slog.Uint64("record", k.Record),
		slog.Uint64("tick", k.Tick),
		slog.String("reason", k.Reason),
	)
}

// MarshalJSON returns m as an object, for package expvar and other users. Later versions keep these
// members and may add others:
//
//	tick durable_tick local_tick lag_ticks error
//	journal_segments journal_bytes queued_bytes
//	syncs sync_last_seconds sync_max_seconds sync_seconds
//	snapshots snapshots_failed snapshotting
//	last_snapshot: tick name written_pages shared_pages bytes files error
//	               removed remove_error lost
//	snapshot_stall_seconds snapshot_bytes disk_bytes
//	kept: bytes bound_bytes record tick reason
//	pruned_marks pruned_branches
//
// Bytes are integers and seconds are fractions. sync_seconds is the total of all syncs. All members
// are always present: a nil error is an empty text.
func (m Metrics) MarshalJSON() ([]byte, error) { return appendJSON(nil, m.LogValue()) }

// MarshalJSON returns r as an object, the last_snapshot member of [Metrics.MarshalJSON].
func (r SnapshotResult) MarshalJSON() ([]byte, error) { return appendJSON(nil, r.LogValue()) }

// MarshalJSON returns k as an object, the kept member of [Metrics.MarshalJSON].
func (k RetentionStatus) MarshalJSON() ([]byte, error) { return appendJSON(nil, k.LogValue()) }

// textOf returns the text of err as an attribute. A nil err becomes an empty text.
func textOf(key string, err error) slog.Attr {
	if err == nil {
		return slog.String(key, "")
	}
	return slog.String(key, err.Error())
}

func seconds(key string, d time.Duration) slog.Attr { return slog.Float64(key, d.Seconds()) }

// appendJSON appends v to b as JSON. A group becomes an object.
func appendJSON(b []byte, v slog.Value) ([]byte, error) {
	if v.Kind() != slog.KindGroup {
		text, err := json.Marshal(v.Any())
		return append(b, text...), err
	}
	for i, a := range v.Group() {
		b = append(b, "{,"[min(i, 1)])
		b = append(append(append(b, '"'), a.Key...), `":`...)
		var err error
		if b, err = appendJSON(b, a.Value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
