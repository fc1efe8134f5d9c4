package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// store returns a store that was played and closed.
func store(t testing.TB, ticks int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "raid")
	_, s := play(t, dir, ticks)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// screens are their names, and a text that is on each.
var screens = []struct{ name, where, text string }{
	{"Entities", "#entities", "Position{"},
	{"Map", "#screen .status", "points"},
	{"Entity", "#screen", "Life"},
	{"Tick", "#screen", "written"},
	{"Plots", "#screen .plot", "alive"},
	{"Arrays", "#screen", "Dense and data"},
	{"Health", "#screen", "It opens."},
}

// Every screen is there at both widths, in light and in dark, by clicks and by keys: nothing is wider
// than the window, and no text too faint to read.
func TestEveryScreenIsThereByClicksAndByKeys(t *testing.T) {
	b := browser(t)
	url := serve(t, store(t, 800))
	for _, size := range []struct {
		width, height int64
		dark          bool
	}{{1280, 800, false}, {1280, 800, true}, {400, 800, false}, {400, 800, true}} {
		t.Run(fmt.Sprintf("%d dark=%v", size.width, size.dark), func(t *testing.T) {
			p := open(t, b, url, size.width, size.height, size.dark)
			p.shows("#entities", "orc-")
			p.click("#entities .row:nth-child(4) .name")
			p.shows("#screen .tag", "alive")
			for i, s := range screens {
				p.click(fmt.Sprintf("#tabs a:nth-child(%d)", i+1))
				p.shows(s.where, s.text)
				p.fits()
				p.shot(fmt.Sprintf("%d-%v-%s", size.width, size.dark, s.name))
			}
			for i, s := range screens {
				p.key(string(rune('1' + i)))
				p.shows(`#tabs a[aria-current="page"]`, s.name)
				p.shows(s.where, s.text)
			}
			if got, want := eval[string](p, `getComputedStyle(document.body).backgroundColor`), "rgb(251, 251, 249)"; (got == want) == size.dark {
				t.Errorf("the background is %s", got)
			}
			if low := eval[float64](p, contrast); low < 4.5 {
				t.Errorf("the least contrast of a text is %.2f", low)
			}
		})
	}
}

// contrast is the least contrast between the colors of texts and the paper, by WCAG.
const contrast = `(() => {
  const style = getComputedStyle(document.documentElement), lum = (name) => {
    const n = parseInt(style.getPropertyValue("--" + name).trim().slice(1), 16);
    const [r, g, b] = [n >> 16, n >> 8 & 255, n & 255].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(lum(a), lum(b)) + 0.05) / (Math.min(lum(a), lum(b)) + 0.05);
  return Math.min(...["ink", "soft", "accent", "added", "removed", "changed", "danger", "mark"].flatMap((c) => [ratio(c, "paper"), ratio(c, "panel")]), ratio("accent", "accent-ink"));
})()`

