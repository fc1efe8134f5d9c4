// The page with its point in time, its screen, and the keys. The URL stores its state.
//
//  keys, bar, buttons ──▶ travel ──resolve──▶ setPoint: set the point ──▶ the screen updates itself
//  tabs, back         ──▶ render: mount the screen
//  events             ──▶ onStoreChange: follow the newest point, or update the next point
//
// A screen has the methods mount, update(why) and focus. It may also have unmount, and press for
// keys. The argument why is time, pin, screen, schema or news. A timeless screen needs no point.
import { h, fill, latest, advice, plain } from "./dom.js";
import { ask, early, prefetch, forget, listen, Trouble } from "./api.js";
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

// app is the interface of the page to its screens.
export const app = {
  // The state in the URL: at, view, a, follow, and parameters of screens.
  params: new URLSearchParams(location.search),
  point: null, // The shown state: tick, record, time, head, rewound, parent, next, way.
  info: null,
  // The schema of the shown point. While a newer schema is loading, it is that of an earlier
  // point.
  schema: null,
  bar: null,
  news: null, // The newest state of the store.
  changes: [], // Known ticks at which the chosen entity changed, on the path to the shown point.

  get: (name) => app.params.get(name) ?? "",
  all: (name) => app.params.getAll(name),

  // set changes parameters of the state: {where: "…", expr: ["…", "…"], entity: ""}. If push is
  // set, the browser's back button reverts the change.
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

  // typed stores the text of a field in the state. Until the field loses focus, all of its
  // changes are one history entry.
  typed(name, field) {
    const text = field.value.trim(), begins = typing !== field && text !== app.get(name);
    app.set({ [name]: text }, begins);
    if (begins) typing = field;
  },

  // show switches to a screen. It may also change other parameters of the state.
  show(view, changes = {}) {
    app.set({ ...changes, view }, true);
    render();
  },

  // openEntity shows an entity on its screen.
  openEntity(e) {
    app.changes = app.get("entity") === e ? app.changes : [];
    app.show("entity", { entity: e });
  },

  // goTo moves to a point in time, plus some ticks. jump moves to a record that the user chose by
  // a link. The browser's back button reverts a jump.
  goTo: (at, step) => travel(at, step ?? 0),
  jump(record) {
    app.stay();
    return travel("record:" + record, 0, { push: true });
  },

  change: (to) => change(to),

  // stay stops following and playing, because the user moves to another point.
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

  // comparedWith returns the point to compare with: A, unless A is the shown point.
  comparedWith: () => app.pin && app.pin.record !== app.point?.record ? app.pin : null,

  trouble(err) {
    if (err?.name === "AbortError") return;
    $("trouble").hidden = !err;
    fill($("trouble"), err && [err.message, advice(err) && ["\n", advice(err)]]);
  },
};
/** @type {any} */ (window).stet = app; // Tests use this.

let current = null; // The mounted screen.
let typing = null; // The field whose text is part of the newest history entry.
let last = 0; // The size of the last move if it was a single step, or 0.

// prefetchStep requests the next state in advance, since the user may step in the same direction
// again.
function prefetchStep(point, step) {
  const to = step > 0 ? point.next : point.parent;
  if (!to) return;
  early("resolve", { at: "record:" + point.record, step });
  prefetch(to.record, point.record);
}

// travel moves to a point in time, plus step ticks. The current point contains the target of a
// single step. So the page requests the screen's data and the point at the same time. After a
// second step in the same direction, it requests the third step in advance.
const travel = latest(async (at, step, /** @type {{ found?: () => void, push?: boolean }} */ { found, push } = {}) => {
  try {
    const from = app.point, single = Math.abs(step) === 1 && at === "record:" + from?.record, same = single && step === last;
    const to = single && (step > 0 ? from.next : from.parent);
    // The server answers the requests for the point and for the screen at the same time.
    if (to) prefetch(to.record, from.record);
    const point = await ask("resolve", { at, step: step || undefined });
    found?.();
    await setPoint(point, push);
    last = single ? step : 0;
    accept();
    if (same) prefetchStep(point, step);
  } catch (err) {
    if (!app.point) $("screen").replaceChildren(h("p", { class: "empty" }, "No state can be shown here. The Health screen has the details."));
    app.trouble(err);
    $("point").setAttribute("aria-invalid", "true");
    playing(false);
  }
});

// accept removes the error of the point field.
function accept() {
  $("point").setAttribute("aria-invalid", "false");
  app.trouble(null);
}

