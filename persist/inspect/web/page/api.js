// Questions to the server. What is asked of a record never changes, so the browser keeps it.
//
//   ask      a screen waits for the answer
//   early    what will be asked next is asked now; ask takes the answer that is on its way
//   beside   what lies at A, kept here
//   listen   what the store has come to

// Trouble is what went wrong, as the server says it: message, kind, try, which, at.

export class Trouble extends Error {
  constructor(body) {
    super(body.message);
    Object.assign(this, body);
  }
}

// ask returns the document that answers a question, or throws Trouble.
export async function ask(name, params = {}, signal) {
  if (repeated.includes(name) && !params.beside && params.limit !== 0) recent.set(name, params);
  const question = questionOf(name, params), early = ahead.get(question);
  ahead.delete(question);
  return early ? await early : await send(question, signal);
}

function questionOf(name, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (Array.isArray(value)) value.forEach((v) => query.append(key, v));
    else if (value !== undefined && value !== null && value !== "") query.set(key, value);
  }
  return name + "?" + query;
}

async function send(question, signal) {
  let answer;
  try {
    answer = await fetch("api/v1/" + question, { signal });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Trouble({ kind: "gone", message: "the server does not answer: it may have ended" });
  }
  const doc = await answer.json();
  if (doc.error) throw new Trouble(doc.error);
  return doc;
}

// lastRight returns what asks a question of several expressions again and again: get returns the one of a
// field. Where one is wrong, what it was when it was last right is asked, or nothing; so what is shown
// is of this point in any case. It gives the document, the expressions asked, and errors by field.
export function lastRight(fields, get) {
  const right = {};
  return async (question) => {
    const wrong = {};
    for (;;) {
      const asked = Object.fromEntries(fields.map((f) => [f, wrong[f] ? right[f] ?? "" : get(f)]));
      try {
        const doc = await question(asked);
        for (const f of fields) if (!wrong[f]) right[f] = asked[f];
        return { doc, asked, wrong };
      } catch (err) {
        const f = err.which;
        if (!fields.includes(f) || wrong[f] && !asked[f]) throw wrong[f] ?? err;
        if (asked[f] === right[f]) right[f] = ""; // Not at this point.
        wrong[f] ??= err;
      }
    }
  };
}

const repeated = ["entities", "entity", "map", "tick", "arrays"]; // What is asked again at each point.
const recent = new Map(); // By name: what was asked last. A count (limit 0) or what lies at A is not asked again.
const ahead = new Map(); // Answers by question, before somebody waits for them.

// early asks a question that will be asked soon. The answer is for whoever asks first. Nobody may: so
// few are held, and those that fail are let go, for the next to ask anew.
export function early(name, params) {
  const question = questionOf(name, params);
  if (ahead.has(question)) return ahead.get(question);
  if (ahead.size >= 8) ahead.clear();
  const answer = send(question);
  answer.catch(() => ahead.delete(question)); // Whoever waits for it is told why.
  ahead.set(question, answer);
  return answer;
}

// foresee asks about one record what was asked about another.
export function foresee(record, from) {
  for (const [name, params] of recent) if (params.record === from) early(name, { ...params, record });
}

// forget lets go of what was asked early: the store has grown, and the newest point is another one.
export const forget = () => ahead.clear();

const kept = new Map(); // By name: what was asked last beside what is shown, and a promise of the answer.

// beside asks what lies at A, for it to be compared with what is shown. The last answer to each
// question is kept: A stays where it is while time goes on.
export async function beside(name, params) {
  const key = JSON.stringify(params);
  if (kept.get(name)?.key !== key) kept.set(name, { key, doc: ask(name, { ...params, beside: 1 }) });
  try {
    return await kept.get(name).doc;
  } catch (err) {
    kept.delete(name);
    throw err;
  }
}

// listen calls heard with what the store has come to, now and whenever it changes, and broken when the
// connection to the server breaks. The browser connects again by itself, unless the server refuses it.
// A hidden page does not listen: browsers allow six connections to a server, and each listener
// holds one.
export function listen(heard, broken) {
  let source;
  const hear = (on) => {
    if (on === Boolean(source)) return;
    if (!on) return source.close(), void (source = null);
    source = new EventSource("api/v1/events");
    source.onmessage = (e) => heard(JSON.parse(e.data));
    source.onerror = broken;
  };
  const look = () => hear(!document.hidden);
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", () => hear(false));
  addEventListener("pageshow", look);
  look();
}
