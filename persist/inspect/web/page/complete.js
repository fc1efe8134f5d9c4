// An input for expressions. It offers the names of components and fields.
import { app } from "./app.js";
import { h, fill } from "./dom.js";

// field creates a labelled input for an expression that the state in the URL stores. It calls
// take() when the expression changes; while the user types, only after a pause.
export function field(text, name, take, props) {
  let timer;
  const now = () => {
    clearTimeout(timer);
    if (input.value.trim() === app.get(name)) return;
    app.typed(name, input);
    take();
  };
  const input = h("input", { value: app.get(name), onchange: now, oninput: () => { clearTimeout(timer); timer = setTimeout(now, 200); }, ...props });
  const label = h("label", { class: props.size ? "" : "wide" }, text, input);
  complete(input, app.names);
  return [label, input];
}

// before matches the name before the cursor, which may contain dots.
const before = /[\p{L}_][\p{L}\p{N}_.]*$/u;

// complete adds a list of suggestions to input: the results of words that contain the name before
// the cursor.
export function complete(input, words) {
  const id = "offers-" + Math.random().toString(36).slice(2);
  const list = h("ul", { class: "offers", role: "listbox", id, hidden: true });
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", id);
  input.setAttribute("aria-expanded", "false");
  input.setAttribute("autocomplete", "off");
  input.setAttribute("spellcheck", "false");
  input.after(list);
  let chosen = -1, offered = [];

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const word = () => before.exec(input.value.slice(0, input.selectionStart))?.[0] ?? "";
  const take = (i) => {
    const at = input.selectionStart, typed = word();
    input.setRangeText(offered[i], at - typed.length, at, "end");
    close();
    // Notify other listeners. The listener of this input would show the offers again, so close
    // them.
    input.dispatchEvent(new Event("input"));
    close();
  };
  const show = () => {
    const typed = word().toLowerCase();
    offered = typed ? words().filter((w) => w.toLowerCase().includes(typed) && w.toLowerCase() !== typed) : [];
    offered.sort((a, b) => a.toLowerCase().indexOf(typed) - b.toLowerCase().indexOf(typed));
    offered = offered.slice(0, 8);
    if (!offered.length) return close();
    // Use mousedown: at a click, the input has already lost focus and the list is hidden.
    fill(list, offered.map((w, i) => h("li", { role: "option", id: id + i, onmousedown: (e) => { e.preventDefault(); take(i); } }, w)));
    list.style.left = input.offsetLeft + "px";
    list.style.maxWidth = Math.max(120, innerWidth - input.getBoundingClientRect().left - 12) + "px";
    list.style.top = input.offsetTop + input.offsetHeight + 2 + "px";
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    chosen = -1;
  };
  input.addEventListener("input", show);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (e) => {
    if (list.hidden) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      chosen = (chosen + (e.key === "ArrowDown" ? 1 : offered.length)) % offered.length;
      if (chosen < 0) chosen = offered.length - 1;
      [...list.children].forEach((li, i) => li.setAttribute("aria-selected", i === chosen));
      input.setAttribute("aria-activedescendant", id + chosen);
    } else if ((e.key === "Enter" || e.key === "Tab") && chosen >= 0) take(chosen);
    else if (e.key === "Tab" && offered.length) take(0);
    else if (e.key === "Escape") {
      close();
      e.stopPropagation();
      return;
    } else return;
    e.preventDefault();
    e.stopImmediatePropagation(); // The field must not handle the key too.
  });
}
