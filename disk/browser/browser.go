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

// ErrUnsupported reports that the browser stores no files for this page. Possible reasons are a
// page that is not loaded over https, an old browser, or a private window.
var ErrUnsupported = errors.New("browser: no storage for this page")

var errNoLocks = fmt.Errorf("%w: it has no Web Locks, as on a page without https", ErrUnsupported)

// lockPrefix begins the name of the lock of a file system.
const lockPrefix = "stet: "

// Open opens the file system with this name, and creates it if it is missing. All pages of the
// origin share it, but only one tab can have it open. Close releases it for other tabs.
//
// If another tab has it open, Open retries for two seconds, because the browser releases the files
// of a closed tab with a delay.
//
// Errors:
//   - [disk.ErrLocked]: another tab has the file system open.
//   - [ErrUnsupported]: the browser stores no files for this page.
//   - Other errors are those of [flat.Open].
//   - If the storage is full, a write or a Sync returns [syscall.ENOSPC].
//
// ctx bounds the time of Open. Call Open in a goroutine that is not a JavaScript callback, because
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
	tree, err := flat.Open(d)
	if err != nil {
		return nil, err
	}
	return stored{tree, d.backend}, nil
}

// OpenRead opens the file system with this name for reading only, while another tab may write it.
// For example, persist.Follow can then show the ticks of the other tab. Close of the result does
// not affect the other tab. Files are visible as in [flat.OpenRead].
//
// With OPFS, all bytes that the other tab has written are visible. With IndexedDB, only bytes that
// a Sync or a Close has stored are visible.
//
// Errors:
//   - [fs.ErrNotExist]: no file system has this name.
//   - [ErrUnsupported]: the browser stores no files for this page.
//   - Other errors are those of [flat.OpenRead].
//
// ctx bounds the time of OpenRead. Call OpenRead in a goroutine that is not a JavaScript callback.
func OpenRead(ctx context.Context, name string) (disk.FS, error) {
	if !manager("locks").Truthy() {
		return nil, errNoLocks
	}
	d, err := openDevice(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	tree, err := flat.OpenRead(readDevice{d, name})
	if err != nil {
		return nil, err
	}
	return stored{tree, d.backend}, nil
}

// stored is a file system of this package.
type stored struct {
	disk.FS
	backend string
}

// Backend returns where the files of [Open] or [OpenRead] are stored: "OPFS" or "IndexedDB". For
// another file system it returns "".
func Backend(files disk.FS) string {
	s, _ := files.(stored)
	return s.backend
}

// Persist asks the browser not to evict the data of this origin when its disk is full. It returns
// whether the browser agrees. The browser may ask the user.
func Persist(ctx context.Context) (bool, error) {
	storage := manager("storage")
	if !storage.Truthy() || !storage.Get("persist").Truthy() {
		return false, ErrUnsupported
	}
	kept, err := await(ctx, storage.Call("persist"))
	return err == nil && kept.Truthy(), err
}

// Usage returns how many bytes the origin uses, and how many bytes it may use. The browser
// estimates both.
func Usage(ctx context.Context) (used, quota int64, err error) {
	storage := manager("storage")
	if !storage.Truthy() || !storage.Get("estimate").Truthy() {
		return 0, 0, ErrUnsupported
	}
	e, err := await(ctx, storage.Call("estimate"))
	if err != nil {
		return 0, 0, err
	}
	return int64(e.Get("usage").Float()), int64(e.Get("quota").Float()), nil
}

// manager returns the property of the JavaScript object navigator with this name, such as
// navigator.locks. If the property is missing, it returns undefined.
func manager(name string) js.Value {
	if navigator := js.Global().Get("navigator"); navigator.Truthy() {
		return navigator.Get(name)
	}
	return js.Undefined()
}

// A tabLock is a lock of the browser on a name. It ends with the tab.
type tabLock struct {
	release func()
	lost    chan struct{} // Closed when another tab has taken the lock by force.
}

// lockName locks a name.
func lockName(ctx context.Context, name string) (*tabLock, error) {
	locks := manager("locks")
	if !locks.Truthy() {
		return nil, errNoLocks
	}
	l := &tabLock{lost: make(chan struct{})}
	taken := make(chan bool, 1)
	// The browser holds the lock until the promise that hold returns is resolved. The function end
	// resolves it.
	var end js.Value
	executor := js.FuncOf(func(_ js.Value, args []js.Value) any {
		end = args[0]
		return nil
	})
	hold := js.FuncOf(func(_ js.Value, args []js.Value) any {
		promise := js.Global().Get("Promise").New(executor)
		taken <- !args[0].IsNull()
		return promise
	})
	failed := js.FuncOf(func(js.Value, []js.Value) any {
		close(l.lost)
		return nil
	})
	request := locks.Call("request", lockPrefix+name, map[string]any{"ifAvailable": true}, hold)
	caught := request.Call("catch", failed)
	free := func() {
		// Wait until the request has ended. Until then, the browser may call the three functions.
		_, _ = await(context.Background(), caught)
		executor.Release()
		hold.Release()
		failed.Release()
	}
	l.release = func() {
		end.Invoke()
		free()
	}
	select {
	case ok := <-taken:
		if !ok {
			l.release()
			return nil, fmt.Errorf("browser: %s is open in another tab: %w", name, disk.ErrLocked)
		}
		return l, nil
	case <-l.lost:
		free()
		return nil, fmt.Errorf("%w: it refuses Web Locks", ErrUnsupported)
	case <-ctx.Done():
		// The request still runs. Release the lock if the browser grants it later.
		go func() {
			select {
			case <-taken:
				l.release()
			case <-l.lost:
				free()
			}
		}()
		return nil, ctx.Err()
	}
}

// Wait waits until no tab has the file system of this name open for writing. [Open] then succeeds,
// unless another tab is faster.
func Wait(ctx context.Context, name string) error {
	locks := manager("locks")
	if !locks.Truthy() {
		return errNoLocks
	}
	// The browser releases the lock when granted returns, which is immediately. Then the promise of
	// the request ends.
	granted := js.FuncOf(func(js.Value, []js.Value) any { return nil })
	request := locks.Call("request", lockPrefix+name, granted)
	_, err := await(ctx, request)
	if ctx.Err() == nil {
		granted.Release()
	} else {
		go func() { // The browser may call granted later.
			_, _ = await(context.Background(), request)
			granted.Release()
		}()
	}
	return err
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
	// The browser may call the two functions later, so do not release them.
	case <-ctx.Done():
		return js.Undefined(), ctx.Err()
	}
}

// patience is how long Open retries while another tab has the file system open. The browser
// releases the files of a closed tab with a delay.
const patience = 2 * time.Second
