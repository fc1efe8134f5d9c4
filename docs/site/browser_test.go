package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stet-ecs/stet/internal/webfiles"
)

// The page with a program that the tests use.
const played = "guide/time.html"

// An overlay is the file system FS, in which some files have other contents.
type overlay struct {
	fs.FS
	files fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if o.files[name] != nil {
		return o.files.Open(name)
	}
	return o.FS.Open(name)
}

// built builds the site once, with two programs in the chapter about time.
var built = sync.OnceValue(func() error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/guide/TIME.md"))
	if err != nil {
		return err
	}
	above, below, _ := strings.Cut(string(text), "## The picture")
	text = []byte(above + "<!-- run docs/site/testdata/dots -->\n\n<!-- run docs/site/testdata/prints -->\n\n## The picture" + below)
	// Make up the sizes of the other programs, because building them takes long.
	sizes := map[string]int64{}
	for k := 1; k < 10; k++ {
		sizes[fmt.Sprintf("examples/guide/game%d", k)] = 1_600_000
	}
	b := &builder{root: root, dir: builtDir, sizes: sizes, fsys: overlay{os.DirFS(root), fstest.MapFS{"docs/guide/TIME.md": {Data: text}}}}
	return b.build(false)
})

// The directory of the built site, and the function that ends the browser.
var (
	builtDir   string
	endBrowser = func() {}
)

func TestMain(m *testing.M) {
	var err error
	if builtDir, err = os.MkdirTemp("", "site"); err != nil {
		panic(err)
	}
	code := m.Run()
	endBrowser()
	_ = os.RemoveAll(builtDir)
	os.Exit(code)
}

