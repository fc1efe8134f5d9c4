package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/stet-ecs/stet/persist"
)

// settle returns a game with some villagers, and one orc per three villagers.
func settle(villagers int) *game {
	g := newGame()
	for range villagers {
		g.spawn("villager")
	}
	for range villagers / 3 {
		g.spawn("orc")
	}
	return g
}

// save runs g up to the given number of ticks, saves its world and returns the file.
func save(t testing.TB, g *game, ticks int) string {
	t.Helper()
	for range ticks {
		g.step()
		g.world.Commit()
	}
	file := filepath.Join(t.TempDir(), "evening.save")
	if err := persist.Save(context.Background(), file, g.world); err != nil {
		t.Fatal(err)
	}
	return file
}

// showsSchema checks every element of the page that depends on the schema of the shown state.
func (p *page) showsSchema() {
	p.Helper()
	p.until(`stet.names().includes("Health.Now")`)
	p.key("1")
	p.shows("#entities", "Position{")
	p.until(`document.querySelector("#filter").placeholder.includes("Position.X")`)
	p.key("/")
	p.write("Hea")
	p.shows(".offers", "Health.Now")
	p.key(kb.ArrowDown, kb.ArrowDown, kb.Enter)
	p.until(`document.querySelector("#filter").value === "Health.Now"`)
	p.write(" >= 0")
	p.key(kb.Enter)
	p.until(`document.querySelector("#screen .status").innerText.includes(" of ")`)
	p.click("#columns")
	p.write("Kind.Name as name, Health.Now as hp")
	p.shows(".list .head", "hp")
	p.click(".list .head > :nth-child(3) button")
	p.shows(".list .head", "hp ↑")
	p.until(`(() => { const n = [...document.querySelectorAll(".row .cell:nth-child(3)")].slice(0, 9).map((c) => +c.innerText); return n.length > 5 && n.every((v, i) => !i || n[i - 1] <= v); })()`)

	p.key(kb.Escape, "2")
	p.until(`document.querySelector("#screen .status").innerText.startsWith(stet.schema.alive + " points")`)
	p.until(`document.querySelector("#map-x").placeholder === "Position.X" && document.querySelector("#map-y").placeholder === "Position.Y"`)
	p.until(`document.querySelector("#map-color").placeholder === "Kind.Name"`)

	eval[bool](p, `(stet.openEntity("3v1"), true)`)
	p.shows("#screen .title .big", "3v1")
	p.shows(`section[aria-label="Health"] .fields`, "Most")
	p.shows(`section[aria-label="Life"]`, "Life")
	p.shows(`section[aria-label="Referred to by"]`, "value")
	p.click("#screen details summary")
	p.shows("#screen details", "Fallen")

	p.key("5")
	p.until(`document.querySelectorAll(".plot canvas").length === 1`)
	p.until(`document.querySelector(".plot .caption").innerText.includes(stet.schema.alive + " at tick")`)
	p.click("#expr")
	p.write("sum(Gol")
	p.shows(".offers", "Gold")
	p.key(kb.Tab)
	p.write(")")
	p.key(kb.Enter)
	p.until(`[...document.querySelectorAll(".plot .caption")].some((c) => /sum\(Gold\)\s+\d+ at tick/.test(c.innerText))`)
	p.click("#first")
	p.write("any(Health.Now > 0)")
	p.key(kb.Enter)
	p.shows("#screen", "first at tick")

	p.key(kb.Escape, "6")
	p.until(`document.querySelectorAll("#component option").length === 7`)
	p.shows("#screen", "Dense and data")
	p.shows("#screen td.value", "{X:")
	p.until(`document.querySelectorAll(".sparse > div").length === stet.schema.alive`)

	p.key("7")
	p.shows("#screen", " opens.")
	p.key("?")
	p.shows("#guide", "count(Position.X < 10)")
	p.key(kb.Escape)
	// The page has sent requests with incomplete conditions, which the server rejects.
	p.excuse("400")
}

func TestSaveFile_EveryScreen(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	url := serve(t, save(t, settle(60), 30))
	for _, width := range []int64{1280, 400} {
		p := open(t, b, url, width, 800, width == 400)
		p.showsSchema()
		p.click("#verify")
		p.shows("#screen", "No problems were found.")
		p.key("4")
		p.shows("#screen", "This is the oldest state")
		for i, s := range screens {
			p.key(string(rune('1' + i)))
			p.shows(`#tabs a[aria-current="page"]`, s.name)
			p.fits()
			p.shot(fmt.Sprintf("save-%d-%s", width, s.name))
		}
	}
}

// A store without a commit has only the state of record 0.
func TestStoreWithoutCommit_EveryScreen(t *testing.T) {
	b := browser(t)
	dir := filepath.Join(t.TempDir(), "raid")
	g := settle(60)
	s, err := persist.Open(context.Background(), dir, g.world, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		commit(t, g, s)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	p := open(t, b, serve(t, dir)+"&at=record:0", 1280, 800, false)
	p.until("stet.point.record === 0")
	p.until(`stet.names().includes("Health.Now")`)
	p.key("2")
	p.until(`document.querySelector("#map-x").placeholder === "Position.X"`)
	p.key("6")
	p.until(`document.querySelectorAll("#component option").length === 7`)
	p.shows("#screen", "Dense and data")
}

// A save with a damaged page of values can be opened. The page must show the readable data and
// name the damage.
func TestSaveFile_DamagedPage(t *testing.T) {
	b := browser(t)
	file := save(t, settle(10_000), 0)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(content, []byte("villager-9000"))
	if at < 0 {
		t.Fatal("the save does not contain the name of an entity as text")
	}
	content[at] ^= 0xff
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, b, serve(t, file), 1280, 800, false)
	p.key("7")
	p.click("#verify")
	p.shows("#screen", "problem")
	p.shows("#screen", "ecsdump recover")
	p.shot("save-damaged")
	p.excuse("422")
}
