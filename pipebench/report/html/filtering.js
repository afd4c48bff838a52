// Filtering of problems, lines and details by words and facets; each of the three lists shows a part of what fits.
class Listing {
  constructor(box, elements, name, step, fits) {
    Object.assign(this, { elements, name, step, fits, most: step });
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.className = "more";
    this.button.addEventListener("click", () => {
      this.most += this.step;
      this.show();
    });
    box.after(this.button);
  }

  show() {
    let fitting = 0;
    for (const element of this.elements()) {
      const fits = this.fits(element);
      element.classList.toggle("away", !fits || fitting >= this.most);
      fitting += fits;
    }
    const left = fitting - this.most;
    this.button.hidden = left <= 0;
    this.button.textContent = `Show ${Math.min(left, this.step)} more of ${left} ${this.name}`;
    return fitting;
  }
}

function filtering() {
  document.documentElement.classList.add("scripted");
  const table = document.querySelector("#rows");
  const words = document.querySelector("#words");
  const selects = [...document.querySelectorAll(".filters select")];
  const [problems, entries] = ["#problems", "#entries"].map((id) => document.querySelector(id));
  const lines = [...table.tBodies[0].rows].map((row) => ({ row, text: null }));
  let lineFits = [];
  let problemFits = [];
  const listings = [
    new Listing(problems, () => problems.children, "problems", page.shown.problems,
      (element) => problemFits[element.dataset.problem]),
    new Listing(table.parentElement, () => table.tBodies[0].rows, "lines", page.shown.lines,
      (element) => lineFits[element.dataset.line]),
    new Listing(entries, () => entries.children, "rows", page.shown.entries,
      (element) => lineFits[element.dataset.line]),
  ];
  const named = { words, ...Object.fromEntries(selects.map((each) => [each.name, each])) };
  // The choice stands in the address, in words, so that a link to it can be passed on.
  function toAddress() {
    const said = new URLSearchParams();
    for (const [name, field] of Object.entries(named)) {
      if (field.value) said.set(name, field.selectedOptions?.[0].textContent ?? field.value);
    }
    history.replaceState(null, "", `#${said}`);
  }
  function fromAddress() {
    for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
      const field = named[name];
      const option = field && [...field.options ?? []].find((each) => each.textContent === text);
      if (field) field.value = field === words ? text : option?.value ?? "";
    }
  }
  const chosen = (kind) => selects
    .filter((each) => each.dataset.of === kind && each.value)
    .map((each) => [Number(each.dataset.facet), Number(each.value)]);
  function filter() {
    const sought = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [ofLine, ofProblem] = [chosen("line"), chosen("problem")];
    const inFacets = page.problems.map((places) => ofProblem.every(([facet, place]) => places[facet] === place));
    problemFits = page.problems.map(() => false);
    lineFits = lines.map((line, number) => {
      const [problem, ...places] = page.lines[number];
      if (!inFacets[problem] || !ofLine.every(([facet, place]) => places[facet] === place)) return false;
      if (sought.length) line.text ??= line.row.textContent.toLowerCase();
      const fits = sought.every((word) => line.text.includes(word));
      problemFits[problem] ||= fits;
      return fits;
    });
    for (const each of listings) each.most = each.step;
    const [problemCount, , entryCount] = listings.map((each) => each.show());
    const of = (count, all, noun) => `${count} of ${all} ${noun}${all === 1 ? "" : "s"}`;
    document.querySelector("#shown").textContent =
      `${of(entryCount, entries.children.length, "row")}, ${of(problemCount, page.problems.length, "problem")}`;
    document.dispatchEvent(new CustomEvent("filtered", { detail: inFacets }));
  }
  function choose() {
    filter();
    toAddress();
  }
  words.addEventListener("input", choose);
  selects.forEach((each) => each.addEventListener("change", choose));
  table.addEventListener("sorted", () => listings[1].show());
  document.querySelector("#clear").addEventListener("click", () => {
    for (const each of [words, ...selects]) each.value = "";
    choose();
  });
  fromAddress();
  filter();
}
if (page) filtering();
open(location.hash.slice(1));
