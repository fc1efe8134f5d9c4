// Examples of expressions that can be asked of the store that is shown: they name what it has.
import { app } from "./app.js";

const variables = ["entity", "index", "generation", "tick", "alive"]; // They come before components of these names.

// refer writes a component or a field of one as an expression does.
export function refer(component, path = "") {
  const plain = /^[\p{L}_][\p{L}\p{N}_.]*$/u.test(component) && !variables.includes(component);
  const name = plain ? component : `component(${JSON.stringify(component)})`;
  return path ? name + (path.startsWith("[") ? "" : ".") + path : name;
}

// first sorts those behind that are long.
const first = (names) => names.sort((a, b) => Number(a.length > 30) - Number(b.length > 30));

// fields returns the fields of one kind that components have.
function fields(kind) {
  const components = (app.schema?.components ?? []).filter((c) => c.kind === "component");
  return first(components.flatMap((c) => c.fields.filter((f) => f.kind === kind).map((f) => refer(c.name, f.path))));
}

// examples returns some for each field of the page, with what they mean; those of a field are fewer where
// the store has little to name.
export function examples() {
  const [number, other] = fields("number"), [text] = fields("text"), [entity] = fields("entity");
  const named = first((app.schema?.components ?? []).filter((c) => c.kind !== "resource").map((c) => refer(c.name)));
  const low = number ? number + " < 10" : "index < 10";
  return {
    where: [
      [low, "a number is compared: == != < <= > >="],
      text && [`${text} contains "a"`, "a text: contains, startsWith, endsWith, matches, =="],
      entity && [`exists(${entity})`, "the entity that it refers to is alive"],
      entity && number && !number.startsWith("component(") && [`${entity}.${number} < 10`, "a field of the entity that it refers to"],
      named.length > 1 && [`has(${named[0]}) and not has(${named[1]})`, "which components it has; and, or, not"],
    ].filter(Boolean),
    columns: [[number ? `${number} as n` + (other ? ", " + other : "") : "index, generation", "a column each; “as” names it"]],
    plot: [
      ["alive", "how many entities there are"],
      [`count(${low})`, "of how many entities it is true"],
      number && [`avg(${number})`, "also sum, min, max, and p95: 95 % are not above it"],
    ].filter(Boolean),
    first: [[`any(${low})`, "it is true of one entity at least; also all(…), none(…)"]],
  };
}
