//go:build js && wasm

package browser

import (
	"context"
	"errors"
	"fmt"
	"syscall/js"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/flat"
)

// ErrUnsupported reports a browser that cannot store files for this page. Some browsers refuse in a
// private window.
var ErrUnsupported = errors.New("browser: no storage for this page")

// Open opens the file system with this name, and creates it if it is missing. Every page of the
// origin shares it. Close of the result releases it for other tabs.
//
// If another tab has it open, Open waits two seconds, because a tab that was closed releases its
// files some time later. Then the error wraps [disk.ErrLocked]. If the browser stores nothing for
// this page, it wraps [ErrUnsupported]. Otherwise the errors are those of [flat.Open]. If the
// storage is full, the error of a write wraps [syscall.ENOSPC].
//
// ctx bounds the time to open. Call Open in a goroutine that is not a callback of JavaScript, since
// it waits for the browser.
func Open(ctx context.Context, name string) (disk.FS, error) {
	l, err := lockName(ctx, name)
	for end := time.Now().Add(patience); errors.Is(err, disk.ErrLocked) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		l, err = lockName(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	d, err := openDevice(ctx, name, l)
	if err != nil {
		l.release()
		return nil, err
	}
	return flat.Open(d)
}

// Persist asks the browser not to evict the data of this origin when its disk is full. It returns
// whether the browser agrees. The browser may ask the user.
func Persist(ctx context.Context) (bool, error) {
	storage := js.Global().Get("navigator").Get("storage")
	if storage.IsUndefined() || storage.Get("persist").IsUndefined() {
		return false, ErrUnsupported
	}
	kept, err := await(ctx, storage.Call("persist"))
	return err == nil && kept.Truthy(), err
}

// Usage returns how many bytes the origin uses, and how many bytes it may use. The browser
// estimates both.
func Usage(ctx context.Context) (used, quota int64, err error) {
	storage := js.Global().Get("navigator").Get("storage")
	if storage.IsUndefined() || storage.Get("estimate").IsUndefined() {
		return 0, 0, ErrUnsupported
	}
	e, err := await(ctx, storage.Call("estimate"))
	if err != nil {
		return 0, 0, err
	}
	return int64(e.Get("usage").Float()), int64(e.Get("quota").Float()), nil
}

// A tabLock is a lock of the browser on a name. It ends with the tab.
type tabLock struct {
	release func()
	lost    chan struct{} // Closed when another tab has taken the lock by force.
}

// lockName locks a name.
func lockName(ctx context.Context, name string) (*tabLock, error) {
	locks := js.Global().Get("navigator").Get("locks")
	if locks.IsUndefined() {
		return nil, fmt.Errorf("%w: the page is not loaded over https or from this machine", ErrUnsupported)
	}
	l := &tabLock{lost: make(chan struct{})}
	taken := make(chan bool, 1)
	var end js.Value // Resolves the promise for which the browser holds the lock.
	hold := js.FuncOf(func(_ js.Value, args []js.Value) any {
		taken <- !args[0].IsNull()
		return js.Global().Get("Promise").New(js.FuncOf(func(_ js.Value, args []js.Value) any {
			end = args[0]
			return nil
		}))
	})
	failed := js.FuncOf(func(js.Value, []js.Value) any {
		close(l.lost)
		return nil
	})
	request := locks.Call("request", "stet: "+name, map[string]any{"ifAvailable": true}, hold)
	request.Call("catch", failed)
	l.release = func() {
		end.Invoke()
		_, _ = await(context.Background(), request) // After this, the lock is free or lost.
	}
	select {
	case ok := <-taken:
		if !ok {
			l.release()
			return nil, fmt.Errorf("browser: %s is open in another tab: %w", name, disk.ErrLocked)
		}
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// await waits for a promise.
func await(ctx context.Context, promise js.Value) (js.Value, error) {
	type result struct {
		value js.Value
		err   error
	}
	results := make(chan result, 1)
	done := js.FuncOf(func(_ js.Value, args []js.Value) any {
		results <- result{value: args[0]}
		return nil
	})
	failed := js.FuncOf(func(_ js.Value, args []js.Value) any {
		results <- result{err: domError(args[0].Get("name").String(), args[0].Get("message").String())}
		return nil
	})
	promise.Call("then", done, failed)
	select {
	case r := <-results:
		done.Release()
		failed.Release()
		return r.value, r.err
	case <-ctx.Done(): // The browser may still call the functions, so they are not released.
		return js.Undefined(), ctx.Err()
	}
}

// patience is how long Open waits for a tab that was closed or has crashed. The browser releases
// its lock and its files some time later.
const patience = 2 * time.Second
