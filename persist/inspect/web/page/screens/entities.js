// The Entities screen lists the living entities that match a condition. It loads and draws only
// the visible rows.
//
//  load    loads the pages of visible rows; take stores the total number
//  recall  loads the values at A of the entities in visible rows
//  draw    puts the visible rows into a body with the height of all rows
import { app } from "../app.js";
import { h, fill, latest, errorBox, count } from "../dom.js";
import { ask, lastValid } from "../api.js";
import { field } from "../complete.js";
import { examples } from "../examples.js";

// The height of a row in pixels, the rows per request, and the number of rows that a browser can
// scroll.
const rowHeight = 26, page = 50, most = 800_000;

let list, body, head, status, where, columns, trouble;
// put sends a request with the texts of the fields, or with their last valid texts. asked has the
// texts that were sent, and wrong has the errors, by field.
let put, asked, wrong;
// pages has the loaded rows by page number. They belong to the request in query.
let pages, query, total, done, names, sorts, chosen = 0, counting;
// leaving says that Enter was pressed in a field. The list gets the focus if the field is valid.
let leaving = false;
// olds has the cells at the pinned point A, by entity. null means that the entity is not alive at
// A.
let olds = new Map(), oldsOf = "";

const fields = ["where", "columns", "sort"];
const wanted = () => JSON.stringify([app.point.record, fields.map(app.get), app.get("desc")]);

// load loads the visible rows that are not loaded yet.
const load = latest(async () => {
  if (!list?.isConnected || !app.point) return;
  const first = Math.floor(list.scrollTop / rowHeight / page), last = Math.floor((list.scrollTop + list.clientHeight) / rowHeight / page);
  const record = app.point.record, desc = app.get("desc"), key = wanted(), fresh = key !== query;
  for (let p = first; p <= last; p++) {
    if (!fresh && pages.has(p)) continue;
    try {
      const got = await put((asked) => ask("entities", { record, ...asked, desc, offset: p * page, limit: page }));
      // The user has changed the request, so another call of load() follows.
      if (key !== wanted()) return;
      if (key !== query) [pages, query] = [new Map(), key];
      ({ asked, wrong } = got);
      pages.set(p, got.doc.rows);
      take(got.doc);
    } catch (err) {
      return failed(err);
    }
  }
  tell();
  draw();
  if (leaving && !Object.keys(wrong).length) list.focus();
  leaving = false;
  recall(first, last);
});

// recall loads the values at A of the entities on some pages, except values that are already
// loaded.
const recall = latest(async (first, last) => {
  const a = app.comparedWith();
  if (!a || !list?.isConnected) return;
  const { columns } = asked, key = JSON.stringify([a.record, columns]);
  if (key !== oldsOf || olds.size > 20_000) [olds, oldsOf] = [new Map(), key];
  for (let p = first; p <= last; p++) {
    const missing = (pages.get(p) ?? []).map((r) => r.entity).filter((e) => !olds.has(e));
    if (!missing.length) continue;
    try {
      const doc = await ask("entities", { record: a.record, columns, entity: missing, beside: 1 });
      if (key !== oldsOf) return;
      for (const e of missing) olds.set(e, null);
      for (const r of doc.rows) olds.set(r.entity, r.cells);
    } catch (err) {
      return failed(err);
    }
  }
  draw();
});

// versus returns the content of a cell, with its difference from A.
function versus(text, old) {
  if (old === undefined || old === text) return [text];
  return [h("span", { class: "removed" }, old), " → ", h("span", { class: "added" }, text)];
}

