package browsertest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

func TestHostileNames_ShownAsText(t *testing.T) {
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
		t.Error("a name was interpreted as HTML")
	}
}

// With names of any length and contents, no screen may be wider than the window. Elements next to
// a name must have enough space, and expressions must be able to use the name.
func TestLongNames_FitLayout(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	url := serve(t, longStore(t))
	for _, width := range []int64{1280, 400} {
		p := open(t, b, url, width, 800, width == 400)
		p.shows("#entities", "0v1")
		for _, s := range screens {
			eval[bool](p, fmt.Sprintf(`(stet.show(%q, {entity: "3v1"}), true)`, strings.ToLower(s.name)))
			p.shows("#tabs a[aria-current]", s.name)
			p.until(`document.querySelector("#screen").innerText.length > 20`)
			time.Sleep(150 * time.Millisecond)
			p.fits()
			p.shot(fmt.Sprintf("long-%d-%s", width, s.name))
		}
		p.key("3")
		p.until(`document.querySelectorAll(".fields .value").length > 3`)
		if least := eval[float64](p, `Math.min(...[...document.querySelectorAll(".fields .value, .fields .name, h2 .soft")].filter((e) => e.innerText).map((e) => e.getBoundingClientRect().width))`); least < 24 {
			t.Errorf("%d pixels: an element next to a long name is %v wide", width, least)
		}
		p.key("4", kb.Home, kb.ArrowRight)
		p.shows("#screen", "Inputs")
		p.fits()
		p.key("?")
		p.shows("#guide", "previous and next change")
		if eval[bool](p, `document.querySelector("#guide").scrollWidth > document.querySelector("#guide").clientWidth`) {
			t.Errorf("%d pixels: the help is too wide", width)
		}
		where := eval[string](p, `[...document.querySelectorAll("#guide dt button")].find((b) => b.innerText.startsWith("component(")).innerText`)
		p.do(chromedp.Evaluate(`[...document.querySelectorAll("#guide dt button")].find((b) => b.innerText.startsWith("component(")).click()`, nil))
		p.until(fmt.Sprintf(`stet.get("where") === %q`, where))
		p.until(`document.querySelector("#screen .status").innerText.includes(" of 60")`)
		if wrong := p.text(".error"); wrong != "" {
			t.Errorf("%s: %s", where, wrong)
		}
	}
}

// With any number of marks and any width of the bar, no name may overlap another name or a flag.
// No name may extend beyond the bar.
func TestMarks_NamesDoNotOverlap(t *testing.T) {
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

// The types below are components whose names have the maximum length.
type (
	Wide struct {
		X, Y                                                                         float64
		AFieldWhoseNameIsSoLongThatNobodyWouldWantToReadItInAnyColumnOfAnyTableAgain int
	}
	Deep struct {
		Text string
		List []string
		Of   ecs.Entity
	}
)

// longStore makes a store with names of maximum length, and with long values.
func longStore(t testing.TB) string {
	t.Helper()
	dir, long := filepath.Join(t.TempDir(), "store-"+strings.Repeat("n", 120)), strings.Repeat("W", 200)
	w := ecs.NewWorld(ecs.Options{})
	wide := ecs.MustRegister(w, ecs.Component[Wide]{Name: `a-b <b>"bold"</b> ` + long})
	deep := ecs.MustRegister(w, ecs.Component[Deep]{Name: "名前." + strings.Repeat("長", 60)})
	store, err := persist.Open(context.Background(), dir, w, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		e := w.Create()
		wide.Set(e, Wide{float64(float64(i) * 1e17), float64(-1e-9 * float64(i)), i})
		deep.Set(e, Deep{strings.Repeat(hostile, 20), []string{long, "line\nbreak"}, e})
	}
	for n := range 30 {
		if n%7 == 3 {
			mark(t, store, "<i>"+strings.Repeat("m", 8*n))
		}
		if err := store.Input("order-"+long, []byte(strings.Repeat("\x00\xffpayload ", 90))); err != nil {
			t.Fatal(err)
		}
		for e := range wide.All() {
			wide.Mut(e).X += 3e15
		}
		if err := store.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return dir
}
