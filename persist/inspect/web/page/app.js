// The page: where it is in time, which screen it shows, and the keys. The URL is its state.
//
//   keys, bar, buttons ──▶ travel ──resolve──▶ arrive: the point ──▶ the screen updates itself
//   tabs, back         ──▶ render: the screen
//   events             ──▶ grown: follow the newest, or look whether there is a next
//
// A screen has mount, update(why), focus, and if it needs them unmount, and press for keys. why is time,
// pin, screen, schema or news. One that is timeless needs no point.
import { h, fill, latest, advice, plain } from "./dom.js";
import { ask, early, foresee, forget, listen, Trouble } from "./api.js";
import { Bar, clock } from "./bar.js";
import { guide } from "./guide.js";
import { refer } from "./examples.js";
import entities from "./screens/entities.js";
import map from "./screens/map.js";
import entity from "./screens/entity.js";
import tick from "./screens/tick.js";
import plots from "./screens/plots.js";
import arrays from "./screens/arrays.js";
import health from "./screens/health.js";

const screens = [entities, map, entity, tick, plots, arrays, health];
/** @type {(id: string) => any} */
const $ = (id) => document.getElementById(id);

// app is what screens know of the page.
export const app = {
  params: new URLSearchParams(location.search), // The state: at, view, a, follow, and those of screens.
  point: null, // The state shown: tick, record, time, head, rewound, parent, next, way.
  info: null,
  schema: null, // Of the point that is shown, or of one before where the types are the same by all that is known.
  bar: null,
  news: null, // What the store has come to.
  changes: [], // Ticks of the way at which the chosen entity changed, as far as they are known.

  get: (name) => app.params.get(name) ?? "",
  all: (name) => app.params.getAll(name),

  // set changes parts of the state: {where: "…", expr: ["…", "…"], entity: ""}. What is pushed, the
  // browser's back button takes back.
  set(changes, push) {
    const before = String(app.params);
    for (const [name, value] of Object.entries(changes)) {
      app.params.delete(name);
      for (const v of [value].flat()) if (v !== "" && v !== undefined && v !== null) app.params.append(name, v);
    }
    const url = app.params.size ? "?" + app.params : location.pathname, another = push && before !== String(app.params);
    history[another ? "pushState" : "replaceState"](null, "", url);
    if (another) typing = null;
  },

  // typed takes what is in a field by now. All that is typed until the field is left is taken back at once.
  typed(name, field) {
    const text = field.value.trim(), begins = typing !== field && text !== app.get(name);
    app.set({ [name]: text }, begins);
    if (begins) typing = field;
  },

  // show goes to a screen, perhaps with other changes to the state.
  show(view, changes = {}) {
    app.set({ ...changes, view }, true);
    render();
  },

  // openEntity shows an entity.
  openEntity(e) {
    app.changes = app.get("entity") === e ? app.changes : [];
    app.show("entity", { entity: e });
  },

  // goTo goes to a point in time, and some ticks on from there; jump goes to a record that somebody
  // chose by a link, from which the browser's back button comes back.
  goTo: (at, step) => travel(at, step ?? 0),
  jump(record) {
    app.stay();
    return travel("record:" + record, 0, { push: true });
  },

  change: (to) => change(to),

  // stay ends following and playing: somebody goes elsewhere.
  stay() {
    if (app.get("follow")) app.set({ follow: "", at: app.point ? "record:" + app.point.record : "" });
    playing(false);
    buttons();
  },

  names() {
    const names = ["entity", "index", "generation", "has(", "exists(", "tick", "alive"];
    for (const c of app.schema?.components ?? []) {
      names.push(refer(c.name));
      for (const f of c.fields) if (f.path) names.push(refer(c.name, f.path));
    }
    return names;
  },

  // beside returns the point that what is shown is compared with: A, unless that is shown.
  beside: () => app.pin && app.pin.record !== app.point?.record ? app.pin : null,

  trouble(err) {
    if (err?.name === "AbortError") return;
    $("trouble").hidden = !err;
    fill($("trouble"), err && [err.message, advice(err) && ["\n", advice(err)]]);
  },
};
/** @type {any} */ (window).stet = app; // For whoever looks at it from outside, as tests do.

let current = null; // The screen that is mounted.
let typing = null; // The field whose text the newest entry of the browser's history has.
let last = 0; // The step that was the last move; 0: it was another one.

