package chapters_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A motd is the message of the day.
type motd struct{ Text string }

// newMessagePage returns the handler of a page that sets the message of the day.
func newMessagePage(store *persist.Store, message *ecs.Resource[motd]) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		text := request.FormValue("text")
		err := store.Do(request.Context(), func(*ecs.World) {
			message.Set(motd{text})
			_ = store.Input("message", []byte(text)) // For a replay.
		})
		if err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func Example_serversDo() {
	world := ecs.NewWorld(ecs.Options{})
	message := ecs.Must(ecs.RegisterResource(world, motd{"hello"}, ecs.Component[motd]{Name: "Message"}))
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	page, done := newMessagePage(store, message), make(chan bool)
	go func() { // Each connection of a server has a goroutine.
		page(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/?text=bye", http.NoBody))
		close(done)
	}()
	for running := true; running; {
		check(store.Commit())
		select {
		case <-done:
			running = false
		case <-time.After(time.Millisecond):
		}
	}
	fmt.Println(message.Get())
	check(store.Close(ctx))
	// Output: {bye}
}

// A payment pays an amount, and gets an answer.
type payment struct {
	amount int
	answer func(tick uint64)
}

// A bank answers each payment when the tick of the payment is durable.
type bank struct {
	store    *persist.Store
	world    *ecs.World
	balance  *ecs.Resource[int]
	payments chan payment // From the connections.
	next     []payment    // Those of the next tick.
	waiting  []receipt    // Those of the last ticks, in their order.
	durable  atomic.Uint64
	wake     chan struct{} // Has room for one value.
}

// A receipt is an answer that waits until its tick is durable.
type receipt struct {
	tick   uint64
	answer func(tick uint64)
}

func openBank(t *testing.T, options persist.Options) *bank {
	b := &bank{world: ecs.NewWorld(ecs.Options{}), payments: make(chan payment, 100), wake: make(chan struct{}, 1)}
	b.balance = ecs.Must(ecs.RegisterResource(b.world, 0, ecs.Component[int]{Name: "Balance"}))
	options.OnDurable = b.onDurable
	var err error
	b.store, err = persist.Open(t.Context(), t.TempDir(), b.world, options)
	require.NoError(t, err)
	return b
}

// onDurable is Options.OnDurable. The goroutine of the journal calls it, so it never blocks.
func (b *bank) onDurable(tick uint64) {
	b.durable.Store(tick)
	select {
	case b.wake <- struct{}{}:
	default: // The loop has not taken the last value yet.
	}
}

func (b *bank) answer() {
	for len(b.waiting) > 0 && b.waiting[0].tick <= b.durable.Load() {
		b.waiting[0].answer(b.waiting[0].tick)
		b.waiting = b.waiting[1:]
	}
}

// serve is the loop. The channel payments is closed when all connections have stopped reading.
func (b *bank) serve(clock <-chan time.Time) error {
	for {
		select {
		case p, open := <-b.payments:
			if !open {
				err := errors.Join(b.tick(), b.store.Sync(ctx)) // After the calls of onDurable.
				b.answer()
				return err // The caller closes the connections, and then the store.
			}
			b.next = append(b.next, p)
		case <-clock:
			if err := b.tick(); err != nil {
				return err
			}
		case <-b.wake:
			b.answer()
		}
	}
}

// tick runs a tick with the payments that have arrived.
func (b *bank) tick() error {
	for _, p := range b.next {
		if err := b.store.Input("pay", []byte(fmt.Sprint(p.amount))); err != nil {
			return err
		}
		*b.balance.Mut() += p.amount
	}
	if err := b.store.Commit(); err != nil {
		return err
	}
	for _, p := range b.next {
		b.waiting = append(b.waiting, receipt{b.world.Tick(), p.answer})
	}
	b.next = b.next[:0]
	return nil
}

// An idle server with CommitEvery answers as soon as without.
func TestServers_AnswersAreDurable(t *testing.T) {
	for name, options := range map[string]persist.Options{
		"default": {}, "always": {Sync: journal.SyncAlways}, "idle": {CommitEvery: 20, Sync: journal.SyncAlways},
	} {
		t.Run(name, func(t *testing.T) {
			b := openBank(t, options)
			clock, done, answers := make(chan time.Time), make(chan error), make(chan uint64, 100)
			go func() { done <- b.serve(clock) }()
			answer := func(tick uint64) {
				assert.LessOrEqual(t, tick, b.store.Metrics().DurableTick)
				answers <- tick
			}
			for range 5 {
				clock <- time.Time{}
			}
			b.payments <- payment{7, answer}
			for len(b.payments) > 0 {
				time.Sleep(time.Millisecond)
			}
			clock <- time.Time{}
			require.Equal(t, uint64(6), <-answers, "without another tick")
			b.payments <- payment{8, answer}
			close(b.payments)
			require.NoError(t, <-done)
			require.Equal(t, uint64(7), <-answers)
			require.Equal(t, 15, b.balance.Get())
			require.NoError(t, b.store.Close(t.Context()))
		})
	}
}

// The chapter has these figures of an idle server.
func TestServers_IdleCommitEvery(t *testing.T) {
	const ticks = 100
	perTick := map[int]int64{}
	for _, every := range []int{1, 20} {
		b := openBank(t, persist.Options{CommitEvery: every, Sync: journal.SyncAlways})
		before := b.store.Metrics()
		for i := range ticks {
			require.NoError(t, b.tick())
			if i%every == 0 {
				require.NoError(t, b.store.Sync(t.Context())) // As if time passed.
			}
		}
		after := b.store.Metrics()
		perTick[every] = (after.JournalBytes - before.JournalBytes) / ticks
		require.InDelta(t, ticks/every, after.Syncs-before.Syncs, 1)
		require.NoError(t, b.store.Close(t.Context()))
	}
	require.InDelta(t, 126, perTick[1], 15)
	require.InDelta(t, 6, perTick[20], 2)
}
