package replicatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stet-ecs/stet/persist/replica"
)

// Run checks that a log keeps the promises of [replica.Log]. Each call of empty() must return a
// new, empty log.
func Run(t *testing.T, empty func(*testing.T) replica.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	t.Run("append only after the last position", func(t *testing.T) {
		log := empty(t)
		bounds(ctx, t, log, 0, 0)
		first := add(ctx, t, log, 0, "a")
		second := add(ctx, t, log, first, "b")
		if second <= first || first == 0 {
			t.Fatalf("positions %d, then %d", first, second)
		}
		for _, after := range []replica.Position{0, first, second + 1} {
			if _, err := log.Append(ctx, after, []byte("c")); !errors.Is(err, replica.ErrTaken) {
				t.Errorf("append after %d, log ends at %d: %v, want ErrTaken", after, second, err)
			}
		}
		bounds(ctx, t, log, first, second)
	})
	t.Run("entries in order, including new entries", func(t *testing.T) {
		log := empty(t)
		var at replica.Position
		for i := range 3 {
			at = add(ctx, t, log, at, fmt.Sprint(i))
		}
		go func() {
			after := at
			for i := 3; i < 6; i++ {
				time.Sleep(2 * time.Millisecond)
				after, _ = log.Append(ctx, after, []byte(fmt.Sprint(i)))
			}
		}()
		n, last := 0, replica.Position(0)
		for e, err := range log.Entries(ctx, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if string(e.Data) != fmt.Sprint(n) || e.Position <= last {
				t.Fatalf("entry %d at %d is %q", n, e.Position, e.Data)
			}
			last = e.Position
			if n++; n == 6 {
				break
			}
		}
		short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		for _, err := range log.Entries(short, last) {
			if err == nil {
				t.Error("Entries yielded an unexpected entry")
			}
		}
	})
	t.Run("the next entry after a position", func(t *testing.T) {
		log := empty(t)
		next(ctx, t, log, 0, 0, "")
		first := add(ctx, t, log, 0, "a")
		second := add(ctx, t, log, first, "b")
		next(ctx, t, log, 0, first, "a")
		next(ctx, t, log, first-1, first, "a")
		next(ctx, t, log, first, second, "b")
		next(ctx, t, log, second, 0, "")
		next(ctx, t, log, second+7, 0, "")
		if err := log.Trim(ctx, second); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			e, err := log.Next(ctx, 0)
			return err == nil && e.Position == second
		})
	})
	t.Run("long entries and empty ones", func(t *testing.T) {
		log := empty(t)
		long := bytes.Repeat([]byte("0123456789abcdef"), replica.MaxEntry/16)
		at := add(ctx, t, log, 0, "")
		at = add(ctx, t, log, at, string(long))
		if at, err := log.Append(ctx, at, append(long, 0)); err == nil {
			t.Errorf("the log accepted an entry of more than MaxEntry bytes, at %d", at)
		}
		read := 0
		for e, err := range log.Entries(ctx, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if read++; read == 2 {
				if !bytes.Equal(e.Data, long) {
					t.Error("a long entry was read with other content")
				}
				break
			}
		}
	})
	t.Run("a log is trimmed", func(t *testing.T) {
		log := empty(t)
		var all []replica.Position
		var at replica.Position
		for i := range 5 {
			at = add(ctx, t, log, at, fmt.Sprint(i))
			all = append(all, at)
		}
		if err := log.Trim(ctx, all[3]); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			first, last, err := log.Bounds(ctx)
			return err == nil && first == all[3] && last == at
		})
		// A lagging server may show trimmed entries, with their old content.
		until(t, func() bool {
			for e, err := range log.Entries(ctx, all[0]) {
				if err != nil || !slices.Contains(all[1:4], e.Position) || string(e.Data) != fmt.Sprint(slices.Index(all, e.Position)) {
					t.Fatalf("the first is %q at %d, want that at %d; %v", e.Data, e.Position, all[3], err)
				}
				return e.Position == all[3]
			}
			return false
		})
		if err := log.Trim(ctx, at+1); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool {
			first, last, err := log.Bounds(ctx)
			return err == nil && (first == 0 || first == at) && last == at
		})
		add(ctx, t, log, at, "after trimming")
	})
	t.Run("of many at the same time, one is first", func(t *testing.T) {
		log := empty(t)
		var at replica.Position
		for round := range 5 {
			var won atomic.Uint64
			var wins atomic.Int32
			var all sync.WaitGroup
			for i := range 32 {
				all.Go(func() {
					if p, err := log.Append(ctx, at, []byte(fmt.Sprint(i))); err == nil {
						wins.Add(1)
						won.Store(uint64(p))
					} else if !errors.Is(err, replica.ErrTaken) {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			all.Wait()
			if wins.Load() != 1 {
				t.Fatalf("round %d: %d were first", round, wins.Load())
			}
			at = replica.Position(won.Load())
		}
	})
}

func add(ctx context.Context, t *testing.T, log replica.Log, after replica.Position, text string) replica.Position {
	t.Helper()
	at, err := log.Append(ctx, after, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// next checks that log.Next(after) returns the entry with this text at the second given position.
// If that position is 0, there must be no entry.
func next(ctx context.Context, t *testing.T, log replica.Log, after, at replica.Position, text string) {
	t.Helper()
	if e, err := log.Next(ctx, after); err != nil || e.Position != at || string(e.Data) != text {
		t.Errorf("entry after %d: %q at %d, %v; want %q at %d", after, e.Data, e.Position, err, text, at)
	}
}

func bounds(ctx context.Context, t *testing.T, log replica.Log, first, last replica.Position) {
	t.Helper()
	if f, l, err := log.Bounds(ctx); f != first || l != last || err != nil {
		t.Errorf("bounds %d to %d, %v; want %d to %d", f, l, err, first, last)
	}
}

func until(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if f() {
			return
		}
	}
	t.Error("the condition did not become true in time")
}
