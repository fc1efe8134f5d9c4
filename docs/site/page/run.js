// Runs a program in its panel: it plays, goes back in time, and continues from there.
"use strict";

import { make } from "./site.js";

const usualRate = 8; // Ticks a second, if the program has no rate.

// The names of keys for programs.
/** @type {Record<string, string>} */
const names = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", " ": "space", Enter: "enter" };

/** @typedef {{ tick: number, oldest: number, newest: number, view: string }} State */
/** @typedef {{ name: string, value: number, min: number, max: number, step: number }} Param */

/** @typedef {{ ino: number, entries: Map<string, unknown>, data: Uint8Array, size: number, time: number }} Files */

/** A process is a running program. */
class Process {
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  #open = new Map();
  #next = 1;
  #worker;

  /**
   * @param {string} script
   * @param {(text: string) => void} onOutput
   * @param {(code: number, files: Files) => void} onEnd
   */
  constructor(script, onOutput, onEnd) {
    this.#worker = new Worker(script);
    this.#worker.onerror = (event) => this.#fail(new Error(event.message || "the program cannot start"));
    this.#worker.onmessage = (event) => {
      const { id, output, ended, files, error } = event.data;
      if (output !== undefined) onOutput(output);
      else if (ended !== undefined) {
        this.#worker.terminate();
        this.#fail(new Error("the program has ended"));
        onEnd(ended, files);
      } else {
        const call = this.#open.get(id);
        this.#open.delete(id);
        if (error !== undefined) call?.reject(new Error(error));
        else call?.resolve(event.data);
      }
    };
  }

  /** @param {Error} error */
  #fail(error) {
    for (const call of this.#open.values()) call.reject(error);
    this.#open.clear();
  }

  /**
   * Sends a message and returns the answer.
   * @param {object} message
   * @returns {Promise<any>}
   */
  send(message) {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#worker.postMessage({ id, ...message });
    });
  }

  end() {
    this.#worker.terminate();
    this.#fail(new Error("stopped"));
  }
}

/** @param {HTMLElement} panel */
function prepare(panel) {
  const bar = /** @type {HTMLElement} */ (panel.querySelector(".run-start"));
  const main = /** @type {HTMLButtonElement} */ (panel.querySelector("button.main"));
  const body = make("div");
  /** @type {Process | undefined} */
  let process;
  /** @type {Files} */
  let files = { ino: 1, entries: new Map(), data: new Uint8Array(0), size: 0, time: Date.now() };
  panel.append(body);
  main.hidden = false;
  main.addEventListener("click", async () => {
    if (process) {
      process.end();
      process = undefined;
      body.replaceChildren();
      main.textContent = "▶ Run";
      return;
    }
    main.textContent = "■ Stop";
    const view = make("pre", { class: "view", tabindex: "0", role: "application", "aria-label": "The program. It gets the keys that you press here." }, "Loading…");
    const problem = make("p", { class: "problem", role: "status" });
    body.replaceChildren(view, problem);
    let text = "";
    const own = process = new Process(panel.dataset.worker ?? "", (output) => {
      text += output;
      view.textContent = text;
      view.scrollTop = view.scrollHeight;
    }, (code, left) => {
      files = left;
      if (files.entries.size > 0) body.append(make("p", { class: "hint" }, "The page keeps the files of the program: run it again."));
      if (code !== 0) problem.textContent = `The program has ended with exit code ${code}.`;
      else if (view.textContent === "Loading…") view.textContent = "The program has ended without output.";
      main.textContent = "▶ Run";
      if (process === own) process = undefined;
    });
    try {
      const { started } = await own.send({ program: new URL(panel.dataset.program ?? "", location.href).href, files });
      if (started.state) play(own, body, view, problem, started);
    } catch (e) {
      if (process !== own) return; // The reader has stopped it.
      problem.textContent = /** @type {Error} */ (e).message;
    }
  });
  bar.classList.add("ready");
}

/**
 * Adds the controls of a program that has ticks.
 * @param {Process} process
 * @param {HTMLElement} body
 * @param {HTMLElement} view
 * @param {HTMLElement} problem
 * @param {{ title: string, rate?: number, params: Param[], actions: string[], state: State }} program
 */
