// The page: where it is in time, which screen it shows, and the keys. The URL is its state.
import { h, fill, latest } from "./dom.js";
import { ask, early, foresee, forget, listen } from "./api.js";
import { Bar } from "./bar.js";
import entities from "./screens/entities.js";
import map from "./screens/map.js";
import entity from "./screens/entity.js";
import tick from "./screens/tick.js";
import plots from "./screens/plots.js";
import arrays from "./screens/arrays.js";
import health from "./screens/health.js";

const screens = [entities, map, entity, tick, plots, arrays, health];
const $ = (id) => document.getElementById(id);

// app is what screens know of the page.
export const app = {
  params: new URLSearchParams(location.search), // The state: at, view, a, follow, and those of screens.
  point: null, // The state shown: tick, record, time, head, rewound, parent, next.
  info: null,
  schema: null, // Of the point.
  bar: null,
  news: null, // What the store has come to.
  changes: [], // Ticks at which the chosen entity changed, as far as they are known.

  get: (name) => app.params.get(name) ?? "",
  all: (name) => app.params.getAll(name),

  // set changes parts of the state: {where: "…", expr: ["…", "…"], entity: ""}. What is pushed, the
  // browser's back button takes back.
  set(changes, push) {
    for (const [name, value] of Object.entries(changes)) {
      app.params.delete(name);
      for (const v of [value].flat()) if (v !== "" && v !== undefined && v !== null) app.params.append(name, v);
    }
    const url = app.params.size ? "?" + app.params : location.pathname;
    history[push ? "pushState" : "replaceState"](null, "", url);
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

  // goTo goes to a point in time, and some ticks on from there.
  goTo: (at, step) => travel(at, step ?? 0),

  // stay ends following and playing: somebody goes elsewhere.
  stay() {
    if (app.get("follow")) app.set({ follow: "" });
    playing(false);
    buttons();
  },

  names() {
    const names = ["entity", "index", "generation", "has(", "exists(", "tick", "alive"];
    for (const c of app.schema?.components ?? []) {
      names.push(c.name);
      for (const f of c.fields) if (f.path) names.push(c.name + "." + f.path);
    }
    return names;
  },

  // beside returns the point that what is shown is compared with: A, unless that is shown.
  beside: () => app.pin && app.pin.record !== app.point?.record ? app.pin : null,

  trouble(err) {
    if (err?.name === "AbortError") return;
    $("trouble").hidden = !err;
    $("trouble").textContent = err ? err.message + (err.try ? "\ntry: " + err.try : "") : "";
  },
};
window.stet = app; // For whoever looks at it from outside, as tests do.

let current = null; // The screen that is mounted.
let last = 0; // The step that was the last move; 0: it was another one.

// foreseeStep asks for what comes next: whoever goes the same way again finds it there.
function foreseeStep(point, step) {
  const to = step > 0 ? point.next : point.parent;
  if (!to) return;
  early("resolve", { at: "record:" + point.record, step });
  foresee(to.record, point.record);
}

const travel = latest(async (at, step) => {
  try {
    const from = app.point, single = Math.abs(step) === 1 && at === "record:" + from?.record, same = single && step === last;
    const to = single && (step > 0 ? from.next : from.parent);
    if (to) foresee(to.record, from.record); // Both are answered at the same time.
    const point = await ask("resolve", { at, step: step || undefined });
    await arrive(point);
    last = single ? step : 0;
    $("point").setAttribute("aria-invalid", "false");
    app.trouble(null);
    if (same) foreseeStep(point, step);
  } catch (err) {
    if (!app.point) $("screen").replaceChildren(h("p", { class: "empty" }, "No state can be shown here. The Health screen says more."));
    app.trouble(err);
    $("point").setAttribute("aria-invalid", "true");
    playing(false);
  }
});

// arrive makes a point the one that is shown.
async function arrive(point) {
  const moved = point.record !== app.point?.record;
  app.point = point;
  app.set({ at: app.get("follow") ? "" : "record:" + point.record });
  where();
  app.bar.draw();
  if (!moved) return;
  if (!app.schema) app.schema = await ask("schema", { record: point.record });
  await current?.update("time");
}

// where says which point is shown.
function where() {
  const p = app.point;
  if (!p) return;
  const parts = [h("b", {}, "tick " + p.tick.toLocaleString("en")), ` · record ${p.record}`];
  if (p.time) parts.push(" · " + p.time.replace("T", " ").replace(/(\.\d{3})\d*Z$/, "$1Z"));
  if (p.head) parts.push(" · newest");
  if (p.rewound) parts.push(" · ", h("span", { class: "changed" }, "rewound"));
  if (pinned()) parts.push(" · A is ", h("b", {}, "tick " + (app.pin?.tick ?? "?")));
  fill($("where"), parts);
  if (document.activeElement !== $("point")) $("point").value = String(p.tick);
  $("bar").setAttribute("aria-valuenow", p.tick);
  $("bar").setAttribute("aria-valuetext", `tick ${p.tick}, record ${p.record}`);
  document.title = `${p.tick} · ${app.info?.name ?? "Stet"}`;
  buttons();
}

function buttons() {
  $("back").disabled = !app.point?.parent;
  $("on").disabled = !app.point?.next;
  $("follow").setAttribute("aria-pressed", app.get("follow") === "1");
  $("follow").hidden = app.info?.kind === "save";
  $("pin").setAttribute("aria-pressed", pinned());
  $("pin").textContent = pinned() ? "Unpin A" : "Pin A";
}

const pinned = () => app.get("a") !== "";

async function pin(on) {
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
  app.stay();
  try {
    const doc = await ask("change", { entity: e, record: app.point.record, to });
    if (doc.found) await travel("record:" + doc.found.record);
    else app.trouble(new Error(`${e} has no ${to === "next" ? "later" : "earlier"} change${doc.all ? "" : " in what was read"}`));
  } catch (err) {
    app.trouble(err);
  }
}

const keys = [
  ["← →", "one tick back, on; with Shift ten"],
  ["PageUp PageDown", "a twentieth of the bar"],
  ["Home End", "the oldest state, the newest"],
  ["Space", "play, stop"],
  ["[ ]", "previous and next change of the chosen entity"],
  ["+ − 0", "zoom the bar in, out, to all; the wheel does it too"],
  ["F", "stay at the newest tick"],
  ["P", "pin this point as A: other points are compared with it"],
  ["G", "type a point in time"],
  ["/", "type a filter or an expression"],
  ["1 … 7", "screens"],
  ["↑ ↓ Enter", "in the list: choose an entity, open it"],
  ["Esc", "leave a field, close this"],
  ["?", "these keys"],
];

function help() {
  const close = h("button", { type: "button", onclick: () => $("keys").close() }, "Close");
  fill($("keys"), h("h2", { id: "keys-title" }, "Keys"),
    h("dl", {}, keys.map(([key, text]) => [h("dt", {}, key.split(" ").map((k) => [h("kbd", {}, k), " "])), h("dd", {}, text)])), close);
  if (!$("keys").open) $("keys").showModal();
}

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
  if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
  const typing = e.target.closest("input, select, textarea");
  if (typing) {
    if (e.key === "Escape") {
      typing.blur();
      $("screen").focus();
    }
    return;
  }
  if (e.key === " " && e.target.closest("button, a, summary")) return;
  const n = Number(e.key);
  if (n >= 1 && n <= screens.length) app.show(screens[n - 1].id);
  else if (actions[e.key] ?? actions[e.key.toLowerCase()]) (actions[e.key] ?? actions[e.key.toLowerCase()])(e);
  else return;
  e.preventDefault();
});

