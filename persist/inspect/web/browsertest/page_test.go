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

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// store makes a store of the given number of ticks, closes it and returns its directory.
func store(t testing.TB, ticks int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "raid")
	_, s := play(t, dir, ticks)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// screens has the name of each screen, and a text that the screen shows in the element with the
// selector where.
var screens = []struct{ name, where, text string }{
	{"Entities", "#entities", "Position{"},
	{"Map", "#screen .status", "points"},
	{"Entity", "#screen", "Life"},
	{"Tick", "#screen", "written"},
	{"Plots", "#screen .plot", "alive"},
	{"Arrays", "#screen", "Dense and data"},
	{"Health", "#screen", " opens."},
}

// The test opens every screen by clicks and by keys, at two widths, in light and dark mode. No
// screen may be wider than the window, and no text may be too faint.
func TestScreens_OpenByClicksAndKeys(t *testing.T) {
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

// contrast returns the lowest contrast between a text and the background, by the formula of WCAG.
const contrast = `(() => {
  const style = getComputedStyle(document.documentElement), lum = (name) => {
    const n = parseInt(style.getPropertyValue("--" + name).trim().slice(1), 16);
    const [r, g, b] = [n >> 16, n >> 8 & 255, n & 255].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(lum(a), lum(b)) + 0.05) / (Math.min(lum(a), lum(b)) + 0.05);
  return Math.min(...["ink", "soft", "accent", "added", "removed", "changed", "danger", "mark"].flatMap((c) => [ratio(c, "paper"), ratio(c, "panel")]), ratio("accent", "accent-ink"));
})()`

// fits reports elements that are wider than the window.
func (p *page) fits() {
	p.Helper()
	if wide := eval[string](p, `document.documentElement.scrollWidth > innerWidth || document.body.scrollHeight > innerHeight ? document.documentElement.scrollWidth + " × " + document.body.scrollHeight : ""`); wide != "" {
		p.shot("wide")
		p.Errorf("the page is larger than the window: %s", wide)
	}
	if wide := eval[string](p, `(() => { const s = document.querySelector("#screen:not(.full)"); return s && s.scrollWidth > s.clientWidth ? [...s.querySelectorAll("*")].find((e) => e.getBoundingClientRect().right > innerWidth)?.outerHTML.slice(0, 200) ?? "?" : ""; })()`); wide != "" {
		p.shot("wide")
		p.Errorf("the screen is wider than the window: %s", wide)
	}
	for _, id := range []string{"#bar", "#tabs", "#screen", "#point"} {
		if !eval[bool](p, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return r.width > 50 && r.height > 20 && r.left >= 0 && r.right <= innerWidth + 1 && r.bottom <= innerHeight + 1; })()`, id)) {
			p.Errorf("%s is not in the window", id)
		}
	}
}

func TestKeyboard_MovesInTime(t *testing.T) {
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
	p.shows("#trouble", "The bar shows the existing ticks")
	if told := p.text("#trouble"); strings.Contains(told, "ecsdump") {
		t.Errorf("the page suggests a terminal command: %s", told)
	}
	p.excuse("404")
	p.until(`document.activeElement.id === "point" && document.activeElement.value === "99999"`)
	p.key(kb.Escape)
	p.until(`document.querySelector("#trouble").hidden && document.querySelector("#point").value === String(stet.point.tick)`)
	p.key(kb.Home)
	at(0)
	p.until("document.querySelector('#trouble').hidden")
	p.key(" ")
	p.until("stet.point.tick > 5")
	p.key(" ")
	still := p.tick()
	time.Sleep(200 * time.Millisecond)
	if now := p.tick(); now > still+1 {
		t.Errorf("the page did not stop playing: it moved from tick %d to %d", still, now)
	}
	p.key("+", "+")
	p.until("stet.bar.span() < 400")
	p.key("0")
	p.until("stet.bar.span() > 400")
	p.key("?")
	p.shows("#guide", "previous and next change")
	p.key(kb.Escape)
	p.until("!document.querySelector('#guide').open")
}

func TestEntityScreen_StepsThroughChanges(t *testing.T) {
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
		t.Error("the address has no entity")
	}

	// A reference must link to the entity that it refers to.
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

	// The page must show a tag without a value.
	p.key("1", "/")
	eval[bool](p, `(document.querySelector("#filter").value = "", true)`)
	p.write(`has(Fled)`)
	p.until(`document.querySelector(".list .row .cell:nth-child(2)")?.innerText.includes("Fled")`)
	p.click(".list .row")
	p.shows(`section[aria-label$="Fled"] .fields`, "no fields")
	if told := p.text(`section[aria-label$="Fled"] .fields`); strings.Contains(told, "value") || strings.Contains(told, "{}") {
		t.Errorf("a tag is shown as %q", told)
	}
}

func TestFilter_CompletionAndErrors(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 400)), 1280, 800, false)
	p.shows("#entities", "orc-")
	top := eval[float64](p, `document.querySelector("#entities").getBoundingClientRect().top`)
	p.key("/")
	p.write("Hea")
	p.shows(".offers", "Health.Now")
	p.key(kb.ArrowDown, kb.ArrowDown, kb.Enter)
	p.until(`document.querySelector("#filter").value === "Health.Now"`)
	p.write(" << 3")
	p.shows(".error", "< is not expected here")
	p.shows(".error", "^")
	p.until(`document.querySelector("#filter").getAttribute("aria-invalid") === "true"`)
	if now := eval[float64](p, `document.querySelector("#entities").getBoundingClientRect().top`); now != top {
		t.Errorf("the list is at %v, and was at %v before there was an error", now, top)
	}
	p.shot("wrong-filter")

	// An invalid text must stay in its field after a reload, and must not empty the list.
	p.do(chromedp.Reload())
	p.until(`document.documentElement.dataset.ready === "1" && document.querySelector("#filter").value === "Health.Now << 3"`)
	p.shows(".error", "The list ignores this text.")
	p.shows("#entities", "orc-")
	p.click("#filter")
	eval[bool](p, `(document.querySelector("#filter").value = "", true)`)
	p.write("Health.Now < 1000")
	p.until(`!document.querySelector(".error") && document.querySelector("#screen .status").innerText.includes(" of ")`)
	p.click("#columns")
	p.write("Kind.Name as name, Health.Now as hp")
	p.shows(".list .head", "hp")
	p.click(`.list .head > :nth-child(3) button`)
	p.shows(".list .head", "hp ↑")
	p.until(`(() => { const n = [...document.querySelectorAll(".row .cell:nth-child(3)")].slice(0, 9).map((c) => +c.innerText); return n.length > 5 && n.every((v, i) => !i || n[i - 1] <= v); })()`)

	// If a filter is invalid, the last valid filter must stay in effect, also at another point in
	// time.
	p.click("#filter")
	p.write(" and")
	p.shows(".error", "The list uses the last valid text: Health.Now < 1000")
	eval[bool](p, `(async () => { await stet.goTo("300"); return true; })()`)
	p.shows(".error", "The list uses the last valid text: Health.Now < 1000")
	p.until(`document.querySelector(".list .head").innerText.includes("hp ↑")`)
	p.excuse("400")
}

// The browser's back button must revert a text that was typed into a field, as one change. It
// must also revert a sort order, and a jump by a link. The history must not contain steps in
// time.
func TestBackButton_RevertsChanges(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 400)), 1280, 800, false)
	p.shows("#entities", "orc-")
	listed := func(text string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelector("#screen .status")?.innerText === %q`, text))
	}
	all := p.text("#screen .status")
	p.key("/")
	for _, part := range []string{"Kind.Clan", ` == "orc"`} {
		p.write(part)
		p.until(fmt.Sprintf(`stet.get("where").endsWith(%q)`, strings.TrimSpace(part)))
	}
	p.key(kb.Enter)
	p.until(`document.activeElement.id === "entities"`)
	orcs := p.text("#screen .status")
	for n := range 2 {
		p.key(kb.ArrowLeft)
		p.until(fmt.Sprintf(`stet.point.tick === stet.info.newest.tick - %d`, n+1))
	}
	p.click("#columns")
	p.write("Health.Now as hp")
	p.shows(".list .head", "hp")
	p.click(`.list .head > :nth-child(2) button`)
	p.shows(".list .head", "hp ↑")
	p.click("#legend button")
	p.until(`stet.bar.doc.marks.some((m) => m.record === stet.point.record)`)
	back := func(way string) { eval[bool](p, "(history."+way+"(), true)") }
	back("back")
	p.until(`stet.point.tick === stet.info.newest.tick - 2`)
	p.shows(".list .head", "hp ↑")
	back("back")
	p.until(`document.querySelector(".list .head").innerText.trim().endsWith("hp")`)
	back("back")
	p.until(`document.querySelector("#columns").value === "" && document.querySelector("#filter").value === 'Kind.Clan == "orc"'`)
	p.shows("#entities", "Position{")
	back("back")
	listed(all)
	back("forward")
	p.until(`document.querySelector("#filter").value === 'Kind.Clan == "orc"'`)
	p.until(fmt.Sprintf(`document.querySelector("#screen .status").innerText !== %q`, all))
	if now := p.text("#screen .status"); !strings.Contains(now, " of ") {
		t.Errorf("the page lists %s, want %s", now, orcs)
	}

	// The back button must also revert changes of the map's fields and of plots.
	p.key("2")
	p.shows("#screen .status", "points")
	p.click("#map-color")
	p.write("Kind.Clan")
	p.shows(".map .key", "orc")
	p.key(kb.Escape, "5")
	p.click("#expr")
	p.write("sum(Gold)")
	p.key(kb.Enter)
	p.until(`stet.all("expr").includes("sum(Gold)")`)
	back("back")
	p.until(`stet.all("expr").length === 0 && document.querySelectorAll(".plot").length === 1`)
	back("back")
	p.until(`document.querySelector("#map-color")?.value === "Kind.Clan"`)
	back("back")
	p.until(`document.querySelector("#map-color").value === ""`)
	p.excuse("400")
}