// fits reports what is wider than the window.
func (p *page) fits() {
	p.Helper()
	if wide := eval[string](p, `document.documentElement.scrollWidth > innerWidth || document.body.scrollHeight > innerHeight ? document.documentElement.scrollWidth + " × " + document.body.scrollHeight : ""`); wide != "" {
		p.shot("wide")
		p.Errorf("the page is larger than the window: %s", wide)
	}
	for _, id := range []string{"#bar", "#tabs", "#screen", "#point"} {
		if !eval[bool](p, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return r.width > 50 && r.height > 20 && r.left >= 0 && r.right <= innerWidth + 1 && r.bottom <= innerHeight + 1; })()`, id)) {
			p.Errorf("%s is not in the window", id)
		}
	}
}

func TestTheKeyboardMovesThroughTime(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	last := p.tick()
	at := func(tick int) {
		t.Helper()
		p.until(fmt.Sprintf("stet.point.tick === %d", tick))
	}
	p.key(kb.ArrowLeft)
	at(last - 1)
	p.key(kb.ArrowRight)
	at(last)
	p.key(kb.Home)
	at(0)
	p.key(kb.ArrowLeft)
	at(0)
	p.key(kb.PageDown)
	p.until("stet.point.tick > 10")
	p.key(kb.End)
	at(last)
	p.key("g")
	p.write("100")
	p.key(kb.Enter)
	at(100)
	p.shows("#where", "tick 100")
	p.key("g")
	p.write("mark:the raid")
	p.key(kb.Enter)
	p.until("stet.point.tick > 100")
	p.key("g")
	p.write("99999")
	p.key(kb.Enter)
	p.shows("#trouble", "tick 99999;")
	p.excuse("404")
	p.key(kb.Home)
	at(0)
	p.until("document.querySelector('#trouble').hidden")
	p.key(" ")
	p.until("stet.point.tick > 5")
	p.key(" ")
	still := p.tick()
	time.Sleep(200 * time.Millisecond)
	if now := p.tick(); now > still+1 {
		t.Errorf("it plays on, from %d to %d", still, now)
	}
	p.key("+", "+")
	p.until("stet.bar.span() < 400")
	p.key("0")
	p.until("stet.bar.span() > 400")
	p.key("?")
	p.shows("#keys", "previous and next change")
	p.key(kb.Escape)
	p.until("!document.querySelector('#keys').open")
}

func TestAChosenEntityIsFollowedThroughItsChanges(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	p.shows("#entities", "orc-")
	p.key("/")
	p.write(`Kind.Clan == "villager" && Health.Now < Health.Most`)
	p.until(`document.querySelector("#screen .status").innerText.includes(" of ")`)
	p.key(kb.Enter, kb.ArrowDown)
	p.until(`document.activeElement.id === "entities" && document.querySelector('.row[aria-selected="true"] .name')?.innerText.includes("v")`)
	chosen := p.text(`.row[aria-selected="true"] .name`)
	p.key(kb.Enter)
	p.shows("#screen .title .big", chosen)
	p.shows("#screen", "Clan")
	p.until("stet.changes.length > 0")
	before := p.tick()
	p.key("[")
	p.until(fmt.Sprintf("stet.point.tick < %d", before))
	changed := p.tick()
	if !eval[bool](p, "stet.changes.includes(stet.point.tick)") {
		t.Errorf("%s did not change at tick %d", chosen, changed)
	}
	p.key("]")
	p.until(fmt.Sprintf("stet.point.tick > %d", changed))
	p.until(`[...document.querySelectorAll(".fields .when button")].some((b) => b.innerText.startsWith("tick "))`)
	p.click(".life .row button")
	if !strings.Contains(eval[string](p, "location.search"), "entity="+chosen) {
		t.Error("the address does not say which entity is shown")
	}

	// References are links, one to the other.
	p.key("1", "/")
	eval[bool](p, `(document.querySelector("#filter").value = "", true)`)
	p.write(`has(Target) && exists(Target.Of)`)
	p.shows(".list .row .cell:nth-child(2)", "Target{")
	p.click(".list .row")
	p.until(`[...document.querySelectorAll(".fields .value button")].length > 0`)
	hunter, prey := p.text("#screen .big"), p.text(".fields .value button")
	p.click(".fields .value button")
	p.shows("#screen .title .big", prey)
	p.shows(`section[aria-label="Referred to by"]`, hunter)
}

func TestAFilterIsCompletedAndItsErrorsStandInPlace(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 400)), 1280, 800, false)
	p.shows("#entities", "orc-")
	p.key("/")
	p.write("Hea")
	p.shows(".offers", "Health.Now")
	p.key(kb.ArrowDown, kb.ArrowDown, kb.Enter)
	p.until(`document.querySelector("#filter").value === "Health.Now"`)
	p.write(" << 3")
	p.shows(".error", "^")
	p.until(`document.querySelector("#filter").getAttribute("aria-invalid") === "true"`)
	p.excuse("400")
	eval[bool](p, `(document.querySelector("#filter").value = "", true)`)
	p.write("Health.Now < 1000")
	p.until(`!document.querySelector(".error") && document.querySelector("#screen .status").innerText.includes(" of ")`)
	p.click("#columns")
	p.write("Kind.Name as name, Health.Now as hp")
	p.shows(".list .head", "hp")
	p.click(`.list .head button:nth-child(3)`)
	p.shows(".list .head", "hp ↑")
	p.until(`(() => { const n = [...document.querySelectorAll(".row .cell:nth-child(3)")].slice(0, 9).map((c) => +c.innerText); return n.length > 5 && n.every((v, i) => !i || n[i - 1] <= v); })()`)
	p.excuse("400")
}

func TestNamesAndValuesShowAsText(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 60)), 1280, 800, false)
	eval[bool](p, `(stet.show("entities", {where: "index == 3", columns: "Kind.Name"}), true)`)
	p.shows("#entities", hostile)
	p.click(".list .row")
	p.shows("#screen", "<script>window.pwned=1</script>")
	p.key("2")
	eval[bool](p, `(stet.set({color: "Kind.Name", mapwhere: "index == 3"}), stet.show("map"), true)`)
	p.shows(".map .key", hostile)
	p.key("6")
	eval[bool](p, `(stet.show("arrays", {component: "Kind"}), true)`)
	p.shows("#screen", "<script>")
	if eval[bool](p, `window.pwned === 1 || document.querySelectorAll("script").length !== 1 || document.querySelectorAll("img").length > 0`) {
		t.Error("a name became a part of the page")
	}
}

func TestTheBarIsScrubbedZoomedAndLeadsToBranches(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	y := eval[float64](p, `document.querySelector("#bar").getBoundingClientRect().top`)
	mouse := func(kind input.MouseType, x, y float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, x, y).WithButton(input.Left).WithButtons(1).WithClickCount(1)
	}
	p.do(mouse(input.MousePressed, 640, y+30))
	for x := 640.0; x >= 200; x -= 20 {
		p.do(mouse(input.MouseMoved, x, y+30))
	}
	p.do(mouse(input.MouseReleased, 200, y+30))
	p.until("Math.abs(stet.point.tick - stet.bar.doc.last * 200 / 1280) < 4")
	p.do(input.DispatchMouseEvent(input.MouseWheel, 300, y+30).WithDeltaX(0).WithDeltaY(-300))
	p.until("stet.bar.doc.to - stet.bar.doc.from < stet.bar.doc.last")
	p.key("0")
	p.until("stet.bar.doc.to === stet.bar.doc.last")

	x := eval[float64](p, `(() => { const b = stet.bar.doc.branches[0]; return stet.bar.xOf((b.from + b.to) / 2); })()`)
	lane := eval[float64](p, `stet.bar.base() + 5 + stet.bar.doc.branches[0].lane * 5`)
	p.do(mouse(input.MousePressed, x, y+lane), mouse(input.MouseReleased, x, y+lane))
	p.shows("#where", "rewound")
	p.click("#legend button")
	p.until(`!document.querySelector("#where").innerText.includes("rewound") || stet.bar.doc.marks.some((m) => m.rewound)`)
}

func TestAPinnedPointIsComparedWithOthers(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	p.key("4", "g")
	p.write("200")
	p.key(kb.Enter)
	p.shows("#screen .big", "tick 200")
	p.click(`details[data-component="Position"] summary`)
	p.shows(`details[data-component="Position"] table`, "changed")
	p.click("#pin")
	p.shows("#where", "A is tick 200")
	p.key("g")
	p.write("300")
	p.key(kb.Enter)
	p.shows("#screen .big", "A 200 → B 300")
	p.shows(`details[data-component="Position"] table`, "→")
	p.do(chromedp.Reload())
	p.until(`document.documentElement.dataset.ready === "1"`)
	p.shows("#screen .big", "A 200 → B 300")

	// All other screens show how the same two points differ.
	eval[bool](p, `(stet.show("entities", {where: "Target.Seen == 250", columns: "Health.Now as hp, Target.Seen"}), true)`)
	p.until(`document.querySelectorAll("#entities .row .removed").length > 0`)
	p.shot("beside-entities")
	eval[bool](p, `(stet.show("entities", {where: "", columns: ""}), true)`)
	p.until(`[...document.querySelectorAll("#entities .row .changed")].some((e) => e.title.startsWith("in A Position{"))`)
	p.shot("beside-components")
	p.key("2")
	p.until(`/since A [1-9]\d* moved, \d+ came, \d+ went/.test(document.querySelector("#screen .status").innerText)`)
	p.shot("beside-map")
	p.key("5")
	p.until(`/\d+ at tick 200 → \d+ at tick 300 \([+−]?\d+\)/.test(document.querySelector("[data-now]")?.innerText)`)
	p.shot("beside-plots")
	p.key("6")
	eval[bool](p, `(stet.show("arrays", {component: "Position"}), true)`)
	p.until(`document.querySelectorAll("#screen td.value .removed").length > 5`)
	p.shot("beside-arrays")
	p.key("4")
	p.shows("#screen .big", "A 200 → B 300")
	p.key("p")
	p.shows("#screen .big", "tick 300")
	p.click("#tabs a:nth-child(5)")
	p.click("#first")
	p.write("alive < 300")
	p.key(kb.Enter)
	p.shows("#screen", "tick")
	p.click("#expr")
	p.write("avg(Health.Now)")
	p.key(kb.Enter)
	p.until(`document.querySelectorAll(".plot canvas").length === 2 || stet.all("expr").includes("avg(Health.Now)")`)
}

// The walk through docs/INSPECTOR.md leads where it says, from the page alone.
func TestAWrongValueIsFoundFromThePageAlone(t *testing.T) {
	b := browser(t)
	dir := filepath.Join(t.TempDir(), "worlds")
	out, err := exec.Command("go", "run", "github.com/stet-ecs/stet/examples/rollback", "-bug", "-dir", dir).CombinedOutput()
	if !strings.Contains(string(out), "the first tick that does is 27, in Bullet") {
		t.Fatalf("%v\n%s", err, out)
	}
	p := open(t, b, serve(t, filepath.Join(dir, "peer2")), 1280, 800, false)
	p.shows("#where", "tick 27 · record 43")
	p.key("4")
	p.shows("#screen .big", "tick 27")
	p.click(`details[data-component="Bullet"] summary`)
	p.until(`[...document.querySelectorAll('details[data-component="Bullet"] tr')].some((r) => r.innerText.includes("7v1") && r.innerText.includes("added") && r.innerText.includes("Power:3"))`)
	p.shot("wrong-tick")
	p.do(chromedp.Click(`//details[@data-component="Bullet"]//button[text()="7v1"]`, chromedp.BySearch))
	p.shows("#screen .title .big", "7v1")
	p.do(chromedp.Click(`//section[@aria-label="Bullet"]//button[text()="0v1"]`, chromedp.BySearch))
	p.shows("#screen .title .big", "0v1")
	p.until(`/Shots\s+2/.test(document.querySelector('section[aria-label="Ship"]').innerText)`)
	p.shot("wrong-ship")

	at := eval[[2]float64](p, `(() => {
		const b = stet.bar.doc.branches.find((b) => b.from <= 7 && 7 <= b.to), r = stet.bar.canvas.getBoundingClientRect();
		return [r.left + stet.bar.xOf(7), r.top + stet.bar.base() + 5 + b.lane * 5];
	})()`)
	p.do(chromedp.MouseClickXY(at[0], at[1]))
	p.shows("#where", "rewound")
	p.key("4")
	p.shows("#screen .big", "tick 7")
	p.shows(`details[data-component="Bullet"] table`, "Owner:0v1")
	p.shot("wrong-guess")
}

