package browsertest

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// BenchmarkBudgetBrowser: from the address to something that is seen; and from a commit to the page
// of somebody who follows.
func BenchmarkBudgetBrowser(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "raid")
	g, s := play(b, dir, 5000)
	url := serve(b, dir)
	ctx := browser(b)
	report := func(b *testing.B, took float64, limit time.Duration) {
		b.ReportMetric(took*1e6, "ns/more")
		b.ReportMetric(float64(limit), "ns/budget")
	}
	b.Run("first-paint", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.do(chromedp.Reload())
		p.until(`document.documentElement.dataset.ready === "1" && performance.getEntriesByName("first-contentful-paint").length`)
		report(b, eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`), 300*time.Millisecond)
	})
	b.Run("first-rows", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.do(chromedp.Reload())
		p.until(`document.querySelector(".list .row .name")?.innerText.includes("v") && stet.bar.doc && (window.stet.seen ??= performance.now())`)
		report(b, eval[float64](p, "window.stet.seen"), 500*time.Millisecond)
	})
	b.Run("step", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.until(`document.querySelector(".list .row .name")?.innerText.includes("v")`)
		report(b, eval[float64](p, `(async () => {
			const took = [];
			for (let i = 0; i < 30; i++) {
				const begun = performance.now();
				await stet.goTo("record:" + stet.point.record, -1);
				took.push(performance.now() - begun);
				await new Promise((done) => setTimeout(done, 33)); // A key that is held down.
			}
			return took.sort((a, b) => a - b)[15];
		})()`), 30*time.Millisecond)
	})
	b.Run("follow", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.click("#follow")
		var worst time.Duration
		for range 10 {
			commit(b, g, s)
			if err := s.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			p.until(fmt.Sprintf("stet.point.tick === %d", g.world.Tick()))
			worst = max(worst, time.Since(begun))
		}
		report(b, float64(worst)/1e6, 300*time.Millisecond)
	})
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
