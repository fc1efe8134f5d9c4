package windowtest

import (
	"bufio"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "save screenshots to this directory")

// serve runs the command serve and returns the address of the game.
func serve(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "serve")
	if text, err := exec.Command("go", "build", "-o", bin, "../serve").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	cmd := exec.Command(bin, "-addr", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.Log(lines.Text())
		if url, ok := strings.CutPrefix(lines.Text(), "play at "); ok {
			url, _, _ = strings.Cut(url, " ")
			return url
		}
	}
	t.Fatal("serve has ended")
	return ""
}

// A player is a tab with the game.
type player struct {
	t   testing.TB
	ctx context.Context
}

// play opens the game in a browser with a window of the given size.
func play(t testing.TB, url string, width, height int) *player {
	t.Helper()
	path := os.Getenv("STET_BROWSER")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("no Chromium found: run make browser to install it, or set STET_BROWSER")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(width, height),
		chromedp.Flag("use-angle", "swiftshader"), chromedp.Flag("enable-unsafe-swiftshader", true), chromedp.Flag("disable-dev-shm-usage", true))
	// The browser ends when the thread that started it ends.
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &player{t, ctx}
	p.run(chromedp.EmulateViewport(int64(width), int64(height)), chromedp.Navigate(url))
	return p
}

func (p *player) run(actions ...chromedp.Action) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// tick returns the tick of the game, the newest tick and the digest of the world. It returns -1
// while the page loads, also if that begins in the middle of the call.
func (p *player) tick() (now, newest int64, digest string) {
	p.t.Helper()
	var state struct {
		Now, Newest int64
		Digest      string
	}
	if chromedp.Run(p.ctx, chromedp.Evaluate(`window.game?.() ?? {now: -1, newest: -1, digest: ""}`, &state)) != nil {
		return -1, -1, ""
	}
	return state.Now, state.Newest, state.Digest
}

// until waits until ok returns true. It waits long, because a loaded machine draws only a few
// frames a second.
func (p *player) until(what string, ok func(now, newest int64) bool) (now int64) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now, newest, _ := p.tick()
		if ok(now, newest) {
			return now
		}
		if time.Now().After(end) {
			var text string
			p.run(chromedp.Evaluate(`document.body.innerText`, &text))
			p.t.Fatalf("waiting for %s: tick %d of %d; the page says %q", what, now, newest, text)
		}
	}
}

// key presses or releases a key.
func (p *player) key(kind input.KeyType, code string) {
	p.t.Helper()
	p.run(input.DispatchKeyEvent(kind).WithCode(code).WithKey(code))
}

func (p *player) shot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	var b []byte
	p.run(chromedp.CaptureScreenshot(&b))
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), b, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// The game in a browser plays, goes back in time, continues from there, and continues after the
// page was loaded again.
func TestGame_RewindAndReload(t *testing.T) {
	p := play(t, serve(t), 1280, 800)
	p.until("the game", func(now, _ int64) bool { return now >= 0 })
	p.shot("start")
	p.key(input.KeyDown, "ArrowUp")
	p.key(input.KeyDown, "Space")
	p.until("100 ticks", func(now, _ int64) bool { return now > 100 })
	p.key(input.KeyUp, "ArrowUp")
	p.shot("play")
	p.key(input.KeyUp, "Space")
	p.key(input.KeyDown, "KeyR")
	p.until("a rewind", func(now, newest int64) bool { return newest > 100 && now < newest-60 })
	p.shot("rewind")
	p.key(input.KeyUp, "KeyR")
	p.until("the end of the rewind", func(now, _ int64) bool {
		time.Sleep(200 * time.Millisecond)
		again, _, _ := p.tick()
		return now == again
	})
	now, newest, digest := p.tick()
	if newest <= now {
		t.Fatalf("the rewind has removed the future: tick %d of %d", now, newest)
	}
	// Drag the bar to the newest tick, and then back to the tick before the drag.
	y := 800 - 30.0
	at := func(tick int64) float64 { return 24 + (1280-48)*(float64(tick-1)+0.5)/float64(newest-1) }
	p.run(input.DispatchMouseEvent(input.MousePressed, at(newest)-1, y).WithButton(input.Left).WithClickCount(1))
	p.until("the newest tick", func(now, newest int64) bool { return now >= newest-1 })
	p.run(input.DispatchMouseEvent(input.MouseMoved, at(now), y).WithButton(input.Left))
	p.until("the tick under the pointer", func(n, _ int64) bool { return n == now })
	if _, _, again := p.tick(); again != digest {
		t.Errorf("tick %d has digest %s, and after a drag %s", now, digest, again)
	}
	p.run(input.DispatchMouseEvent(input.MouseReleased, at(now), y).WithButton(input.Left).WithClickCount(1))
	p.key(input.KeyDown, "ArrowLeft")
	p.until("ticks after the rewind", func(n, newest int64) bool { return n > now+20 && n == newest })
	p.key(input.KeyUp, "ArrowLeft")
	p.run(chromedp.Reload())
	p.until("the game after a reload", func(n, _ int64) bool { return n > now })
	p.shot("reload")
}

