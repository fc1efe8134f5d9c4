// Entities as points by two numbers of each, colored by a third.
import { app } from "../app.js";
import { h, fill, latest, errorBox, surface, color, count } from "../dom.js";
import { ask, beside } from "../api.js";
import { complete } from "../complete.js";

let canvas, tip, key, inputs, status, trouble, doc, then, box, view, drag, drawn; // then: the map at A.
let touched = false; // Somebody chose what part is seen.

const scheme = ["#4f8fc0", "#d98c3f", "#5aa469", "#c45b62", "#8c72b8", "#a88a5c", "#c77fb0", "#7f8c8d", "#b5b23f", "#3fb0b5"];

// guess finds two numbers that may be a place: X and Y of a component, else the first that has two.
function guess() {
  let two;
  for (const c of app.schema?.components ?? []) {
    if (c.kind !== "component") continue;
    const numbers = c.fields.filter((f) => f.kind === "number");
    const [x, y] = ["x", "y"].map((n) => numbers.find((f) => f.path.toLowerCase().split(".").pop() === n));
    const full = (f) => f.path ? c.name + "." + f.path : c.name;
    if (x && y) return [full(x), full(y)];
    if (numbers.length > 1) two ??= [full(numbers[0]), full(numbers[1])];
  }
  return two ?? ["index", "generation"];
}

// hint names something that points could be colored by.
function hint() {
  for (const c of app.schema?.components ?? []) {
    const f = c.kind === "component" && c.fields.find((f) => f.kind !== "other" && !/^[xy]$/i.test(f.path));
    if (f) return f.path ? c.name + "." + f.path : c.name;
  }
  return "";
}

function params() {
  const [x, y] = app.get("x") || app.get("y") ? [app.get("x"), app.get("y")] : guess();
  return { x, y, color: app.get("color"), where: app.get("mapwhere") };
}

const load = latest(async () => {
  if (!canvas?.isConnected || !app.point) return;
  const asked = params();
  for (const name of ["x", "y", "color"]) inputs[name].placeholder = asked[name] || hint();
  try {
    const a = app.beside();
    const [now, old] = await Promise.all([ask("map", { record: app.point.record, ...asked }), a ? beside("map", { record: a.record, ...asked, color: "" }) : null]);
    if (!canvas?.isConnected) return;
    doc = now;
    then = old && new Map(old.entities.map((e, i) => [e, [old.x[i], old.y[i]]]));
    fill(trouble);
    for (const input of Object.values(inputs)) input.setAttribute("aria-invalid", false);
  } catch (err) {
    if (err.name === "AbortError") return;
    for (const [name, input] of Object.entries(inputs)) input.setAttribute("aria-invalid", err.which === (name === "mapwhere" ? "where" : name));
    fill(trouble, errorBox(err, asked[err.which]));
    return;
  }
  const of = JSON.stringify([asked.x, asked.y]);
  if (of !== box?.of) [box, view] = [{ of, left: Infinity, right: -Infinity, low: Infinity, high: -Infinity }, null], touched = false;
  const hold = (x, y) => { // It only grows, so that nothing jumps while time goes on.
    box.left = Math.min(box.left, x), box.right = Math.max(box.right, x);
    box.low = Math.min(box.low, y), box.high = Math.max(box.high, y);
  };
  doc.x.forEach((x, i) => hold(x, doc.y[i]));
  then?.forEach(([x, y]) => hold(x, y));
  if (!touched) view = null;
  status.textContent = count(doc.x.length, "point", "points") + (doc.more ? ", others left out" : "") + (then ? since() : "");
  draw();
});

// since says how the points differ from those at A.
function since() {
  let moved = 0, added = 0;
  doc.entities.forEach((e, i) => {
    const old = then.get(e);
    if (!old) added++;
    else if (old[0] !== doc.x[i] || old[1] !== doc.y[i]) moved++;
  });
  return `; since A ${moved.toLocaleString("en")} moved, ${added.toLocaleString("en")} came, ${(then.size - (doc.x.length - added)).toLocaleString("en")} went`;
}

// trails draws where the points come from, and what was there at A only.
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

// project returns how places become pixels.
function project(width, height) {
  if (!view) {
    const w = Math.max(1e-9, box.right - box.left), t = Math.max(1e-9, box.high - box.low);
    const scale = Math.min((width - 60) / w, (height - 60) / t);
    view = { x: (box.left + box.right) / 2, y: (box.low + box.high) / 2, scale: Number.isFinite(scale) ? Math.min(scale, 60) : 1 };
    if (!Number.isFinite(view.x)) view = { x: 0, y: 0, scale: 1 };
  }
  return [(x) => width / 2 + (x - view.x) * view.scale, (y) => height / 2 + (y - view.y) * view.scale];
}

