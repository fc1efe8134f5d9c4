// The Tick screen shows the changes of a tick by component. If a point is pinned, it shows the
// differences of A and B.
import { app } from "../app.js";
import { h, fill, latest, errorBox, plain, count, size } from "../dom.js";
import { ask } from "../api.js";

// open is the component whose rows are shown. It stays open when the tick changes.
let box, open;

const load = latest(async () => {
  if (!box?.isConnected || !app.point) return;
  try {
    if (app.comparedWith()) await compare(app.pin, app.point);
    else await single(app.point);
  } catch (err) {
    if (err.name !== "AbortError") fill(box, errorBox(err));
  }
});

const signs = (c) => [c.added ? [h("span", { class: "added" }, "+" + c.added), " "] : "", c.removed ? [h("span", { class: "removed" }, "−" + c.removed), " "] : ""];

async function single(point) {
  if (!point.parent) return fill(box, h("p", { class: "empty" }, "This is the oldest state: the journal does not contain its tick."));
  const doc = await ask("tick", { record: point.record });
  if (doc.record !== app.point.record) return;
  fill(box,
    h("div", { class: "title" }, h("span", { class: "big" }, "tick " + doc.tick), doc.rewound && h("span", { class: "tag" }, "rewound"),
      doc.marks.map((m) => h("span", { class: "tag" }, m)),
      h("span", { class: "soft" }, `${size(doc.bytes)} · ${count(doc.created, "entity", "entities")} created, ${doc.destroyed.toLocaleString("en")} destroyed` + (doc.cleared ? ` · the world was cleared` : ""))),
    doc.inputs.length > 0 && h("section", {}, h("h2", {}, "Inputs"), h("table", {}, doc.inputs.map((i) => h("tr", {}, h("td", { class: "long" }, i.name), h("td", { class: "value" }, i.text), h("td", { class: "number soft" }, size(i.size)))))),
    h("section", {}, h("h2", {}, "Changed", h("span", { class: "soft" }, "open a component to see its rows")),
      doc.created + doc.destroyed > 0 && part("(entities)", [h("span", { class: "added" }, doc.created ? "+" + doc.created : ""), " ", h("span", { class: "removed" }, doc.destroyed ? "−" + doc.destroyed : "")], doc.parent, doc.record),
      doc.components.map((c) => part(c.name, [signs(c), c.cleared ? "cleared " : "", h("span", { class: "changed" }, c.written.toLocaleString("en") + " written"), h("span", { class: "soft" }, ` · ${c.before.toLocaleString("en")} → ${c.after.toLocaleString("en")} rows · ${size(c.bytes)}`)], doc.parent, doc.record)),
      !doc.components.length && !doc.created && !doc.destroyed && h("p", { class: "soft" }, "No changes.")));
}

async function compare(a, b) {
  const doc = await ask("diff", { from: a.record, to: b.record });
  if (b.record !== app.point.record) return;
  fill(box,
    h("div", { class: "title" }, h("span", { class: "big" }, `A ${a.tick} → B ${b.tick}`),
      h("span", { class: "soft" }, doc.same ? "the states are equal" : `${count(doc.created, "entity", "entities")} only in B, ${doc.destroyed.toLocaleString("en")} only in A`)),
    doc.builds && h("p", { class: "soft", id: "builds" }, doc.builds),
    doc.schema.length > 0 && h("section", {}, h("h2", {}, "Types"), doc.schema.map((s) => h("p", { class: "mono" }, `${s.component} ${s.field}: ${s.old || "—"} → ${s.new || "—"}`))),
    h("section", {}, h("h2", {}, "Differences"),
      doc.created + doc.destroyed > 0 && part("(entities)", signs({ added: doc.created, removed: doc.destroyed }), a.record, b.record),
      doc.components.map((c) => part(c.name, [signs(c), c.changed ? h("span", { class: "changed" }, c.changed.toLocaleString("en") + " changed") : "", c.moved ? h("span", { class: "soft" }, ` ${c.moved} moved`) : ""], a.record, b.record))));
}

// part shows a component. It loads the rows when the user opens the component.
function part(name, summary, from, to) {
  const rows = h("div");
  const d = h("details", { "data-component": name, open: open === name, ontoggle: () => {
    if (d.open) [open] = [name, more(rows, name, from, to, 0)];
    else if (open === name) open = "";
  } }, h("summary", {}, h("b", {}, name), "  ", summary), rows);
  return d;
}

async function more(into, component, from, to, offset) {
  try {
    const doc = await ask("diff", { from, to, component, offset, limit: 100 });
    const kinds = { added: "added", created: "added", removed: "removed", destroyed: "removed", changed: "changed" };
    const rows = doc.rows.map((r) => h("tr", {},
      h("td", { class: "mono" }, r.entity ? plain(r.entity, () => app.openEntity(r.entity)) : ""),
      h("td", { class: kinds[r.change] }, r.change),
      h("td", { class: "value" }, r.fields?.length
        ? r.fields.map((f, i) => [i > 0 && h("br"), f.path && h("span", { class: "soft" }, f.path + ": "), h("span", { class: "removed" }, f.old), " → ", h("span", { class: "added" }, f.new)])
        : [r.old && h("span", { class: "removed" }, r.old), r.old && r.new && " → ", r.new && h("span", { class: "added" }, r.new)])));
    let body = into.querySelector("tbody");
    if (!offset || !body) fill(into, h("table", {}, body = h("tbody")));
    into.querySelector("button.more")?.remove();
    body.append(...rows);
    const seen = offset + doc.rows.length;
    if (seen < doc.total) into.append(h("button", { class: "more", type: "button", onclick: () => more(into, component, from, to, seen) }, `${(doc.total - seen).toLocaleString("en")} more`));
    if (!doc.total) fill(into, h("p", { class: "soft" }, "Rows were written, but their values did not change, or only their positions did."));
  } catch (err) {
    if (err.name !== "AbortError") fill(into, errorBox(err));
  }
}

export default {
  id: "tick", title: "Tick",
  mount(screen) {
    box = h("div");
    screen.append(box);
  },
  update: () => load(),
  focus() { box.querySelector("summary")?.focus(); },
};
