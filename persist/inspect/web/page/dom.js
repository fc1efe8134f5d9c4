// Functions that build screens. Text is inserted only as text nodes, so names and values never
// become HTML.

import { ends, share } from "./spread.js";

// h creates an element: h("button", {class: "plain", onclick: f}, "text", child, …).
export function h(tag, props, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("aria-") && typeof value === "boolean") {
      e.setAttribute(name, String(value));
      continue;
    }
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "value") e.value = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(3).filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

// fill replaces the children of e.
export function fill(e, ...children) {
  e.replaceChildren(...children.flat(3).filter((c) => c !== undefined && c !== null && c !== false));
}

// plain creates a button that looks like a link. It leads to a point in time or to an entity.
export const plain = (text, onclick, title) => h("button", { class: "plain", type: "button", onclick, title }, text);

// errorBox shows an error and a note. If the error has a position in an expression, it marks the
// position.
export function errorBox(err, text, note = advice(err)) {
  const box = h("p", { class: "error", role: "alert" }, err.message);
  if (text && err.at !== undefined) box.append("\n" + excerpt(text, err.at));
  if (note) box.append("\n", h("span", { class: "try" }, note));
  return box;
}

// excerpt returns the text around a position, cut to fit on a line, and a mark below the
// position.
function excerpt(text, at) {
  const runes = [...text.replace(/\s/g, " ")], room = Math.min(100, Math.floor((innerWidth - 80) / 8));
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), runes.length - room));
  return runes.slice(from, from + room).join("") + "\n" + " ".repeat(at - from) + "^";
}

// advice returns what the user can do on the page about an error, or "". The command that the
// server suggests is for a terminal.
export function advice(err) {
  if (err.kind === "gone") return "The page keeps its contents. Start ecsdump serve again, and open the address that it prints.";
  if (err.kind === "corrupt") return "Health, screen 7, shows the damage and commands that may help.";
  if (err.kind === "not_found" && err.try) return "The bar shows the existing ticks; Home and End go to the oldest and to the newest.";
  return "";
}

// count formats a number with its unit: 1 entity, 1,234 entities.
export const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

// brief formats a number with few characters.
export function brief(v) {
  const text = String(+v.toPrecision(6));
  return text.length > 9 ? v.toExponential(2).replace(/\.?0+e/, "e") : text;
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (bytes >= 1024 && i < units.length - 1) [bytes, i] = [bytes / 1024, i + 1];
  return (i ? bytes.toFixed(1) : bytes) + " " + units[i];
}

// latest returns a function that runs one call of run() at a time. If more calls arrive meanwhile,
// it runs only the last of them. So fast scrubbing does not build up a queue.
export function latest(run) {
  let busy = false, next;
  return async function call(...args) {
    if (busy) {
      next = args;
      return;
    }
    busy = true;
    try {
      await run(...args);
    } finally {
      busy = false;
      if (next) {
        const again = next;
        next = undefined;
        call(...again);
      }
    }
  };
}

// surface sets a canvas to the resolution of the screen. It returns the drawing context, in CSS
// pixels, and the size.
export function surface(canvas) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const c = canvas.getContext("2d");
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.clearRect(0, 0, width, height);
  return [c, width, height];
}

// color returns a color that style.css defines.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// spark draws the changes of a number over time as a line with steps.
export function spark(course, first, last) {
  const canvas = h("canvas", { class: "spark", "aria-hidden": "true" });
  requestAnimationFrame(() => {
    const [c, width, height] = surface(canvas);
    const numbers = course.values.filter((v) => v !== null);
    if (!numbers.length || !width) return;
    const [low, high] = ends(numbers);
    const x = (tick) => 1 + (width - 2) * (tick - first) / Math.max(1, last - first);
    c.strokeStyle = color("accent");
    c.lineWidth = 1.2;
    c.beginPath();
    let down = false;
    course.ticks.forEach((tick, i) => {
      if (course.values[i] === null) return void (down = false);
      const y = height - 2 - (height - 4) * share(course.values[i], low, high);
      const end = i + 1 < course.ticks.length ? course.ticks[i + 1] : last;
      down ? c.lineTo(x(tick), y) : c.moveTo(x(tick), y);
      c.lineTo(x(end), y);
      down = true;
    });
    c.stroke();
  });
  return canvas;
}
