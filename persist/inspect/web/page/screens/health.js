// The Health screen shows whether the store opens, why not, and which commands may help.
import { app } from "../app.js";
import { h, fill, latest, errorBox, count, size, plain } from "../dom.js";
import { ask } from "../api.js";

let box, report, button;

const problems = (list) => list.map((p) => h("p", {}, h("span", { class: "tag danger" }, p.kind), p.message.replace(/^corrupt: /, "")));

const load = latest(async () => {
  if (!box?.isConnected) return;
  let doc;
  try {
    doc = await ask("health");
  } catch (err) {
    if (err.name !== "AbortError") fill(box, errorBox(err));
    return;
  }
  fill(box,
    h("p", { class: "verdict" + (doc.opens ? "" : " danger") }, doc.in_use ? "A program has the store open." : `The ${app.info.kind} ${doc.opens ? "opens" : "does not open"}.`),
    doc.refused && h("section", {}, doc.refused),
    doc.helps.length > 0 && h("section", {}, h("h2", {}, "Commands that may help"), doc.helps.map((c) => h("pre", {}, c))),
    h("section", {}, h("h2", {}, "Damage found while opening"), doc.damage.length ? problems(doc.damage) : h("p", { class: "soft" }, "No damage. Verify checks everything.")),
    app.info.kind === "store" && h("section", {}, h("h2", {}, "Journal"), h("p", {}, `${count(doc.records, "record", "records")}, ${size(doc.journal)}; ${doc.rewound.toLocaleString("en")} of them rewound; ${doc.in_use ? "in use" : !doc.clean ? "not closed" : doc.damage.length ? "damaged" : "closed cleanly"}`), doc.holder && h("p", { class: "soft mono" }, doc.holder)),
    h("section", {}, h("h2", {}, "Another store of the same run"),
      h("p", {}, "This may be the store of another player, or of the server. Replace OTHER by its name. ", app.info.kind === "store" ? "This command finds the tick at which the two diverge, and the difference." : "This command shows the difference."),
      h("pre", {}, doc.compare), app.info.kind === "store" && h("p", { class: "soft" }, "Serve the other store too, and go to the same tick in both.")),
    h("section", {}, h("h2", {}, "Snapshots", h("span", { class: "soft" }, String(doc.snapshots.length))),
      h("table", {}, h("thead", {}, h("tr", {}, ["number", "tick", "record", "size", "label"].map((t, i) => h("th", { class: i < 4 ? "number" : "" }, t)))),
        h("tbody", {}, doc.snapshots.slice(-200).map((s) => h("tr", {}, h("td", { class: "number" }, String(s.number)),
          s.error ? h("td", { class: "danger", colspan: 3 }, s.error) : [h("td", { class: "number" }, plain(String(s.tick), () => app.jump(s.record), "Go there")), h("td", { class: "number" }, String(s.record)), h("td", { class: "number" }, size(s.size))],
          h("td", { class: "long" }, s.label ?? "")))))));
});

async function verify() {
  button.disabled = true;
  fill(report, h("p", { class: "soft" }, "Reading all data …"));
  try {
    const r = await ask("verify");
    fill(report, h("p", { class: "verdict " + (r.ok ? "added" : "danger") }, r.ok ? "No problems were found." : count(r.problems.length, "problem", "problems")),
      problems(r.problems.slice(0, 200)),
      r.notes.map((n) => h("p", { class: "soft" }, n)),
      h("p", { class: "soft" }, `${count(r.snapshots, "snapshot", "snapshots")}, ${count(r.records, "record", "records")} checked, ${r.replayed.toLocaleString("en")} replayed, ${size(r.bytes)} read`),
      r.helps.map((c) => h("pre", {}, c)));
  } catch (err) {
    fill(report, errorBox(err));
  } finally {
    button.disabled = false;
  }
}

export default {
  id: "health", title: "Health", timeless: true,
  mount(screen) {
    box = h("div");
    report = h("div", { "aria-live": "polite" });
    button = h("button", { type: "button", id: "verify", onclick: verify }, "Verify everything");
    screen.append(h("div", { class: "columns" }, box, h("section", {}, h("h2", {}, "Verify"), button, report)));
  },
  update: () => load(),
  focus() { button.focus(); },
};
