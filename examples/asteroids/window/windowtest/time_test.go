package windowtest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/examples/asteroids/game"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A state is what the page says about the game.
type state struct {
	Now, Newest, Sprites, Branches int64
	Ends                           []float64 // The ends of the branches: x, y, x, y, …
	Digest, Message                string
	Replaying, Watching, Ghost     bool
}

// wait waits until the page shows a state for which ok returns true.
func (p *player) wait(what string, ok func(s state) bool) (s state) {
	p.t.Helper()
	p.until(what, func(now, _ int64) bool {
		if now < 0 {
			return false
		}
		// The page may load again in the middle of this call.
		err := chromedp.Run(p.ctx, chromedp.Evaluate(`window.game?.() ?? {now: -1}`, &s))
		return err == nil && s.Now >= 0 && ok(s)
	})
	return s
}

// press presses a key until the page shows a state for which ok returns true.
func (p *player) press(code, what string, ok func(s state) bool) state {
	p.t.Helper()
	p.key(input.KeyDown, code)
	s := p.wait(what, ok)
	p.key(input.KeyUp, code)
	return s
}

// hash returns the fragment of the URL.
func (p *player) hash() (hash string) {
	p.t.Helper()
	p.run(chromedp.Evaluate(`location.hash`, &hash))
	return hash
}

// A player saves a slot, rewinds, starts a branch, visits the old branch, and makes a link. Then
// the player watches a replay and saves the run in a file. The test replays this file.
func TestTime_BranchesLinksAndFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	url := serve(t)
	p := play(t, url, 1280, 800)
	p.wait("the game", func(s state) bool { return s.Now >= 0 })
	p.key(input.KeyDown, "Space")
	p.wait("60 ticks", func(s state) bool { return s.Now > 60 })
	p.press("Digit1", "a saved slot", func(s state) bool { return s.Message == "saved slot 1" })
	p.key(input.KeyUp, "Space")
	p.press("KeyR", "a rewind", func(s state) bool { return s.Now < s.Newest-30 })
	p.press("ArrowLeft", "a branch with a ghost", func(s state) bool { return s.Branches == 1 && s.Ghost })
	p.shot("ghost")
	p.press("KeyR", "a rewind", func(s state) bool { return s.Now < s.Newest-10 })

	linked := p.press("KeyL", "a link", func(s state) bool { return strings.Contains(s.Message, "address") })
	link := p.hash()
	if !regexp.MustCompile(`^#record:\d+,[0-9a-f]{8}$`).MatchString(link) {
		t.Errorf("the link is %q", link)
	}
	p.press("ArrowRight", "ticks", func(s state) bool { return s.Now > linked.Now+5 && s.Branches == 2 })
	if hash := p.hash(); hash != "" {
		t.Errorf("after a tick, the link is %q", hash)
	}

	// Rewind first, because the bar changes while ticks run. Then click on the end of the upper
	// branch, which is the older one.
	s := p.press("KeyR", "a rewind", func(s state) bool { return s.Now < s.Newest-2 })
	at := input.DispatchMouseEvent(input.MousePressed, s.Ends[0], s.Ends[1]).WithButton(input.Left).WithClickCount(1)
	p.run(at)
	p.wait("the end of the branch", func(s state) bool { return strings.Contains(s.Message, "another future") && s.Branches == 2 })
	at.Type = input.MouseReleased
	p.run(at)
	p.shot("branches")
	p.press("Digit4", "the slot", func(s state) bool { return s.Message == "loaded slot 1" })
	p.press("KeyP", "a replay", func(s state) bool { return s.Replaying })
	p.press("Space", "the end of the replay", func(s state) bool { return !s.Replaying })
	p.press("ArrowUp", "ticks after the slot", func(s state) bool { return s.Now > 90 })
	end := p.press("KeyR", "a rewind", func(s state) bool { return s.Now < s.Newest-5 })

	downloads := t.TempDir()
	p.run(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(downloads))
	p.key(input.KeyDown, "F8")
	var file []byte
	for limit := time.Now().Add(time.Minute); file == nil; time.Sleep(50 * time.Millisecond) {
		if names, _ := filepath.Glob(filepath.Join(downloads, "asteroids-*.zip")); len(names) == 1 {
			file, _ = os.ReadFile(names[0])
		}
		if time.Now().After(limit) {
			t.Fatal("no file was downloaded")
		}
	}
	p.key(input.KeyUp, "F8")
	checkRun(t, file, end.Newest)

	p.run(chromedp.Navigate("about:blank"), chromedp.Navigate(url+link))
	s = p.wait("the linked moment", func(s state) bool { return s.Message != "" })
	if s.Now != linked.Now || s.Digest != linked.Digest {
		t.Errorf("the link leads to tick %d with digest %s; want tick %d, %s", s.Now, s.Digest, linked.Now, linked.Digest)
	}
}

