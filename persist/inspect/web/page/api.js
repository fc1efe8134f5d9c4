// Questions to the server. What is asked of a record never changes, so the browser keeps it.

export class Trouble extends Error {
  constructor(body) {
    super(body.message);
    Object.assign(this, body);
  }
}

// ask returns the document that answers a question, or throws Trouble.
export async function ask(name, params = {}, signal) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (Array.isArray(value)) value.forEach((v) => query.append(key, v));
    else if (value !== undefined && value !== null && value !== "") query.set(key, value);
  }
  let answer;
  try {
    answer = await fetch("api/v1/" + name + "?" + query, { signal });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Trouble({ kind: "gone", message: "the server does not answer: it may have ended" });
  }
  const doc = await answer.json();
  if (doc.error) throw new Trouble(doc.error);
  return doc;
}

const kept = new Map(); // By question: what was asked last beside what is shown.

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

// listen calls f with what the store has come to, now and whenever it changes.
export function listen(f) {
  const source = new EventSource("api/v1/events");
  source.onmessage = (e) => f(JSON.parse(e.data));
}
