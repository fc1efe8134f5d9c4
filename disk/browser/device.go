//go:build js && wasm

package browser

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"syscall"
	"syscall/js"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/flat"
)

//go:embed worker.js
var workerSource string

// A device is a flat.Device in a worker: the worker opens, reads and writes the files. Each call is
// a message to the worker, with an id. The answer of the worker has the same id. The call receives
// the answer from the channel pending[id].
type device struct {
	worker    js.Value
	lock      *tabLock
	backend   string // "OPFS" or "IndexedDB".
	onMessage js.Func
	onError   js.Func

	mu      sync.Mutex
	last    int                    // The id of the last call.
	pending map[int]chan<- message // The calls without an answer. Nil after the end of the worker.
	failure error                  // Why the worker has ended.
	ended   chan struct{}          // Closed when the worker has ended.
}

// A message is an answer of the worker.
type message struct {
	value js.Value
	err   error
}

// openDevice starts the worker of a file system. If l is nil, the worker only reads.
func openDevice(ctx context.Context, name string, l *tabLock) (*device, error) {
	global := js.Global()
	blob := global.Get("Blob").New([]any{workerSource}, map[string]any{"type": "text/javascript"})
	url := global.Get("URL").Call("createObjectURL", blob)
	defer global.Get("URL").Call("revokeObjectURL", url)
	d := &device{lock: l, pending: map[int]chan<- message{}, ended: make(chan struct{})}
	d.onMessage = js.FuncOf(func(_ js.Value, args []js.Value) any {
		d.answer(args[0].Get("data"))
		return nil
	})
	d.onError = js.FuncOf(func(_ js.Value, args []js.Value) any {
		why := "a content security policy must allow worker-src blob:"
		if text := args[0].Get("message"); text.Truthy() {
			why = text.String()
		}
		d.end(fmt.Errorf("%w: the worker failed: %s", ErrUnsupported, why))
		return nil
	})
	if !global.Get("Worker").Truthy() {
		return nil, fmt.Errorf("%w: it has no workers", ErrUnsupported)
	}
	d.worker = global.Get("Worker").New(url)
	d.worker.Set("onmessage", d.onMessage)
	d.worker.Set("onerror", d.onError)
	begun := make(chan message, 1)
	go func() {
		// A directory name cannot contain a slash.
		escaped := global.Call("encodeURIComponent", name).String()
		backend, err := d.call("begin", map[string]any{"name": "stet: " + escaped, "readOnly": l == nil})
		begun <- message{backend, err}
	}()
	var m message
	select {
	case m = <-begun:
	case <-ctx.Done():
		m.err = ctx.Err()
	}
	if m.err != nil {
		d.stop(m.err)
		return nil, m.err
	}
	d.backend = m.value.String()
	if l == nil {
		return d, nil
	}
	go func() {
		select {
		case <-l.lost:
			d.end(fmt.Errorf("browser: another tab has taken %s over: %w", name, disk.ErrLost))
		case <-d.ended:
		}
	}()
	return d, nil
}

// call sends a call to the worker and returns its result.
func (d *device) call(name string, args map[string]any) (js.Value, error) {
	answer := make(chan message, 1)
	d.mu.Lock()
	if d.pending == nil {
		defer d.mu.Unlock()
		return js.Undefined(), d.failure
	}
	d.last++
	d.pending[d.last] = answer
	args["id"], args["call"] = d.last, name
	d.worker.Call("postMessage", args)
	d.mu.Unlock()
	m := <-answer
	return m.value, m.err
}

// answer passes an answer of the worker to the call with the same id.
func (d *device) answer(data js.Value) {
	id, m := data.Get("id").Int(), message{value: data.Get("value")}
	if name := data.Get("error"); !name.IsUndefined() {
		m.err = domError(name.String(), data.Get("text").String())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if answer := d.pending[id]; answer != nil {
		delete(d.pending, id)
		answer <- m
	}
}

// end terminates the worker, which releases its files. All running and later calls fail with err.
func (d *device) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, answer := range d.pending {
		answer <- message{err: err}
	}
	if d.pending != nil {
		d.pending, d.failure = nil, err
		d.worker.Call("terminate")
		close(d.ended)
	}
}

// stop terminates the worker and releases the JavaScript callbacks.
func (d *device) stop(err error) {
	d.end(err)
	d.onMessage.Release()
	d.onError.Release()
}

