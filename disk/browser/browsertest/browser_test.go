package browsertest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

var kills = flag.Int("kills", 12, "kill the tab this many times")

// browsers are names of programs that the tests can use as a browser.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"}

// browser starts a browser and returns its context. The test ends the browser.
func browser(t *testing.T) context.Context {
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
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 20*time.Minute)
	t.Cleanup(cancel)
	// The browser ends when the thread that started it ends.
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	run(t, ctx)
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// serve compiles the program, and serves a page that runs it.
func serve(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "program.wasm"), "./program")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	support := filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js")
	files := http.NewServeMux()
	files.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><script src="wasm_exec.js"></script><script>
			if (location.search.includes("IndexedDB")) { // Hides OPFS from the worker.
				const hide = "delete StorageManager.prototype.getDirectory;";
				window.Blob = class extends Blob { constructor(parts, o) { super([hide, ...parts], o) } };
			}
			const go = new Go();
			WebAssembly.instantiateStreaming(fetch("program.wasm"), go.importObject).then((r) => go.run(r.instance));
		</script>`)
	})
	files.HandleFunc("/wasm_exec.js", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, support) })
	files.HandleFunc("/program.wasm", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(dir, "program.wasm")) })
	server := httptest.NewServer(files)
	t.Cleanup(server.Close)
	return server.URL
}

// A tab runs the program.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func open(t *testing.T, browser context.Context, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	run(t, ctx, chromedp.Navigate(url))
	return &tab{t, ctx}
}

// number returns a property of the object stet. It is -1 if the property is missing.
func (p *tab) number(name string) (n int64) {
	p.t.Helper()
	run(p.t, p.ctx, chromedp.Evaluate(fmt.Sprintf("window.stet?.%s ?? -1", name), &n))
	return n
}

// text returns a property of the object stet. It is "" if the property is missing.
func (p *tab) text(name string) (text string) {
	p.t.Helper()
	run(p.t, p.ctx, chromedp.Evaluate(fmt.Sprintf("window.stet?.%s ?? ''", name), &text))
	return text
}

// fault returns the error of the program, or "".
func (p *tab) fault() string { return p.text("error") }

// wait waits until a property is set.
func (p *tab) wait(name string) int64 {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if n := p.number(name); n >= 0 {
			return n
		}
		if text := p.fault(); text != "" && name != "resumed" {
			p.t.Fatalf("waiting for %s: %s", name, text)
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s was not set", name)
		}
	}
}

// crash kills the process of the tab.
func (p *tab) crash() {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second) // The killed process does not answer.
	defer cancel()
	_ = chromedp.Run(ctx, page.Crash())
}

// close closes the tab without running the unload handlers of its page.
func (p *tab) close(browser context.Context) {
	id := chromedp.FromContext(p.ctx).Target.TargetID
	_ = chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) error {
		return target.CloseTarget(id).Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
	}))
}

// onBackends runs a test on each backend of package browser. Each test has its own
// browser, without files.
func onBackends(t *testing.T, test func(t *testing.T, tabs context.Context, url string)) {
	for _, backend := range []string{"OPFS", "IndexedDB"} {
		t.Run(backend, func(t *testing.T) {
			tabs, url := browser(t), serve(t)+"/?"+backend
			p := open(t, tabs, url)
			p.wait("recovered")
			if got := p.text("backend"); got != backend {
				t.Fatalf("the files are in %s", got)
			}
			p.close(tabs)
			test(t, tabs, url)
		})
	}
}

// No durable tick is lost when a tab is killed, closed or reloaded at a random moment. The program
// checks that the recovered state is that of a single tick.
func TestStore_TabKilled(t *testing.T) { onBackends(t, testTabKilled) }

func testTabKilled(t *testing.T, tabs context.Context, url string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	durable, ticks := int64(0), int64(0)
	for range *kills {
		p := open(t, tabs, url)
		recovered := p.wait("recovered")
		if recovered < durable {
			t.Fatalf("tick %d was durable, but the store has only tick %d", durable, recovered)
		}
		p.wait("durable")
		time.Sleep(time.Duration(rng.IntN(800)) * time.Millisecond)
		durable = p.number("durable")
		if durable < 0 {
			t.Fatal(p.fault())
		}
		switch rng.IntN(3) {
		case 0:
			p.crash()
			p.close(tabs)
		case 1:
			p.close(tabs)
		case 2:
			run(t, p.ctx, chromedp.Reload())
			p.wait("recovered")
			p.close(tabs)
		}
		ticks = max(ticks, durable)
	}
	t.Logf("%d kills, %d ticks", *kills, ticks)
}

// In a second tab, Open fails with an error that names the cause.
func TestStore_SecondTab(t *testing.T) {
	tabs, url := browser(t), serve(t)
	first := open(t, tabs, url)
	first.wait("recovered")
	second := open(t, tabs, url)
	for end := time.Now().Add(time.Minute); second.fault() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the second tab has opened the store")
		}
	}
	if text := second.fault(); !strings.Contains(text, "is open in another tab") {
		t.Error(text)
	}
	first.wait("durable")
}

// A second tab follows the store, also after the writing tab was killed and opened again. It sees
// each durable tick.
func TestStore_FollowingTab(t *testing.T) { onBackends(t, testFollowingTab) }

func testFollowingTab(t *testing.T, tabs context.Context, url string) {
	writer := open(t, tabs, url)
	writer.wait("durable")
	reader := open(t, tabs, url+"&follow")
	reader.wait("followed")
	for range max(2, *kills/4) {
		time.Sleep(500 * time.Millisecond)
		durable := writer.number("durable")
		for end := time.Now().Add(time.Minute); reader.number("followed") < durable; time.Sleep(10 * time.Millisecond) {
			if text := reader.fault(); text != "" || time.Now().After(end) {
				t.Fatalf("tick %d is durable, and the reader has tick %d: %s", durable, reader.number("followed"), text)
			}
		}
		writer.crash()
		writer.close(tabs)
		writer = open(t, tabs, url)
		if recovered := writer.wait("recovered"); recovered < durable {
			t.Fatalf("tick %d was durable, but the store has only tick %d", durable, recovered)
		}
		writer.wait("durable")
	}
	if text := reader.fault(); text != "" {
		t.Error(text)
	}
}

// If the storage is full, Commit or Sync returns an error. Once there is space again, the program
// continues without loss.
func TestStore_QuotaExceeded(t *testing.T) { onBackends(t, testQuotaExceeded) }

func testQuotaExceeded(t *testing.T, tabs context.Context, url string) {
	p := open(t, tabs, url)
	p.wait("durable")
	run(t, p.ctx, storage.OverrideQuotaForOrigin(url).WithQuotaSize(64<<10))
	for end := time.Now().Add(time.Minute); p.fault() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no error after %d durable ticks", p.number("durable"))
		}
	}
	if text := strings.ToLower(p.fault()); !strings.Contains(text, "no space left") {
		t.Error(text)
	}
	run(t, p.ctx, storage.OverrideQuotaForOrigin(url), chromedp.Evaluate("window.resume = true", nil))
	if resumed, durable := p.wait("resumed"), p.number("durable"); resumed < durable {
		t.Errorf("resumed at tick %d, durable was tick %d", resumed, durable)
	}
}