// BenchmarkGame_FirstFrame measures the time from the end of the download to the first frame of the
// running game, each time in a new browser. The browser compiles the program in this time.
func BenchmarkGame_FirstFrame(b *testing.B) {
	url := serve(b)
	var sum, ms float64
	for b.Loop() {
		p := play(b, "about:blank", 1280, 800)
		p.run(chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(`requestAnimationFrame(function wait(now) {
				if (window.game?.().now >= 0) window.firstFrame = now;
				else requestAnimationFrame(wait);
			})`).Do(ctx)
			return err
		}), chromedp.Navigate(url))
		p.until("the game", func(now, _ int64) bool { return now >= 0 })
		p.run(chromedp.Poll(`window.firstFrame - performance.getEntriesByName(new URL("game.wasm", location).href)[0].responseEnd`, &ms))
		sum += ms
		p.run(chromedp.ActionFunc(chromedp.Cancel))
	}
	b.ReportMetric(sum/float64(b.N), "ms/frame")
}

// touch puts a finger on a point, or moves it there.
func (p *player) touch(kind input.TouchType, x, y float64) {
	p.t.Helper()
	points := []*input.TouchPoint{{X: x, Y: y}}
	if kind == input.TouchEnd {
		points = []*input.TouchPoint{}
	}
	p.run(input.DispatchTouchEvent(kind, points))
}

// On a phone, a finger holds the buttons that appear after the first touch, and drags the time bar.
func TestGame_Touch(t *testing.T) {
	p := play(t, serve(t), 400, 800)
	p.until("the game", func(now, _ int64) bool { return now >= 0 })
	p.touch(input.TouchStart, 200, 300)
	time.Sleep(time.Second)
	p.touch(input.TouchEnd, 0, 0)
	time.Sleep(time.Second)
	p.touch(input.TouchStart, 370, 770) // The button that fires.
	p.until("80 ticks", func(now, _ int64) bool { return now > 80 })
	p.shot("phone")
	p.touch(input.TouchEnd, 0, 0)
	p.touch(input.TouchStart, 143, 770) // The button that rewinds.
	p.until("a rewind", func(now, newest int64) bool { return now < newest-20 })
	p.touch(input.TouchEnd, 0, 0)
	_, newest, _ := p.tick()
	// The bar is above the buttons, which are 85 pixels high.
	p.touch(input.TouchStart, 376, 685)
	p.until("the newest tick", func(now, _ int64) bool { return now >= newest-1 })
	p.touch(input.TouchMove, 200, 685)
	p.until("a tick in the middle", func(now, _ int64) bool { return now > newest/3 && now < 2*newest/3 })
	p.touch(input.TouchMove, 24, 685)
	p.until("the first tick", func(now, _ int64) bool { return now <= 2 })
	p.shot("phone-first")
}

// On a wide screen, the buttons are at the sides.
func TestGame_TouchWideScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	p := play(t, serve(t), 800, 400)
	p.until("the game", func(now, _ int64) bool { return now >= 0 })
	p.touch(input.TouchStart, 400, 100)
	time.Sleep(time.Second)
	p.touch(input.TouchEnd, 0, 0)
	p.shot("wide-start")
	time.Sleep(time.Second)
	p.touch(input.TouchStart, 756, 304) // The button that fires.
	p.until("80 ticks", func(now, _ int64) bool { return now > 80 })
	p.shot("wide")
	p.touch(input.TouchEnd, 0, 0)
	p.touch(input.TouchStart, 44, 216) // The button that rewinds.
	p.until("a rewind", func(now, newest int64) bool { return now < newest-20 })
}
