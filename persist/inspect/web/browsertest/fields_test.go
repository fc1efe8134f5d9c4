package browsertest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// The Enter key leaves a field if its text is valid. Otherwise the field keeps the focus, and
// letters must not act as shortcuts.
func TestField_EnterKeyLeavesValidField(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	p.shows("#entities", "villager-")
	p.key("/")
	p.write("Health.Now <")
	p.key(kb.Enter)
	p.until(`document.querySelector("#filter").getAttribute("aria-invalid") === "true"`)
	p.until(`document.activeElement.id === "filter"`)
	p.write(" 1000")
	p.key(kb.Enter)
	p.until(`document.activeElement.id === "entities" && document.querySelector("#screen .status").innerText.includes(" of ")`)

	p.key("5")
	p.click("#expr")
	p.write("count(Nothing)")
	p.key(kb.Enter)
	p.until(`document.querySelector(".wrong .error")?.innerText.includes("Nothing") && document.activeElement.id === "expr" && document.activeElement.value === "count(Nothing)"`)
	p.shot("wrong-plot")
	if eval[bool](p, `stet.all("expr").length > 0 || document.querySelectorAll(".plot").length !== 1`) {
		t.Error("an invalid expression was plotted")
	}
	eval[bool](p, `(document.activeElement.value = "", true)`)
	p.write("sum(Gold)")
	p.key(kb.Enter)
	p.until(`stet.all("expr").includes("sum(Gold)") && !document.querySelector(".wrong .error") && document.querySelector("#expr").value === ""`)
	p.excuse("400")
}

// The list must handle keys as soon as the page is open, and also after a click on the link to its
// screen.
func TestList_KeysWithoutFocus(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	p.shows("#entities", "villager-")
	p.key(kb.ArrowDown)
	p.until(`document.activeElement.id === "entities" && document.querySelector("#row1").getAttribute("aria-selected") === "true"`)
	eval[bool](p, `(document.querySelector("#screen").focus(), true)`)
	p.key(kb.ArrowDown, kb.Enter)
	p.shows("#screen .title .big", "2v1")
	p.key(kb.ArrowDown)
	if got := p.text("#screen .title .big"); got != "2v1" {
		t.Errorf("the page moved to %s, from a screen without a list", got)
	}
}

// The point field must accept each point that it shows, also a rewound state. It must accept a
// tick with separators, as the page shows it. Steps must end at the newest state.
func TestPointField_AcceptsShownPoints(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 1600))+"&at=mark:first-blood~10", 1280, 800, false)
	p.until(`stet.point.tick === stet.bar.doc.marks.find((m) => m.name === "first-blood").tick - 10`)
	to := func(text string) {
		t.Helper()
		p.key("g")
		p.write(text)
		p.key(kb.Enter)
	}
	to("1,000")
	p.until("stet.point.tick === 1000")
	to("the raid")
	p.until("stet.bar.doc.marks.some((m) => m.record === stet.point.record)")
	p.until(`/^tick \d+, record \d+, \d+ rows written, mark the raid/.test(document.querySelector("#bar").getAttribute("aria-valuetext"))`)
	tip := eval[int](p, "stet.bar.doc.branches[0].tip")
	to(fmt.Sprintf("record:%d", tip))
	p.until(fmt.Sprintf("stet.point.record === %d && stet.point.rewound", tip))
	p.until(fmt.Sprintf(`document.querySelector("#point").value === "record:%d"`, tip))
	p.key("g", kb.Enter)
	p.until(`document.activeElement.id === "screen"`)
	if got := eval[int](p, "stet.point.record"); got != tip || !eval[bool](p, `document.querySelector("#trouble").hidden`) {
		t.Errorf("the page moved to record %d from record %d", got, tip)
	}
	// Simulate a key press before any state is loaded.
	eval[bool](p, `(() => { stet.point = null; document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "p", bubbles: true })); return true; })()`)
}

