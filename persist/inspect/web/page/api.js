// Requests to the server. The data of a record never changes, so the browser caches the answers.
//
//  ask          sends a request and waits for the answer
//  early        sends a request in advance that is likely to follow; ask then uses its answer
//  fetchPinned  requests the data at A, and caches the answer
//  listen       reports changes of the store

// A Trouble is an error from the server. Its fields are message, kind, try, which and at.

export class Trouble extends Error {
  constructor(body) {
    super(body.message);
    Object.assign(this, body);
  }
}

// ask returns the document that answers a request, or throws Trouble.
export async function ask(name, params = {}) {
  if (repeated.includes(name) && !params.beside && params.limit !== 0) recent.set(name, params);
  const question = questionOf(name, params), early = ahead.get(question);
  ahead.delete(question);
  return early ? await early : await send(question);
}

function questionOf(name, params) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (Array.isArray(value)) value.forEach((v) => query.append(key, v));
    else if (value !== undefined && value !== null && value !== "") query.set(key, value);
  }
  return name + "?" + query;
}

async function send(question) {
  let answer;
  try {
    answer = await fetch("api/v1/" + question);
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Trouble({ kind: "gone", message: "the server does not answer: it may have ended" });
  }
  const doc = await answer.json();
  if (doc.error) throw new Trouble(doc.error);
  return doc;
}

// lastValid returns a function that sends a request with an expression per field; get returns the
// text of a field. If a text is invalid, the function sends the request again with the field's last
// valid text, or without it. So the answer is always about the current point. The function returns
// the document, the texts that it sent, and the errors by field.
export function lastValid(fields, get) {
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
        // The last valid text is invalid at this point, so do not try it again.
        if (asked[f] === right[f]) right[f] = "";
        wrong[f] ??= err;
      }
    }
  };
}

// Requests that a screen sends again for each point in time. prefetch sends them in advance.
const repeated = ["entities", "entity", "map", "tick", "arrays"];
// The last parameters by request name, except requests for counts (limit 0) and for data at A.
const recent = new Map();
// Answers of early requests, by request.
const ahead = new Map();

// early sends a request that will probably be needed soon. The first matching call of ask() gets
// the answer. Few answers are stored, because they may never be needed. A failed answer is removed,
// so ask() sends the request again.
export function early(name, params) {
  const question = questionOf(name, params);
  if (ahead.has(question)) return ahead.get(question);
  if (ahead.size >= 8) ahead.clear();
  const answer = send(question);
  // ask reports the error to its caller.
  answer.catch(() => ahead.delete(question));
  ahead.set(question, answer);
  return answer;
}

// prefetch sends early requests about a record. It repeats the last requests about another record
// (from).
export function prefetch(record, from) {
  for (const [name, params] of recent) if (params.record === from) early(name, { ...params, record });
}

// forget discards early answers, because the store has grown and a point may have a next state
// now.
export const forget = () => ahead.clear();

// The parameters of the last request about A, and a promise of its answer, by request name.
const kept = new Map();

// fetchPinned requests the data at A, the pinned point that the page compares with the shown point.
// It caches the last answer of each request, because A stays the same while time moves.
export async function fetchPinned(name, params) {
  const key = JSON.stringify(params);
  if (kept.get(name)?.key !== key) kept.set(name, { key, doc: ask(name, { ...params, beside: 1 }) });
  try {
    return await kept.get(name).doc;
  } catch (err) {
    kept.delete(name);
    throw err;
  }
}

// listen calls heard() with the newest state of the store: at the start and after each change. It
// calls broken() when the connection to the server fails. The browser reconnects automatically
// unless the server rejects it. A hidden page does not listen, because browsers allow only six
// connections to a server.
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