func TestTimeBar_ScrubsZoomsShowsBranches(t *testing.T) {
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

	// A tooltip must describe the tick under the pointer.
	over := func(tick string) {
		p.do(input.DispatchMouseEvent(input.MouseMoved, eval[float64](p, "stet.bar.xOf("+tick+")"), y+30))
	}
	over("200")
	p.until(`/^tick 200 · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z\n[1-9]\d* rows written$/.test(document.querySelector("#there").innerText)`)
	over(`stet.bar.doc.marks.find((m) => m.name === "the raid").tick`)
	p.shows("#there", "mark the raid")
	p.shot("hover")
	p.do(input.DispatchMouseEvent(input.MouseMoved, 300, y-200))
	p.until(`document.querySelector("#there").hidden`)

	x := eval[float64](p, `(() => { const b = stet.bar.doc.branches[0]; return stet.bar.xOf((b.from + b.to) / 2); })()`)
	lane := eval[float64](p, `stet.bar.base() + 5 + stet.bar.doc.branches[0].lane * 5`)
	p.do(mouse(input.MousePressed, x, y+lane), mouse(input.MouseReleased, x, y+lane))
	p.shows("#where", "rewound")
	p.click("#legend button")
	p.until(`!document.querySelector("#where").innerText.includes("rewound") || stet.bar.doc.marks.some((m) => m.rewound)`)

	// If there are many marks, the legend lists the newest marks, and how many it omits.
	eval[bool](p, `(stet.bar.doc.marks = Array.from({ length: 9 }, (_, i) => ({ name: "wave " + i, tick: 10 * i, record: 10 * i, rewound: false })), stet.bar.tell(), true)`)
	p.shows("#legend", "marks: wave 5, wave 6, wave 7, wave 8 and 5 more")
	p.do(chromedp.Click(`//*[@id="legend"]//button[text()="5 more"]`, chromedp.BySearch))
	p.until(`document.activeElement.id === "point" && document.activeElement.value === "mark:"`)
}