// However many marks there are, and however narrow the bar is: no name lies over another one, or a
// flag, or outside.
func TestNamesOfMarksDoNotLieOverEachOther(t *testing.T) {
	b := browser(t)
	url := serve(t, store(t, 800))
	for _, width := range []int64{400, 1280} {
		p := open(t, b, url, width, 800, false)
		bad := eval[string](p, `(() => {
			const texts = [], draw = CanvasRenderingContext2D.prototype.fillText;
			let seed = 7, drawn = 0;
			const random = (n) => (seed = seed * 48271 % 2147483647) % n;
			for (let round = 0; round < 60; round++) {
				const last = stet.bar.doc.last;
				stet.bar.doc.marks = Array.from({ length: 1 + random(14) }, (_, i) => ({ tick: random(last + 1), name: "the mark number " + i + "x".repeat(random(12)), record: 1, rewound: i % 5 === 0 }));
				texts.length = 0;
				CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
					if (y === 10) texts.push([x, x + this.measureText(text).width, text]);
					draw.call(this, text, x, y);
				};
				stet.bar.draw();
				CanvasRenderingContext2D.prototype.fillText = draw;
				drawn += texts.length;
				const flags = stet.bar.doc.marks.map((m) => [stet.bar.xOf(m.tick), stet.bar.xOf(m.tick) + 6, "a flag"]);
				for (const [i, a] of texts.entries()) {
					if (a[0] < 0 || a[1] > stet.bar.canvas.clientWidth) return round + ": " + a + " lies outside";
					for (const o of [...texts.slice(i + 1), ...flags]) if (a[0] < o[1] && o[0] < a[1]) return round + ": " + a + " lies over " + o;
				}
			}
			return drawn > 60 ? "" : "only " + drawn + " names are drawn";
		})()`)
		if bad != "" {
			t.Errorf("%d pixels: %s", width, bad)
		}
		p.shot(fmt.Sprintf("marks-%d", width))
	}
}

