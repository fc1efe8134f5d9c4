// What every page can do: change its colors, copy code, show the present heading, search.
"use strict";

const root = document.documentElement;

/**
 * Returns the element of the page that matches a selector.
 * @template {HTMLElement} T
 * @param {string} selector
 * @returns {T}
 */
const find = (selector) => /** @type {T} */ (document.querySelector(selector));

/**
 * Creates an element.
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} children
 */
export function make(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

// The colors.
const theme = find(".theme");
const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
theme.hidden = false;
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("theme", root.dataset.theme);
  } catch {
    // The choice holds for this page.
  }
  showTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
showTheme();

// Blocks that scroll can be reached by the keyboard.
const boxes = document.querySelectorAll("article pre, article .table");
const reach = () => {
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
    else box.removeAttribute("tabindex");
  }
};
addEventListener("resize", reach);
reach();

// Code can be copied.
for (const block of document.querySelectorAll("article .code")) {
  const button = make("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("code")?.textContent ?? "");
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}

// The list of headings shows where the reader is.
const entries = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("nav.contents a")]);
const headings = entries.map((e) => /** @type {HTMLElement} */ (document.getElementById(decodeURIComponent(e.hash.slice(1)))));
let shown = -1;
const locate = () => {
  const limit = innerHeight / 4;
  let now = headings.findLastIndex((h) => h.getBoundingClientRect().top < limit);
  if (innerHeight + scrollY >= document.body.scrollHeight - 2) now = headings.length - 1;
  if (now === shown) return;
  entries[shown]?.removeAttribute("aria-current");
  shown = now;
  entries[now]?.setAttribute("aria-current", "location");
  const list = find("nav.contents"), entry = entries[now];
  if (entry && list.scrollHeight > list.clientHeight) list.scrollTop = entry.offsetTop - list.clientHeight / 2;
};
if (entries.length > 0) {
  addEventListener("scroll", locate, { passive: true });
  locate();
  find("nav.contents").addEventListener("click", () => find("nav.contents").hidePopover());
}
const here = /** @type {HTMLElement | null} */ (document.querySelector("nav.pages li a[aria-current]"));
const pages = find("nav.pages");
const showPlace = () => { if (here && here.offsetTop > pages.clientHeight - 100) pages.scrollTop = here.offsetTop - pages.clientHeight / 2; };
pages.addEventListener("toggle", showPlace);
showPlace();

// The search.

/** @typedef {{ page: number, heading?: string, id?: string, text?: string, low?: string[] }} Part */
/** @typedef {{ pages: { url: string, title: string, section: string }[], parts: Part[] }} Index */

/** @type {Promise<Index> | undefined} */
let index;
const form = find(".search"), status = find(".results p"), list = find("#site-results"), results = find(".results");
const field = /** @type {HTMLInputElement} */ (find("#site-search"));
/** @type {string[]} */
let targets = [];
let chosen = -1;

const load = () => index ??= fetch(root.dataset.root + "search.json").then((r) => {
  if (!r.ok) throw new Error(r.statusText);
  return r.json();
}).then((/** @type {Index} */ x) => {
  for (const p of x.parts) p.low = [x.pages[p.page].title, p.heading ?? "", p.text ?? ""].map((s) => s.toLowerCase());
  return x;
});

// The weight of a match in the title, in the heading and in the text.
const weights = [8, 12, 2];
/** @type {Record<string, number>} */
const sections = { Guide: 1.5, Reference: 1, Examples: 0.9, Project: 0.5 };

/**
 * Returns how well a part matches all words, and 0 if a word is missing.
 * @param {Part} part
 * @param {string[]} words
 */
function score(part, words) {
  let sum = 0;
  for (const word of words) {
    let best = 0;
    part.low?.forEach((text, k) => {
      const at = text.indexOf(word);
      if (at < 0) return;
      const starts = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
      const ends = at + word.length === text.length || !/[\p{L}\p{N}]/u.test(text[at + word.length] ?? " ");
      const often = k === 2 ? 1 + Math.log2(Math.min(text.split(word).length - 1, 16)) : 1;
      const here = k === 0 && part.heading ? 0.3 : 1; // The title of a page belongs to its top.
      best += weights[k] * often * here * (starts ? 2 : 1) * (starts && ends ? 1.5 : 1);
    });
    if (best === 0) return 0;
    sum += best;
  }
  // A page matches best at its top.
  return part.heading ? sum : sum + 1;
}

