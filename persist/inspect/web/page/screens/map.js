// The Map screen shows entities as points. Two numbers of an entity are its position, a third is
// its color.
import { app } from "../app.js";
import { h, fill, latest, errorBox, surface, color, count, brief, plain } from "../dom.js";
import { ask, fetchPinned, lastValid } from "../api.js";
import { field } from "../complete.js";
import { examples, refer } from "../examples.js";
import { ends, near, share } from "../spread.js";

// then is the map at the pinned point A, or null.
let canvas, tip, key, inputs, put, status, trouble, doc, then, box, view, drag, drawn;
let touched = false; // The user has moved or zoomed the view.
let whole = false; // The view includes distant points.

const scheme = ["#4f8fc0", "#d98c3f", "#5aa469", "#c45b62", "#8c72b8", "#a88a5c", "#c77fb0", "#7f8c8d", "#b5b23f", "#3fb0b5"];

// guess finds two numbers that may be a position: X and Y of a component. If no component has both,
// it returns two numbers of the first component that has two.
function guess() {
  let two;
  for (const c of app.schema?.components ?? []) {
    if (c.kind !== "component") continue;
    const numbers = c.fields.filter((f) => f.kind === "number");
    const [x, y] = ["x", "y"].map((n) => numbers.find((f) => f.path.toLowerCase().split(".").pop() === n));
    const full = (f) => refer(c.name, f.path);
    if (x && y) return [full(x), full(y)];
    if (numbers.length > 1) two ??= [full(numbers[0]), full(numbers[1])];
  }
  return two ?? ["index", "generation"];
}

// hint returns an expression that could color the points.
function hint() {
  for (const c of app.schema?.components ?? []) {
    const f = c.kind === "component" && c.fields.find((f) => f.kind !== "other" && !/^[xy]$/i.test(f.path));
    if (f) return refer(c.name, f.path);
  }
  return "";
}

// names maps parameters of the request to parameters of the state in the URL.
const names = { x: "x", y: "y", color: "color", where: "mapwhere" };
const given = (f) => app.get(names[f]);

// full replaces an empty x or y by a number that may be a position.
function full(fields) {
  const [x, y] = guess();
  return { ...fields, x: fields.x || x, y: fields.y || y };
}

const load = latest(async () => {
  if (!canvas?.isConnected || !app.point) return;
  const { record } = app.point;
  /** @type {any} */
  let asked;
  try {
    const a = app.comparedWith(), got = await put((fields) => {
      asked = full(fields);
      return Promise.all([ask("map", { record, ...asked }), a ? fetchPinned("map", { record: a.record, ...asked, color: "" }) : null]);
    });
    if (!canvas?.isConnected) return;
    const [now, old] = got.doc;
    doc = { ...now, title: asked.color };
    then = old && new Map(old.entities.map((e, i) => [e, [old.x[i], old.y[i]]]));
    tell(got.wrong);
  } catch (err) {
    if (err.name !== "AbortError") tell({ [err.which]: err });
    return;
  } finally {
    const [x, y] = guess();
    Object.assign(inputs.x, { placeholder: x }), Object.assign(inputs.y, { placeholder: y }), Object.assign(inputs.color, { placeholder: hint() });
    inputs.where.placeholder = examples().where[0][0];
  }
  const of = JSON.stringify([asked.x, asked.y]);
  if (of !== box?.of) [box, view] = [{ of, x: [Infinity, -Infinity], y: [Infinity, -Infinity] }, null], touched = whole = false;
  const olds = then ? [...then.values()] : [], xs = [...doc.x, ...olds.map(([x]) => x)], ys = [...doc.y, ...olds.map(([, y]) => y)];
  const close = near(xs, ys), grown = ([low, high], [least, most]) => [Math.min(low, least), Math.max(high, most)];
  // The box only grows, so the view does not jump while time moves.
  box.x = grown(box.x, ends(xs.filter((_, i) => close(i))));
  box.y = grown(box.y, ends(ys.filter((_, i) => close(i))));
  box.all = [grown(box.x, ends(xs)), grown(box.y, ends(ys))];
  const numbers = doc.colors?.filter((v) => v !== null) ?? [], usual = near(numbers);
  doc.hues = { usual: ends(numbers.filter((_, i) => usual(i))), all: ends(numbers) };
  if (!touched) view = null;
  summarize();
  draw();
});

// summarize shows the number of points, and how many of them are omitted or far away.
function summarize() {
  const within = (v, [low, high]) => v >= low && v <= high;
  const far = doc.x.filter((x, i) => !within(x, box.x) || !within(doc.y[i], box.y)).length;
  const parts = [
    doc.more ? `${count(doc.x.length, "point", "points")}, a sample of ${doc.placed.toLocaleString("en")}` : count(doc.x.length, "point", "points"),
    doc.wild > 0 && `${doc.wild.toLocaleString("en")} at NaN or ±Inf`,
    doc.absent > 0 && `${doc.absent.toLocaleString("en")} without a position`,
    far > 0 && (whole ? `${far.toLocaleString("en")} far away` : plain(`${far.toLocaleString("en")} far away`, () => { whole = true; fit(); }, "Show these too")),
  ].filter(Boolean);
  fill(status, parts.map((p, i) => [i ? ", " : "", p]), then ? since() : "");
}

