package persist_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// BenchmarkBudgetFollow measures a follower with a world of a million rows, tick by tick. Each tick
// of the store writes a thousand random rows. The limit is hand-written code that reads a growing
// file: it gets the size, reads the new bytes, and copies the rows to their places.
func BenchmarkBudgetFollow(b *testing.B) {
	const n, rows = 1_000_000, 1000
	w, s := points(b, n, 0)
	dir := b.TempDir()
	options := persist.Options{Sync: journal.SyncNever, SnapshotBytes: -1}
	store, err := persist.Open(storetest.Background, filepath.Join(dir, "store"), w, options)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close(storetest.Background)
	seen := ecs.NewWorld(ecs.Options{})
	ecs.MustRegister[point](seen)
	follower, err := persist.Follow(storetest.Background, filepath.Join(dir, "store"), seen)
	if err != nil {
		b.Fatal(err)
	}
	defer follower.Close()

	rng := rand.New(rand.NewPCG(1, 9))
	picked := make([]int, rows)
	ours := func() time.Duration {
		entities := s.Entities()
		for range rows {
			s.Mut(entities[rng.IntN(n)]).X++
		}
		if err := store.Commit(); err != nil {
			b.Fatal(err)
		}
		if err := store.Sync(storetest.Background); err != nil {
			b.Fatal(err)
		}
		return timed(func() {
			if changed, err := follower.Advance(storetest.Background); err != nil || !changed {
				b.Fatal(changed, err)
			}
		})
	}

	name := filepath.Join(dir, "rows")
	write, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer write.Close()
	read, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer read.Close()
	live, at, buf := make([]point, n), int64(0), []byte(nil)
	limit := func() time.Duration {
		for i := range picked {
			picked[i] = rng.IntN(n)
		}
		slices.Sort(picked)
		var tick []byte
		for _, row := range picked {
			tick = binary.LittleEndian.AppendUint32(tick, uint32(row))
			tick = binary.LittleEndian.AppendUint64(tick, math.Float64bits(1))
			tick = binary.LittleEndian.AppendUint64(tick, math.Float64bits(2))
		}
		if _, err := write.Write(tick); err != nil {
			b.Fatal(err)
		}
		return timed(func() {
			info, err := os.Stat(name)
			if err != nil {
				b.Fatal(err)
			}
			buf = slices.Grow(buf[:0], int(info.Size()-at))[:info.Size()-at]
			if _, err := read.ReadAt(buf, at); err != nil {
				b.Fatal(err)
			}
			at = info.Size()
			for src := buf; len(src) > 0; src = src[20:] {
				row := &live[binary.LittleEndian.Uint32(src)]
				row.X = math.Float64frombits(binary.LittleEndian.Uint64(src[4:]))
				row.Y = math.Float64frombits(binary.LittleEndian.Uint64(src[12:]))
			}
		})
	}
	a, l := shortest(100, ours, limit)
	reportBudget(b, a, l, 10)
}
