package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The test checks all screens at two widths, in light and dark mode. Every text must be readable,
// every target large enough, and every ARIA attribute valid for its role.
func TestAccessibility_EveryScreen(t *testing.T) {
	b := browser(t)
	stored, saved := serve(t, store(t, 400)), serve(t, save(t, settle(60), 30))
	for _, dark := range []bool{false, true} {
		for _, width := range []int64{1280, 400} {
			t.Run(fmt.Sprintf("%d dark=%v", width, dark), func(t *testing.T) {
				p := open(t, b, stored, width, 800, dark)
				for _, s := range screens {
					eval[bool](p, fmt.Sprintf(`(stet.show(%q, {entity: "3v1", columns: "", where: ""}), true)`, strings.ToLower(s.name)))
					p.shows(s.where, s.text)
					p.accessible(s.name)
				}
				eval[bool](p, `(stet.show("entity", {entity: "3v1"}), true)`)
				p.shows("#screen .life", "set")
				p.accessible("a life")
				eval[bool](p, `(stet.show("tick"), true)`)
				p.shows("#screen", "written")
				eval[bool](p, `(document.querySelector("#screen details summary").click(), true)`)
				p.shows("#screen details table", "v")
				p.accessible("rows of a tick")
				eval[bool](p, `(stet.set({color: "Kind.Clan"}), stet.show("map"), true)`)
				p.shows(".map .key", "orc")
				p.accessible("the legend of the map")
				p.key("1", "p", kb.ArrowLeft)
				p.until(`document.querySelectorAll("#entities .changed").length > 0`)
				p.accessible("A beside B")
				eval[bool](p, `(stet.show("entities", {columns: "Kind.Name as name, Health.Now", sort: "Health.Now"}), true)`)
				p.shows(".list .head", "↑")
				p.accessible("columns")
				p.key("/")
				p.write("Hea")
				p.shows(".offers", "Health.Now")
				p.key(kb.ArrowDown)
				p.until(`document.querySelector('.offers [aria-selected="true"]')`)
				p.accessible("a list of names")
				p.key(kb.Escape)
				p.shows(".error", "Hea")
				p.accessible("an error")
				p.key(kb.Escape, "?")
				p.shows("#guide", "previous and next change")
				p.accessible("the help")
				p.excuse("400")

				p = open(t, b, saved, width, 800, dark)
				for _, s := range screens {
					eval[bool](p, fmt.Sprintf(`(stet.show(%q, {entity: "3v1"}), true)`, strings.ToLower(s.name)))
					p.until(`document.querySelector("#screen").innerText.length > 20`)
					p.accessible(s.name + " of a save")
				}
			})
		}
	}
}

// accessible reports faults of accessibility on the shown page: texts, targets and roles.
func (p *page) accessible(what string) {
	p.Helper()
	for _, check := range []string{faintTexts, smallTargets, wrongRoles} {
		for _, found := range eval[[]string](p, check) {
			p.Errorf("%s: %s", what, found)
		}
	}
}

// named is JavaScript that each check begins with. It defines functions that find elements and
// describe them in a report.
const named = `
	const name = (e) => e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + (e.className ? "." + String(e.className).replaceAll(" ", ".") : "") + " " + JSON.stringify((e.innerText ?? "").slice(0, 30));
	const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 1 && e.getBoundingClientRect().right > 0;
	const all = (selector) => [...(document.querySelector("dialog[open]") ?? document).querySelectorAll(selector)].filter(seen);
	const found = new Map(), say = (what, e) => found.set(what.replace(/^[\d.]+/, "") + e.className, what + ": " + name(e)), told = () => [...found.values()];
`

