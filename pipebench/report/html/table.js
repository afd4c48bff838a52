"use strict";
// Sorting by any column and filtering by words and choices; without scripts the tables stand as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const number = (text) => (text === "" ? NaN : Number(text));
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => {
        const [x, y] = [number(a), number(b)];
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        const order = Number.isNaN(x) ? a.localeCompare(b) : x - y;
        return up ? order : -order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
const table = document.querySelector("#rows");
const words = document.querySelector("#words");
const choices = [...document.querySelectorAll(".filters select")];
function filter() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const fits = wanted.every((word) => text.includes(word))
      && choices.every((each) => !each.value || row.dataset[each.name] === each.value);
    row.classList.toggle("hidden", !fits);
    shown += fits;
  }
  document.querySelector("#shown").textContent = `${shown} of ${table.tBodies[0].rows.length} rows`;
}
if (table && words) {
  words.addEventListener("input", filter);
  choices.forEach((each) => each.addEventListener("change", filter));
  filter();
}
function open(id) {
  const target = id && document.getElementById(decodeURIComponent(id));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", () => open(location.hash.slice(1)));
open(location.hash.slice(1));