$("goto").addEventListener("submit", (e) => {
  e.preventDefault();
  app.stay();
  travel($("point").value.trim());
  $("screen").focus();
});
$("point").addEventListener("focus", () => $("point").select());
$("back").addEventListener("click", () => step(-1));
$("on").addEventListener("click", () => step(1));
$("play").addEventListener("click", () => playing(!timer));
$("follow").addEventListener("click", () => follow(app.get("follow") !== "1"));
$("pin").addEventListener("click", () => pin(!pinned()));
$("help").addEventListener("click", help);

window.addEventListener("popstate", () => {
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

// grown shows what is new in a store that grows, some times a second.
const grown = latest(async (news) => {
  const first = !app.news;
  app.news = news;
  if (news.error) app.trouble(new Error(news.error));
  if (first) return;
  forget();
  grow();
  if (app.get("follow") === "1") await travel("@latest");
  else if (app.point) await travel("record:" + app.point.record); // There may be a next one now.
  await new Promise((done) => setTimeout(done, 30));
});

// grow shows it beside the state: less often, and nobody waits for it.
const grow = latest(async () => {
  await app.bar.load();
  if (current?.timeless) current.update("news");
  await new Promise((done) => setTimeout(done, 150));
});

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
  if (damaged) app.trouble(new Error("damaged: " + damaged));
  if (app.info.kind === "store") listen(grown);
  document.documentElement.dataset.ready = "1";
}
start();
