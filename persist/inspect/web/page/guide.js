// What the page can do, in a dialog: what the bar shows, how points and expressions are written, and the keys.
import { app } from "./app.js";
import { h, fill, plain } from "./dom.js";
import { examples } from "./examples.js";

const signs = [
  ["rows", "what each tick wrote: rows, or bytes until these are counted. Where one column is several ticks, the dark part is their mean and the light one the most. Heights are square roots, so that little is seen beside much"],
  ["input", "strip above: ticks in which the program was given inputs"],
  ["lane", "strips below: ticks that were rewound; click one to go there"],
  ["mark", "a mark: a name that the program gave a tick"],
  ["dot", "a snapshot: a whole state in a file"],
  ["change", "a change of the chosen entity"],
  ["damage", "something that cannot be read; Health says what"],
  ["cursor", "the point that is shown; A and B, if one is pinned"],
];

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
  ["?", "this"],
];

// points returns some points in time that there are, with what they mean.
function points() {
  const { tick, record, time } = app.point ?? { tick: 0, record: 0 }, mark = app.bar.doc?.marks.findLast((m) => m.name.length < 40);
  return [
    [String(tick), "a tick on the way to the newest state"],
    ["@latest~1", "so many ticks before another point"],
    mark && ["mark:" + mark.name, "a mark"],
    ["record:" + record, "a record of the journal, on whatever branch"],
    time && ["@" + time, "the newest tick by then; @02:47:10 is the last such time, UTC, @-5s is 5 seconds before the newest state"],
  ].filter(Boolean);
}

// guide shows it. What is given as an example leads to where it is used.
export function guide(dialog) {
  const go = (f) => () => { dialog.close(); f(); };
  const list = (pairs, lead) => h("dl", {}, pairs.map(([text, means]) => [h("dt", {}, h("code", {}, lead ? plain(text, go(() => lead(text)), "Try it") : text)), h("dd", {}, means)]));
  const part = (title, ...content) => h("section", {}, h("h3", {}, title), content);
  const { where, columns, plot, first } = examples();
  fill(dialog, h("h2", { id: "guide-title" }, "Help"),
    h("div", { class: "guide" },
      part("The bar is time, from left to right", h("dl", {}, signs.map(([name, text]) => [h("dt", {}, h("span", { class: "sign " + name })), h("dd", {}, text)]))),
      part("Points in time, to be typed", list(points(), (text) => app.goTo(text))),
      part("Expressions about an entity: Where", list(where, (where) => app.show("entities", { where })),
        h("p", {}, "Names are those of components and fields; some are offered while you type, and Tab takes the first. What needs a component that an entity lacks is nothing, and a condition on nothing is false.")),
      part("Columns", list(columns, (columns) => app.show("entities", { columns })), h("p", {}, "+ − * / ( ) compute; a ?? b is b where a is nothing; c ? a : b chooses.")),
      part("Expressions about the world: Plots", list(plot, (expr) => app.show("plots", { expr: [...new Set([...app.all("expr"), expr])].slice(-8) }))),
      part("First tick at which", list(first)),
      part("Keys", h("dl", {}, keys.map(([key, text]) => [h("dt", {}, key.split(" ").map((k) => [h("kbd", {}, k), " "])), h("dd", {}, text)]))),
      part("Another one of the same run", h("p", {}, "As that of another player, or of the server: Health, screen 7, has the command that says at which tick the two part, and in what."))),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}