/**
 * Returns the text around the first word, with marked words.
 * @param {string} text
 * @param {string[]} words
 */
function excerpt(text, words) {
  const low = text.toLowerCase();
  const first = Math.min(...words.map((w) => low.indexOf(w)).filter((at) => at >= 0), low.length);
  const begin = first < 60 || first === low.length ? 0 : text.indexOf(" ", first - 50) + 1;
  const end = text.length > begin + 150 ? text.lastIndexOf(" ", begin + 150) : text.length;
  return marked((begin > 0 ? "… " : "") + text.slice(begin, end > begin ? end : begin + 150) + (end < text.length ? " …" : ""), words);
}

/**
 * Returns a text with marked words.
 * @param {string} text
 * @param {string[]} words
 */
function marked(text, words) {
  const pattern = new RegExp(words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "giu");
  const nodes = [];
  let done = 0;
  for (const m of text.matchAll(pattern)) {
    nodes.push(text.slice(done, m.index), make("mark", {}, m[0]));
    done = m.index + m[0].length;
  }
  return [...nodes, text.slice(done)];
}

/** @param {boolean} open */
function show(open) {
  results.hidden = !open;
  field.setAttribute("aria-expanded", String(open));
  if (!open) choose(-1);
}

/** @param {number} k */
function choose(k) {
  list.children[chosen]?.setAttribute("aria-selected", "false");
  chosen = k;
  const option = list.children[k];
  if (option) {
    option.setAttribute("aria-selected", "true");
    option.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", option.id);
  } else field.removeAttribute("aria-activedescendant");
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    show(false);
    return;
  }
  /** @type {Index} */
  let x;
  try {
    x = await load();
  } catch (e) {
    index = undefined;
    list.replaceChildren();
    status.textContent = "The search cannot load its index: " + /** @type {Error} */ (e).message;
    show(true);
    return;
  }
  if (words.join(" ") !== field.value.toLowerCase().split(/\s+/).filter(Boolean).join(" ")) return; // The reader has typed on.
  const found = x.parts.map((part) => ({ part, score: score(part, words) * sections[x.pages[part.page].section] }))
    .filter((f) => f.score > 0).sort((a, b) => b.score - a.score);
  targets = [];
  list.replaceChildren(...found.slice(0, 20).map(({ part }, k) => {
    const page = x.pages[part.page];
    targets.push(root.dataset.root + page.url + (part.id ? "#" + part.id : ""));
    const title = part.heading ? [...marked(page.title, words), " › ", ...marked(part.heading, words)] : marked(page.title, words);
    const option = make("li", { role: "option", id: "site-result-" + k, "aria-selected": "false" },
      make("small", {}, page.section), make("b", {}, ...title), make("span", {}, ...excerpt(part.text ?? "", words)));
    option.addEventListener("click", (event) => go(k, event.ctrlKey || event.metaKey));
    option.addEventListener("pointermove", () => { if (chosen !== k) choose(k); });
    return option;
  }));
  chosen = -1;
  status.textContent = found.length === 0 ? "No page has all these words." : found.length > 20 ? `The best 20 of ${found.length} results` : "";
  show(true);
  list.scrollTop = 0;
  choose(found.length > 0 ? 0 : -1);
}

/**
 * Opens a result.
 * @param {number} k
 * @param {boolean} tab
 */
function go(k, tab) {
  if (tab) open(targets[k]);
  else {
    location.assign(targets[k]);
    show(false);
    field.blur();
  }
}

form.hidden = false;
field.addEventListener("focus", () => { load().catch(() => { index = undefined; }); });
field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  const n = targets.length;
  if (event.key === "Escape") {
    show(false);
    field.value = "";
    field.blur();
  } else if (results.hidden || n === 0) {
    return;
  } else if (event.key === "ArrowDown") choose((chosen + 1) % n);
  else if (event.key === "ArrowUp") choose((chosen + n - 1) % n);
  else if (event.key === "Enter") go(Math.max(chosen, 0), event.ctrlKey || event.metaKey);
  else return;
  event.preventDefault();
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("focusout", (event) => {
  if (!form.contains(/** @type {Node | null} */ (event.relatedTarget))) setTimeout(() => { if (!form.contains(document.activeElement)) show(false); }, 200);
});
addEventListener("keydown", (event) => {
  const at = /** @type {HTMLElement} */ (event.target);
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || at.closest("input, textarea, .view")) return;
  event.preventDefault();
  field.focus();
  field.select();
});

root.dataset.ready = "1";
