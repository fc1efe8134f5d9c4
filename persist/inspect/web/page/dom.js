// What the screens are made of. Text only ever becomes a text node: whatever a name or value
// holds, it is shown as it is.

import { ends, share } from "./spread.js";

// h makes an element: h("button", {class: "plain", onclick: f}, "text", child, …).
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

// fill replaces what is in e.
export function fill(e, ...children) {
  e.replaceChildren(...children.flat(3).filter((c) => c !== undefined && c !== null && c !== false));
}

// plain makes a button that looks like a link: it goes somewhere in time or to an entity.
export const plain = (text, onclick, title) => h("button", { class: "plain", type: "button", onclick, title }, text);

// errorBox shows what went wrong, with a mark under the place in an expression, and what follows from it or helps.
export function errorBox(err, text, note = advice(err)) {
  const box = h("p", { class: "error", role: "alert" }, err.message);
  if (text && err.at !== undefined) box.append("\n" + excerpt(text, err.at));
  if (note) box.append("\n", h("span", { class: "try" }, note));
  return box;
}

// excerpt returns as much of a text around a place as fits on a line, and below it a mark at the place.
function excerpt(text, at) {
  const runes = [...text.replace(/\s/g, " ")], room = Math.min(100, Math.floor((innerWidth - 80) / 8));
  const from = Math.max(0, Math.min(at - Math.floor(room / 2), runes.length - room));
  return runes.slice(from, from + room).join("") + "\n" + " ".repeat(at - from) + "^";
}

// advice is what somebody at the page can do about an error, if anything. The command that may help, which
// the server names, is for those at a terminal.
export function advice(err) {
  if (err.kind === "gone") return "What is shown stays. Start ecsdump serve again, and open the address that it prints.";
  if (err.kind === "corrupt") return "Health, screen 7, says what is damaged and what helps.";
  if (err.kind === "not_found" && err.try) return "The bar shows the ticks that there are; Home and End go to the oldest and to the newest.";
  return "";
}

// count writes how many there are: 1 entity, 1,234 entities.
export const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

// brief writes a number in little room.
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

// latest returns a function that runs one call of run at a time, and of those that come meanwhile
// only the last: whoever scrubs fast is not behind.
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

// surface makes a canvas as fine as the screen and returns its context in CSS pixels.
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

// color returns one of the colors that style.css names.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// spark draws a course of numbers as steps.
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
