// Examples of expressions. They use names of the shown store, so they are valid for it.
import { app } from "./app.js";

// Variables of expressions. They take precedence over components of the same name.
const variables = ["entity", "index", "generation", "tick", "alive"];

// refer returns a component or one of its fields in the syntax of expressions.
export function refer(component, path = "") {
  const plain = /^[\p{L}_][\p{L}\p{N}_.]*$/u.test(component) && !variables.includes(component);
  const name = plain ? component : `component(${JSON.stringify(component)})`;
  return path ? name + (path.startsWith("[") ? "" : ".") + path : name;
}

// first moves long names to the end.
const first = (names) => names.sort((a, b) => Number(a.length > 30) - Number(b.length > 30));

// fields returns the fields of all components that have the given kind.
function fields(kind) {
  const components = (app.schema?.components ?? []).filter((c) => c.kind === "component");
  return first(components.flatMap((c) => c.fields.filter((f) => f.kind === kind).map((f) => refer(c.name, f.path))));
}

// examples returns examples for each field of the page, with explanations. A store with few names
// has fewer examples.
export function examples() {
  const [number, other] = fields("number"), [text] = fields("text"), [entity] = fields("entity");
  const named = first((app.schema?.components ?? []).filter((c) => c.kind !== "resource").map((c) => refer(c.name)));
  const low = number ? number + " < 10" : "index < 10";
  return {
    where: [
      [low, "a number is compared: == != < <= > >="],
      text && [`${text} contains "a"`, "a text is compared: contains, startsWith, endsWith, matches, =="],
      entity && [`exists(${entity})`, "the entity in this field is alive"],
      entity && number && !number.startsWith("component(") && [`${entity}.${number} < 10`, "a field of the entity in this field"],
      named.length > 1 && [`has(${named[0]}) and not has(${named[1]})`, "the components of the entity; and, or, not"],
    ].filter(Boolean),
    columns: [[number ? `${number} as n` + (other ? ", " + other : "") : "index, generation", "one column per expression; “as” names it"]],
    plot: [
      ["alive", "the number of living entities"],
      [`count(${low})`, "the number of entities for which the condition is true"],
      number && [`avg(${number})`, "also sum, min, max, and p95: 95 % of the values are at most p95"],
    ].filter(Boolean),
    first: [[`any(${low})`, "the condition is true for at least one entity; also all(…), none(…)"]],
  };
}