// checkRun checks all of a run that a browser has recorded, and runs its systems again on this
// machine. Every tick must have the recorded digest.
func checkRun(t *testing.T, file []byte, newest int64) {
	t.Helper()
	files, err := archive.Read(t.Context(), bytes.NewReader(file), int64(len(file)), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	v, err := inspect.OpenFS(t.Context(), files, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if report, err := v.Verify(t.Context()); err != nil || len(report.Problems) > 0 {
		t.Fatal(err, report.Problems)
	}
	g := game.New()
	p, err := inspect.OpenPlayer(t.Context(), ".", g.World, inspect.PlayerOptions{
		Files: files,
		Step: func(_ *ecs.World, _ uint64, inputs []inspect.Input) error {
			g.Systems.Step(game.Buttons(inputs[0].Data[0]))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for err == nil {
		if tick, storage, differs := p.Diverged(); differs {
			t.Fatalf("tick %d: %s differs from the record of the browser", tick, storage)
		}
		err = p.Step(t.Context())
	}
	if err != io.EOF || g.World.Tick() != uint64(newest) {
		t.Fatalf("the replay ended at tick %d of %d: %v", g.World.Tick(), newest, err)
	}
}

// If the browser refuses to store files, the page says so, and begins no game.
func TestTime_StorageRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	url := serve(t)
	p := play(t, "about:blank", 400, 800)
	p.run(chromedp.ActionFunc(func(ctx context.Context) error {
		refuse := `Object.defineProperty(navigator, "locks", { value: undefined })`
		_, err := page.AddScriptToEvaluateOnNewDocument(refuse).Do(ctx)
		return err
	}), chromedp.Navigate(url))
	var text string
	p.run(chromedp.WaitVisible("#error"), chromedp.Text("#error", &text))
	if !strings.Contains(text, "does not let this page keep a game") {
		t.Errorf("the page says %q", text)
	}
	p.shot("refused")
}

// otherWindow opens another window of the same browser. In a background tab of the same window, the
// game would stop.
func (p *player) otherWindow() *player {
	p.t.Helper()
	c := chromedp.FromContext(p.ctx)
	id, err := target.CreateTarget("about:blank").WithNewWindow(true).Do(cdp.WithExecutor(p.ctx, c.Browser))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(p.ctx, chromedp.WithTargetID(id))
	p.t.Cleanup(cancel)
	return &player{p.t, ctx}
}

// A second tab watches the game in the first tab. When the first tab is closed, the second one
// opens the game.
func TestTime_SecondTabWatches(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	url := serve(t)
	p := play(t, url, 1280, 800)
	p.wait("the game", func(s state) bool { return s.Now >= 0 })
	p.key(input.KeyDown, "Space")
	p.wait("60 ticks", func(s state) bool { return s.Now > 60 })
	q := p.otherWindow()
	q.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(url))
	first := q.wait("the game of the first tab", func(s state) bool { return s.Watching && s.Now > 60 })
	q.shot("watch")
	q.wait("more ticks", func(s state) bool { return s.Now > first.Now+30 })
	p.key(input.KeyUp, "Space")
	want := p.press("KeyR", "a rewind", func(s state) bool { return s.Now < s.Newest-5 })
	// Close the page. A page that the player only leaves for another page may keep its lock for a
	// while.
	p.run(page.Close())
	q.wait("the game in the second tab", func(s state) bool { return !s.Watching && s.Now >= want.Newest-60 })
}
