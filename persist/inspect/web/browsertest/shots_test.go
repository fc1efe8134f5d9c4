package browsertest

import (
	"os"
	"testing"
	"time"
)

// TestScreenshots_WrittenForDocs takes the pictures for docs/INSPECTOR.md if STET_SHOTS names a
// directory.
func TestScreenshots_WrittenForDocs(t *testing.T) {
	if os.Getenv("STET_SHOTS") == "" {
		t.Skip("STET_SHOTS names no directory for pictures")
	}
	b := browser(t)
	p := open(t, b, serve(t, store(t, 1600)), 1280, 800, false)
	p.shows("#entities", "orc-")
	eval[bool](p, `(stet.set({color: "Kind.Clan"}), stet.goTo("60"), stet.show("map"), true)`)
	p.until("stet.point.tick === 60")
	p.shows(".map .key", "orc")
	p.shot("inspector-map")
	eval[bool](p, `(stet.goTo("160"), stet.show("entities", {where: 'Kind.Clan == "villager" && Health.Now < 60', columns: "Kind.Name, Health.Now as hp, Position.X, Position.Y, Gold, has(Fled) as fled", sort: "Health.Now"}), true)`)
	p.shows(".list .head", "fled")
	time.Sleep(300 * time.Millisecond)
	p.shot("inspector-entities")
	p.click(".list .row .name")
	p.until(`document.querySelectorAll(".spark canvas").length > 0 && document.querySelector("section[aria-label='Referred to by'] .mono")`)
	p.shot("inspector-entity-light")
	d := open(t, b, serve(t, store(t, 1600)), 1280, 800, true)
	eval[bool](d, `(stet.goTo("160"), stet.show("entities", {where: 'Kind.Clan == "villager" && Health.Now < 60 && index > 3'}), true)`)
	d.shows(".list .row .cell:nth-child(2)", "villager-")
	d.click(".list .row .name")
	d.until(`document.querySelectorAll(".spark canvas").length > 0 && document.querySelector("section[aria-label='Referred to by'] .mono")`)
	d.shot("inspector-entity")
	eval[bool](d, `(stet.show("plots", {expr: ["alive", "sum(Gold)", "count(Kind.Clan == 'orc')", "avg(Health.Now)"]}), true)`)
	d.until(`document.querySelectorAll(".plot canvas").length === 4`)
	d.shot("inspector-plots")
}