// foreseeStep asks for what comes next: whoever goes the same way again finds it there.
function foreseeStep(point, step) {
  const to = step > 0 ? point.next : point.parent;
  if (!to) return;
  early("resolve", { at: "record:" + point.record, step });
  foresee(to.record, point.record);
}

// travel goes to a point in time, and step ticks on from there. A single step from the point that is shown
// is foreseen: the document that its point has says where it leads, so the screen's question is asked
// together with the one for the point. After a second step the same way, the third is asked for as well.
const travel = latest(async (at, step, /** @type {{ found?: () => void, push?: boolean }} */ { found, push } = {}) => {
  try {
    const from = app.point, single = Math.abs(step) === 1 && at === "record:" + from?.record, same = single && step === last;
    const to = single && (step > 0 ? from.next : from.parent);
    if (to) foresee(to.record, from.record); // Both are answered at the same time.
    const point = await ask("resolve", { at, step: step || undefined });
    found?.();
    await arrive(point, push);
    last = single ? step : 0;
    accept();
    if (same) foreseeStep(point, step);
  } catch (err) {
    if (!app.point) $("screen").replaceChildren(h("p", { class: "empty" }, "No state can be shown here. The Health screen says more."));
    app.trouble(err);
    $("point").setAttribute("aria-invalid", "true");
    playing(false);
  }
});

// accept takes back that the point field is wrong.
function accept() {
  $("point").setAttribute("aria-invalid", "false");
  app.trouble(null);
}

// arrive makes a point the one that is shown.
async function arrive(point, push) {
  const from = app.point, moved = point.record !== from?.record;
  point.way = wayOf(point, from);
  if (point.way !== from?.way) app.changes = [];
  app.point = point;
  app.set({ at: app.get("follow") ? "" : "record:" + point.record }, push && moved);
  where();
  app.bar.draw();
  if (!moved) return;
  if (!app.schema) await know();
  await current?.update("time");
  know();
}

// know asks which types there are at the point that is shown: a store may have come to others. Screens are
// told if it has. It is asked where somebody rests, and every other second while they move on and on: at
// a far point the answer takes as long as the move.
const know = latest(async () => {
  const first = !app.schema;
  for (let waits = first ? 0 : 10, at; waits > 0 && at !== app.point.record; waits--) {
    at = app.point.record;
    await new Promise((done) => setTimeout(done, 200));
  }
  const { record } = app.point;
  if (record === knownAt) return;
  try {
    const schema = await ask("schema", { record }), known = JSON.stringify(app.schema?.components);
    app.schema = schema;
    knownAt = record;
    if (!first && known !== JSON.stringify(schema.components)) await current?.update("schema");
  } catch (err) {
    if (first) throw err;
  }
});
let knownAt = null; // The record whose types are known. A save and the first state of a store have record 0.

// wayOf names the way that a point is on: 0 is the one to the newest state. Others are known as the
// same only from step to step.
function wayOf(point, from) {
  if (!point.rewound) return 0;
  const beside = from?.record === point.record || from?.parent?.record === point.record || point.parent?.record === from?.record;
  return beside && from?.rewound ? from.way : point.record;
}

// where says which point is shown. What lies far right stays where there is little room.
function where() {
  const p = app.point;
  if (!p) return;
  const name = [h("b", {}, "tick " + p.tick.toLocaleString("en")), ` · record ${p.record}`], kind = [];
  if (p.time) name.push(" · " + clock(p.time));
  if (p.head) kind.push(" · newest");
  if (p.rewound) kind.push(" · ", h("span", { class: "changed" }, "rewound"));
  if (pinned()) kind.push(" · A is ", h("b", {}, "tick " + (app.pin?.tick.toLocaleString("en") ?? "?")));
  fill($("where"), h("span", {}, name), h("span", {}, kind));
  if (document.activeElement !== $("point")) $("point").value = p.rewound ? "record:" + p.record : String(p.tick);
  $("bar").setAttribute("aria-valuenow", p.tick);
  $("bar").setAttribute("aria-valuetext", [`tick ${p.tick}`, `record ${p.record}`, ...app.bar.told(p.tick)].join(", "));
  document.title = `${p.tick} · ${app.info?.name ?? "Stet"}`;
  buttons();
}

function buttons() {
  $("back").disabled = !app.point?.parent;
  $("on").disabled = !app.point?.next;
  $("play").disabled = !app.point?.next && !app.point?.parent;
  $("follow").setAttribute("aria-pressed", String(app.get("follow") === "1"));
  $("follow").hidden = app.info?.kind === "save";
  $("pin").setAttribute("aria-pressed", String(pinned()));
  $("pin").textContent = pinned() ? "Unpin A" : "Pin A";
}