// In a narrow window, the end of the status line must stay visible.
func TestStatusLine_NarrowWindow(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 400, 800, true)
	ends := func(text string) {
		t.Helper()
		p.shows("#where", text)
		if !eval[bool](p, `(() => { const w = document.querySelector("#where").getBoundingClientRect(), k = document.querySelector("#where > :last-child").getBoundingClientRect(); return k.width > 20 && k.right <= w.right + 1 && k.left >= w.left; })()`) {
			t.Errorf("%s is cut off", text)
		}
	}
	ends("newest")
	p.key("p")
	ends("newest · A is tick")
	p.shot("narrow-newest")
	eval[bool](p, `(stet.goTo("record:" + stet.bar.doc.branches[0].tip), true)`)
	ends("rewound · A is tick")
	p.shot("narrow-rewound")
}

// The names A and B must be readable on every background of the bar, also when both are at the
// same tick.
func TestBarCursors_NamesReadable(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	url := serve(t, store(t, 800))
	for _, dark := range []bool{false, true} {
		p := open(t, b, url, 1280, 800, dark)
		p.key("p")
		p.shows("#where", "A is tick")
		for _, to := range []string{"@latest", "@latest~1", "300", "0"} {
			eval[bool](p, fmt.Sprintf(`(async () => { await stet.goTo(%q); return true; })()`, to))
			if bad := eval[string](p, cursorNames) + eval[string](p, cursorFeet); bad != "" {
				t.Errorf("dark=%v, B at %s: %s", dark, to, bad)
			}
		}
		p.shot(fmt.Sprintf("cursors-%v", dark))
	}
}

// cursorFeet draws the bar and reports whether the triangle of a cursor overlaps the labels of
// ticks.
const cursorFeet = `(() => {
	const proto = CanvasRenderingContext2D.prototype, { fillText, lineTo } = proto, height = stet.bar.canvas.clientHeight;
	let low = 0, top = height;
	proto.lineTo = function (x, y) { low = Math.max(low, y); lineTo.call(this, x, y); };
	proto.fillText = function (text, x, y) {
		if (y > height - 8) top = Math.min(top, y - this.measureText(text).actualBoundingBoxAscent);
		fillText.call(this, text, x, y);
	};
	stet.bar.draw();
	Object.assign(proto, { fillText, lineTo });
	return low < top && top < height ? "" : "a triangle ends at " + low + ", the ticks begin at " + top;
})()`

// cursorNames draws the bar and reports faults in how the names A and B are drawn.
const cursorNames = `(() => {
	const seen = [], draw = CanvasRenderingContext2D.prototype.fillText, canvas = stet.bar.canvas, scale = devicePixelRatio;
	const lum = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
		if (text === "A" || text === "B") {
			const wide = this.measureText(text).width, data = this.getImageData(x * scale, (y - 8) * scale, wide * scale, 9 * scale).data;
			const ink = parseInt(this.fillStyle.slice(1), 16), on = lum([ink >> 16, ink >> 8 & 255, ink & 255]);
			let least = 21;
			for (let i = 0; i < data.length; i += 4) {
				const paper = lum(data.slice(i, i + 3));
				least = Math.min(least, (Math.max(on, paper) + 0.05) / (Math.min(on, paper) + 0.05));
			}
			seen.push({ text, x, y, wide, least });
		}
		draw.call(this, text, x, y);
	};
	stet.bar.draw();
	CanvasRenderingContext2D.prototype.fillText = draw;
	if (seen.length !== 2) return seen.length + " names";
	for (const s of seen) {
		if (s.x < 0 || s.x + s.wide > canvas.clientWidth) return s.text + " lies outside";
		if (s.least < 4.5) return s.text + " has a contrast of " + s.least.toFixed(1);
	}
	const [a, b] = seen;
	return Math.abs(a.y - b.y) < 11 && a.x < b.x + b.wide && b.x < a.x + a.wide ? "they lie over each other" : "";
})()`

