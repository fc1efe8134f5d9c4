package persist_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/persist"
)

// Package expvar publishes the metrics of a store. Any goroutine may read them at any time.
func ExampleStore_Metrics() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	w, turn := newGame()
	store, err := persist.Open(ctx, filepath.Join(temp, "game"), w, persist.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	expvar.Publish("stet", expvar.Func(func() any { return store.Metrics() }))
	turn()
	if err := store.Commit(); err != nil {
		fmt.Println(err)
	}
	if err := store.Sync(ctx); err != nil {
		fmt.Println(err)
	}

	var shown map[string]any // Parse the text as a client of /debug/vars does.
	if err := json.Unmarshal([]byte(expvar.Get("stet").String()), &shown); err != nil {
		fmt.Println(err)
	}
	fmt.Println("tick", shown["tick"], "durable", shown["durable_tick"], "error", shown["error"] != "")
	fmt.Println("snapshots", shown["snapshots"], "kept", shown["kept"].(map[string]any)["reason"])
	if err := store.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// tick 1 durable 1 error false
	// snapshots 1 kept all data, because no two snapshots without a shared file exist yet
}

// logged returns o with functions that log the events of the store. Failures and losses are
// warnings, normal events are info, and each durable tick is debug output. The functions that o
// already has are still called.
func logged(o persist.Options, log *slog.Logger) persist.Options {
	onSnapshot, onDurable := o.OnSnapshot, o.OnDurable
	o.OnSnapshot = func(r persist.SnapshotResult) {
		level := slog.LevelInfo
		if r.RemoveErr != nil || r.Err != nil && !errors.Is(r.Err, persist.ErrAbandoned) {
			// The store continues, and tries again when the next snapshot is due.
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "snapshot", "snapshot", r)
		if onSnapshot != nil {
			onSnapshot(r)
		}
	}
	o.OnDurable = func(tick uint64) {
		log.Debug("durable", "tick", tick)
		if onDurable != nil {
			onDurable(tick)
		}
	}
	return o
}

// A store logs nothing by itself. This example connects all its events to a logger: the report of
// Open, snapshots, durable ticks, failures, and metrics.
//
//	error  the journal failed: nothing later is saved until Resume
//	warn   a snapshot failed, or files could not be removed; Open found damage
//	info   Open, snapshots, metrics from time to time
//	debug  each durable tick
func ExampleMetrics_LogValue() {
	ctx := context.Background()
	temp, remove := tempDir()
	defer remove()
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: steady}))
	w, turn := newGame()
	store, err := persist.Open(ctx, filepath.Join(temp, "game"), w, logged(persist.Options{}, log))
	if err != nil {
		log.Error("open", "error", err)
		return
	}
	level := slog.LevelInfo
	if len(store.Report().Skipped) > 0 {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "open", "report", store.Report().String())
	turn()
	if err := store.Commit(); err != nil && !errors.Is(err, persist.ErrBacklog) {
		log.Error("not saved", "error", err)
	}
	if err := store.Sync(ctx); err != nil {
		log.Error("not saved", "error", err)
	}
	log.Info("store", "metrics", store.Metrics()) // For example once a minute.
	if err := store.Close(ctx); err != nil {
		log.Error("close", "error", err)
	}
	// Output:
	// level=INFO msg=snapshot snapshot.tick=0 snapshot.name=snapshots/00000001.snap snapshot.error=""
	// level=INFO msg=open report="new store, base at tick 0"
	// level=INFO msg=store metrics.tick=1 metrics.durable_tick=1 metrics.lag_ticks=0 metrics.error="" metrics.snapshots=1 metrics.snapshots_failed=0
}

// steady removes attributes that differ from run to run, and most others.
func steady(groups []string, a slog.Attr) slog.Attr {
	const shown = " time level msg report tick durable_tick lag_ticks name error snapshots snapshots_failed "
	inner := len(groups) > 1 // The attribute is in a group within the metrics.
	if a.Key == slog.TimeKey || inner || !strings.Contains(shown, " "+a.Key+" ") {
		return slog.Attr{}
	}
	return a
}