// joined returns the components of an entity on one line. Tooltips of components show the
// difference from A.
function joined(cells, old) {
  if (!old) return [cells.join("  ")];
  const name = (text) => text.match(/^[^{=]*/)[0], was = new Map(old.map((text) => [name(text), text]));
  const parts = cells.flatMap((text) => {
    const before = was.get(name(text));
    was.delete(name(text));
    if (before === text) return [text, "  "];
    return [h("span", { class: before === undefined ? "added" : "changed", title: before === undefined ? "not in A" : "in A " + before }, text), "  "];
  });
  return [...parts, [...was].flatMap(([name, text]) => [h("span", { class: "removed", title: "only in A: " + text }, name), "  "])];
}

function failed(err) {
  if (err.name === "AbortError") return;
  leaving = false;
  fill(trouble, errorBox(err, err.which ? app.get(err.which) : ""));
}

// tell shows which fields are invalid, and which text is used instead.
function tell() {
  for (const [name, input] of [["where", where], ["columns", columns]]) input.setAttribute("aria-invalid", name in wrong);
  fill(trouble, fields.filter((f) => wrong[f]).map((f) => errorBox(wrong[f], app.get(f), asked[f] ? "The list uses the last valid text: " + asked[f] : "The list ignores this text.")));
}

// take stores the number of entities in a response. If the count is incomplete, it requests the
// rest.
function take(doc) {
  total = doc.found;
  done = doc.done;
  names = doc.columns;
  sorts = doc.sorts;
  const filtered = asked.where !== "";
  status.textContent = filtered ? `${doc.found.toLocaleString("en")}${doc.done ? "" : "+"} of ${count(doc.alive, "entity", "entities")}` : count(doc.alive, "entity", "entities");
  if (!doc.done) status.textContent += `, ${Math.floor(100 * doc.asked / Math.max(1, doc.alive))} % searched`;
  clearTimeout(counting);
  if (!doc.done) {
    const of = query;
    counting = setTimeout(async () => {
      if (of !== query || !list?.isConnected) return;
      try {
        const more = await ask("entities", { record: doc.record, ...asked, desc: app.get("desc"), limit: 0 });
        if (of !== query) return;
        take(more);
        // The rows of an incomplete search are not in order, so load them again.
        if (more.done && asked.sort) [pages, query] = [new Map(), ""];
        load();
      } catch (err) {
        failed(err);
      }
    }, 20);
  }
}

// shape returns the column widths, which fit the contents, and which columns have only numbers.
function shape() {
  if (!names.length) return ["90px minmax(max-content, 1fr)", []];
  const rows = [...pages.values()].flat(), number = /^(-|-?[\d.]+(e[+-]?\d+)?|NaN|[+-]Inf)$/;
  const wide = (r, k) => {
    const old = app.comparedWith() ? olds.get(r.entity)?.[k] : undefined;
    return r.cells[k].length + (old === undefined || old === r.cells[k] ? 0 : old.length + 3);
  };
  const columns = names.map((name, k) => rows.reduce((n, r) => Math.max(n, wide(r, k)), name.length + 2));
  return ["90px " + columns.map((n) => Math.round(7.7 * Math.min(28, Math.max(6, n))) + "px").join(" "), names.map((_, k) => rows.length > 0 && rows.every((r) => number.test(r.cells[k])))];
}

// draw puts the visible rows into the list.
function draw() {
  if (!pages) return;
  const n = Math.min(total, most);
  body.style.height = n * rowHeight + "px";
  const labels = names.length ? ["entity", ...names] : ["entity", "components"];
  const [widths, numeric] = shape();
  head.style.gridTemplateColumns = widths;
  fill(head, labels.map((label, i) => {
    const by = i ? sorts[i - 1] : "index", sorted = i ? app.get("sort") === by : app.get("sort") === "index" || !app.get("sort");
    if (!names.length && i > 0) return h("span", { role: "columnheader", class: "soft" }, label);
    return h("span", { role: "columnheader", class: numeric[i - 1] && "number", "aria-sort": sorted ? (app.get("desc") ? "descending" : "ascending") : "none" },
      h("button", { type: "button", title: "Sort", onclick: () => sort(by) }, label + (sorted && app.get("sort") ? (app.get("desc") ? " ↓" : " ↑") : "")));
  }));
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 4), last = Math.min(n, first + Math.ceil(list.clientHeight / rowHeight) + 8);
  const rows = [];
  for (let i = first; i < last; i++) {
    const row = pages.get(Math.floor(i / page))?.[i % page];
    const e = h("div", { class: "row", role: "row", id: "row" + i, "aria-rowindex": i + 1, "aria-selected": i === chosen, onclick: () => { choose(i); open(); } });
    e.style.top = i * rowHeight + "px";
    e.style.gridTemplateColumns = widths;
    const old = app.comparedWith() && row ? olds.get(row.entity) : undefined;
    const cells = !row ? names.map(() => "") : names.length ? row.cells.map((text, k) => versus(text, old?.[k])) : [joined(row.cells, old)];
    e.append(h("span", { class: old === null ? "cell name added" : "cell name", role: "gridcell", title: old === null ? "not in A" : null }, row?.entity ?? "…"), ...cells.map((parts, k) =>
      h("span", { class: numeric[k] ? "cell number" : "cell", role: "gridcell", title: names.length && row?.cells[k].length > 24 ? row.cells[k] : null }, parts)));
    rows.push(e);
  }
  if (done && total === 0) rows.push(h("div", { role: "row" }, h("p", { class: "empty", role: "gridcell" }, asked.where ? "No entity matches at this point in time." : "No entity is alive at this point in time.")));
  fill(body, rows);
  list.setAttribute("aria-rowcount", total);
  if (document.getElementById("row" + chosen)) list.setAttribute("aria-activedescendant", "row" + chosen);
  // Without the chosen row on the screen, no row is active.
  else list.removeAttribute("aria-activedescendant");
}