// setPoint shows another point on the page.
async function setPoint(point, push) {
  const from = app.point, moved = point.record !== from?.record;
  point.way = wayOf(point, from);
  if (point.way !== from?.way) app.changes = [];
  app.point = point;
  app.set({ at: app.get("follow") ? "" : "record:" + point.record }, push && moved);
  renderStatus();
  app.bar.draw();
  if (!moved) return;
  if (!app.schema) await loadSchema();
  await current?.update("time");
  loadSchema();
}

// loadSchema loads the schema of the shown point, because components may change over time. If the
// schema has changed, it updates the screen. It waits until the point stays the same for a while,
// but at most two seconds. At a distant point, the schema takes as long to load as the move.
const loadSchema = latest(async () => {
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
// The record of the loaded schema. 0 is a valid record, for a save and for the first state of a
// store.
let knownAt = null;

// wayOf returns an id of the sequence of records that leads to a point. 0 is the path to the
// newest state. Points on another path get the same id only if they are one step apart.
function wayOf(point, from) {
  if (!point.rewound) return 0;
  const adjacent = from?.record === point.record || from?.parent?.record === point.record || point.parent?.record === from?.record;
  return adjacent && from?.rewound ? from.way : point.record;
}

// renderStatus shows the status line of the current point. In a narrow window, the end of the
// line stays visible.
function renderStatus() {
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
  renderStatus();
  app.bar.draw();
  await current?.update("pin");
}

// render shows the screen that the URL names.
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

// The timer of automatic steps, or 0.
let timer = 0;

// playing starts or stops automatic steps. They end at the last tick. If a step takes longer than
// the interval, travel skips the steps in between.
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

// change moves to the next or previous change of the chosen entity.
async function change(to) {
  const e = app.get("entity");
  if (!e) return app.trouble(new Error("no entity is chosen; choose one in the list"));
  if (!app.point) return;
  app.stay();
  try {
    const doc = await ask("change", { entity: e, record: app.point.record, to });
    if (doc.found) await travel("record:" + doc.found.record);
    else app.trouble(new Error(`${e} has no ${to === "next" ? "later" : "earlier"} change${doc.all ? "" : " in the ticks that were read"}`));
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
        renderStatus();
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

// pointOf converts a typed point to the server's syntax: a tick may have separators, as on the
// page.
const pointOf = (text) => /^\d{1,3}(,\d{3})+$/.test(text) ? text.replaceAll(",", "") : text;

$("goto").addEventListener("submit", (e) => {
  e.preventDefault();
  app.stay();
  // The user may change the text before the answer arrives.
  const text = $("point").value;
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

// restore shows the state in the URL.
async function restore() {
  app.pin = null;
  if (pinned()) ask("resolve", { at: app.get("a") }).then((p) => {
    app.pin = p;
    renderStatus();
    app.bar.draw();
    if (app.point) current?.update("pin");
  }, app.trouble);
  render();
  await travel(app.get("at") || "@latest");
}

// lookAgain requests the current point again, which may have a next point now. It does not use
// travel, which would cancel a move of the user.
async function lookAgain() {
  const at = app.point;
  if (!at) return;
  try {
    const point = await ask("resolve", { at: "record:" + at.record });
    if (app.point === at) await setPoint(point);
  } catch (err) {
    app.trouble(err);
  }
}

// unheard is called when the connection is broken. It sends a request and reports its error at
// once. After a short interruption the request succeeds, and the page shows no error.
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
// deaf: the page shows that the server does not answer.
let deaf = false;

// heard removes the error that unheard() has shown.
function heard() {
  if (deaf) app.trouble(null);
  deaf = false;
}

// onStoreChange updates the page after a change of the store, several times per second.
const onStoreChange = latest(async (news) => {
  const first = !app.news;
  app.news = news;
  if (news.error) app.trouble(new Error(news.error));
  if (first) return;
  forget();
  knownAt = null;
  refreshBar();
  if (app.get("follow") === "1") await travel("@latest");
  else await lookAgain();
  await new Promise((done) => setTimeout(done, 30));
});

// refreshBar updates the time bar. It runs less often than onStoreChange, which does not wait for
// it.
const refreshBar = latest(async () => {
  await app.bar.load();
  if (current?.timeless) current.update("news");
  await new Promise((done) => setTimeout(done, 150));
});

// tellWriter shows once that the writing program has ended, or that another program has opened the
// store. A message about an end stays until the user hides it or another message replaces it. A
// message about an opened store is shown for ten seconds. writerTold identifies the last message.
let writerTold;
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
  listen((news) => { heard(); if (grows) onStoreChange(news); tellWriter(news); }, unheard);
  document.documentElement.dataset.ready = "1";
}
start();