// serve serves the site and returns its address.
func serve(t testing.TB) string {
	t.Helper()
	if err := built(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(webfiles.Handler(os.DirFS(builtDir)))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// started starts the browser of all tests. Its context is nil if there is no browser.
var started = sync.OnceValues(func() (context.Context, error) {
	path := os.Getenv("STET_BROWSER")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		return nil, nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(ctx)
	endBrowser = func() {
		_ = chromedp.Cancel(ctx)
		cancel()
	}
	ready := make(chan error)
	go func() {
		goruntime.LockOSThread() // The browser ends when the thread that started it ends.
		ready <- chromedp.Run(ctx)
		select {}
	}()
	return ctx, <-ready
})

// browser returns the browser of all tests.
func browser(t testing.TB) context.Context {
	t.Helper()
	ctx, err := started()
	if err != nil {
		t.Fatal(err)
	}
	if ctx == nil {
		t.Skip("no Chromium found: run make browser to install it, or set STET_BROWSER")
	}
	return ctx
}

// A tab shows the site. It records errors, and the hosts of all requests.
type tab struct {
	testing.TB
	ctx context.Context
	url string
	mu  sync.Mutex
	bad []string
}

// open opens a tab of the given size.
func open(t testing.TB, browser context.Context, url string, width, height int64, dark bool) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{TB: t, ctx: ctx, url: url}
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	chromedp.ListenTarget(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.bad = append(p.bad, e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				p.bad = append(p.bad, e.Entry.Text+" "+e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, url) && !strings.HasPrefix(e.Request.URL, "data:") {
				p.bad = append(p.bad, "a request to "+e.Request.URL)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		log.Enable(), network.Enable())
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, bad := range p.bad {
			t.Errorf("the browser reports: %s", bad)
		}
	})
	return p
}

// load loads a page of the site.
func (p *tab) load(path string) {
	p.Helper()
	p.do(chromedp.Navigate(p.url + path))
	p.until(`document.documentElement?.dataset.ready === "1"`)
}

func (p *tab) do(actions ...chromedp.Action) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 15*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

func eval[T any](p *tab, script string) (v T) {
	p.Helper()
	wait := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	if err := chromedp.Run(p.ctx, chromedp.Evaluate(script, &v, wait)); err != nil {
		p.Fatalf("%.200s: %v", script, err)
	}
	return v
}

// until waits until a condition is true.
func (p *tab) until(script string) {
	p.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(15 * time.Millisecond) {
		if eval[bool](p, "!!("+script+")") {
			return
		}
	}
	p.shot("failed")
	p.Fatalf("the condition was never true: %s\n%v", script, p.bad)
}

// key presses a key, as on a keyboard.
func (p *tab) key(k string) {
	p.Helper()
	if len(k) == 1 && k > " " && k <= "~" {
		p.do(input.DispatchKeyEvent(input.KeyDown).WithKey(k).WithText(k), input.DispatchKeyEvent(input.KeyUp).WithKey(k))
	} else {
		p.do(chromedp.KeyEvent(k))
	}
}

func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

// shot saves a picture if STET_SHOTS names a directory.
func (p *tab) shot(name string) {
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

// axe returns the script of axe-core, which finds faults of accessibility. Npm downloads it once.
func axe(t testing.TB) string {
	t.Helper()
	const version = "4.14.1"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "stet-axe-core-"+version)
	file := filepath.Join(dir, "node_modules", "axe-core", "axe.min.js")
	if script, err := os.ReadFile(file); err == nil {
		return string(script)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed: it downloads axe-core")
	}
	out, err := exec.Command("npm", "install", "--silent", "--ignore-scripts", "--no-save", "--prefix", dir, "axe-core@"+version).CombinedOutput()
	if err != nil {
		t.Skipf("npm cannot download axe-core: %v\n%s", err, out)
	}
	script, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// accessible reports what axe-core finds in the shown page.
func (p *tab) accessible(script, what string) {
	p.Helper()
	eval[bool](p, script+"; true")
	faults := eval[[]string](p, `axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then((r) => r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ": " + v.help + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`)
	for _, fault := range faults {
		p.Errorf("%s: %s", what, fault)
	}
}

// fits reports elements that are wider than the page.
func (p *tab) fits(what string) {
	p.Helper()
	if over := eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		wide := eval[[]string](p, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest("pre, .table")).slice(0, 5).map((e) => e.outerHTML.slice(0, 100))`)
		p.Errorf("%s: the page is %d pixels wider than the window: %q", what, over, wide)
	}
}

// The widths of a phone and of a desktop.
var widths = []int64{390, 1280}

// TestPages_EveryWidthAndColor checks pages at two widths, in light and dark colors.
func TestPages_EveryWidthAndColor(t *testing.T) {
	b, url, script := browser(t), serve(t), axe(t)
	for _, width := range widths {
		for _, dark := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d dark=%v", width, dark), func(t *testing.T) {
				p := open(t, b, url, width, 900, dark)
				for k, path := range []string{"index.html", "guide/errors.html", "reference/benchmarks.html", "source/examples/queens/main.go.html",
					"examples/asteroids/window/index.html", "reference/ecsdump.html", "reference/format.html"} {
					p.load(path)
					p.fits(path)
					p.shot(fmt.Sprintf("%s-%d-%v", strings.ReplaceAll(path, "/", "-"), width, dark))
					// The check takes long. It covers the first page always, the next four in one
					// color for each width, and the last two never.
					if k == 0 || k < 5 && dark == (width > 800) {
						p.accessible(script, path)
					}
				}
				p.load("guide/index.html")
				p.accessible(script, "guide")
				p.key("/")
				p.do(input.InsertText("checkpoint restore"))
				p.until(`document.querySelectorAll("#site-results li").length > 5`)
				p.fits("search")
				p.accessible(script, "search")
				p.shot(fmt.Sprintf("search-%d-%v", width, dark))
				p.key(kb.Escape)
				if width < 800 {
					p.click(".menu")
					p.until(`document.querySelector("nav.pages").matches(":popover-open")`)
					p.accessible(script, "the list of pages")
					p.shot(fmt.Sprintf("menu-%d-%v", width, dark))
					p.key(kb.Escape)
					p.click("button.contents")
					p.until(`document.querySelector("nav.contents").matches(":popover-open")`)
					p.accessible(script, "the list of headings")
					p.shot(fmt.Sprintf("contents-%d-%v", width, dark))
				}
				p.load(played)
				p.run()
				p.fits("program")
				p.accessible(script, "program")
				p.shot(fmt.Sprintf("program-%d-%v", width, dark))
			})
		}
	}
}

// TestPages_Narrow checks that no page of the guide is wider than a small phone.
func TestPages_Narrow(t *testing.T) {
	p := open(t, browser(t), serve(t), 320, 700, false)
	p.load("guide/index.html")
	chapters := eval[[]string](p, `[...document.querySelectorAll("nav.pages a")].map((a) => new URL(a.href).pathname.slice(1)).filter((path) => path.startsWith("guide/"))`)
	if len(chapters) < 5 {
		t.Errorf("only the chapters %q", chapters)
	}
	for _, path := range chapters {
		p.load(path)
		p.fits(path)
	}
}

// run starts the first program of the page, waits until it has run for 20 ticks, and stops it.
func (p *tab) run() {
	p.Helper()
	eval[bool](p, `(document.querySelector(".run").scrollIntoView({block: "center"}), true)`)
	p.click(".run button.main")
	p.until(`document.querySelector(".run output")`)
	p.click(".run .row button")
	p.until(`document.querySelector(".run .row button").innerText === "Play"`)
	p.idle()
	for eval[int](p, `Number(document.querySelector(".run output").innerText.split(" ")[1])`) < 20 {
		p.click(".run .row button:nth-child(2)")
		p.idle()
	}
}

// idle waits until the program has answered all calls of its panel.
func (p *tab) idle() {
	p.Helper()
	p.until(`document.querySelector(".run [data-calls]").dataset.calls === "0"`)
}

// TestSearch_Keyboard searches by the keyboard alone.
func TestSearch_Keyboard(t *testing.T) {
	p := open(t, browser(t), serve(t), 1280, 900, false)
	p.load("guide/index.html")
	p.key("/")
	p.until(`document.activeElement.id === "site-search"`)
	p.do(input.InsertText("checkpoint restore"))
	p.until(`document.querySelector("#site-results [aria-selected=true]")`)
	if first := eval[string](p, `document.querySelector("#site-results li b").innerText`); !strings.Contains(first, "Time") {
		t.Errorf("the first result is %q, not in the chapter about time", first)
	}
	if mark := eval[string](p, `document.querySelector("#site-results mark").innerText.toLowerCase()`); mark != "checkpoint" && mark != "restore" {
		t.Errorf("the result marks %q", mark)
	}
	p.key(kb.ArrowDown)
	p.until(`document.querySelectorAll("#site-results li")[1].getAttribute("aria-selected") === "true"`)
	p.key(kb.ArrowUp)
	p.key(kb.Enter)
	p.until(`location.pathname.startsWith("/guide/time.html") && document.documentElement?.dataset.ready === "1"`)

	p.key("/")
	p.do(input.InsertText("qqqzzz"))
	p.until(`document.querySelector(".results p").innerText.includes("No page")`)
	p.key(kb.Escape)
	p.until(`document.querySelector(".results").hidden && document.activeElement.id !== "site-search"`)
}

// TestTheme_Remembered switches the colors.
func TestTheme_Remembered(t *testing.T) {
	p := open(t, browser(t), serve(t), 1280, 900, false)
	p.load("index.html")
	paper := func() string { return eval[string](p, `getComputedStyle(document.body).backgroundColor`) }
	light := paper()
	p.click(".theme")
	dark := paper()
	p.load("guide/index.html")
	if light == dark || paper() != dark {
		t.Errorf("the page is %s, after a click %s, on the next page %s", light, dark, paper())
	}
}

// TestProgram_PlaysAndRewinds uses the panel of a program.
func TestProgram_PlaysAndRewinds(t *testing.T) {
	p := open(t, browser(t), serve(t), 1280, 900, false)
	p.load(played)
	if size := eval[string](p, `document.querySelector(".run .size").innerText`); !strings.HasSuffix(size, " MB") || size == "0.0 MB" {
		t.Errorf("the size is %q", size)
	}
	p.run()
	view := `document.querySelector(".run .view").innerText`
	where := `document.querySelector(".run output").innerText`
	p.until(view + `.split("\n")[1].indexOf("●") === Number(` + where + `.split(" ")[1]) % 20 + 1`)

	// Drag the bar to its middle.
	var box []float64
	p.do(chromedp.Evaluate(`(() => { const r = document.querySelector(".run input[type=range]").getBoundingClientRect(); return [r.left, r.top + r.height / 2, r.width]; })()`, &box))
	right, middle := box[0]+box[2]-10, box[0]+box[2]/2
	p.do(input.DispatchMouseEvent(input.MousePressed, right, box[1]).WithButton(input.Left).WithClickCount(1),
		input.DispatchMouseEvent(input.MouseMoved, middle, box[1]).WithButton(input.Left),
		input.DispatchMouseEvent(input.MouseReleased, middle, box[1]).WithButton(input.Left).WithClickCount(1))
	p.until(where + `.startsWith("tick 1") && ` + where + `.includes(" of ")`)
	p.until(view + `.includes("          ●")`)
	p.shot("rewound")

	// Continue from there, with a key that is pressed while the program has the focus.
	p.do(chromedp.Focus(".run .view", chromedp.ByQuery), input.DispatchKeyEvent(input.KeyDown).WithKey("ArrowLeft"))
	before := eval[int](p, view+`.split("\n")[1].indexOf("●")`)
	p.click(".run .row button:nth-child(2)") // Step. The click takes the focus from the view.
	p.until("!" + where + `.includes("of")`)
	if after := eval[int](p, view+`.split("\n")[1].indexOf("●")`); after != before-1 {
		t.Errorf("the dot is at %d, and after a step to the left at %d", before, after)
	}
	p.do(input.DispatchKeyEvent(input.KeyUp).WithKey("ArrowLeft"))

	// Actions, and their errors.
	p.do(chromedp.Evaluate(`[...document.querySelectorAll(".run button")].find((b) => b.innerText === "jump").click()`, nil))
	p.until(view + `.includes("1 jumps")`)
	p.do(chromedp.Evaluate(`[...document.querySelectorAll(".run button")].find((b) => b.innerText === "fail").click()`, nil))
	p.until(`document.querySelector(".run .problem").innerText === "dots: this action fails"`)

	// Edit a parameter.
	p.click(".run summary")
	p.do(chromedp.SetValue(".run input[type=number]", "40", chromedp.ByQuery))
	p.click(".run form button")
	p.until(view + `.includes("+` + strings.Repeat("-", 40) + `+") && ` + where + ` === "tick 0"`)

	// Stop it.
	p.click(".run button.main")
	p.until(`!document.querySelector(".run .view") && document.querySelector(".run button.main").innerText.includes("Run")`)
}

// TestProgram_Touch uses the buttons that a panel has on a phone.
func TestProgram_Touch(t *testing.T) {
	p := open(t, browser(t), serve(t), 390, 900, false)
	p.do(chromedp.EmulateViewport(390, 900, chromedp.EmulateMobile, chromedp.EmulateTouch))
	p.load(played)
	p.run()
	p.shot("touch")
	column := `document.querySelector(".run .view").innerText.split("\n")[1].indexOf("●")`
	before := eval[int](p, column)
	var at []float64
	p.do(chromedp.Evaluate(`(() => { const r = document.querySelector(".run .pad button[aria-label=left]").getBoundingClientRect(); return [r.left + 9, r.top + 9]; })()`, &at))
	p.do(input.DispatchTouchEvent(input.TouchStart, []*input.TouchPoint{{X: at[0], Y: at[1]}}))
	eval[bool](p, `(document.querySelector(".run .row button:nth-child(2)").click(), true)`)
	// The line has 20 columns.
	p.until(column + fmt.Sprintf(` === %d`, (before+18)%20+1))
	p.do(input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}))
	eval[bool](p, `(document.querySelector(".run .row button:nth-child(2)").click(), true)`)
	p.until(column + fmt.Sprintf(` === %d`, before))
	p.fits("program")
}

// TestProgram_Prints runs a program that prints and ends. Its files stay for the next run.
func TestProgram_Prints(t *testing.T) {
	p := open(t, browser(t), serve(t), 1280, 900, false)
	p.load(played)
	panel := `document.querySelectorAll(".run")[1]`
	for _, want := range []string{"one\n open dir/kept: No such file or directory\n<nil>", "one\nline  <nil>\n<nil>", "one\nline line  <nil>\n<nil>"} {
		p.do(chromedp.Evaluate(panel+`.querySelector("button.main").click()`, nil))
		p.until(panel + `.querySelector(".problem")?.innerText.includes("exit code 3")`)
		if text := eval[string](p, panel+`.querySelector(".view").innerText`); strings.TrimSpace(text) != want {
			t.Errorf("the program prints %q, want %q", text, want)
		}
	}
	p.until(panel + `.innerText.includes("run it again")`)
}

// TestProgram_GoesBackToMark runs a program of the guide, which has a store: it goes to a past tick
// and to a mark.
func TestProgram_GoesBackToMark(t *testing.T) {
	p := open(t, browser(t), serve(t), 1280, 900, true)
	p.load(played)
	panel := `document.querySelector(".run[data-program$='time.wasm']")`
	button := func(label string) string {
		return `[...` + panel + `.querySelectorAll("button")].find((b) => b.innerText === "` + label + `")`
	}
	press := func(label string) {
		p.until(button(label))
		p.do(chromedp.Evaluate(button(label)+`.click()`, nil))
		p.until(panel + `.querySelector("[data-calls]").dataset.calls === "0"`)
	}
	p.do(chromedp.Evaluate(panel+`.scrollIntoView()`, nil), chromedp.Evaluate(panel+`.querySelector("button.main").click()`, nil))
	press("Pause")
	for range 5 {
		press("Step")
	}
	p.do(chromedp.Evaluate(panel+`.querySelector(".view").focus()`, nil))
	p.key("4") // The key of the fourth action, which is Mark.
	p.until(panel + `.querySelector(".view").innerText.includes("mark")`)
	marked := eval[string](p, panel+`.querySelector(".view").innerText`)
	press("Step")
	p.do(chromedp.Evaluate(`(() => { const bar = `+panel+`.querySelector("input[type=range]"); bar.value = bar.min; bar.dispatchEvent(new Event("input")); })()`, nil))
	p.until(panel + `.querySelector("output").innerText.startsWith("tick 0 of")`)
	p.shot("guide-program")
	press("Goto mark")
	dots := func(view string) string { return view[:strings.Index(view, "tick")] }
	if now := eval[string](p, panel+`.querySelector(".view").innerText`); dots(now) != dots(marked) {
		t.Errorf("the mark is\n%s\nand later\n%s", marked, now)
	}
	if problem := eval[string](p, panel+`.querySelector(".problem").innerText`); problem != "" {
		t.Errorf("the program has the error %q", problem)
	}
}

// TestPages_WithoutScript opens a page in a browser without JavaScript.
func TestPages_WithoutScript(t *testing.T) {
	p := open(t, browser(t), serve(t), 390, 900, false)
	p.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(p.url+played))
	p.do(chromedp.Click(".menu", chromedp.ByQuery, chromedp.NodeVisible), chromedp.WaitVisible(`nav.pages a[href="errors.html"]`, chromedp.ByQuery),
		chromedp.Click(`nav.pages a[href="errors.html"]`, chromedp.ByQuery), chromedp.WaitVisible(`#a-file-is-damaged`, chromedp.ByQuery))
	p.shot("no-script")
	ctx, cancel := context.WithTimeout(p.ctx, 300*time.Millisecond)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.WaitVisible(".search", chromedp.ByQuery)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the page shows a search that does not work: %v", err)
	}
}