function play(process, body, view, problem, { title, rate, params, actions, state }) {
  const time = /** @type {HTMLInputElement} */ (make("input", { type: "range", "aria-label": "Time" }));
  const where = make("output");
  const keys = matchMedia("(pointer: coarse)").matches ? "" : "Click on the picture, then use the arrow keys and space. ";
  const hint = make("p", { class: "hint" }, keys + "Drag the bar to go back in time.");
  /** @type {Set<string>} */
  const held = new Set();
  /** @type {Set<string>} */
  const pressed = new Set(); // Since the last tick.
  /** @type {Promise<unknown>} */
  let queue = Promise.resolve();
  let playing = false, dragging = false, timer = 0, open = 0;
  /** @type {number | undefined} */
  let wanted; // The tick to which the bar was moved last.

  /** @param {State} s */
  const show = (s) => {
    state = s;
    view.textContent = s.view;
    time.min = String(s.oldest);
    time.max = String(s.newest);
    if (!dragging) time.value = String(s.tick);
    time.disabled = s.newest <= s.oldest;
    where.textContent = s.tick < s.newest ? `tick ${s.tick} of ${s.newest}` : `tick ${s.tick}`;
  };

  /** @param {...any[]} calls */
  const call = (...calls) => {
    body.dataset.calls = String(++open); // Tests wait until it is 0.
    const answer = queue.then(() => process.send({ calls })).then(({ results, state }) => {
      // The program shows the error of a step itself.
      problem.textContent = results.filter((/** @type {any} */ r, /** @type {number} */ k) => typeof r === "string" && calls[k][0] !== "step").join("\n").trim();
      show(state);
    });
    queue = answer.catch((e) => {
      setPlaying(false);
      if (e.message !== "stopped") problem.textContent = e.message;
    }).finally(() => {
      body.dataset.calls = String(--open);
    });
    return queue;
  };

  const step = () => {
    const keys = [...new Set([...held, ...pressed])].join(" ");
    pressed.clear();
    return call(["step", keys]);
  };

  const tick = async () => {
    const begin = performance.now();
    if (!document.hidden) await step();
    if (playing) timer = setTimeout(tick, Math.max(0, 1000 / (rate || usualRate) - (performance.now() - begin)));
  };

  /** @param {boolean} on */
  const setPlaying = (on) => {
    if (on === playing) return;
    playing = on;
    toggle.textContent = on ? "Pause" : "Play";
    clearTimeout(timer);
    if (on) tick();
  };

  const button = (/** @type {string} */ label, /** @type {() => void} */ action) => {
    const b = make("button", { type: "button" }, label);
    b.addEventListener("click", action);
    return b;
  };
  const toggle = button("Play", () => {
    setPlaying(!playing);
    if (playing) view.focus({ preventScroll: true });
  });

  // The bar goes to the newest wanted tick only, because a seek may take longer than a movement.
  time.addEventListener("input", () => {
    setPlaying(false);
    const idle = wanted === undefined;
    dragging = true;
    wanted = Number(time.value);
    if (!idle) return;
    const follow = () => {
      const to = wanted;
      call(["seek", to]).then(() => {
        if (wanted !== to) follow();
        else {
          wanted = undefined;
          dragging = false;
        }
      });
    };
    follow();
  });

  view.addEventListener("keydown", (event) => {
    const name = names[event.key] ?? (/^[a-z0-9]$/i.test(event.key) ? event.key.toLowerCase() : "");
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const action = actions[Number(event.key) - 1]; // The digits are the keys of the actions, as in a terminal.
    if (action !== undefined) {
      call(["act", action]);
      return;
    }
    held.add(name);
    pressed.add(name);
  });
  view.addEventListener("keyup", (event) => held.delete(names[event.key] ?? event.key.toLowerCase()));
  view.addEventListener("blur", () => held.clear());

  const pad = make("div", { class: "row pad" });
  for (const [label, name] of [["◀", "left"], ["▲", "up"], ["▼", "down"], ["▶", "right"], ["●", "space"]]) {
    const b = make("button", { type: "button", "aria-label": name }, label);
    const release = () => held.delete(name);
    b.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      held.add(name);
      pressed.add(name);
    });
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) b.addEventListener(kind, release);
    pad.append(b);
  }

  const inputs = params.map(({ name, value, min, max, step }) => {
    const input = make("input", { type: "number", value: String(value), min: String(min), max: String(max), step: String(step) });
    return { name, input: /** @type {HTMLInputElement} */ (input) };
  });
  const restart = () => call(...inputs.map(({ name, input }) => ["set", name, input.valueAsNumber]), ["restart"]);
  const controls = make("div", { class: "row" }, toggle, button("Step", () => {
    setPlaying(false);
    step();
  }), button("Restart", restart), time, where);
  body.replaceChildren(view, problem, controls, pad);
  if (actions.length > 0) body.append(make("div", { class: "row" }, ...actions.map((name) => button(name, () => call(["act", name])))));
  body.append(hint);
  if (inputs.length > 0) {
    const form = make("form", { class: "row" }, ...inputs.map(({ name, input }) => make("label", {}, name, input)), make("button", { type: "submit" }, "Restart with these"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      restart();
    });
    body.append(make("details", {}, make("summary", {}, "Edit"), form));
  }
  view.setAttribute("aria-label", title + ". It gets the keys that you press here.");
  show(state);
  setPlaying(true);
  view.focus({ preventScroll: true });
}

for (const panel of document.querySelectorAll(".run")) prepare(/** @type {HTMLElement} */ (panel));
