package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// The help opens by its key. Its examples must be valid for the shown store.
func TestHelp_ExamplesAreValid(t *testing.T) {
	b := browser(t)
	p := open(t, b, serve(t, store(t, 200)), 1280, 800, false)
	p.shows("#entities", "villager-")
	const links = `[...document.querySelectorAll("#guide dt button")]`
	p.key("?")
	for _, says := range []string{"rewound", "a mark: a name", "Kind.Name contains", "exists(Target.Of)", "has(Position) and not has(Kind)", "mark:the raid", "count("} {
		p.shows("#guide", says)
	}
	p.fits()
	p.shot("help")
	n := eval[int](p, links+`.length`)
	if n < 10 {
		t.Errorf("there are %d examples", n)
	}
	for i := range n {
		text := eval[string](p, fmt.Sprintf(`(() => { const b = %s[%d], text = b.innerText; b.click(); return text; })()`, links, i))
		p.until(fmt.Sprintf(`!document.querySelector("#guide").open && ([stet.get("where"), stet.get("columns"), ...stet.all("expr")].includes(%q) || location.search.includes("at="))`, text))
		time.Sleep(100 * time.Millisecond)
		p.until(`document.querySelectorAll("#entities .cell, #entities .empty, .plot canvas").length > 0`)
		if wrong := eval[string](p, `[...document.querySelectorAll(".error, #trouble:not([hidden])")].map((e) => e.innerText).join()`); wrong != "" {
			t.Errorf("%s: %s", text, wrong)
		}
		eval[bool](p, `(document.querySelector("#help").click(), true)`)
	}
	first := eval[string](p, `[...document.querySelectorAll("#guide section")].find((s) => s.innerText.startsWith("First tick")).querySelector("code").innerText`)
	p.key(kb.Escape, "5")
	p.until(fmt.Sprintf(`document.querySelector("#first")?.placeholder === %q`, first))
	p.click("#first")
	p.write(first)
	p.key(kb.Enter)
	p.until(`/first at tick|false at all/.test(document.querySelector("#screen").innerText)`)
}
