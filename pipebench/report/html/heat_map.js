// Another choice of regime, contenders, axes or facets draws the heat map anew. heat_map.py draws the first one:
// cells read the same in both.
const page = JSON.parse(document.querySelector("#page-data")?.textContent ?? "null");

function heatMap(table) {
  const [regime, first, second, down, across] = ["regime", "first", "second", "down", "across"].map((name) =>
    document.querySelector(`#heat-${name}`));
  const strongest = 60;
  const figure = (ratio) => ratio.toFixed(2);
  let inFacets = page.problems.map(() => true);

  function compare(mode, problems) {
    const [a, b] = [first, second].map((each) => page.times[mode][each.selectedIndex]);
    const found = { logs: [], onlyA: 0, onlyB: 0, neither: 0, untaken: 0, unrun: 0 };
    for (const problem of problems) {
      const [x, y] = [a[problem], b[problem]];
      if (x === null || y === null) found.untaken += 1;
      else if (x < 0 || y < 0) found.unrun += 1;
      else if (x && y) found.logs.push(Math.log(x / y));
      else if (x || y) found[x ? "onlyA" : "onlyB"] += 1;
      else found.neither += 1;
    }
    const both = found.logs.length;
    const ratio = both ? Math.exp(found.logs.reduce((sum, log) => sum + log, 0) / both) : null;
    return { ...found, both, ratio };
  }

  function summary({ ratio, both, onlyA, onlyB, neither, untaken, unrun }) {
    const counts = [["both have a plan", both], ["only A", onlyA], ["only B", onlyB], ["neither", neither],
      ["n/a", untaken], ["not run", unrun]];
    const said = counts.filter(([, count]) => count).map(([words, count]) => `${words}: ${count}`);
    if (ratio !== null) said.unshift(`A / B ${figure(ratio)}`);
    return said.length ? said.join(", ") : "no such problem";
  }

  function look({ ratio, both, onlyA, onlyB, neither, untaken, unrun }) {
    const all = both + onlyA + onlyB + neither + untaken + unrun;
    if (ratio !== null) {
      const words = figure(ratio) + (both < all ? ` (${both}/${all})` : "");
      return [words, ratio > 1 ? "slower" : "faster", strongest * Math.min(1, Math.abs(Math.log2(ratio)))];
    }
    if (all === untaken + unrun) return [untaken ? "n/a" : unrun ? "not run" : "", "unsolved", 0];
    if (onlyA && onlyB) return ["A or B", "unsolved", 0];
    if (onlyA || onlyB) return [onlyA ? "A only" : "B only", "lone", 0];
    return ["✕", "unsolved", 0];
  }

  function element(name, words, rest = {}) {
    return Object.assign(document.createElement(name), { textContent: words }, rest);
  }

  function draw() {
    const mode = regime ? regime.selectedIndex : 0;
    const [x, y] = [across, down].map((each) => page.axes[each.selectedIndex]);
    const shown = [...page.problems.keys()].filter((problem) => inFacets[problem]);
    const cells = y.values.map(() => x.values.map(() => []));
    for (const problem of shown) {
      const places = page.problems[problem];
      cells[places[down.selectedIndex]][places[across.selectedIndex]].push(problem);
    }
    const kept = [x.values, y.values].map((values, side) => [...values.keys()].filter((place) =>
      side ? cells[place].some((cell) => cell.length) : cells.some((row) => row[place].length)));
    const head = document.createElement("tr");
    head.append(element("th", `${y.name} \\ ${x.name}`, { scope: "col" }),
      ...kept[0].map((place) => element("th", x.values[place], { scope: "col" })));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...kept[1].map((row) => {
      const line = document.createElement("tr");
      line.append(element("th", y.values[row], { scope: "row" }));
      for (const column of kept[0]) {
        const found = compare(mode, cells[row][column]);
        const [words, style, part] = look(found);
        const cell = element("td", words, { className: style, title: summary(found) });
        cell.style.setProperty("--part", `${part.toFixed(1)}%`);
        line.append(cell);
      }
      return line;
    }));
    document.querySelector("#heat-title").textContent =
      `${first.value} / ${second.value}, ${page.regimes[mode]}`;
    document.querySelector("#heat-summary").textContent = summary(compare(mode, shown));
  }

  for (const each of [regime, first, second, down, across]) each?.addEventListener("change", draw);
  document.addEventListener("filtered", ({ detail }) => {
    if (detail.every((fits, problem) => fits === inFacets[problem])) return;
    inFacets = detail;
    draw();
  });
}
{
  const table = document.querySelector("table.heat");
  if (table) heatMap(table);
}
