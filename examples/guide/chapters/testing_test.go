package chapters_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/persist"
)

// A mine is a game: miners dig for gold, get tired, and rest.
type mine struct {
	Energy  *ecs.Storage[energy] `ecs:"Energy"`
	Gold    *ecs.Resource[int64] `ecs:"Gold"`
	Miners  *ecs.Query1[energy]  `ecs:"write"`
	world   *ecs.World
	systems *schedule.Schedule[order]
}

type energy struct{ Left int32 }

// An order is the input of a tick.
type order byte

const (
	hire order = iota
	dig
	rest
	orders // The number of orders.
)

// newMine returns a new game, without a store.
func newMine() *mine {
	m := &mine{world: ecs.NewWorld(ecs.Options{History: 8})}
	check(ecs.Bind(m.world, m))
	m.systems = schedule.New[order](m.world)
	m.systems.Add("hire", schedule.Uses(m.Energy, schedule.Creates), func(t *schedule.Tick[order]) {
		if t.Input == hire {
			m.Energy.Set(m.world.Create(), energy{Left: 10})
		}
	})
	m.systems.Add("work", schedule.Uses(m.Miners, m.Gold), func(t *schedule.Tick[order]) {
		for _, miner := range m.Miners.All() {
			switch {
			case t.Input == rest:
				miner.Left = min(miner.Left+1, 10)
			case t.Input == dig && miner.Left > 0:
				miner.Left--
				*m.Gold.Mut() += int64(t.Rand().IntN(5))
			}
		}
	})
	return m
}

// step runs a tick with an order.
func (m *mine) step(o order) {
	m.systems.Step(o)
	m.world.Commit()
}

// checkRules reports values that the rules do not allow.
func (m *mine) checkRules(t *testing.T) {
	t.Helper()
	for e, miner := range m.Energy.All() {
		if miner.Left < 0 || miner.Left > 10 {
			t.Fatalf("tick %d: %v has %d energy", m.world.Tick(), e, miner.Left)
		}
	}
}

func TestMine_OneTick(t *testing.T) {
	game := newMine()
	miner := game.world.Create() // Set up the state that the test needs.
	game.Energy.Set(miner, energy{Left: 1})
	game.step(dig)
	if got, _ := game.Energy.Get(miner); got.Left != 0 {
		t.Errorf("after a tick, the miner has %d energy, want 0", got.Left)
	}
}

func TestMine_Digest(t *testing.T) {
	game := newMine()
	for tick := range 300 {
		game.step(order(tick % 7 % int(orders)))
	}
	const want = "f72709b7d24dd544"
	if got := game.world.Digest().String(); got != want {
		t.Errorf("the digest is %s, want %s: were the rules changed on purpose?", got, want)
	}
}

func TestMine_RandomOrders(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random, game := rand.New(rand.NewPCG(seed, 0)), newMine()
	test, err := game.systems.SyncTest(4)
	check(err)
	test.Shuffle(seed)
	for range 500 {
		if err := test.Step(order(random.IntN(int(orders)))); err != nil {
			t.Fatal(err)
		}
		game.checkRules(t)
	}
}

func FuzzMine(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 0, 1})
	f.Fuzz(func(t *testing.T, orders []byte) {
		game := newMine()
		for _, o := range orders[:min(len(orders), 500)] {
			game.step(order(o))
			game.checkRules(t)
		}
	})
}

func TestMine_OldSaves(t *testing.T) {
	for _, save := range []string{"testdata/mine-v1.save"} {
		game := newMine()
		if err := persist.Load(ctx, save, game.world); err != nil {
			t.Fatal(save, err)
		}
		for range 100 {
			game.step(dig)
			game.checkRules(t)
		}
	}
}

// TestMine_OldSaveHasMinersAndGold checks the save that TestMine_OldSaves loads. With -update, it
// writes the save if it is missing.
func TestMine_OldSaveHasMinersAndGold(t *testing.T) {
	const file = "testdata/mine-v1.save"
	if _, err := os.Stat(file); *golden.Update && errors.Is(err, fs.ErrNotExist) {
		game := newMine()
		for _, o := range []order{hire, hire, dig, dig} {
			game.step(o)
		}
		check(persist.Save(ctx, file, game.world, persist.FileOptions{Compress: true}))
	}
	game := newMine()
	check(persist.Load(ctx, file, game.world))
	if game.Energy.Len() != 2 || game.Gold.Get() == 0 {
		t.Error("miners:", game.Energy.Len(), "gold:", game.Gold.Get())
	}
}
