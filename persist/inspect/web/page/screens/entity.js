// The Entity screen shows the fields of an entity with their last changes, its events, and its
// referrers.
import { app } from "../app.js";
import { h, fill, latest, errorBox, plain, spark, count } from "../dom.js";
import { ask } from "../api.js";

// The last text that the page or a form put into the field. If the field has another text, the
// user is typing.
let written = "";
let input, title, fields, life, referrers, resources, shown;
// known has the slow data: the events and the referrers. The point of these data may be older than
// the shown point.
let known = null;

// load shows the components of the entity at the shown point at once. Then rest() loads the events
// and the referrers, which may arrive later and belong to an older point.
const load = latest(async () => {
  if (!title?.isConnected || !app.point) return;
  const e = app.get("entity"), record = app.point.record;
  if (!e) {
    known = null;
    fill(title, h("p", { class: "soft" }, "No entity is chosen. Choose one in the list or on the map, or type one: 12v3, or 12 alone."));
    fill(fields), fill(life), fill(referrers);
    return showResources(record);
  }
  if (document.activeElement !== input || input.value === written) input.value = written = e;
  let now, then;
  try {
    [now, then] = await Promise.all([
      ask("entity", { record, entity: e }),
      app.comparedWith() ? ask("entity", { record: app.pin.record, entity: e }) : null,
    ]);
  } catch (err) {
    known = null;
    fill(title, errorBox(err));
    fill(fields), fill(life), fill(referrers);
    return;
  }
  if (!title.isConnected || e !== app.get("entity")) return;
  // The user typed an index without a generation.
  if (now.entity !== e) {
    app.set({ entity: now.entity });
    return void load();
  }
  if (known?.entity !== now.entity || known.point.way !== app.point.way) {
    known = null;
    fill(life), fill(referrers);
  }
  shown = { now, then };
  draw();
  rest(now.entity);
  showResources(record);
});

// rest loads the slow data. It loads them soon if the point stays the same, and about twice per
// second while time moves. Data of an older point are labelled with its tick.
const rest = latest(async (e) => {
  await new Promise((done) => setTimeout(done, Math.max(60, known ? answered + 500 - performance.now() : 0)));
  const point = app.point, wanted = () => title?.isConnected && e === app.get("entity") && point.way === app.point.way;
  if (!wanted() || known?.point.record === point.record) return;
  try {
    const history = await ask("history", { record: point.record, entity: e, limit: 1000 });
    if (!wanted()) return;
    known = { ...history, point };
    app.changes = known.events.map((v) => v.tick);
    app.bar.draw();
    showLife();
    draw();
    const doc = await ask("referrers", { record: point.record, entity: e });
    if (wanted()) showReferrers(doc, point);
  } catch (err) {
    if (err.name !== "AbortError") fill(life, errorBox(err));
  } finally {
    answered = performance.now();
  }
});
let answered = 0;

// age returns a label for data of a point that differs from the shown one.
const age = (text, point) => Object.assign(h("span", { class: "soft age" }), { tell: () => point.record === shown.now.record ? "" : `${text}as of tick ${point.tick.toLocaleString("en")}` });

function tellAges() {
  for (const e of title.parentElement.querySelectorAll(".age")) e.textContent = e.tell();
}

const go = (at, text) => plain(text ?? "tick " + at.tick, () => app.jump(at.record), "Go there");

function draw() {
  const { now, then } = shown;
  fill(title, h("span", { class: "big" }, now.entity),
    now.alive ? h("span", { class: "tag" }, "alive") : h("span", { class: "tag danger" }, "not alive"),
    h("span", { class: "soft" }, now.alive ? `row ${now.row} of ${now.living.toLocaleString("en")}` : gone(now)),
    !now.alive && death());
  const parts = now.components.map((c) => {
    const old = then?.components.find((o) => o.name === c.name);
    return h("section", { "aria-label": c.name }, h("h2", {}, c.name, h("span", { class: "soft" }, "row " + c.row), known && age("changes ", known.point), then && !old && h("span", { class: "added" }, "not in A")),
      h("div", { class: "fields" }, rows(c.name, c.value, old?.value, 0)));
  });
  for (const o of then?.components ?? []) {
    if (!now.components.some((c) => c.name === o.name)) parts.push(h("section", {}, h("h2", {}, o.name, h("span", { class: "removed" }, "only in A")), h("div", { class: "fields" }, rows(o.name, o.value, null, 0))));
  }
  if (!parts.length) parts.push(h("p", { class: "soft" }, now.alive ? "The entity has no components." : ""));
  fill(fields, parts);
  tellAges();
}

const gone = (now) => now.row < 0 ? "its index was never in use" : now.holder !== now.entity ? `the last entity with this index is ${now.holder}` : "its index is free";

function death() {
  const end = known?.events.find((v) => v.event === "destroyed" && past(v));
  return end && h("span", {}, "destroyed at ", go(end), end.before && [" · ", go(end.before, "its last state")]);
}

// past reports whether an event is at or before the shown point.
const past = (v) => v.record <= shown.now.record;

// inside reports whether path is the field itself or a part of it. Bag.Items is inside Bag, but
// Bagpipe is not.
const inside = (path, field) => path.startsWith(field) && (!field || path === field || ".[".includes(path[field.length]));