func TestMapLegend_Colors(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	eval[bool](p, `(stet.set({color: "Health.Now"}), stet.show("map"), true)`)
	p.shows(".map .key", "Health.Now")
	eval[bool](p, `(document.querySelector("#map-color").value = "", true)`)
	p.click("#map-color")
	p.write("Health.Nowhere")
	p.until(`document.querySelector("#map-color").getAttribute("aria-invalid") === "true"`)
	eval[bool](p, `(dispatchEvent(new Event("resize")), document.querySelector("[aria-label='Zoom in']").click(), true)`)
	if got := p.text(".map .key"); got[:len("Health.Now\n")] != "Health.Now\n" {
		t.Errorf("the legend shows %q", got)
	}
	p.excuse("400")
}

// While a program commits 25 ticks per second, data about an entity must belong to the shown tick
// or be labelled with its tick. The same is required for an entity that the user chooses
// meanwhile.
func TestEntityScreen_WhileTicksAdvance(t *testing.T) {
	b := browser(t)
	dir := filepath.Join(t.TempDir(), "raid")
	g, s := play(t, dir, 50)
	p := open(t, b, serve(t, dir), 1280, 800, false)
	p.key("f")
	eval[bool](p, `(stet.openEntity("0"), true)`)
	p.shows("#screen .title .big", "0v1")
	first := g.world.Tick()
	end := time.Now().Add(2500 * time.Millisecond)
	for time.Now().Before(end) {
		commit(t, g, s)
		if err := s.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		if wrong := eval[string](p, agesOf); wrong != "" {
			t.Fatal(wrong)
		}
		time.Sleep(40 * time.Millisecond)
	}
	known := eval[uint64](p, `Math.max(...stet.changes)`)
	if last := g.world.Tick(); known < first+(last-first)/2 {
		t.Errorf("at tick %d the page has changes up to tick %d; it was opened at tick %d", last, known, first)
	}
	p.until(fmt.Sprintf(`stet.point.tick === %d && document.querySelector("[aria-label=Life] .row") && [...document.querySelectorAll(".age")].every((e) => !e.textContent)`, g.world.Tick()))
	p.shot("followed-entity")
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	// Also label the data while the page plays from a tick at which the entity did not exist yet.
	last := g.world.Tick()
	p.key(kb.Home)
	p.until("stet.point.tick === 0")
	p.key(" ")
	p.until(fmt.Sprintf(`document.querySelector("[aria-label=Life] .row") && stet.point.tick > 2 && stet.point.tick < %d`, last))
	if wrong := eval[string](p, agesOf); wrong != "" {
		t.Error(wrong)
	}
	p.shot("played-entity")
}

// The bar shows the changes of an entity on the path to the shown point. When the user leaves a
// rewound branch, its changes must disappear.
func TestBar_RemovesChangesOfOtherBranch(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 800)), 1280, 800, false)
	eval[bool](p, `(async () => { await stet.goTo("record:" + stet.bar.doc.branches[0].tip); stet.openEntity("0v1"); return true; })()`)
	p.until(`stet.point.rewound && stet.changes.length > 0`)
	p.key("1", kb.End)
	p.until(`stet.point.head`)
	if n := eval[int](p, `stet.changes.length`); n != 0 {
		t.Errorf("%d changes of the branch are shown", n)
	}
}

// agesOf reports data on the Entity screen that belongs to an older tick and has no label.
const agesOf = `(() => {
	const newest = +document.querySelector(".life .row button")?.innerText.replace(/\D/g, ""), ages = [...document.querySelectorAll(".age")];
	if (!newest) return "";
	if (stet.changes[0] !== newest) return "the bar knows of tick " + stet.changes[0] + ", the life of " + newest;
	const told = ages.find((e) => e.closest("[aria-label=Life]"))?.textContent;
	return newest < stet.point.tick - 2 && !told ? "at tick " + stet.point.tick + ", the life ends at " + newest : "";
})()`