function draw() {
  if (!canvas?.isConnected || !doc) return;
  const [c, width, height] = surface(canvas), [px, py] = project(width, height);
  const numbers = doc.colors?.filter((v) => v !== null) ?? [];
  const low = numbers.reduce((a, b) => Math.min(a, b), Infinity), high = numbers.reduce((a, b) => Math.max(a, b), -Infinity);
  const paint = (v) => {
    if (!doc.colors) return color("accent");
    if (v === null) return color("line");
    return doc.classes ? scheme[v % scheme.length] : ramp((v - low) / (high - low || 1));
  };
  grid(c, width, height);
  const size = Math.max(2, Math.min(view.scale * 0.86, 14)), half = size / 2, chosen = app.get("entity");
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
  legend(low, high);
}

const ramp = (t) => `hsl(${Math.round(215 - 190 * t)} ${Math.round(45 + 30 * t)}% ${Math.round(56 - 6 * t)}%)`;

function grid(c, width, height) {
  const wanted = 110 / view.scale, power = 10 ** Math.floor(Math.log10(wanted)), step = power * [1, 2, 5, 10].find((k) => k * power >= wanted);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  const left = view.x - width / 2 / view.scale, low = view.y - height / 2 / view.scale;
  for (let x = Math.ceil(left / step) * step; x < left + width / view.scale; x += step) {
    const at = width / 2 + (x - view.x) * view.scale;
    c.fillStyle = color("faint");
    c.fillRect(at, 0, 1, height);
    c.fillStyle = color("soft");
    c.fillText(String(+x.toPrecision(6)), at + 3, height - 5);
  }
  for (let y = Math.ceil(low / step) * step; y < low + height / view.scale; y += step) {
    const at = height / 2 + (y - view.y) * view.scale;
    c.fillStyle = color("faint");
    c.fillRect(0, at, width, 1);
    c.fillStyle = color("soft");
    c.fillText(String(+y.toPrecision(6)), 4, at - 3);
  }
}

function legend(low, high) {
  key.hidden = !doc.colors || (!doc.classes && !Number.isFinite(low));
  if (key.hidden) return;
  const swatch = (paint) => {
    const s = h("span", { class: "swatch" });
    s.style.background = paint;
    return s;
  };
  const lines = doc.classes
    ? doc.classes.map((name, i) => [swatch(scheme[i % scheme.length]), name])
    : [1, 0.5, 0].map((t) => [swatch(ramp(t)), String(+(low + t * (high - low)).toPrecision(4))]);
  fill(key, h("div", { class: "soft" }, params().color), lines.map((line) => h("div", {}, line)));
}

// near returns the point under the pointer.
function near(e) {
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
    touched = false;
    inputs = {};
    let typed;
    for (const name of ["x", "y", "color", "mapwhere"]) {
      inputs[name] = h("input", { id: "map-" + name, value: app.get(name), size: 14, oninput: (e) => {
        clearTimeout(typed);
        typed = setTimeout(() => { app.set({ [name]: e.target.value.trim() }); load(); }, 250);
      } });
    }
    status = h("span", { class: "status", "aria-live": "polite" });
    trouble = h("div");
    canvas = h("canvas", { id: "map", role: "img", "aria-label": "Entities as points" });
    tip = h("div", { class: "tip", hidden: true });
    key = h("div", { class: "key", hidden: true });
    const button = (text, label, f) => h("button", { type: "button", "aria-label": label, title: label, onclick: f }, text);
    screen.append(
      h("div", { class: "tools" }, h("label", {}, "X", inputs.x), h("label", {}, "Y", inputs.y), h("label", {}, "Color", inputs.color), h("label", {}, "Where", inputs.mapwhere),
        button("+", "Zoom in", () => zoom(1.5)), button("−", "Zoom out", () => zoom(1 / 1.5)), button("Fit", "Show all", () => { view = null; touched = false; draw(); }), status, trouble),
      h("div", { class: "map" }, canvas, tip, key));
    for (const input of Object.values(inputs)) complete(input, app.names);
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
      const i = near(e);
      tip.hidden = i < 0;
      if (i < 0) return;
      tip.textContent = `${doc.entities[i]} (${+doc.x[i].toPrecision(6)}, ${+doc.y[i].toPrecision(6)})`;
      tip.style.left = Math.min(e.offsetX + 12, canvas.clientWidth - 150) + "px";
      tip.style.top = e.offsetY + 12 + "px";
    });
    canvas.addEventListener("pointerup", (e) => {
      const i = drag?.moved ? -1 : near(e);
      drag = null;
      if (i >= 0) app.openEntity(doc.entities[i]);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    new ResizeObserver(() => draw()).observe(canvas);
  },
  update: () => load(),
  focus() { inputs.x.select(); inputs.x.focus(); },
};
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
