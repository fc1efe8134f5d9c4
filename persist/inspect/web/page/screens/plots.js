// The Plots screen shows up to eight expressions over the ticks of the time bar.
import { app } from "../app.js";
import { h, fill, latest, errorBox, surface, color, brief, count } from "../dom.js";
import { ask } from "../api.js";
import { complete } from "../complete.js";
import { examples } from "../examples.js";
import { ends, share } from "../spread.js";

const most = 8;
let box, input, wrong, first, answer, doc, range, ofEntity;

const exprs = () => app.all("expr").length ? app.all("expr") : ["alive"];

// end returns the last state of the plots. Plots extend beyond the shown point, to the newest
// state. So a step in time only moves a line and sends no request.
const end = () => app.point.rewound ? app.point : app.news ?? app.info.newest ?? app.point;

const load = latest(async (again) => {
  if (!box?.isConnected || !app.point || !app.bar.doc) return;
  const { from, to } = app.bar.doc, { record } = end();
  const entity = ofEntity.checked ? app.get("entity") : "";
  const key = JSON.stringify([from, to, record, exprs(), entity]);
  if (key === range && !again) return draw();
  box.parentElement.classList.add("busy");
  try {
    doc = await ask("series", { record, from, to, expr: exprs(), entity });
    range = key;
  } catch (err) {
    if (err.name !== "AbortError") fill(box, errorBox(err));
    return;
  } finally {
    box.parentElement?.classList.remove("busy");
  }
  build();
  draw();
});

let canvases = [];
function build() {
  canvases = [];
  fill(box, doc.series.map((s, i) => {
    const canvas = h("canvas", { role: "img", "aria-label": s.text + " over time" });
    canvases.push(canvas);
    canvas.addEventListener("click", (e) => {
      const at = nearest(e.offsetX / app.bar.canvas.clientWidth);
      if (at >= 0) app.jump(doc.records[at]);
    });
    return h("div", { class: "plot" },
      h("div", { class: "caption" }, h("code", {}, s.text), h("span", { class: "soft", "data-now": i }), s.wild > 0 && h("span", { class: "changed" }, `NaN or ±Inf at ${count(s.wild, "tick", "ticks")}`), h("button", { class: "plain", type: "button", "aria-label": "Remove " + s.text, onclick: () => change(exprs().filter((t) => t !== s.text)) }, "remove")),
      s.error ? errorBox(s.error, s.text) : canvas);
  }));
}

// Plots have the same time axis as the bar.
const xOf = (tick) => app.bar.xOf(tick);

function nearest(part) {
  const tick = app.bar.doc.from + part * app.bar.span();
  let best = -1;
  doc.ticks.forEach((t, i) => { if (best < 0 || Math.abs(t - tick) < Math.abs(doc.ticks[best] - tick)) best = i; });
  return best;
}

function draw() {
  if (!doc) return;
  doc.series.forEach((s, i) => {
    const canvas = canvases[i];
    if (!canvas?.isConnected) return;
    const [c, , height] = surface(canvas), numbers = s.values.filter((v) => v !== null);
    const [low, high] = ends(numbers);
    const y = (v) => height - 8 - (height - 24) * share(v, low, high);
    c.fillStyle = color("accent");
    c.fillRect(xOf(app.point.tick) - 0.5, 0, 1, height);
    if (app.pin) {
      c.fillStyle = color("mark");
      c.fillRect(xOf(app.pin.tick) - 0.5, 0, 1, height);
    }
    c.strokeStyle = color("accent");
    c.lineWidth = 1.4;
    c.beginPath();
    let down = false;
    doc.ticks.forEach((t, k) => {
      if (s.values[k] === null) return void (down = false);
      down ? c.lineTo(xOf(t), y(s.values[k])) : c.moveTo(xOf(t), y(s.values[k]));
      down = true;
    });
    c.stroke();
    c.fillStyle = color("soft");
    c.font = "11px system-ui, sans-serif";
    if (numbers.length) {
      c.fillText(brief(high), 5, 12);
      c.fillText(brief(low), 5, height - 3);
    } else c.fillText("no number at these ticks", 5, 14);
    const now = box.querySelector(`[data-now="${i}"]`), told = [app.comparedWith(), app.point].filter(Boolean).map((p) => sample(s, p.tick));
    if (now) now.textContent = told.some((t) => t === null) ? told.at(-1)?.text ?? "" : told.map((t) => t.text).join(" → ") + (told.length > 1 ? ` (${signed(told[1].value - told[0].value)})` : "");
  });
}

