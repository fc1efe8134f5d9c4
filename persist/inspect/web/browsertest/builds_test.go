package browsertest

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/persist"
)

// On the page, the user compares two states and searches for the first tick of a condition. If two
// builds wrote the states, both results must name the builds.
func TestPage_NamesBuildsOfStates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "D")
	was := build.Here
	defer func() { build.Here = was }()
	for _, text := range []string{"go1.26.0 linux/amd64 unfused math:a043", "go1.26.0 darwin/arm64 fused math:e83c"} {
		build.Here = func() string { return text }
		g := newGame()
		s, err := persist.Open(context.Background(), dir, g.world, persist.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			g.spawn("orc")
			commit(t, g, s)
		}
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	p := open(t, browser(t), serve(t, dir)+"&at=5", 1280, 800, false)
	p.key("p", "4")
	p.key(kb.ArrowRight)
	p.shows("#screen .big", "A 5 → B 6")
	p.until(`document.querySelectorAll("#screen details").length > 0`)
	if p.text("#builds") != "" {
		t.Errorf("one build wrote both states, but the page shows %s", p.text("#builds"))
	}
	eval[bool](p, `(stet.goTo("3"), true)`)
	p.shows("#builds", "A by go1.26.0 darwin/arm64 fused math:e83c, B by go1.26.0 linux/amd64 unfused math:a043; results of floats may differ, see docs/MACHINES.md")
	p.shot("builds")
	p.key("p")
	p.click("#tabs a:nth-child(5)")
	eval[bool](p, `(stet.goTo("6"), true)`)
	p.click("#first")
	p.write("alive > 3")
	p.key(kb.Enter)
	p.shows("#screen", "first at tick 4 different builds: the state before by go1.26.0 linux/amd64")
}
