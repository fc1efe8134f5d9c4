// A component as it lies: dense and data row by row, sparse index by index.
import { app } from "../app.js";
import { h, fill, latest, errorBox, count, plain } from "../dom.js";
import { ask, beside } from "../api.js";

const page = 100;
let select, status, dense, sparse, head;
let of = "", row = 0, index = 0; // The component, and what is seen of it.

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
    const a = app.beside(), asked = { component, row, index, limit: page };
    [doc, then] = await Promise.all([ask("arrays", { record: app.point.record, ...asked }), a ? beside("arrays", { record: a.record, ...asked }).catch(missing) : null]);
  } catch (err) {
    if (err.name !== "AbortError") fill(dense, errorBox(err));
    return;
  }
  if (!select.isConnected) return;
  status.textContent = `${doc.kind} · ${count(doc.rows, "row", "rows")}` + (doc.gaps ? `, ${doc.gaps} of them gaps` : "") + (doc.width < 0 ? " of varying size" : doc.width ? ` of ${count(doc.width, "byte", "bytes")}` : "");
  fill(dense, h("h2", {}, "Dense and data", h("span", { class: "soft" }, "row by row")), pager(doc.row, doc.rows, (n) => { row = n; load(); }),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { class: "number" }, "row"), h("th", {}, "entity"), h("th", {}, "value"))),
      h("tbody", {}, doc.dense.map((d, i) => h("tr", {}, h("td", { class: "number soft" }, String(doc.row + i)), h("td", { class: "mono" }, d.entity ? plain(d.entity, () => app.openEntity(d.entity)) : h("span", { class: "soft" }, doc.kind === "resource" ? "" : "gap")), h("td", { class: "value" }, then ? versus(d, then.dense[i]) : d.value))))));
  fill(sparse, doc.kind !== "resource" && [h("h2", {}, "Sparse", h("span", { class: "soft" }, "entity index → row")), pager(doc.index, doc.indices, (n) => { index = n; load(); }),
    h("div", { class: "sparse" }, doc.sparse.map((r, i) => {
      const old = then ? then.sparse[i] ?? -1 : r;
      return h("div", { class: r < 0 ? "none" : "", title: old === r ? null : "in A " + cell(old) }, h("i", {}, String(doc.index + i)), old === r ? cell(r) : h("span", { class: "changed" }, cell(r)));
    }))]);
});

const cell = (row) => row < 0 ? "—" : String(row);

// missing is what lies at A of a component that was not there yet.
function missing(err) {
  if (err.kind !== "not_found") throw err;
  return { dense: [], sparse: [] };
}

// versus returns what is shown of a row that may differ from that at A.
function versus(now, old) {
  if (!old) return h("span", { class: "added", title: "A has no such row" }, now.value);
  const other = old.entity !== now.entity && [h("span", { class: "soft" }, (old.entity || "gap") + " "), " "];
  if (!other && old.value === now.value) return now.value;
  return [other, h("span", { class: "removed" }, old.value), " → ", h("span", { class: "added" }, now.value)];
}

function pager(from, total, to) {
  if (total <= page && from === 0) return null;
  const field = h("input", { type: "number", min: 0, max: Math.max(0, total - 1), value: from, "aria-label": "From", onchange: () => to(Math.max(0, Math.min(total - 1, Number(field.value) || 0))) });
  return h("div", { class: "title" },
    h("button", { type: "button", disabled: from === 0, onclick: () => to(Math.max(0, from - page)) }, "◂ previous"), field,
    h("span", { class: "soft" }, "of " + total.toLocaleString("en")),
    h("button", { type: "button", disabled: from + page >= total, onclick: () => to(from + page) }, "next ▸"));
}

export default {
  id: "arrays", title: "Arrays", full: true,
  mount(screen) {
    of = "";
    select = h("select", { id: "component", "aria-label": "Component", onchange: () => { app.set({ component: select.value }, true); load(); } });
    status = h("span", { class: "status" });
    sparse = h("section");
    dense = h("section");
    head = h("div", { class: "tools" }, h("label", {}, "Component", select), status);
    screen.append(head, h("div", { class: "list padded" }, h("div", { class: "lay" }, sparse, dense)));
  },
  update: () => load(),
  focus() { select.focus(); },
};