// sample returns the value at the tick nearest to the given one, or null.
function sample(s, tick) {
  const at = nearest((tick - app.bar.doc.from + 0.5) / app.bar.span());
  return at >= 0 && s.values[at] !== null ? { value: s.values[at], text: `${+s.values[at].toPrecision(8)} at tick ${doc.ticks[at]}` } : null;
}

const signed = (v) => (v > 0 ? "+" : "") + String(+v.toPrecision(8)).replace("-", "−");

function change(list) {
  app.set({ expr: list }, true);
  load(true);
}

// tell shows the error of a text that the page sent from one of the two fields. If err is
// missing, it removes the error. The field may contain another text by now.
function tell(field, text, err) {
  for (const f of [input, first]) f.setAttribute("aria-invalid", f === field && Boolean(err) && f.value.trim() === text);
  fill(wrong, err && errorBox(err, text));
}

// add plots the typed expression if it is valid at the newest tick. It clears the field at once,
// for the next expression. It restores an invalid expression, unless the user has typed another
// text.
async function add(e) {
  e.preventDefault();
  const text = input.value.trim();
  if (!text) return;
  input.value = "";
  let err;
  try {
    const { record, tick } = end();
    const got = await ask("series", { record, from: tick, to: tick, expr: text, entity: ofEntity.checked ? app.get("entity") : "" });
    err = got.series[0].error;
  } catch (e) {
    err = e;
  }
  if (err && !input.value) input.value = text;
  tell(input, text, err);
  if (err) return;
  if (!exprs().includes(text)) change([...app.all("expr"), text].slice(-most));
}

async function find(e) {
  e.preventDefault();
  const text = first.value.trim();
  fill(answer, h("span", { class: "soft" }, "Searching …"));
  try {
    const got = await ask("first", { record: end().record, from: app.bar.doc.from, expr: text });
    tell(first, text);
    fill(answer, got.found ? h("button", { class: "plain", type: "button", onclick: () => app.jump(got.found.record) }, "first at tick " + got.found.tick) : h("span", { class: "soft" }, `false at all ${got.asked} ticks`), got.builds && h("span", { class: "soft" }, " " + got.builds));
    if (got.found) app.jump(got.found.record);
  } catch (err) {
    fill(answer);
    tell(first, text, err);
  }
}

export default {
  id: "plots", title: "Plots", full: true,
  mount(screen) {
    doc = null;
    range = "";
    input = h("input", { id: "expr", "aria-label": "Expression" });
    first = h("input", { id: "first", "aria-label": "Condition" });
    answer = h("span", { "aria-live": "polite" });
    ofEntity = h("input", { type: "checkbox", id: "of-entity", checked: false, onchange: () => load(true) });
    wrong = h("div", { class: "wrong" });
    const form = h("form", { class: "tools", onsubmit: add }, h("label", { class: "wide" }, "Add", input), h("button", {}, "Plot"), h("label", { title: "Expressions are about the chosen entity instead of the world" }, ofEntity, "of the chosen entity"));
    const search = h("form", { class: "tools", onsubmit: find }, h("label", { class: "wide" }, "First tick at which", first), h("button", {}, "Find"), answer);
    box = h("div", { class: "plots" });
    screen.append(form, search, wrong, h("div", { class: "list" }, box));
    complete(input, () => ["count(", "sum(", "min(", "max(", "avg(", "any(", "all(", ...app.names()]);
    complete(first, () => ["count(", "sum(", "min(", "max(", "avg(", "any(", "all(", "none(", ...app.names()]);
    new ResizeObserver(() => draw()).observe(box);
  },
  update(why) {
    const { plot, first: [[condition]] } = examples();
    [input.placeholder, first.placeholder] = [plot.at(-1)[0], condition];
    return load(why === "screen");
  },
  focus() { input.focus(); },
};