// rows returns the rows for a value and its parts. A row has four cells: name, value, last change
// before the point, and a sparkline. old is the value of the same part at A.
function rows(component, node, old, depth) {
  const field = node.path ? component + (node.path.startsWith("[") ? "" : ".") + node.path : component;
  // A tag has no parts, and the heading already shows its name.
  const tag = !depth && !node.parts && node.kind === "struct";
  const name = h("span", { class: "name" }, depth ? node.name : node.parts || tag ? "" : "value");
  name.style.paddingLeft = Math.max(0, depth - 1) * 14 + "px";
  if (node.parts) {
    const inner = node.parts.flatMap((p) => rows(component, p, old?.parts?.find((o) => o.name === p.name), depth + 1));
    if (node.more) inner.push(...row(h("span"), h("span", { class: "soft" }, `and ${node.more} more`)));
    return depth ? [...row(name, h("span", { class: "soft" }, node.kind)), ...inner] : inner;
  }
  const value = tag ? h("span", { class: "soft" }, "no fields") : node.entity ? plain(node.text, () => app.openEntity(node.entity), "Open this entity") : node.text ?? "";
  const differs = old !== undefined && old !== null && old.text !== node.text;
  const course = known?.courses.find((c) => c.field === field);
  const last = known?.events.find((v) => past(v) && v.component === component && (v.event !== "set" || !v.fields?.length || v.fields.some((f) => inside(node.path, f.path) || inside(f.path, node.path))));
  return row(name,
    h("span", { class: "value" }, differs && [h("span", { class: "removed" }, old.text ?? ""), " → "], differs ? h("span", { class: "added" }, value) : value),
    last && go(last), course && spark(course, known.since.tick, known.point.tick));
}

// row returns the cells of a row. A narrow window hides the last cell.
const row = (name, value, when, course) => [name, value, h("span", { class: "when" }, when), h("span", { class: "spark" }, course)];

function showLife() {
  const value = (v) => {
    if (v.event === "set" && v.fields) return v.fields.slice(0, 6).map((f, i) => [i > 0 && h("br"), v.component + (f.path && !f.path.startsWith("[") ? "." : "") + f.path + ": ", h("span", { class: "removed mono" }, f.old), " → ", h("span", { class: "added mono" }, f.new)]);
    return [v.component ? v.component + " " : "", h("span", { class: "mono soft" }, (v.new ?? v.old ?? "").slice(0, 120))];
  };
  const kinds = { created: "added", added: "added", destroyed: "removed", removed: "removed", set: "changed", converted: "changed" };
  fill(life, h("h2", {}, "Life", h("span", { class: "soft" }, known.all ? "" : `since tick ${known.since.tick}`), age("", known.point)),
    h("div", { class: "life" }, known.events.slice(0, 200).map((v) => h("div", { class: "row" }, go(v), h("span", { class: kinds[v.event] ?? "soft" }, v.event), h("span", {}, value(v))))),
    (known.more || known.events.length > 200) && h("p", { class: "soft" }, "earlier events are omitted"),
    !known.events.length && h("p", { class: "soft" }, `No events were found up to tick ${known.point.tick.toLocaleString("en")}.`));
}

function showReferrers(doc, point) {
  fill(referrers, h("h2", {}, "Referred to by", h("span", { class: "soft" }, count(doc.total, "value", "values")), age("", point)),
    doc.referrers.map((r) => h("div", {}, r.entity ? plain(r.entity, () => app.openEntity(r.entity)) : "", " ", h("span", { class: "mono" }, r.component + (r.fields[0] ? "." + r.fields.join(", ") : "")))),
    doc.total > doc.referrers.length && h("p", { class: "soft" }, `and ${doc.total - doc.referrers.length} more`));
  tellAges();
}

const showResources = latest(async (record) => {
  if (!resources?.open) return;
  try {
    const doc = await ask("resources", { record });
    fill(resources.lastElementChild, doc.resources.map((r) => h("section", {}, h("h2", {}, r.name), h("div", { class: "fields" }, rows(r.name, r.value, null, 0)))));
  } catch (err) {
    fill(resources.lastElementChild, errorBox(err));
  }
});

export default {
  id: "entity", title: "Entity",

  mount(screen) {
    input = h("input", { id: "entity", size: 10, spellcheck: "false", placeholder: "12v3 or 12", "aria-label": "Entity" });
    title = h("div", { class: "title" });
    fields = h("div");
    life = h("section", { "aria-label": "Life" });
    referrers = h("section", { "aria-label": "Referred to by" });
    resources = h("details", { ontoggle: () => app.point && showResources(app.point.record) }, h("summary", {}, "Resources of the world"), h("div"));
    const form = h("form", { class: "title", onsubmit: (e) => { e.preventDefault(); written = input.value; app.openEntity(input.value.trim()); load(); } },
      h("label", { for: "entity", class: "soft" }, "Entity"), input,
      h("button", { type: "button", title: "Previous change ([)", onclick: () => app.change("previous") }, "[ previous change"),
      h("button", { type: "button", title: "Next change (])", onclick: () => app.change("next") }, "next change ]"));
    screen.append(form, title, h("div", { class: "columns" }, h("div", {}, fields, resources), h("div", {}, referrers, life)));
  },
  update: () => load(),
  unmount() { shown = known = null; },
  focus() { input.select(); input.focus(); },
};
