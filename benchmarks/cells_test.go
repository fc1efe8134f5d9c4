package benchmarks

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

var (
	cells     = flag.Int("cells", 10_000_000, "the `number` of cells of BenchmarkCells")
	cellTicks = flag.Int("cellticks", 60, "the `number` of ticks, 30 a second, of each size and skew of BenchmarkCells")
)

var (
	cellUpdates = []int{1000, 4000, 16_000, 64_000, 256_000}
	cellSkews   = []float64{0, 0.5, 0.8, 0.99}
)

// BenchmarkCells reports how much longer the median tick and the worst tick are with persistence.
// It measures two kinds of persistence:
//
//   - stet: A store journals every tick, and calls fsync every 100 ms. It starts a new snapshot
//     as soon as the previous snapshot is on disk.
//   - copy: A tick copies all cells while the world waits, and a goroutine writes the copy to a
//     file. The next tick after the write makes a new copy. No journal is written.
//
// The world has ten million cells of 4 bytes, each a component of its own entity. There are 30
// ticks per second. A tick updates 1000 to 256 000 random cells, which follow Zipf's law.
//
// The workload is that of Vaz Salles and others, "An evaluation of checkpoint recovery for
// massively multiplayer online games" (VLDB 2009). The time of recovery is not measured.
func BenchmarkCells(b *testing.B) {
	// All sub-benchmarks use the same store. A temporary directory of a sub-benchmark would be
	// removed at its end.
	dir := b.TempDir()
	var g *cellGame
	for _, skew := range cellSkews {
		for _, updates := range cellUpdates {
			b.Run(fmt.Sprintf("skew-%v/%dk", skew, updates/1000), func(b *testing.B) {
				if g == nil { // Later runs reuse the game, because its setup takes seconds.
					g = newCellGame(b, dir)
				}
				g.choose(skew)
				g.play(b, updates, *cellTicks)
			})
		}
	}
	if g != nil {
		g.end(b)
	}
}

// A cell is one cell of the table of game state in the paper.
type cell struct{ Value int32 }

// A cellGame applies the same updates to two worlds. One has a store. The other has no persistence
// and is the source of the copies.
type cellGame struct {
	plainWorld    *ecs.World
	plain, stored *ecs.Storage[cell]
	store         *persist.Store
	dir           string

	copied []cell
	packed []byte     // The cells in copied, encoded for the file.
	writer chan error // Receives the error of the running write. nil if there is none.
	copies int

	rng     *rand.Rand
	ranks   *zipf
	skew    float64
	updated []uint32 // The cells that a tick updates.
}

func newCellGame(b *testing.B, dir string) *cellGame {
	g := &cellGame{
		dir: dir, rng: rand.New(rand.NewPCG(1, 2)), skew: -1,
		copied: make([]cell, *cells), packed: make([]byte, 4**cells),
	}
	g.plainWorld, g.plain = newCells()
	world, stored := newCells()
	g.stored = stored
	var err error
	g.store, err = persist.Open(context.Background(), filepath.Join(g.dir, "store"), world, persist.Options{
		Sync:          100 * time.Millisecond,
		SnapshotBytes: 1, // Start a snapshot as soon as none is running.
	})
	if err != nil {
		b.Fatal(err)
	}
	return g
}

func newCells() (*ecs.World, *ecs.Storage[cell]) {
	w := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[cell](w)
	for range *cells {
		s.Set(w.Create(), cell{})
	}
	return w, s
}

// choose sets the exponent of Zipf's law for all later updates.
func (g *cellGame) choose(skew float64) {
	if g.skew != skew {
		g.skew, g.ranks = skew, newZipf(g.rng, *cells, skew)
	}
}

// play runs ticks with the given number of updates each, and reports the time that persistence
// added.
func (g *cellGame) play(b *testing.B, updates, ticks int) {
	var plain, stored, copying []time.Duration
	copies := g.copies
	next := time.Now()
	for range ticks {
		g.draw(updates)
		next = next.Add(time.Second / 30)
		time.Sleep(time.Until(next))
		plain = append(plain, timed(func() {
			g.update(g.plain)
			g.plainWorld.Commit()
		}))
		stored = append(stored, timed(func() {
			g.update(g.stored)
			if err := g.store.Commit(); err != nil {
				b.Fatal(err)
			}
		}))
		copying = append(copying, timed(func() { g.copyIfDue(b) }))
	}
	slices.Sort(plain)
	slices.Sort(stored)
	slices.Sort(copying)
	alone := plain[ticks/2]
	b.ReportMetric(0, "ns/op") // The time per operation has no meaning here.
	b.ReportMetric(milliseconds(stored[ticks/2]-alone), "stet-median-ms")
	b.ReportMetric(milliseconds(stored[ticks-1]-alone), "stet-worst-ms")
	b.ReportMetric(milliseconds(copying[ticks/2]), "copy-median-ms")
	b.ReportMetric(milliseconds(copying[ticks-1]), "copy-worst-ms")
	b.ReportMetric(milliseconds(alone), "alone-ms")
	b.ReportMetric(float64(g.copies-copies), "copies")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (g *cellGame) draw(updates int) {
	g.updated = g.updated[:0]
	for range updates {
		g.updated = append(g.updated, uint32(g.ranks.next()))
	}
}

func (g *cellGame) update(s *ecs.Storage[cell]) {
	entities := s.Entities()
	for _, c := range g.updated {
		s.Mut(entities[c]).Value++
	}
}

// copyIfDue copies all cells if the previous copy is on disk.
func (g *cellGame) copyIfDue(b *testing.B) {
	if g.writer != nil {
		select {
		case err := <-g.writer:
			if err != nil {
				b.Fatal(err)
			}
		default:
			return
		}
	}
	copy(g.copied, g.plain.Values())
	g.copies++
	g.writer = make(chan error, 1)
	go func(done chan<- error) { done <- g.writeCopy() }(g.writer)
}

func (g *cellGame) writeCopy() error {
	for i, c := range g.copied {
		binary.LittleEndian.PutUint32(g.packed[4*i:], uint32(c.Value))
	}
	f, err := os.Create(filepath.Join(g.dir, "copy"))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(g.packed); err != nil {
		return err
	}
	return f.Sync()
}

// end checks that both worlds have the same cells, and that the store recovers the same state.
func (g *cellGame) end(b *testing.B) {
	if g.writer != nil {
		<-g.writer
	}
	if !slices.Equal(g.plain.Values(), g.stored.Values()) {
		b.Error("the worlds differ")
	}
	if err := g.store.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
	again := ecs.NewWorld(ecs.Options{})
	s := ecs.MustRegister[cell](again)
	store, err := persist.Open(context.Background(), filepath.Join(g.dir, "store"), again, persist.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if !slices.Equal(s.Values(), g.plain.Values()) {
		b.Error("the world that is recovered differs")
	}
	if err := store.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
