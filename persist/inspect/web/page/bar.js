// The time bar shows rows written by ticks, inputs, rewound branches, marks, snapshots and
// damage.
//
//  range ──load──▶ doc, from the server ──draw──▶ canvas
//                                       └─tell──▶ legend, for keyboard users
//
// doc.from and doc.to are the ticks that are drawn. range is the range that was requested last;
// during a zoom it has fractions. If range is null, the bar shows all ticks and grows with the
// store.
import { h, fill, plain, latest, surface, color, count } from "./dom.js";
import { ask } from "./api.js";

const top = 15, axis = 19, laneHeight = 5;

export class Bar {
  constructor(app, canvas, legend) {
    this.app = app;
    /** @type {HTMLCanvasElement} */
    this.canvas = canvas;
    /** @type {HTMLElement} */
    this.legend = legend;
    this.tip = document.getElementById("there");
    this.doc = null; // The document from the server.
    this.range = null; // The requested range of ticks, or null for all.
    this.load = latest(async () => {
      const params = { width: Math.min(4000, Math.max(50, canvas.clientWidth)) };
      if (this.range) [params.from, params.to] = this.range.map((v) => Math.max(0, Math.round(v)));
      try {
        this.doc = await ask("bar", params);
      } catch (err) {
        return app.trouble(err);
      }
      this.tell();
      this.draw();
      const { measure, counted } = this.doc, now = performance.now(), last = this.counting;
      // The server is still counting rows, so load again when it has probably finished.
      if (measure === "bytes" && counted < 1) {
        const rest = last && (1 - counted) / (counted - last.counted) * (now - last.at);
        this.counting = { counted, at: now };
        clearTimeout(this.again);
        this.again = setTimeout(() => this.load(), Math.min(150, Math.max(20, rest || 50)));
      }
    });
    new ResizeObserver(() => this.load()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("pointerdown", (e) => {
      canvas.setPointerCapture(e.pointerId);
      app.stay();
      this.press(e);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (canvas.hasPointerCapture(e.pointerId)) this.press(e);
      if (e.pointerType !== "touch") this.hover(e);
    });
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
      if (sideways) this.pan((e.deltaX || e.deltaY) / canvas.clientWidth * this.span());
      else this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.tickAt(e.offsetX));
    }, { passive: false });
  }

  // span returns the number of ticks that the bar shows.
  span() { return this.doc ? this.doc.to - this.doc.from + 1 : 1; }

  tickAt(x) { return this.doc.from + x / Math.max(1, this.canvas.clientWidth) * this.span(); }
  xOf(tick) { return (tick - this.doc.from + 0.5) / this.span() * this.canvas.clientWidth; }

  zoom(factor, around = this.app.point?.tick) {
    if (!this.doc) return;
    const { first, last } = this.doc, [from, to] = this.range ?? [this.doc.from, this.doc.to];
    const width = Math.max(10, (to - from) * factor);
    if (width >= last - first) return this.fit();
    const part = Math.min(1, Math.max(0, (around - from) / Math.max(1, to - from)));
    this.to(around - part * width, around + (1 - part) * width);
  }

  pan(by) {
    const [from, to] = this.range ?? [this.doc.from, this.doc.to];
    this.to(from + by, to + by);
  }

  // to shows a range of ticks. It moves the range if part of it is outside of the store.
  to(from, to) {
    const { first, last } = this.doc, width = to - from;
    from = Math.max(first, Math.min(from, last - width));
    this.range = [from, Math.min(last, from + width)];
    this.load();
  }

  fit() {
    this.range = null;
    this.load();
  }

  // press moves to the point under the pointer.
  press(e) {
    if (this.doc) this.app.goTo(this.under(e).at);
  }

  // under returns the tick under the pointer, and the point as text. If a branch is under the
  // pointer, the point is on the branch, otherwise on the path to the newest state.
  under(e) {
    const tick = Math.max(this.doc.first, Math.min(this.doc.last, Math.floor(this.tickAt(e.offsetX)))), b = this.branchAt(e.offsetY, tick);
    if (b) return { tick, branch: b, at: `${tick}@record:${b.tip}` };
    const on = Math.min(tick, this.headTick());
    return { tick: on, at: String(on) };
  }

  headTick() { return this.app.news?.tick ?? this.app.info?.newest?.tick ?? this.doc.last; }

  branchAt(y, tick) {
    const lanes = this.lanes();
    if (!lanes || y < this.base()) return null;
    const lane = Math.min(lanes - 1, Math.floor((y - this.base() - 2) / laneHeight));
    return this.doc.branches.find((b) => b.lane === lane && b.from <= tick && tick <= b.to);
  }

  // hover shows a tooltip for the tick under the pointer. When the pointer rests, it also
  // requests the time of the tick.
  hover(e) {
    if (!this.doc) return;
    const { tick, branch, at } = this.under(e), texts = branch ? [`rewound: ticks ${branch.from} to ${branch.to}`] : this.told(tick, e.offsetX);
    const show = (time) => {
      fill(this.tip, h("b", {}, "tick " + tick.toLocaleString("en")), time && " · " + clock(time), texts.map((text) => [h("br"), text]));
      this.tip.hidden = false;
      this.tip.style.left = Math.max(4, Math.min(e.offsetX + 12, this.canvas.clientWidth - this.tip.offsetWidth - 4)) + "px";
    };
    if (at !== this.over?.at) this.over = { at, time: null };
    show(this.over.time);
    clearTimeout(this.resting);
    if (!this.over.time) this.resting = setTimeout(async () => {
      const over = this.over, { time } = await ask("resolve", { at }).catch(() => ({}));
      if (this.over === over && time) show(over.time = time);
    }, 120);
  }

  leave() {
    clearTimeout(this.resting);
    this.over = null;
    this.tip.hidden = true;
  }

  // told describes a tick on the path to the newest state: rows written, marks, snapshots and
  // damage. If x is given, it also describes the marks, snapshots and damage within 5 pixels of x.
  told(tick, x) {
    if (!this.doc) return [];
    const { doc } = this, texts = [], near = (t) => x === undefined ? t === tick : Math.abs(this.xOf(t) - x) < 5;
    const i = Math.floor((tick - doc.from) / doc.per), in_ = doc.per > 1 ? ` in ticks ${(doc.from + i * doc.per).toLocaleString("en")} to ${Math.min(doc.to, doc.from + (i + 1) * doc.per - 1).toLocaleString("en")}` : "";
    const unit = (n) => doc.measure === "rows" ? count(n, "row", "rows") : count(n, "byte", "bytes");
    if (doc.sums[i] !== undefined) texts.push(doc.per > 1 ? `${unit(doc.sums[i])} written${in_}, ${doc.peaks[i].toLocaleString("en")} at most` : unit(doc.sums[i]) + " written");
    if (doc.inputs[i]) texts.push(count(doc.inputs[i], "input", "inputs") + in_);
    const marks = doc.marks.filter((m) => near(m.tick));
    for (const m of marks.slice(0, 5)) texts.push("mark " + (m.name.length > 80 ? m.name.slice(0, 79) + "…" : m.name) + (m.rewound ? ", rewound" : ""));
    if (marks.length > 5) texts.push(`and ${marks.length - 5} more marks`);
    for (const s of doc.snapshots.filter((s) => !s.error && near(s.tick)).slice(0, 3)) texts.push("snapshot " + s.number + (s.label ? " " + s.label : ""));
    for (const d of doc.damage.filter((d) => near(d.tick)).slice(0, 3)) texts.push(d.message);
    return texts;
  }

  lanes() { return this.doc.branches.reduce((n, b) => Math.max(n, b.lane + 1), 0); }
  base() { return this.canvas.clientHeight - axis - (this.lanes() ? this.lanes() * laneHeight + 3 : 0); }

  draw() {
    const doc = this.doc, point = this.app.point;
    if (!doc) return;
    // If the point is outside of the shown range, center the range at the point. Do so once per
    // load: near an end of the store, the new range may still not contain the point.
    if (point && this.range && (point.tick < doc.from || point.tick > doc.to)) {
      const half = this.span() / 2;
      if (!this.moving) this.to(point.tick - half, point.tick + half);
      this.moving = true;
    } else this.moving = false;
    const [c, width, height] = surface(this.canvas), base = this.base();
    c.font = "11px system-ui, sans-serif";
    this.bars(c, width, base);
    this.inputs(c, width);
    this.branches(c);
    this.scale(c, width, height);
    this.signs(c, width, base);
    if (this.app.pin) this.cursor(c, this.app.pin.tick, height, color("mark"));
    if (point) this.cursor(c, point.tick, height, color("accent"));
    if (point && this.app.pin) {
      this.label(c, this.app.pin.tick, width, 16, color("mark"), "A");
      this.label(c, point.tick, width, 30, color("accent"), "B");
    }
    this.canvas.setAttribute("aria-valuemin", doc.first);
    this.canvas.setAttribute("aria-valuemax", doc.last);
  }

  // bars draws the peak of each bucket, and the mean in front of it. Heights are square roots, so
  // small ticks stay visible: a tick with a hundredth of the rows is a tenth as high.
  bars(c, width, base) {
    const { sums, peaks, per } = this.doc, n = sums.length, step = width * per / this.span(), room = base - top;
    const high = this.high(peaks), most = Math.max(1, per);
    const y = (v) => Math.max(v > 0 ? 1 : 0, Math.min(1, Math.sqrt(v / high)) * room);
    const gap = step > 4 ? 1 : 0;
    for (const [values, name] of [[peaks, "bar"], [sums.map((s) => s / most), "bar-peak"]]) {
      c.fillStyle = color(name);
      for (let i = 0; i < n; i++) {
        const tall = y(values[i]);
        if (tall) c.fillRect(i * step, base - tall, Math.max(1, step - gap), tall);
      }
    }
    c.fillStyle = color("line");
    c.fillRect(0, base, width, 1);
  }

  // inputs draws a strip above the bar for each tick with inputs.
  inputs(c, width) {
    const step = width * this.doc.per / this.span();
    c.fillStyle = color("input");
    this.doc.inputs.forEach((n, i) => { if (n) c.fillRect(i * step, top - 4, Math.max(1.5, step > 4 ? step - 1 : step), 3); });
  }

  // high returns the value that is drawn at full height. It ignores a few ticks with far more
  // rows than the others, such as the first tick. So the other ticks stay visible.
  high(peaks) {
    const sorted = peaks.filter((v) => v > 0).sort((a, b) => a - b);
    return Math.max(1, Math.min(sorted.at(-1) ?? 1, 1.3 * (sorted[Math.floor(0.98 * (sorted.length - 1))] ?? 1)));
  }

  branches(c) {
    c.fillStyle = color("lane");
    for (const b of this.doc.branches) {
      const x = this.xOf(b.from - 0.5), end = this.xOf(b.to + 0.5);
      c.fillRect(x, this.base() + 3 + b.lane * laneHeight, Math.max(2, end - x), laneHeight - 2);
    }
  }

  // scale labels ticks below the bar, about 90 pixels apart. Labels are multiples of 1, 2 or 5
  // times a power of ten.
  scale(c, width, height) {
    const wanted = this.span() / Math.max(2, width / 90), power = 10 ** Math.floor(Math.log10(Math.max(1, wanted)));
    const step = Math.max(1, power * [1, 2, 5, 10].find((k) => k * power >= wanted));
    c.fillStyle = color("soft");
    c.textAlign = "center";
    for (let t = Math.ceil(this.doc.from / step) * step; t <= this.doc.to; t += step) {
      const x = this.xOf(t), text = t.toLocaleString("en"), half = c.measureText(text).width / 2;
      if (x - half > 2 && x + half < width - 2) c.fillText(text, x, height - 4);
      c.fillRect(x, height - axis, 1, 3);
    }
  }

  signs(c, width, base) {
    c.fillStyle = color("changed");
    for (const t of this.app.changes) c.fillRect(this.xOf(t), base + 1, 1.5, 4);
    c.fillStyle = color("soft");
    for (const s of this.doc.snapshots) {
      if (s.error) continue;
      c.beginPath();
      c.arc(this.xOf(s.tick), base, 2.5, 0, 7);
      c.fill();
    }
    this.marks(c, width, base);
    c.fillStyle = color("danger");
    for (const d of this.doc.damage) c.fillRect(this.xOf(d.tick) - 1, top - 4, 3, base - top + 4);
  }

  // marks draws a flag for each mark, with as much of its name as fits. A name is to the right of
  // its flag, before the next flag, or to the left, after the previous name.
  marks(c, width, base) {
    const seen = this.doc.marks.map((m) => ({ ...m, x: this.xOf(m.tick) })).filter((m) => m.x >= 0 && m.x <= width).sort((a, b) => a.x - b.x);
    let free = 0;
    seen.forEach((m, i) => {
      c.fillStyle = color("mark");
      c.globalAlpha = m.rewound ? 0.5 : 1;
      c.fillRect(m.x, 3, 1, base - 3);
      c.beginPath();
      c.moveTo(m.x, 3), c.lineTo(m.x + 6, 6), c.lineTo(m.x, 9);
      c.fill();
      const end = seen[i + 1]?.x ?? width, on = end - m.x - 12, before = m.x - free - 8;
      const name = cut(c, m.name, Math.max(on, before)), w = c.measureText(name).width;
      c.textAlign = "left";
      if (name) c.fillText(name, w <= on ? m.x + 8 : m.x - 4 - w, 10);
      free = m.x + 8 + (name && w <= on ? w : 0);
      c.globalAlpha = 1;
    });
  }

  cursor(c, tick, height, paint) {
    const x = this.xOf(tick);
    c.fillStyle = paint;
    c.fillRect(x - 0.75, 0, 1.5, height - axis);
    c.beginPath();
    // The triangle is above the labels of ticks.
    c.moveTo(x - 5, height - axis + 5), c.lineTo(x, height - axis - 1), c.lineTo(x + 5, height - axis + 5);
    c.fill();
  }

  // label draws the name of a cursor on an opaque background. A and B are on separate lines,
  // because both cursors may be at the same tick.
  label(c, tick, width, y, paint, text) {
    const wide = c.measureText(text).width + 4, x = this.xOf(tick), left = x + 2 + wide > width ? x - 2 - wide : x + 2;
    c.fillStyle = color("panel");
    c.fillRect(left, y, wide, 13);
    c.fillStyle = paint;
    c.textAlign = "left";
    c.fillText(text, left + 2, y + 10);
  }

  // tell writes the legend below the bar. Its links can be used by keyboard.
  tell() {
    const d = this.doc, parts = [];
    parts.push(`ticks ${d.from.toLocaleString("en")} to ${d.to.toLocaleString("en")}`);
    const what = d.measure === "rows" ? "rows written" : "bytes written";
    if (d.first < d.last) parts.push(d.per > 1 ? `${what}: maximum and mean of ${d.per.toLocaleString("en")} ticks` : what + " by each tick");
    if (d.measure === "bytes" && d.counted < 1) parts.push(`counting rows: ${Math.floor(d.counted * 100)} %`);
    const told = d.inputs.reduce((n, v) => n + v, 0);
    if (told) parts.push(count(told, "input", "inputs"));
    const spans = parts.map((p) => h("span", {}, p));
    const seen = d.marks.slice(-4), point = /** @type {HTMLInputElement} */ (document.getElementById("point"));
    const others = d.marks.length > seen.length && [" and ", plain(`${(d.marks.length - seen.length).toLocaleString("en")} more`, () => { point.focus(); point.value = "mark:"; }, "Type the name of a mark")];
    if (seen.length) spans.push(h("span", {}, "marks: ", seen.map((m, i) => [i ? ", " : "", plain(m.name, () => this.app.jump(m.record), m.name + ", tick " + m.tick)]), others));
    const tips = d.branches.slice(0, 3);
    if (tips.length) spans.push(h("span", {}, "rewound: ", tips.map((b, i) => [i ? ", " : "", plain(`${b.from}–${b.to}`, () => this.app.jump(b.tip), "the end of this branch")]), d.branches.length > 3 ? ` and ${d.branches.length - 3} more` : ""));
    if (d.damage.length) spans.push(h("span", { class: "danger" }, plain(count(d.damage.length, "damaged place", "damaged places"), () => this.app.show("health"))));
    fill(this.legend, spans);
    fill(document.getElementById("points"), ["@first", "@latest", ...d.marks.slice(-50).map((m) => "mark:" + m.name), ...d.snapshots.slice(-20).map((s) => "snap:" + s.number)].map((value) => h("option", { value })));
  }
}

// clock formats a time.
export const clock = (time) => time.replace("T", " ").replace(/(\.\d{3})\d*Z$/, "$1Z");

// cut shortens a name with dots to the width room. It returns "" if less than three letters fit.
function cut(c, name, room) {
  const fits = (text) => c.measureText(text).width <= room;
  let text = name.length > 18 ? name.slice(0, 17) + "…" : name;
  for (let n = text.length - 1; !fits(text); n--) {
    if (n < 3) return "";
    text = name.slice(0, n) + "…";
  }
  return text;
}