// fit resets the view, so that it shows all points. It leaves out distant points, unless the user
// has asked for them.
function fit() {
  view = null;
  touched = false;
  summarize();
  draw();
}

// tell shows which fields are invalid.
function tell(wrong) {
  for (const [name, input] of Object.entries(inputs)) input.setAttribute("aria-invalid", name in wrong);
  fill(trouble, Object.entries(wrong).map(([name, err]) => errorBox(err, name in names ? given(name) : "")));
}

// since returns a text: how many points have moved, were added or are gone since A.
function since() {
  let moved = 0, added = 0;
  doc.entities.forEach((e, i) => {
    const old = then.get(e);
    if (!old) added++;
    else if (old[0] !== doc.x[i] || old[1] !== doc.y[i]) moved++;
  });
  return `; since A${doc.more ? ", in the sample," : ""} ${moved.toLocaleString("en")} moved, ${added.toLocaleString("en")} added, ${(then.size - (doc.x.length - added)).toLocaleString("en")} gone`;
}

// trails draws a line from the position at A to each point that moved. It also draws the points
// that exist only at A.
function trails(c, px, py, half) {
  const here = new Set(doc.entities);
  c.lineWidth = 1;
  c.strokeStyle = color("soft");
  c.globalAlpha = 0.6;
  c.beginPath();
  doc.entities.forEach((e, i) => {
    const old = then.get(e);
    if (old && (old[0] !== doc.x[i] || old[1] !== doc.y[i])) c.moveTo(px(old[0]), py(old[1])), c.lineTo(px(doc.x[i]), py(doc.y[i]));
  });
  c.stroke();
  c.globalAlpha = 1;
  c.strokeStyle = color("removed");
  for (const [e, [x, y]] of then) if (!here.has(e)) c.strokeRect(px(x) - half, py(y) - half, 2 * half, 2 * half);
}

// project returns the functions that convert positions to pixels. view is the position in the
// center and the number of pixels per unit. Until the user moves the view, it shows the whole
// box.
function project(width, height) {
  if (!view) {
    const [[left, right], [low, high]] = whole ? box.all : [box.x, box.y];
    // The differences of two float64 could overflow, so use halves.
    const scale = Math.min((width - 60) / 2 / (right / 2 - left / 2), (height - 60) / 2 / (high / 2 - low / 2));
    view = { x: left / 2 + right / 2, y: low / 2 + high / 2, scale: Number.isFinite(scale) ? scale : 60 };
    if (!Number.isFinite(view.x)) view = { x: 0, y: 0, scale: 1 };
  }
  return [(x) => width / 2 + (x - view.x) * view.scale, (y) => height / 2 + (y - view.y) * view.scale];
}

function draw() {
  if (!canvas?.isConnected || !doc) return;
  const [c, width, height] = surface(canvas), [px, py] = project(width, height);
  const [low, high] = doc.hues.usual;
  const paint = (v) => {
    if (!doc.colors) return color("accent");
    if (v === null) return color("line");
    return doc.classes ? scheme[v % scheme.length] : ramp(share(v, low, high));
  };
  grid(c, width, height);
  // The fewer points there are, the larger is each point.
  const room = Math.sqrt(width * height / Math.max(1, doc.x.length)), least = Math.max(2, Math.min(room / 6, 5));
  const size = Math.max(least, Math.min(view.scale * 0.86, 14)), half = size / 2, chosen = app.get("entity");
  if (then) trails(c, px, py, half);
  drawn = [];
  const plain = doc.colors ? null : color("accent");
  for (let i = 0; i < doc.x.length; i++) {
    const x = px(doc.x[i]), y = py(doc.y[i]);
    if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
    c.fillStyle = plain ?? paint(doc.colors[i]);
    c.fillRect(x - half, y - half, size, size);
    drawn.push([x, y, i]);
  }
  const at = doc.entities.indexOf(chosen);
  if (at >= 0) {
    c.strokeStyle = color("danger");
    c.lineWidth = 2;
    c.beginPath();
    c.arc(px(doc.x[at]), py(doc.y[at]), Math.max(8, half + 4), 0, 7);
    c.stroke();
  }
  legend(low, high, doc.hues.all);
}

const ramp = (t) => `hsl(${Math.round(215 - 190 * t)} ${Math.round(45 + 30 * t)}% ${Math.round(56 - 6 * t)}%)`;