const pinned = () => app.get("a") !== "";

async function pin(on) {
  if (!app.point) return;
  app.set({ a: on ? "record:" + app.point.record : "" }, true);
  app.pin = on ? app.point : null;
  where();
  app.bar.draw();
  await current?.update("pin");
}

// render mounts the screen that the state names.
function render() {
  const screen = screens.find((s) => s.id === app.get("view")) ?? screens[0];
  fill($("tabs"), screens.map((s, i) => h("a", {
    href: "?view=" + s.id, "aria-current": s === screen ? "page" : null,
    onclick: (e) => { e.preventDefault(); app.show(s.id); },
  }, h("kbd", {}, String(i + 1)), s.title)));
  if (current !== screen) {
    current?.unmount?.();
    current = screen;
    $("screen").replaceChildren();
    $("screen").className = screen.full ? "full" : "";
    $("screen").setAttribute("aria-label", screen.title);
    screen.mount($("screen"));
  }
  if (app.point || screen.timeless) current.update("screen");
  app.bar.draw();
}

// playing steps on by itself, until there is no next tick. A step that takes longer than the interval
// is not overtaken: travel drops those between.
let timer = 0;
function playing(on) {
  clearInterval(timer);
  timer = 0;
  $("play").textContent = on ? "❚❚" : "▸▸";
  $("play").setAttribute("aria-label", on ? "Stop" : "Play");
  if (on) {
    app.set({ follow: "" });
    timer = setInterval(() => app.point?.next ? travel("record:" + app.point.record, 1) : playing(false), 60);
  }
}

function follow(on) {
  playing(false);
  app.set({ follow: on ? "1" : "" });
  buttons();
  if (on) travel("@latest");
}

const step = (n) => {
  app.stay();
  if (app.point) travel("record:" + app.point.record, n);
};

// change goes to the next or the previous change of the chosen entity.
async function change(to) {
  const e = app.get("entity");
  if (!e) return app.trouble(new Error("no entity is chosen: choose one in the list"));
  if (!app.point) return;
  app.stay();
  try {
    const doc = await ask("change", { entity: e, record: app.point.record, to });
    if (doc.found) await travel("record:" + doc.found.record);
    else app.trouble(new Error(`${e} has no ${to === "next" ? "later" : "earlier"} change${doc.all ? "" : " in what was read"}`));
  } catch (err) {
    app.trouble(err);
  }
}

const help = () => guide($("guide"));

const actions = {
  ArrowLeft: (e) => step(e.shiftKey ? -10 : -1),
  ArrowRight: (e) => step(e.shiftKey ? 10 : 1),
  PageUp: () => step(-Math.max(1, Math.round(app.bar.span() / 20))),
  PageDown: () => step(Math.max(1, Math.round(app.bar.span() / 20))),
  Home: () => { app.stay(); travel("@first"); },
  End: () => { app.stay(); travel("@latest"); },
  " ": () => playing(!timer),
  "[": () => change("previous"),
  "]": () => change("next"),
  "+": () => app.bar.zoom(0.5),
  "=": () => app.bar.zoom(0.5),
  "-": () => app.bar.zoom(2),
  "0": () => app.bar.fit(),
  f: () => follow(app.get("follow") !== "1"),
  p: () => pin(!pinned()),
  g: () => $("point").select(),
  "/": () => current?.focus?.(),
  "?": help,
};

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("guide").open) return;
  const target = /** @type {HTMLElement} */ (e.target);
  const typing = /** @type {HTMLElement} */ (target.closest("input, select, textarea"));
  if (typing) {
    if (e.key === "Escape") {
      typing.blur();
      $("screen").focus();
      if (typing === $("point")) {
        if (typing.getAttribute("aria-invalid") === "true") accept();
        where();
      }
    }
    return;
  }
  if ((e.target === document.body || e.target === $("screen")) && current?.press?.(e)) return e.preventDefault();
  if (e.key === " " && target.closest("button, a, summary")) return;
  const n = Number(e.key);
  if (n >= 1 && n <= screens.length) app.show(screens[n - 1].id);
  else if (actions[e.key] ?? actions[e.key.toLowerCase()]) (actions[e.key] ?? actions[e.key.toLowerCase()])(e);
  else return;
  e.preventDefault();
});

