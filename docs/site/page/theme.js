// Sets the colors that the reader has chosen, before the page is drawn.
"use strict";
try {
  document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "";
} catch {
  // The browser has no storage for this page.
}