function grid(c, width, height) {
  const wanted = 110 / view.scale, power = 10 ** Math.floor(Math.log10(wanted)), step = power * ([1, 2, 5, 10].find((k) => k * power >= wanted) ?? 10);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  const left = view.x - width / 2 / view.scale, low = view.y - height / 2 / view.scale;
  const lines = (from, long) => Array.from({ length: Math.max(0, Math.min(64, Math.floor((from + long) / step) - Math.ceil(from / step) + 1)) }, (_, i) => (Math.ceil(from / step) + i) * step);
  const xs = lines(left, width / view.scale).map((x) => [x, width / 2 + (x - view.x) * view.scale]), ys = lines(low, height / view.scale).map((y) => [y, height / 2 + (y - view.y) * view.scale]);
  c.fillStyle = color("faint");
  for (const [, at] of xs) c.fillRect(at, 0, 1, height);
  for (const [, at] of ys) c.fillRect(0, at, width, 1);
  c.fillStyle = color("soft");
  for (const [x, at] of xs) c.fillText(brief(x), at + 3, height - 5);
  // Leave out labels of y at the bottom, where the labels of x are.
  for (const [y, at] of ys) if (at > 12 && at < height - 16) c.fillText(brief(y), 4, at - 3);
}

function legend(low, high, [least, most]) {
  key.hidden = !doc.colors || (!doc.classes && !Number.isFinite(low));
  if (key.hidden) return;
  const swatch = (paint) => {
    const s = h("span", { class: "swatch" });
    s.style.background = paint;
    return s;
  };
  const lines = doc.classes
    ? doc.classes.map((name, i) => [swatch(scheme[i % scheme.length]), name])
    : [1, 0.5, 0].map((t) => [swatch(ramp(t)), (t === 1 && most > high ? "≥ " : t === 0 && least < low ? "≤ " : "") + brief(low * (1 - t) + high * t)]);
  fill(key, h("div", { class: "soft", title: doc.title }, doc.title), lines.map((line) => h("div", { title: line[1] }, line)));
}

// under returns the number of the point under the pointer, or -1.
function under(e) {
  let best = 100, found = -1;
  for (const [x, y, i] of drawn ?? []) {
    const d = (x - e.offsetX) ** 2 + (y - e.offsetY) ** 2;
    if (d < best) [best, found] = [d, i];
  }
  return found;
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  if (!view) return;
  const mx = (x - canvas.clientWidth / 2) / view.scale, my = (y - canvas.clientHeight / 2) / view.scale;
  view.x += mx - mx / factor;
  view.y += my - my / factor;
  view.scale *= factor;
  touched = true;
  draw();
}

export default {
  id: "map", title: "Map", full: true,

  mount(screen) {
    doc = box = view = null;
    touched = whole = false;
    put = lastValid(Object.keys(names), given);
    inputs = {};
    const labels = Object.entries({ X: "x", Y: "y", Color: "color", Where: "where" }).map(([text, name]) => {
      const [label, input] = field(text, names[name], load, { id: "map-" + names[name], size: 14 });
      inputs[name] = input;
      return label;
    });
    status = h("span", { class: "status long", "aria-live": "polite" });
    trouble = h("div", { class: "wrong" });
    canvas = h("canvas", { id: "map", role: "img", "aria-label": "Entities as points" });
    tip = h("div", { class: "tip", hidden: true });
    key = h("div", { class: "key", hidden: true });
    const button = (text, label, f) => h("button", { type: "button", "aria-label": label, title: label, onclick: f }, text);
    screen.append(
      h("div", { class: "tools" }, labels,
        button("+", "Zoom in", () => zoom(1.5)), button("−", "Zoom out", () => zoom(1 / 1.5)), button("Fit", "Fit all points that are close together", () => { whole = false; if (doc) fit(); }), status),
      trouble,
      h("div", { class: "map" }, canvas, tip, key));
    canvas.addEventListener("wheel", (e) => { e.preventDefault(); zoom(e.deltaY > 0 ? 0.85 : 1.18, e.offsetX, e.offsetY); }, { passive: false });
    canvas.addEventListener("pointerdown", (e) => { canvas.setPointerCapture(e.pointerId); drag = { x: e.offsetX, y: e.offsetY, moved: false }; });
    canvas.addEventListener("pointermove", (e) => {
      if (drag) {
        const dx = e.offsetX - drag.x, dy = e.offsetY - drag.y;
        if (Math.abs(dx) + Math.abs(dy) > 3 || drag.moved) {
          drag = { x: e.offsetX, y: e.offsetY, moved: true };
          touched = true;
          view.x -= dx / view.scale, view.y -= dy / view.scale;
          draw();
        }
        return;
      }
      const i = under(e);
      tip.hidden = i < 0;
      if (i < 0) return;
      tip.textContent = `${doc.entities[i]} (${+doc.x[i].toPrecision(6)}, ${+doc.y[i].toPrecision(6)})`;
      tip.style.left = Math.min(e.offsetX + 12, canvas.clientWidth - 150) + "px";
      tip.style.top = e.offsetY + 12 + "px";
    });
    canvas.addEventListener("pointerup", (e) => {
      const i = drag?.moved ? -1 : under(e);
      drag = null;
      if (i >= 0) app.openEntity(doc.entities[i]);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    new ResizeObserver(() => { view = touched ? view : null; draw(); }).observe(canvas);
  },
  update(why) {
    if (why === "screen") for (const name in names) inputs[name].value = given(name);
    return load();
  },
  focus() { inputs.x.select(); inputs.x.focus(); },
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
