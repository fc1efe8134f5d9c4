// The Arrays screen shows the arrays of a component: dense and data by row, sparse by index.
import { app } from "../app.js";
import { h, fill, latest, errorBox, count, plain } from "../dom.js";
import { ask, fetchPinned } from "../api.js";

const page = 100;
// rows and indices are the pagers of dense and sparse.
let select, status, dense, sparse, rows, indices;
// The shown component, its first shown row, and its first shown index.
let of = "", row = 0, index = 0;

const load = latest(async () => {
  if (!select?.isConnected || !app.point || !app.schema) return;
  const names = app.schema.components.map((c) => c.name);
  if ([...select.options].map((o) => o.value).join() !== names.join()) fill(select, names.map((name) => h("option", { value: name }, name)));
  const component = names.includes(app.get("component")) ? app.get("component") : names[0];
  if (!component) return fill(dense, h("p", { class: "soft" }, "There are no components."));
  select.value = component;
  if (component !== of) [of, row, index] = [component, 0, 0];
  let doc, then;
  try {
    const a = app.comparedWith(), asked = { component, row, index, limit: page };
    [doc, then] = await Promise.all([ask("arrays", { record: app.point.record, ...asked }), a ? fetchPinned("arrays", { record: a.record, ...asked }).catch(missing) : null]);
  } catch (err) {
    if (err.name !== "AbortError") fill(dense, errorBox(err));
    return;
  }
  if (!select.isConnected) return;
  status.textContent = `${doc.kind} · ${count(doc.rows, "row", "rows")}` + (doc.gaps ? `, ${doc.gaps} of them gaps` : "") + (doc.width < 0 ? " of varying size" : doc.width ? ` of ${count(doc.width, "byte", "bytes")}` : "");
  rows.tell(doc.row, doc.rows);
  indices.tell(doc.index, doc.indices);
  fill(dense, h("table", {}, h("thead", {}, h("tr", {}, h("th", { class: "number" }, "row"), h("th", {}, "entity"), h("th", {}, "value"))),
      h("tbody", {}, doc.dense.map((d, i) => h("tr", {}, h("td", { class: "number soft" }, String(doc.row + i)), h("td", { class: "mono" }, d.entity ? plain(d.entity, () => app.openEntity(d.entity)) : h("span", { class: "soft" }, doc.kind === "resource" ? "" : "gap")), h("td", { class: "value" }, then ? versus(d, then.dense[i]) : d.value))))));
  sparse.parentElement.hidden = doc.kind === "resource";
  fill(sparse, h("div", { class: "sparse" }, doc.sparse.map((r, i) => {
      const old = then ? then.sparse[i] ?? -1 : r;
      return h("div", { class: r < 0 ? "none" : "", title: old === r ? null : "in A " + cell(old) }, h("i", {}, String(doc.index + i)), old === r ? cell(r) : h("span", { class: "changed" }, cell(r)));
    })));
});

const cell = (row) => row < 0 ? "—" : String(row);

// missing returns empty data at A if the component did not exist at A.
function missing(err) {
  if (err.kind !== "not_found") throw err;
  return { dense: [], sparse: [] };
}

// versus returns the contents of a row, with the difference from A.
function versus(now, old) {
  if (!old) return h("span", { class: "added", title: "A has no such row" }, now.value);
  const other = old.entity !== now.entity && [h("span", { class: "soft" }, (old.entity || "gap") + " "), " "];
  if (!other && old.value === now.value) return now.value;
  return [other, h("span", { class: "removed" }, old.value), " → ", h("span", { class: "added" }, now.value)];
}

// newPager creates the controls for scrolling an array. tell() of the result sets the first shown
// position and the total. It does not overwrite a number that the user is typing.
function newPager(to) {
  let from = 0, total = 0;
  const field = h("input", { type: "number", min: 0, "aria-label": "From", onchange: () => to(Math.max(0, Math.min(total - 1, Number(field.value) || 0))) });
  const back = h("button", { type: "button", onclick: () => to(Math.max(0, from - page)) }, "◂ previous"), on = h("button", { type: "button", onclick: () => to(from + page) }, "next ▸");
  const of = h("span", { class: "soft" }), e = h("div", { class: "title" }, back, field, of, on);
  e.tell = (start, n) => {
    [from, total] = [start, n];
    e.hidden = total <= page && from === 0;
    [back.disabled, on.disabled] = [from === 0, from + page >= total];
    of.textContent = "of " + total.toLocaleString("en");
    if (document.activeElement !== field) field.value = from;
  };
  return e;
}

export default {
  id: "arrays", title: "Arrays", full: true,
  mount(screen) {
    of = "";
    select = h("select", { id: "component", "aria-label": "Component", onchange: () => { app.set({ component: select.value }, true); load(); } });
    status = h("span", { class: "status" });
    sparse = h("div");
    dense = h("div");
    rows = newPager((n) => { row = n; load(); });
    indices = newPager((n) => { index = n; load(); });
    const section = (title, about, pager, part) => h("section", {}, h("h2", {}, title, h("span", { class: "soft" }, about)), pager, part);
    screen.append(h("div", { class: "tools" }, h("label", {}, "Component", select), status), h("div", { class: "list padded" }, h("div", { class: "lay" }, section("Sparse", "entity index → row", indices, sparse), section("Dense and data", "row by row", rows, dense))));
  },
  update: () => load(),
  focus() { select.focus(); },
};
