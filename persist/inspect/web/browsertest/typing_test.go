package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// slow delays the answers to the named requests of the page by half a second.
func (p *page) slow(questions ...string) {
	p.Helper()
	var patterns []*fetch.RequestPattern
	for _, q := range questions {
		patterns = append(patterns, &fetch.RequestPattern{URLPattern: "*/api/v1/" + q + "*"})
	}
	chromedp.ListenTarget(p.ctx, func(event any) {
		if e, ok := event.(*fetch.EventRequestPaused); ok {
			go func() {
				time.Sleep(500 * time.Millisecond)
				// The page may already be closed, so ignore the error.
				_ = chromedp.Run(p.ctx, fetch.ContinueRequest(e.RequestID))
			}()
		}
	})
	p.do(fetch.Enable().WithPatterns(patterns))
}

// A text that the user types during a request must stay in its field.
func TestTyping_DuringRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	holds := func(selector, text string) {
		t.Helper()
		if got := eval[string](p, `document.querySelector("`+selector+`").value`); got != text {
			t.Errorf("%s holds %q, want %q", selector, got, text)
		}
	}
	p.key("5")
	p.until(`document.querySelectorAll(".plot canvas").length === 1`)
	p.slow("series", "first", "resolve", "arrays", "entity?")
	p.click("#expr")
	p.write("sum(Gold)")
	p.key(kb.Enter)
	p.write("avg(Health.Now)")
	p.until(`stet.all("expr").includes("sum(Gold)")`)
	p.until(`document.querySelectorAll(".plot canvas").length === 2 || stet.all("expr").length === 1`)
	holds("#expr", "avg(Health.Now)")
	eval[bool](p, `(document.querySelector("#expr").value = "", true)`)
	p.write("nothing(")
	p.key(kb.Enter)
	p.write("max(Gold)")
	p.shows(".wrong .error", "nothing(")
	holds("#expr", "max(Gold)")

	p.key(kb.Escape, "g")
	p.write("50")
	p.key(kb.Enter)
	p.write("10")
	p.until("stet.point.tick === 50")
	holds("#point", "5010")
	if id := eval[string](p, "document.activeElement.id"); id != "point" {
		t.Errorf("the focus is on %q", id)
	}
	p.key(kb.Escape)

	eval[bool](p, `(stet.openEntity("3v1"), true)`)
	p.shows("#screen .title .big", "3v1")
	p.click("#entity")
	eval[bool](p, `(document.querySelector("#entity").select(), stet.goTo("51"), true)`)
	p.write("17")
	p.until("stet.point.tick === 51")
	p.until(`document.querySelector("#screen .title .big").innerText === "3v1"`)
	// Wait for the answer to the request for the entity.
	time.Sleep(700 * time.Millisecond)
	holds("#entity", "17")
	p.key(kb.Enter)
	p.shows("#screen .title .big", "17v1")
	holds("#entity", "17v1")
	p.excuse("400")
}

// A number that the user types into a pager must stay in its field while time moves.
func TestTyping_WhileTicksAdvance(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	eval[bool](p, `(stet.show("arrays", {component: "Position"}), true)`)
	p.shows("#screen td.value", "{X:")
	p.click("#screen input[type=number]")
	eval[bool](p, `(document.activeElement.select(), true)`)
	p.write("12")
	at := p.tick()
	eval[bool](p, `(stet.goTo("record:" + stet.point.record, -1), true)`)
	p.until(fmt.Sprintf("stet.point.tick < %d", at))
	time.Sleep(300 * time.Millisecond)
	if got := eval[string](p, `document.activeElement.value`); got != "12" {
		t.Errorf("the field holds %q", got)
	}
}
