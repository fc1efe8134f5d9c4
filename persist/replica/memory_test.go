package replica

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/journal/budget"
	"github.com/stet-ecs/stet/persist"
)

// A stoppedLog accepts no entries while l.stop is true.
type stoppedLog struct {
	Log
	stop *atomic.Bool
}

func (l stoppedLog) Append(ctx context.Context, after Position, data []byte) (Position, error) {
	if l.stop.Load() {
		return 0, errors.New("the log does not answer")
	}
	return l.Log.Append(ctx, after, data)
}

// The budget counts the entry that the log has not accepted yet.
func TestSender_CountsUnconfirmedEntry(t *testing.T) {
	b, log := budget.New(200<<10), &usingLog{}
	log.budget = b
	s := newSender(context.Background(), log, trail{}, 0, &Options{})
	s.countMemory(b)
	s.addPending(op{opWrite, "journal/1.seg", 0, make([]byte, 10_000)})
	before := b.Used()
	require.NoError(t, s.flush())
	require.GreaterOrEqual(t, log.used, before+10_000)
	require.Equal(t, before, b.Used())
}

// A usingLog records how much of a budget is used during an append.
type usingLog struct {
	Memory
	budget *budget.Budget
	used   int64
}

func (l *usingLog) Append(ctx context.Context, after Position, data []byte) (Position, error) {
	l.used = l.budget.Used()
	return l.Memory.Append(ctx, after, data)
}

// A sender counts its memory while operations are recorded, sent, retained and dropped.
func TestSender_CountsMemory(t *testing.T) {
	log := &Memory{}
	s := newSender(context.Background(), log, trail{}, 0, &Options{})
	require.NoError(t, s.append([]op{{kind: opBegin}}))
	b := budget.New(200 << 10)
	s.countMemory(b)
	check := func(what string) {
		t.Helper()
		sum := memoryOf(s.pending)
		for _, e := range s.recent {
			sum += memoryOf(e.ops)
		}
		require.Equal(t, sum, b.Used(), what)
	}
	check("begun")
	several := 0
	for i := range 200 {
		for n := range i % 7 {
			s.addPending(op{opWrite, "journal/1.seg", uint64(i), make([]byte, 100*(i+n))})
		}
		check("noted")
		require.NoError(t, s.flush())
		check("sent")
		if len(s.recent) > 1 {
			several++
			require.LessOrEqual(t, b.Used(), int64(100<<10), "retained entries must not exceed the minimum")
		}
	}
	require.Greater(t, several, 50)
	require.NoError(t, s.append([]op{{opPart, "journal/2.seg", 0, make([]byte, maxData)}}))
	check("a part")

	_, err := log.Append(context.Background(), s.end, encodeEntry(header{entryID{1, 1}, s.at[0]}, []op{{kind: opClaim, number: 9}}))
	require.NoError(t, err)
	for range 5 {
		s.addPending(op{opWrite, "journal/1.seg", 0, make([]byte, maxData)})
	}
	require.ErrorIs(t, s.flush(), persist.ErrLost)
	check("lost")
	s.share.Close()
	require.Zero(t, b.Used())
}

// The data of entries that are no longer retained can be garbage collected.
func TestSender_FreesDroppedEntries(t *testing.T) {
	s := newSender(context.Background(), &Memory{}, trail{}, 0, &Options{})
	var freed atomic.Int32
	const ops = 64
	for range ops {
		data := make([]byte, maxData)
		runtime.AddCleanup(&data[0], func(int) { freed.Add(1) }, 0)
		s.addPending(op{opWrite, "journal/1.seg", 0, data})
	}
	require.NoError(t, s.flush())
	kept := int32(len(s.recent))
	require.Less(t, kept, int32(ops/2))
	require.Eventually(t, func() bool {
		runtime.GC()
		return freed.Load() == ops-kept
	}, 10*time.Second, time.Millisecond)
	runtime.KeepAlive(s)
}

// The memory of 50 owners whose logs do not answer stays within their shared budget. All owners
// continue when the logs answer.
func TestOwner_BudgetWithStoppedLog(t *testing.T) {
	const owners, memory = 50, 4 << 20
	b := budget.New(memory)
	var stop atomic.Bool
	type node struct {
		owner *Owner
		store *persist.Store
		world *ecs.World
		cells *ecs.Storage[cell]
		all   []ecs.Entity
		ticks int
	}
	var nodes []*node
	for range owners {
		f, err := Follow(context.Background(), stoppedLog{&Memory{}, &stop}, disktest.New(), Options{Budget: b, Heartbeat: -1})
		require.NoError(t, err)
		o, err := f.Claim(context.Background())
		require.NoError(t, err)
		n := &node{owner: o, world: ecs.NewWorld(ecs.Options{})}
		n.cells = ecs.MustRegister[cell](n.world)
		n.all = n.world.CreateN(nil, 16)
		n.store, err = o.Open(context.Background(), n.world, persist.Options{SnapshotBytes: -1, RefuseWhenFull: true, Sync: journal.SyncAlways})
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	tick := func(n *node) error {
		n.ticks++
		for i, e := range n.all {
			n.cells.Set(e, cell{byte(n.ticks), byte(n.ticks >> 8), byte(i)})
		}
		return n.store.Commit()
	}
	for _, n := range nodes {
		require.NoError(t, tick(n))
		require.NoError(t, n.store.Sync(context.Background()))
	}
	for _, slow := range []bool{true, false} { // In the second round, the log answers again.
		stop.Store(slow)
		refused, most := 0, int64(0)
		committed := make([]int, owners)
		for round := 0; round < 400 || !slow && slices.Contains(committed, 0); round++ {
			if !slow {
				time.Sleep(time.Millisecond)
			}
			require.Less(t, round, 10_000, "an owner is starved")
			for i, n := range nodes {
				switch err := tick(n); {
				case err == nil:
					committed[i]++
				case errors.Is(err, persist.ErrBacklog):
					refused++
				default:
					t.Fatal(err)
				}
			}
			most = max(most, b.Used())
		}
		for i, n := range committed {
			require.Positive(t, n, "owner %d, stopped %v", i, slow)
		}
		require.True(t, refused > 0 || !slow)
		// A waiting tick can exist three times: as journal bytes, as operations, and as an encoded
		// entry. So the memory can reach three times the budget. Each journal may exceed its share
		// by one tick.
		const ticks = owners * 4 << 10
		require.LessOrEqual(t, most, int64(3*(memory+ticks)), "stopped %v", slow)
	}
	for _, n := range nodes {
		require.NoError(t, n.store.Sync(context.Background()))
		require.NoError(t, n.store.Close(context.Background()))
		require.NoError(t, n.owner.Close())
	}
	require.Zero(t, b.Used())
	require.EqualValues(t, memory/2, b.Open(nil).Add(0), "no share is left")
}

type cell [64]byte
