// The help dialog. It explains the signs of the bar, points in time, expressions, and the keys.
import { app } from "./app.js";
import { h, fill, plain } from "./dom.js";
import { examples } from "./examples.js";

const signs = [
  ["rows", "rows that each tick wrote, or bytes until rows are counted. If a column covers several ticks, the dark part is their mean and the light part their maximum. Heights are square roots, so that small values stay visible"],
  ["input", "strip above: ticks with inputs"],
  ["lane", "strips below: rewound ticks; click one to go there"],
  ["mark", "a mark: a name that the program gave to a tick"],
  ["dot", "a snapshot: a whole state in a file"],
  ["change", "a change of the chosen entity"],
  ["damage", "damage; Health has the details"],
  ["cursor", "the shown point; A and B, if a point is pinned"],
];

const keys = [
  ["← →", "one tick back or forward; with Shift ten"],
  ["PageUp PageDown", "a twentieth of the bar"],
  ["Home End", "the oldest or the newest state"],
  ["Space", "play or stop"],
  ["[ ]", "previous and next change of the chosen entity"],
  ["+ − 0", "zoom the bar in or out, or show all ticks; the wheel zooms too"],
  ["F", "follow the newest tick"],
  ["P", "pin this point as A, for comparison with other points"],
  ["G", "type a point in time"],
  ["/", "type a filter or an expression"],
  ["1 … 7", "screens"],
  ["↑ ↓ Enter", "in the list: choose an entity, open it"],
  ["Esc", "leave a field, close this dialog"],
  ["?", "this dialog"],
];

// points returns points in time that exist in the store, with explanations.
function points() {
  const { tick, record, time } = app.point ?? { tick: 0, record: 0 }, mark = app.bar.doc?.marks.findLast((m) => m.name.length < 40);
  return [
    [String(tick), "a tick on the path to the newest state"],
    ["@latest~1", "a number of records before another point"],
    [`${tick}@record:${record}`, "a tick on the path to another point"],
    mark && ["mark:" + mark.name, "a mark"],
    ["record:" + record, "a record of the journal, on any branch"],
    time && ["@" + time, "the newest tick at that time; @02:47:10 is the last such time, UTC, and @-5s is 5 seconds before the newest state"],
  ].filter(Boolean);
}

// guide shows the dialog. Each example links to the screen where it is used.
export function guide(dialog) {
  const go = (f) => () => { dialog.close(); f(); };
  const list = (pairs, lead) => h("dl", {}, pairs.map(([text, means]) => [h("dt", {}, h("code", {}, lead ? plain(text, go(() => lead(text)), "Try it") : text)), h("dd", {}, means)]));
  const part = (title, ...content) => h("section", {}, h("h3", {}, title), content);
  const { where, columns, plot, first } = examples();
  fill(dialog, h("h2", { id: "guide-title" }, "Help"),
    h("div", { class: "guide" },
      part("The bar is time, from left to right", h("dl", {}, signs.map(([name, text]) => [h("dt", {}, h("span", { class: "sign " + name })), h("dd", {}, text)]))),
      part("Points in time to type", list(points(), (text) => app.goTo(text))),
      part("Expressions about an entity: Where", list(where, (where) => app.show("entities", { where })),
        h("p", {}, "Names are the names of components and fields. The page offers names while you type; Tab inserts the first one. An expression has no value if the entity lacks its component, and a condition without a value is false.")),
      part("Columns", list(columns, (columns) => app.show("entities", { columns })), h("p", {}, "+ − * / ( ) compute; a ?? b is b if a has no value; c ? a : b is a if c is true, otherwise b.")),
      part("Expressions about the world: Plots", list(plot, (expr) => app.show("plots", { expr: [...new Set([...app.all("expr"), expr])].slice(-8) }))),
      part("First tick at which", list(first)),
      part("Keys", h("dl", {}, keys.map(([key, text]) => [h("dt", {}, key.split(" ").map((k) => [h("kbd", {}, k), " "])), h("dd", {}, text)]))),
      part("Another store of the same run", h("p", {}, "Health, screen 7, has a command that compares this store with that of another player, or of the server. The command finds the tick at which the two diverge, and the difference."))),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
