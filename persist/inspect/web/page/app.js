// The page: its point in time, its screen, and the keys. The URL holds its state.
//
//  keys, bar, buttons ──▶ travel ──resolve──▶ setPoint: set the point ──▶ the screen updates itself
//  tabs, back         ──▶ render: mount the screen
//  events             ──▶ onStoreChange: follow the newest point, or update the next point
//
// A screen has the methods mount, update(why) and focus. It may have unmount, and press for keys.
// why is time, pin, screen, schema or news. A timeless screen needs no point.
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
  // The state: at, view, a, follow, and parameters of screens.
  params: new URLSearchParams(location.search),
  point: null, // The shown state: tick, record, time, head, rewound, parent, next, way.
  info: null,
  // The schema of the shown point. It may be from an earlier point with the same types, as far as
  // known.
  schema: null,
  bar: null,
  news: null, // The newest state of the store.
  changes: [], // Known ticks on the way at which the chosen entity changed.

  get: (name) => app.params.get(name) ?? "",
  all: (name) => app.params.getAll(name),

  // set changes parts of the state: {where: "…", expr: ["…", "…"], entity: ""}. With push, the
  // browser's back button reverts the change.
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

  // typed takes the text of a field. All changes until the field loses focus are one history entry.
  typed(name, field) {
    const text = field.value.trim(), begins = typing !== field && text !== app.get(name);
    app.set({ [name]: text }, begins);
    if (begins) typing = field;
  },

  // show switches to a screen, optionally with other changes to the state.
  show(view, changes = {}) {
    app.set({ ...changes, view }, true);
    render();
  },

  // openEntity shows an entity.
  openEntity(e) {
    app.changes = app.get("entity") === e ? app.changes : [];
    app.show("entity", { entity: e });
  },

  // goTo moves to a point in time, plus some ticks. jump moves to a record that was chosen by a
  // link, and the browser's back button returns from there.
  goTo: (at, step) => travel(at, step ?? 0),
  jump(record) {
    app.stay();
    return travel("record:" + record, 0, { push: true });
  },

  change: (to) => change(to),

  // stay ends following and playing, because the user moves to another point.
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

  // comparedWith returns the point for comparison: A, unless A is shown.
  comparedWith: () => app.pin && app.pin.record !== app.point?.record ? app.pin : null,

  trouble(err) {
    if (err?.name === "AbortError") return;
    $("trouble").hidden = !err;
    fill($("trouble"), err && [err.message, advice(err) && ["\n", advice(err)]]);
  },
};
/** @type {any} */ (window).stet = app; // For access from outside, as in tests.

let current = null; // The mounted screen.
let typing = null; // The field whose text is part of the newest history entry.
let last = 0; // The last move if it was a step, or 0.

// prefetchStep requests the next state in advance, in case the user steps on in the same direction.
function prefetchStep(point, step) {
  const to = step > 0 ? point.next : point.parent;
  if (!to) return;
  early("resolve", { at: "record:" + point.record, step });
  prefetch(to.record, point.record);
}

// travel moves to a point in time, plus step ticks. For a single step, the current point contains
// the target. So the request of the screen is sent together with the request for the point. After a
// second step in the same direction, the third step is requested in advance.
const travel = latest(async (at, step, /** @type {{ found?: () => void, push?: boolean }} */ { found, push } = {}) => {
  try {
    const from = app.point, single = Math.abs(step) === 1 && at === "record:" + from?.record, same = single && step === last;
    const to = single && (step > 0 ? from.next : from.parent);
    // The server answers both at the same time.
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

// accept clears the error of the point field.
function accept() {
  $("point").setAttribute("aria-invalid", "false");
  app.trouble(null);
}

// setPoint makes a point the shown one.
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

// loadSchema loads the schema of the shown point, because components may change over time. It
// updates the screen if the schema changed. It loads the schema when the point stays the same for a
// while, and every two seconds during movement. At a distant point the answer takes as long as the
// move.
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
// The record of the schema. 0 is valid, for a save and for the first state of a store.
let knownAt = null;

// wayOf returns an id of the way of a point. 0 is the way to the newest state. Other ways are only
// recognized as the same from one step to the next.
function wayOf(point, from) {
  if (!point.rewound) return 0;
  const adjacent = from?.record === point.record || from?.parent?.record === point.record || point.parent?.record === from?.record;
  return adjacent && from?.rewound ? from.way : point.record;
}

// renderStatus shows the description of the current point. In a narrow window the right part stays
// visible.
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

// playing steps automatically until there is no next tick. If a step takes longer than the
// interval, travel drops the steps in between.
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

// pointOf returns a typed point in the server's syntax: ticks may have separators, as on the page.
const pointOf = (text) => /^\d{1,3}(,\d{3})+$/.test(text) ? text.replaceAll(",", "") : text;

$("goto").addEventListener("submit", (e) => {
  e.preventDefault();
  app.stay();
  // The text may have changed before the answer arrives.
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

// restore shows the state of the URL.
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

// lookAgain updates the current point, which may have a next point now. It does not use travel,
// which would cancel a move of the user.
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

// unheard reports a broken connection to the server at once, with the error of a failed request.
// After a short interruption the request succeeds, and nothing is shown.
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
// The page shows that the server does not answer.
let deaf = false;

// heard clears that error.
function heard() {
  if (deaf) app.trouble(null);
  deaf = false;
}

// onStoreChange shows the changes of a growing store, several times per second.
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

// refreshBar updates the time bar. It runs less often, and onStoreChange does not wait for it.
const refreshBar = latest(async () => {
  await app.bar.load();
  if (current?.timeless) current.update("news");
  await new Promise((done) => setTimeout(done, 150));
});

// tellWriter shows once that the writing program has ended, or that another one has opened the
// store. The first message stays until it is hidden or replaced by the second one. The second one
// is shown for ten seconds.
// The last shown message.
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