// domError returns the error for an exception of the browser.
func domError(name, text string) error {
	if text == "" {
		text = name
	}
	kind := error(nil)
	switch name {
	case "QuotaExceededError":
		kind = syscall.ENOSPC
	case "NotFoundError":
		kind = fs.ErrNotExist
	case "NoModificationAllowedError":
		kind = disk.ErrLocked
	case "LostError":
		kind = disk.ErrLost
	case "SecurityError", "NotAllowedError", "NotSupportedError", "TypeError":
		return fmt.Errorf("%w: %s", ErrUnsupported, text)
	default:
		return fmt.Errorf("browser: %s: %s", name, text)
	}
	return fmt.Errorf("browser: %s: %w", text, kind)
}

func name(number uint64) string { return strconv.FormatUint(number, 10) }

func names(numbers []uint64) (list []any) {
	for _, number := range numbers {
		list = append(list, name(number))
	}
	return list
}

func (d *device) Files() (numbers []uint64, err error) {
	list, err := d.call("list", map[string]any{})
	if err != nil {
		return nil, err
	}
	for i := range list.Length() {
		if n, err := strconv.ParseUint(list.Index(i).String(), 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Open retries while a file is locked, because a closed tab may still hold it for a moment.
func (d *device) Open(number uint64) (flat.File, error) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := d.call("open", map[string]any{"name": name(number)})
		if err == nil {
			return &file{d, name(number)}, nil
		}
		if !errors.Is(err, disk.ErrLocked) || time.Now().After(end) {
			return nil, err
		}
	}
}

func (d *device) Remove(number uint64) error {
	_, err := d.call("remove", map[string]any{"name": name(number)})
	return err
}

func (d *device) Sizes(numbers []uint64) ([]int64, error) {
	list, err := d.call("sizes", map[string]any{"names": names(numbers)})
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, len(numbers))
	for i := range sizes {
		sizes[i] = int64(list.Index(i).Float())
	}
	return sizes, nil
}

// Lost reports whether another tab has taken the files over.
func (d *device) Lost() bool {
	select {
	case <-d.lock.lost:
		return true
	default:
		return false
	}
}

// Close waits until the worker has stored all written bytes.
func (d *device) Close() error {
	_, err := d.call("end", map[string]any{})
	d.stop(fs.ErrClosed)
	if d.lock != nil {
		d.lock.release()
	}
	return err
}

// A readDevice is a flat.ReadDevice. Another tab may write its files.
type readDevice struct {
	*device
	name string // The name of the file system.
}

func (d readDevice) ReadFiles(numbers ...uint64) ([][]byte, error) {
	list, err := d.call("readFiles", map[string]any{"names": names(numbers)})
	if err != nil {
		return nil, err
	}
	files := make([][]byte, len(numbers))
	for i := range files {
		if data := list.Index(i); !data.IsUndefined() {
			files[i] = make([]byte, data.Length())
			js.CopyBytesToGo(files[i], data)
		}
	}
	return files, nil
}

// Open does not retry. Reading a file works even while a writer has the file locked.
func (d readDevice) Open(number uint64) (flat.File, error) {
	if _, err := d.call("open", map[string]any{"name": name(number)}); err != nil {
		return nil, err
	}
	return &file{d.device, name(number)}, nil
}

// Written asks the browser whether a tab holds the lock of the file system.
func (d readDevice) Written() (bool, error) {
	locks, err := await(context.Background(), manager("locks").Call("query"))
	if err != nil {
		return false, err
	}
	held := locks.Get("held")
	for i := range held.Length() {
		if held.Index(i).Get("name").String() == lockPrefix+d.name {
			return true, nil
		}
	}
	return false, nil
}

// A file is an open file of a device.
type file struct {
	d    *device
	name string
}

func (f *file) call(name string, args map[string]any) (js.Value, error) {
	args["name"] = f.name
	return f.d.call(name, args)
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	data, err := f.call("read", map[string]any{"at": at, "length": len(b)})
	if err != nil {
		return 0, err
	}
	n := js.CopyBytesToGo(b, data)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	data := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(data, b)
	if _, err := f.call("write", map[string]any{"at": at, "data": data}); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) Sync() error {
	_, err := f.call("flush", map[string]any{})
	return err
}

func (f *file) Size() (int64, error) {
	size, err := f.call("size", map[string]any{})
	if err != nil {
		return 0, err
	}
	return int64(size.Float()), nil
}

func (f *file) Close() error {
	_, err := f.call("close", map[string]any{})
	return err
}