func TestPin_ComparesTwoStates(t *testing.T) {
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

	// All other screens must show the differences of the same two points.
	eval[bool](p, `(stet.show("entities", {where: "Target.Seen == 250", columns: "Health.Now as hp, Target.Seen"}), true)`)
	p.until(`document.querySelectorAll("#entities .row .removed").length > 0`)
	p.shot("beside-entities")
	eval[bool](p, `(stet.show("entities", {where: "", columns: ""}), true)`)
	p.until(`[...document.querySelectorAll("#entities .row .changed")].some((e) => e.title.startsWith("in A Position{"))`)
	p.shot("beside-components")
	p.key("2")
	p.until(`/since A [1-9]\d* moved, \d+ added, \d+ gone/.test(document.querySelector("#screen .status").innerText)`)
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

// The test follows the walkthrough of docs/INSPECTOR.md, using only the page.
func TestWalkthrough_WrongValue(t *testing.T) {
	b := browser(t)
	dir := filepath.Join(t.TempDir(), "worlds")
	out, err := exec.Command("go", "run", "github.com/stet-ecs/stet/examples/rollback", "-bug", "-dir", dir).CombinedOutput()
	if !strings.Contains(string(out), "the first tick that does is 27, in Bullet") {
		t.Fatalf("%v\n%s", err, out)
	}
	p := open(t, b, serve(t, filepath.Join(dir, "peer2")), 1280, 800, false)
	p.shows("#where", "tick 27 · record 43")
	p.key("7")
	// The page suggests a command that finds the first tick at which two recordings differ.
	p.shows("#screen pre", "ecsdump diff peer2 OTHER --first")
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

// When the user steps repeatedly, the page must request the next state in advance.
func TestStep_RequestsNextStateEarly(t *testing.T) {
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
		t.Errorf("the page requested the entities after record %d %d times", next, n)
	}
	if n := eval[int](p, asked(then+1)); n != 0 {
		t.Errorf("the page requested the entities after record %d, two steps in advance", then+1)
	}
}

func TestFollow_OpenStore(t *testing.T) {
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
		t.Errorf("the page moved to tick %d from tick %d without following", now, at)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	// The next program registers another component. The page must list it only at ticks of that
	// program.
	p.key("6")
	p.shows("#screen", "Dense and data")
	p.key("f")
	g = newGame()
	armors := ecs.MustRegister[Armor](g.world)
	s, err := persist.Open(context.Background(), dir, g.world, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for e := range g.kinds.All() {
		armors.Set(e, Armor{3})
		break
	}
	commit(t, g, s)
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	offered := `[...document.querySelectorAll("#component option")].some((o) => o.value === "Armor") && stet.names().includes("Armor.Plates")`
	p.until(fmt.Sprintf("stet.point.tick === %d", g.world.Tick()))
	p.until(offered)
	p.do(chromedp.SetValue("#component", "Armor", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector("#component").dispatchEvent(new Event("change"))`, nil))
	p.shows("#screen", "{Plates:3}")
	p.key(kb.ArrowLeft)
	p.until("!(" + offered + ")")
	p.shows("#screen", "Dense and data")
	p.until(`!document.querySelector(".error")`)
	p.key(kb.ArrowRight)
	p.shows("#screen", "{Plates:3}")
	p.excuse("404")
}

// Browsers allow six connections to a server. Closed and hidden pages must use no connection.
func TestServer_ManyOpenTabs(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	url := serve(t, store(t, 50))
	first := open(t, b, url, 1280, 800, false)
	for range 8 {
		first.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
		first.until(`document.documentElement.dataset.ready === "1"`)
	}
	for range 8 {
		p := open(t, first.ctx, url, 1280, 800, false)
		p.hide(true)
	}
	first.hide(true)
	first.hide(false)
	first.key("5")
	first.shows("#screen", "alive")
}

func TestHealth_SaveAndDamagedStore(t *testing.T) {
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
	if legend := p.text("#legend"); strings.Contains(legend, "counting") {
		t.Errorf("a save has no ticks to count, but the bar shows %q", legend)
	}
	p.until(`document.querySelector("#play").disabled`)
	p.key("7")
	p.shows("#screen", "The save opens.")
	p.shows("#screen pre", "ecsdump diff slot.save OTHER")

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
	d.shows("#trouble", "Health, screen 7, shows the damage")
	d.click("#legend .danger button")
	d.shows("#screen", "The store does not open.")
	// The first suggested command must be a recovery.
	d.shows("#screen pre", "ecsdump recover raid -o raid.recovered")
	if eval[bool](d, `/damaged: corrupt|corrupt\s*corrupt|closed cleanly/.test(document.body.innerText)`) {
		t.Errorf("the page reports damage twice, or a clean close: %s", d.text("body"))
	}
	d.shot("damaged")
	d.click("#verify")
	d.shows("#screen", "problem")
}

var scrubbing = flag.Duration("scrub", 5*time.Second, "how long to scrub for the test of memory")

// Scrubbing must not increase the memory of the page, of its cached answers, or of the server.
func TestScrubbing_MemoryDoesNotGrow(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
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
		// The last tick of a scrub, and its rows, depend on the machine. So show a fixed tick at
		// the end.
		eval[bool](p, `(stet.show("entities"), stet.goTo("600"), true)`)
		p.shows("#where", "tick 600")
		p.shows("#entities", "orc-")
	}
	scrub(max(2*time.Second, *scrubbing/20))
	before := used()
	scrub(*scrubbing)
	after := used()
	t.Logf("%d moves in all; before %.1f, after %v of them %.1f MB of the page, server, and elements", moves, before, *scrubbing, after)
	if after.page > before.page+16 || after.server > before.server+16 || after.nodes > before.nodes+200 {
		t.Errorf("memory grew from %.1f to %.1f", before, after)
	}
}
