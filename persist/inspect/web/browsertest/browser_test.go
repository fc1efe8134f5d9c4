package browsertest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/inspect/web"
)

// browsers are names of programs that the tests can use as a browser.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"}

// browser starts a browser and returns its context. The browser ends with the test.
func browser(t testing.TB) context.Context {
	t.Helper()
	return browserFor(t, 3*time.Minute)
}

// browserFor is like browser, but the browser may run for at most the given time.
func browserFor(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	path := os.Getenv("STET_BROWSER")
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("no Chromium found: run make browser to install it, or set STET_BROWSER")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 800))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, limit)
	t.Cleanup(cancel)
	return ctx
}

// serve serves the store or save at path, and returns the address of its page.
func serve(t testing.TB, path string) string {
	t.Helper()
	return serveWith(t, path, web.Options{})
}

// serveWith is like serve, but takes options. It sets options.Name.
func serveWith(t testing.TB, path string, options web.Options) string {
	t.Helper()
	options.Name = filepath.Base(path)
	h, err := web.New(context.Background(), func(ctx context.Context) (*inspect.View, error) {
		return inspect.OpenReadOnly(ctx, path)
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL + h.Path()
}

// A page is a tab with a page of the server. It records the errors of the tab's console.
type page struct {
	testing.TB
	ctx    context.Context
	mu     sync.Mutex
	errors []string
}

// open opens url in a new tab of the given size.
func open(t testing.TB, browser context.Context, url string, width, height int64, dark bool) *page {
	t.Helper()
	// The browser is killed when the thread of the operating system that started it ends. Some
	// goroutines of a store end their thread. LockOSThread keeps them away from this thread.
	goruntime.LockOSThread()
	t.Cleanup(goruntime.UnlockOSThread)
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &page{TB: t, ctx: ctx}
	// Open the tab. It stays open until ctx ends.
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.errors = append(p.errors, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				p.errors = append(p.errors, fmt.Sprintf("console.%s %s", e.Type, e.Args[0].Value))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				p.errors = append(p.errors, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), log.Enable(),
		chromedp.Navigate(url))
	p.until(`document.documentElement.dataset.ready === "1"`)
	t.Cleanup(p.clean)
	return p
}

// clean reports the recorded errors of the console.
func (p *page) clean() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.errors {
		p.Errorf("the console has an error: %s", e)
	}
	p.errors = nil
}

// excuse removes the recorded errors that contain text, because the test itself caused them.
func (p *page) excuse(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []string
	for _, e := range p.errors {
		if !strings.Contains(e, text) {
			kept = append(kept, e)
		}
	}
	p.errors = kept
}

func (p *page) do(actions ...chromedp.Action) {
	p.Helper()
	// chromedp waits until the element exists.
	ctx, cancel := context.WithTimeout(p.ctx, 15*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval returns the value of an expression.
func eval[T any](p *page, script string) (v T) {
	p.Helper()
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	if err := chromedp.Run(p.ctx, chromedp.Evaluate(script, &v, wait)); err != nil {
		p.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits until a condition is true.
func (p *page) until(script string) {
	p.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(15 * time.Millisecond) {
		if eval[bool](p, "!!("+script+")") {
			return
		}
	}
	p.shot("failed")
	p.Fatalf("the condition was never true: %s\n%s\n%v", script, p.text("body"), p.errors)
}

// text returns the visible text of the first element that matches a selector.
func (p *page) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// shows waits until the element contains text.
func (p *page) shows(selector, text string) {
	p.Helper()
	p.until(fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? "").includes(%q)`, selector, text))
}

func (p *page) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

// key presses keys, one after the other, as on a keyboard.
func (p *page) key(keys ...string) {
	p.Helper()
	for _, k := range keys {
		if k < " " || k > "~" || len(k) > 1 {
			p.do(chromedp.KeyEvent(k))
			continue
		}
		// The page gets the key before the browser inserts the character, and can prevent the
		// insertion.
		p.do(input.DispatchKeyEvent(input.KeyDown).WithKey(k).WithText(k), input.DispatchKeyEvent(input.KeyUp).WithKey(k))
	}
}

// write types text into the focused field.
func (p *page) write(text string) {
	p.Helper()
	p.do(input.InsertText(text))
}

// tick returns the tick that the page shows.
func (p *page) tick() int { return eval[int](p, "stet.point.tick") }

// hide simulates that the tab becomes hidden or visible. A browser without a window shows all
// tabs.
func (p *page) hide(hidden bool) {
	p.Helper()
	eval[bool](p, fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %v, configurable: true }) && document.dispatchEvent(new Event("visibilitychange"))`, hidden))
}

// shot saves a picture of the page if STET_SHOTS names a directory.
func (p *page) shot(name string) {
	p.Helper()
	dir := os.Getenv("STET_SHOTS")
	if dir == "" {
		return
	}
	var png []byte
	p.do(chromedp.Sleep(150*time.Millisecond), chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		p.Fatal(err)
	}
}