// faintTexts lists elements whose text has a contrast below 4.5 : 1 with its background. It uses
// the colors and the opacity that the browser computed. Disabled elements are exempt, as in WCAG.
const faintTexts = `(() => {` + named + `
	const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
	const rgba = (text) => { // As any notation of CSS paints it.
		canvas.clearRect(0, 0, 1, 1), canvas.fillStyle = text, canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
	const lum = (c) => c.slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ratio = (a, b) => (Math.max(lum(a), lum(b)) + 0.05) / (Math.min(lum(a), lum(b)) + 0.05);
	const behind = (e) => {
		const own = e && rgba(getComputedStyle(e).backgroundColor);
		return !e ? rgba(getComputedStyle(document.body).backgroundColor) : own[3] === 1 ? own : over(own, behind(e.parentElement));
	};
	const opacity = (e) => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
	const look = (e, style, faint) => {
		const paper = behind(e), [r, g, b, a] = rgba(style.color), least = ratio(over([r, g, b, a * faint * opacity(e)], paper), paper);
		if (least < 4.5) say(least.toFixed(2) + " : 1 is the contrast of", e);
	};
	for (const e of all("body *")) {
		if (e.closest(":disabled, canvas")) continue;
		if ([...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim())) look(e, getComputedStyle(e), 1);
		if (e.placeholder && !e.value) look(e, getComputedStyle(e, "::placeholder"), getComputedStyle(e, "::placeholder").opacity);
	}
	return told();
})()`

// smallTargets lists clickable elements that are less than 24 pixels high or wide.
const smallTargets = `(() => {` + named + `
	for (const e of all("a, button, input, select, summary, [role=option], [role=row][id], [tabindex='0']")) {
		const { width, height } = e.getBoundingClientRect();
		if (height < 23.9 || width < 23.9) say(Math.round(width) + " × " + Math.round(height) + " pixels has", e);
	}
	return told();
})()`

// wrongRoles lists elements with a role or attributes that ARIA does not allow for them.
const wrongRoles = `(() => {` + named + `
	const active = ["combobox", "grid", "listbox", "menu", "radiogroup", "tree", "treegrid", "textbox", "group", "application", "toolbar", "tablist"];
	const selected = ["gridcell", "option", "row", "tab", "columnheader", "rowheader", "treeitem"];
	const inside = { row: ["grid", "rowgroup", "table", "treegrid"], rowgroup: ["grid", "table", "treegrid"], gridcell: ["row"], columnheader: ["row"], cell: ["row"], option: ["listbox", "group"] };
	const only = { grid: ["row", "rowgroup"], rowgroup: ["row"], row: ["gridcell", "cell", "columnheader", "rowheader"], listbox: ["option", "group"] };
	for (const e of all("*")) {
		const role = e.getAttribute("role"), has = (name) => e.hasAttribute("aria-" + name);
		if (has("activedescendant") && !active.includes(role)) say("aria-activedescendant is nothing for the role " + role, e);
		if (has("activedescendant") && !document.getElementById(e.getAttribute("aria-activedescendant"))) say("aria-activedescendant leads nowhere", e);
		if (has("selected") && !selected.includes(role)) say("aria-selected is nothing for the role " + role, e);
		if (has("sort") && !["columnheader", "rowheader"].includes(role)) say("aria-sort is nothing for the role " + role, e);
		if (has("selected") && role === "row" && !e.closest("[role=grid], [role=treegrid]")) say("aria-selected is nothing for a row outside of a grid", e);
		if (inside[role] && !inside[role].includes(e.parentElement.getAttribute("role"))) say("the role " + role + " has no fitting parent", e);
		if (only[role]) for (const child of e.children) if (!only[role].includes(child.getAttribute("role"))) say("a " + role + " holds", child);
		if (role && role !== "combobox" && /^(A|BUTTON|INPUT|SELECT|SUMMARY)$/.test(e.tagName)) say("the role " + role + " is not for this element", e);
		if (/^(BUTTON|A)$/.test(e.tagName) && !(e.getAttribute("aria-label") ?? e.innerText).trim()) say("no name has", e);
		if (/^(INPUT|SELECT)$/.test(e.tagName) && !(e.getAttribute("aria-label") || e.labels.length)) say("no label has", e);
		if (e.closest("button, a") !== e && /^(A|BUTTON|INPUT|SELECT)$/.test(e.tagName) && e.parentElement.closest("button, a, summary")) say("something to click holds", e);
		for (const other of ["controls", "describedby", "labelledby"]) if (has(other) && !document.getElementById(e.getAttribute("aria-" + other))) say("aria-" + other + " leads nowhere", e);
	}
	return told();
})()`