function sort(label) {
  const again = app.get("sort") === label;
  app.set({ sort: again && app.get("desc") ? "" : label, desc: again && !app.get("desc") ? "1" : "" }, true);
  list.scrollTop = 0;
  load();
}

function choose(i) {
  chosen = Math.max(0, Math.min(total - 1, i));
  const y = chosen * rowHeight;
  if (y < list.scrollTop) list.scrollTop = y;
  else if (y + 2 * rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = y + 2 * rowHeight - list.clientHeight;
  load();
  draw();
}

function open() {
  const row = pages?.get(Math.floor(chosen / page))?.[chosen % page];
  if (row) app.openEntity(row.entity);
}

// press handles a key in the list. It returns false if the key has no function.
function press(e) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (step) choose(chosen + step);
  else if (e.key === "Enter") open();
  else return false;
  list.focus();
  return true;
}

// change lists the entities for the current texts of the fields.
function change() {
  if (wanted() !== query) list.scrollTop = chosen = 0;
  load();
}

export default {
  id: "entities", title: "Entities", full: true,

  mount(screen) {
    [pages, query, total, done, names, sorts] = [null, "", 0, true, [], []];
    [put, asked, wrong] = [lastValid(fields, app.get), { where: "" }, {}];
    let whereLabel, columnsLabel;
    [whereLabel, where] = field("Where", "where", change, { id: "filter" });
    [columnsLabel, columns] = field("Columns", "columns", change, { id: "columns" });
    status = h("span", { class: "status", "aria-live": "polite" });
    trouble = h("div", { class: "wrong" });
    head = h("div", { class: "head", role: "row" });
    body = h("div", { role: "rowgroup" });
    list = h("div", { class: "list", role: "grid", tabindex: 0, id: "entities", "aria-label": "Entities", onscroll: () => { draw(); load(); } }, head, body);
    list.addEventListener("keydown", (e) => { if ((e.target === list || e.key !== "Enter") && press(e)) e.preventDefault(); });
    screen.append(h("div", { class: "tools" }, whereLabel, columnsLabel, status), trouble, list);
    for (const [name, input] of [["where", where], ["columns", columns]]) {
      input.addEventListener("input", () => { leaving = false; });
      input.addEventListener("keydown", (e) => {
        if (e.key !== "Enter") return;
        leaving = true;
        app.typed(name, input);
        change();
      });
    }
  },
  update(why) {
    const { where: [[condition]], columns: [[some]] } = examples();
    [where.placeholder, columns.placeholder] = [condition, some];
    if (why === "screen") [where.value, columns.value] = [app.get("where"), app.get("columns")];
    return load();
  },
  unmount() { clearTimeout(counting); },
  focus() { where.select(); where.focus(); },
  press,
};
