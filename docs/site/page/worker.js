// Runs a Go program. The program calls stetReady with an object of functions, or only prints. The
// page sends a list of calls, and gets their results and the state of the program. A program that
// ends gives its files back to the page, for its next run.
"use strict";

const scope = /** @type {any} */ (self);

/** @type {any} */
let api;
/** @type {(value: unknown) => void} */
let ready = () => {};
const decoder = new TextDecoder();

scope.stetReady = (/** @type {any} */ object) => {
  api = object;
  ready(undefined);
};

// The state after a call.
const state = () => ({ tick: api.tick(), oldest: api.oldest(), newest: api.newest(), view: api.view() });

const start = async (/** @type {string} */ program, /** @type {any} */ files) => {
  scope.importScripts("wasm_exec.js", "files.js");
  const fs = scope.memoryFiles(files), write = fs.write;
  fs.writeSync = (/** @type {number} */ fd, /** @type {Uint8Array} */ bytes) => {
    scope.postMessage({ output: decoder.decode(bytes, { stream: true }) });
    return bytes.length;
  };
  // The first three files are those of a terminal.
  fs.write = (/** @type {[number, Uint8Array, number, number, number | null, Function]} */ ...args) => {
    const [fd, bytes, offset, length, , callback] = args;
    if (fd > 2) write(...args);
    else callback(null, fs.writeSync(fd, bytes.subarray(offset, offset + length)));
  };
  scope.fs = fs;
  scope.process.cwd = () => "/";
  const go = new scope.Go();
  go.argv = [program.replace(/.*\//, "").replace(".wasm", "")];
  go.exit = (/** @type {number} */ code) => { go.code = code; };
  const response = await fetch(program);
  if (!response.ok) throw new Error(`${program}: ${response.status} ${response.statusText}`);
  const { instance } = await WebAssembly.instantiateStreaming(response, go.importObject);
  const called = new Promise((resolve) => { ready = resolve; });
  const ended = go.run(instance).then(() => scope.postMessage({ ended: go.code ?? 0, files }));
  await Promise.race([called, ended]);
  if (!api) return {};
  return { title: api.title, rate: api.rate, params: JSON.parse(api.params()), actions: JSON.parse(api.actions()), state: state() };
};

scope.onmessage = async (/** @type {MessageEvent} */ event) => {
  const { id, program, files, calls } = event.data;
  try {
    if (program) {
      scope.postMessage({ id, started: await start(program, files) });
      return;
    }
    const results = calls.map((/** @type {any[]} */ [name, ...args]) => api[name](...args));
    scope.postMessage({ id, results, state: state() });
  } catch (e) {
    scope.postMessage({ id, error: String(/** @type {any} */ (e).message ?? e) });
  }
};