// pointOf returns a point as it is asked for: ticks may be written as the page writes them.
const pointOf = (text) => /^\d{1,3}(,\d{3})+$/.test(text) ? text.replaceAll(",", "") : text;

$("goto").addEventListener("submit", (e) => {
  e.preventDefault();
  app.stay();
  const text = $("point").value; // Another one may be typed before the answer comes.
  travel(pointOf(text.trim()), 0, { push: true, found: () => { if ($("point").value === text) $("screen").focus(); } });
});
$("point").addEventListener("focus", () => $("point").select());
$("back").addEventListener("click", () => step(-1));
$("on").addEventListener("click", () => step(1));
$("play").addEventListener("click", () => playing(!timer));
$("follow").addEventListener("click", () => follow(app.get("follow") !== "1"));
$("pin").addEventListener("click", () => pin(!pinned()));
$("help").addEventListener("click", help);

document.addEventListener("focusout", () => { typing = null; });
window.addEventListener("popstate", () => {
  typing = null;
  app.params = new URLSearchParams(location.search);
  restore();
});

// restore shows what the URL says.
async function restore() {
  app.pin = null;
  if (pinned()) ask("resolve", { at: app.get("a") }).then((p) => {
    app.pin = p;
    where();
    app.bar.draw();
    if (app.point) current?.update("pin");
  }, app.trouble);
  render();
  await travel(app.get("at") || "@latest");
}

// lookAgain asks what lies beside the point that is shown: there may be a next one now. It is no move,
// which would take the place of one that somebody makes.
async function lookAgain() {
  const at = app.point;
  if (!at) return;
  try {
    const point = await ask("resolve", { at: "record:" + at.record });
    if (app.point === at) await arrive(point);
  } catch (err) {
    app.trouble(err);
  }
}

// unheard tells at once that the connection to the server is broken, in the words of a question that fails.
// Some breaks are short: then the question is answered, and nothing is told.
const unheard = latest(async () => {
  try {
    await ask("info");
    heard();
  } catch (err) {
    app.trouble(err);
    deaf = true;
    playing(false);
  }
});
let deaf = false; // The page tells that the server does not answer.

// heard takes that back.
function heard() {
  if (deaf) app.trouble(null);
  deaf = false;
}

// grown shows what is new in a store that grows, some times a second.
const grown = latest(async (news) => {
  const first = !app.news;
  app.news = news;
  if (news.error) app.trouble(new Error(news.error));
  if (first) return;
  forget();
  knownAt = null;
  grow();
  if (app.get("follow") === "1") await travel("@latest");
  else await lookAgain();
  await new Promise((done) => setTimeout(done, 30));
});

// grow shows it beside the state: less often, and nobody waits for it.
const grow = latest(async () => {
  await app.bar.load();
  if (current?.timeless) current.update("news");
  await new Promise((done) => setTimeout(done, 150));
});

// tellWriter tells once that the program which writes the store has ended, and that another one has opened it. The
// first stays until the line is hidden, or the second happens. That is told for ten seconds.
let writerTold; // The last that was told.
function tellWriter({ now, writer, since }) {
  if (!now || writerTold === now + since) return;
  writerTold = now + since;
  const what = { running: "A program has opened the store", closed: "The program that wrote this store has closed it", ended: "The program that wrote this store has ended without closing it" }[now];
  const hide = () => { $("writer").hidden = true; };
  fill($("writer"), `${what}, seen at ${clock(since)}${writer ? ": " + writer : ""}. `, plain("Hide", hide));
  $("writer").dataset.now = now;
  $("writer").hidden = false;
  if (now === "running") {
    const told = writerTold;
    setTimeout(() => { if (writerTold === told) hide(); }, 10000);
  }
}

async function start() {
  app.bar = new Bar(app, $("bar"), $("legend"));
  try {
    app.info = await ask("info");
    $("name").textContent = app.info.name;
    $("name").title = app.info.name;
    app.trouble(app.info.damaged ? new Error(app.info.damaged) : null);
  } catch (err) {
    return app.trouble(err);
  }
  await Promise.all([app.bar.load(), restore()]);
  const damaged = app.info.damaged;
  if (damaged) app.trouble(new Trouble({ kind: "corrupt", message: "damaged: " + damaged.replace(/^corrupt: /, "") }));
  const grows = app.info.kind === "store";
  listen((news) => { heard(); if (grows) grown(news); tellWriter(news); }, unheard);
  document.documentElement.dataset.ready = "1";
}
start();
