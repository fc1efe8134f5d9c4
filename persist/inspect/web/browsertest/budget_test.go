package browsertest

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/stet-ecs/stet/persist/inspect/web"
)

var dataDir = flag.String("data", "", "what make inspect-data made, for BenchmarkInspectorBrowser")

// BenchmarkBudgetBrowser measures the time from opening the address until the page has contents.
// It also measures the time from a commit until the page shows the new tick.
func BenchmarkBudgetBrowser(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "raid")
	g, s := play(b, dir, 5000)
	url := serve(b, dir)
	ctx := browser(b)
	b.Run("first-paint", func(b *testing.B) { firstPaint(b, ctx, url) })
	b.Run("first-rows", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.do(chromedp.Reload())
		p.until(`document.querySelector(".list .row .name")?.innerText.includes("v") && stet.bar.doc && (window.stet.seen ??= performance.now())`)
		report(b, []float64{eval[float64](p, "window.stet.seen")}, 500)
	})
	b.Run("step", func(b *testing.B) { step(b, ctx, url) })
	b.Run("follow", func(b *testing.B) {
		p := open(b, ctx, url, 1280, 800, false)
		p.click("#follow")
		var took []float64
		for range 10 {
			commit(b, g, s)
			if err := s.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
			begun := time.Now()
			p.until(fmt.Sprintf("stet.point.tick === %d", g.world.Tick()))
			took = append(took, float64(time.Since(begun))/1e6)
		}
		report(b, took, 300)
	})
	if err := s.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkInspectorBrowser measures the time until the page is drawn, for two stores. The first
// store has 50,000 ticks. The second store has 200,000 entities and 5,000 ticks.
// BenchmarkBudgetBrowser measures the time to show a new tick.
func BenchmarkInspectorBrowser(b *testing.B) {
	if *dataDir == "" {
		b.Skip("-data is not set; run make inspect-budgets DIR=…")
	}
	ctx := browserFor(b, 20*time.Minute)
	long, wide, cache := filepath.Join(*dataDir, "long"), filepath.Join(*dataDir, "wide"), b.TempDir()
	for _, name := range []string{"bar-first", "bar-kept"} {
		b.Run(name, func(b *testing.B) {
			// The measured time does not include starting the browser.
			p := open(b, ctx, serve(b, wide), 1280, 800, false)
			// The server runs in this process. Wait until it has counted the rows.
			p.until(`stet.bar.doc?.measure === "rows"`)
			begun := time.Now()
			p.do(chromedp.Navigate(serveWith(b, long, web.Options{Cache: cache})))
			p.until(`window.stet?.bar?.doc?.measure === "rows"`)
			report(b, []float64{float64(time.Since(begun)) / 1e6}, 500)
			// Close the page before its server.
			p.do(chromedp.Navigate("about:blank"))
		})
	}
	url := serve(b, long)
	b.Run("first-paint", func(b *testing.B) { firstPaint(b, ctx, url) })
	b.Run("step", func(b *testing.B) { step(b, ctx, url) })
	moving := func(name, url, screen string, ticks int, limit float64) {
		b.Run(name, func(b *testing.B) {
			p := open(b, ctx, url, 1280, 800, false)
			eval[bool](p, "("+screen+", true)")
			report(b, timed(p, 15, fmt.Sprintf(`await stet.goTo("record:" + (1 + (i * i * 7919 + %d) %% %d))`, ticks/2, ticks)), limit)
		})
	}
	moving("scrub-anywhere", url, `stet.show("entities")`, 50_000, 400)
	moving("scrub-anywhere-wide", serve(b, wide), `stet.show("entities")`, 5000, 400)
	moving("entity-anywhere", serve(b, long), `stet.show("entity", {entity: "77v1"})`, 50_000, 50)
	moving("entity-anywhere-wide", serve(b, wide), `stet.show("entity", {entity: "77v1"})`, 5000, 50)
	b.Run("filtered", func(b *testing.B) {
		p := open(b, ctx, serve(b, wide), 1280, 800, false)
		eval[bool](p, `(stet.show("entities", {where: "Health.Points < 50"}), true)`)
		report(b, timed(p, 15, `await stet.goTo("record:" + (2500 + i))`), 200)
	})
	b.Run("series", func(b *testing.B) {
		p := open(b, ctx, serve(b, wide), 1280, 800, false)
		report(b, timed(p, 5, `
			stet.show("entities", {expr: ""});
			stet.show("plots", {expr: "sum(Health.Points) + " + i});
			while (!document.querySelector(".plot canvas")) await new Promise(requestAnimationFrame)`), 1000)
	})
}

// firstPaint measures how long a page stays empty.
func firstPaint(b *testing.B, ctx context.Context, url string) {
	p := open(b, ctx, url, 1280, 800, false)
	var took []float64
	for range 5 {
		p.do(chromedp.Reload())
		p.until(`document.documentElement.dataset.ready === "1" && performance.getEntriesByName("first-contentful-paint").length`)
		took = append(took, eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	}
	report(b, took, 300)
}

// step measures steps back in time by a key that is held down.
func step(b *testing.B, ctx context.Context, url string) {
	p := open(b, ctx, url, 1280, 800, false)
	p.until(`document.querySelector(".list .row .name")?.innerText.includes("v")`)
	report(b, timed(p, 30, `await stet.goTo("record:" + stet.point.record, -1)`), 30)
}

// timed returns how long each of n runs of a script takes, in milliseconds. In the script, i is
// the number of the run.
func timed(p *page, n int, script string) []float64 {
	p.Helper()
	return eval[[]float64](p, fmt.Sprintf(`(async () => {
		const took = [];
		for (let i = 0; i < %d; i++) {
			const begun = performance.now();
			%s;
			took.push(performance.now() - begun);
			await new Promise((done) => setTimeout(done, 33));
		}
		return took;
	})()`, n, script))
}

// report reports the median, minimum and maximum of durations in milliseconds.
func report(b *testing.B, took []float64, limit float64) {
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)/2], "ms/more")
	b.ReportMetric(limit, "ms/budget")
	b.ReportMetric(took[0], "best-ms")
	b.ReportMetric(took[len(took)-1], "worst-ms")
}