// Whoever steps on and on finds the next state there: it was asked for before.
func TestTheNextStepIsAskedBeforeItIsTaken(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	p.until(`document.querySelector(".list .row .name")?.innerText.includes("v")`)
	asked := func(record uint64) string {
		return fmt.Sprintf(`performance.getEntriesByType("resource").filter((e) => e.name.includes("entities?record=%d&")).length`, record)
	}
	p.key(kb.Home)
	p.until("stet.point.parent === null")
	for range 4 {
		at := eval[uint64](p, "stet.point.record")
		p.key(kb.ArrowRight)
		p.until(fmt.Sprintf("stet.point.record > %d && stet.point.next", at))
	}
	next := eval[uint64](p, "stet.point.next.record")
	p.until(asked(next) + " === 1")
	p.key(kb.ArrowRight)
	p.until(fmt.Sprintf("stet.point.record === %d", next))
	then := eval[uint64](p, "stet.point.next.record")
	p.until(asked(then) + " === 1")
	if n := eval[int](p, asked(next)); n != 1 {
		t.Errorf("the entities after record %d were asked for %d times", next, n)
	}
	if n := eval[int](p, asked(then+1)); n != 0 {
		t.Errorf("the entities after record %d were asked for, two steps ahead", then+1)
	}
}

func TestAnOpenStoreIsFollowed(t *testing.T) {
	b := browser(t)
	dir := filepath.Join(t.TempDir(), "raid")
	g, s := play(t, dir, 200)
	p := open(t, b, serve(t, dir), 1280, 800, false)
	p.click("#follow")
	p.until(`document.querySelector("#follow").getAttribute("aria-pressed") === "true"`)
	for range 5 {
		commit(t, g, s)
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		p.until(fmt.Sprintf("stet.point.tick === %d", g.world.Tick()))
	}
	p.key(kb.ArrowLeft)
	at := p.tick()
	commit(t, g, s)
	p.until(fmt.Sprintf("stet.news.tick === %d", g.world.Tick()))
	if now := p.tick(); now > at {
		t.Errorf("it went on to %d from %d, though nobody follows", now, at)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestASaveAndADamagedStoreAreShown(t *testing.T) {
	b := browser(t)
	dir := store(t, 400)
	g := newGame()
	g.spawn("orc")
	g.world.Commit()
	file := filepath.Join(t.TempDir(), "slot.save")
	if err := persist.Save(context.Background(), file, g.world); err != nil {
		t.Fatal(err)
	}
	p := open(t, b, serve(t, file), 1280, 800, false)
	p.shows("#entities", "orc-0")
	p.key("7")
	p.shows("#screen", "It opens.")

	v, err := inspect.OpenReadOnly(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e := v.Log().Entries[len(v.Log().Entries)-3]
	segment := filepath.Join(dir, "journal", v.Log().Segments[e.Segment].Name)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	content[e.Offset+int64(e.Length)] ^= 4
	if err := os.WriteFile(segment, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, b, serve(t, dir), 1280, 800, false)
	d.shows("#trouble", "damaged")
	d.click("#legend .danger button")
	d.shows("#screen", "It does not open.")
	d.shows("#screen pre", "ecsdump recover raid -o raid.recovered")
	d.click("#verify")
	d.shows("#screen", "problem")
}

var scrubbing = flag.Duration("scrub", 5*time.Second, "how long to scrub for the test of memory")

// Nothing piles up while somebody scrubs: neither in the page, nor in what it keeps of answers, nor in
// the server.
func TestMemoryIsSteadyOverScrubbing(t *testing.T) {
	b := browserFor(t, 3*time.Minute+*scrubbing)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	p.shows("#entities", "orc-")
	type use struct {
		page, server float64 // MB.
		nodes        float64
	}
	used := func() use {
		p.do(heapprofiler.CollectGarbage())
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return use{eval[float64](p, `performance.memory.usedJSHeapSize`) / 1e6, float64(m.HeapAlloc) / 1e6, eval[float64](p, `document.querySelectorAll("*").length`)}
	}
	moves := 0
	scrub := func(long time.Duration) {
		for end := time.Now().Add(long); time.Now().Before(end); moves++ {
			if moves%50 == 0 {
				p.do(chromedp.Evaluate(fmt.Sprintf(`stet.show(%q)`, []string{"entities", "map", "tick", "arrays"}[moves/50%4]), nil))
			}
			p.do(chromedp.Evaluate(fmt.Sprintf(`stet.goTo("%d")`, (moves*37)%600), nil))
			time.Sleep(4 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		eval[bool](p, `(stet.show("entities"), stet.goTo("600"), true)`) // Which tick a scrubbing ends at is up to the machine, and so what the first rows are.
		p.shows("#where", "tick 600")
		p.shows("#entities", "orc-")
	}
	scrub(max(2*time.Second, *scrubbing/20))
	before := used()
	scrub(*scrubbing)
	after := used()
	t.Logf("%d moves in all; before %.1f, after %v of them %.1f MB of the page, server, and elements", moves, before, *scrubbing, after)
	if after.page > before.page+16 || after.server > before.server+16 || after.nodes > before.nodes+200 {
		t.Errorf("something piles up: %.1f, then %.1f", before, after)
	}
}
