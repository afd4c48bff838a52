"use strict";
// Sorting by any column; without scripts the tables stand as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v ?? row.cells[column].textContent.trim();
      const number = (text) => (text === "" ? NaN : Number(text));
      const order = new Intl.Collator().compare;
      const rows = [...body.rows].map((row) => [key(row), number(key(row)), row]);
      rows.sort(([a, x], [b, y]) => {
        if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
        const difference = Number.isNaN(x) ? order(a, b) : x - y;
        return up ? difference : -difference;
      });
      body.append(...rows.map(([, , row]) => row));
      table.dispatchEvent(new Event("sorted"));
    });
  });
}
function open(id) {
  const target = document.getElementById(id);
  if (!(target instanceof HTMLDetailsElement)) return;
  target.classList.remove("away");
  target.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", () => open(location.hash.slice(1)));
