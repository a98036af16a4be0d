// ------------------------------------------------------------------ all figures

const figuresState = { text: "", filter: "", folded: null };
const FILTERS = { "": "All", target: "With a target", coverage: "Coverage below 100 %", silent: "Not measured" };

function figuresScreen(name) {
  const { figures } = facts;
  const chosen = figures.families.flatMap((family) => family.rows).find((row) => row.name === name);
  if (!figuresState.folded) figuresState.folded = new Set(figures.families.filter((family) => family.folded).map((family) => family.name));
  const body = node("tbody", {});
  const shown = ["", figures.any_target ? "target" : null, figures.any_uncovered ? "coverage" : null, (figures.silent || []).length ? "silent" : null].filter((one) => one !== null);
  const search = node("input", { type: "search", placeholder: "Find a figure", "aria-label": "Find a figure", autocomplete: "off" });
  search.value = figuresState.text;
  search.addEventListener("input", () => { figuresState.text = search.value; fillFigures(body, chosen); });
  const buttons = shown.map((key) => node("button", { type: "button", "aria-pressed": String(figuresState.filter === key), onclick: (event) => {
    figuresState.filter = key;
    for (const one of event.target.parentElement.children) one.setAttribute("aria-pressed", String(one === event.target));
    fillFigures(body, chosen);
  } }, FILTERS[key]));
  fillFigures(body, chosen);
  const head = ["figure", "value", "95 % interval", "from to", "n", "coverage", "better"];
  return [
    node("div", { class: "head" }, node("h1", {}, `${counted(figures.measured, "metric")} measured`), figures.unmeasured ? node("span", { class: "dim" }, `${number(figures.unmeasured)} could not be`) : null),
    metricsSwitch("metrics"),
    node("div", { class: "tbar" }, node("label", { class: "search" }, search, node("kbd", {}, "/")), node("div", { class: "seg" }, buttons)),
    node("div", { class: `split2 ${chosen ? "open" : ""}` },
      node("div", { class: "card" }, node("table", { class: "tbl" }, node("thead", {}, node("tr", {}, head.map((word, place) => node("th", { scope: "col", class: ["", "n", "", "n ft2", "n", "n", "n ft2"][place] }, word)))), body)),
      chosen ? figurePanel(chosen) : null),
  ];
}

function fillFigures(body, chosen) {
  const { text, filter, folded } = figuresState;
  const wanted = text.trim().toLowerCase();
  const rows = [];
  const fits = (row) => (!wanted || `${row.name} ${row.label} ${row.question || ""}`.toLowerCase().includes(wanted)) && (filter !== "target" || row.target) && (filter !== "coverage" || row.covered === false);
  for (const family of filter === "silent" ? [] : facts.figures.families) {
    const mine = family.rows.filter(fits);
    if (!mine.length) continue;
    const open = wanted || filter || mine.includes(chosen) || !folded.has(family.name);
    const button = node("button", { type: "button", "aria-expanded": String(Boolean(open)), onclick: () => { if (!folded.delete(family.name)) folded.add(family.name); fillFigures(body, null); } },
      node("b", {}, bdi(family.name)), node("span", { class: "dim" }, number(mine.length)), family.missed ? node("span", { class: "chip bad" }, `✕ ${family.missed} missed`) : null);
    rows.push(node("tr", { class: "fam" }, node("th", { colspan: "7", scope: "rowgroup" }, button)));
    if (open) rows.push(...mine.map((row) => figureRow(row, row === chosen)));
  }
  const silent = (facts.figures.silent || []).filter((line) => !wanted || line.toLowerCase().includes(wanted));
  if (silent.length && (filter === "silent" || !filter)) {
    const open = filter === "silent" || wanted || folded.has("-silent");
    const button = node("button", { type: "button", "aria-expanded": String(Boolean(open)), onclick: () => { if (!folded.delete("-silent")) folded.add("-silent"); fillFigures(body, null); } }, node("b", {}, "Not measured"), node("span", { class: "dim" }, number(facts.figures.unmeasured)));
    rows.push(node("tr", { class: "fam" }, node("th", { colspan: "7", scope: "rowgroup" }, button)));
    if (open) rows.push(...silent.map((line) => node("tr", { class: "silent" }, node("td", { colspan: "7" }, bdi(line)))));
  }
  if (!rows.length) rows.push(node("tr", {}, node("td", { colspan: "7" }, "No figure fits.")));
  body.replaceChildren(...rows);
}

function figureRow(row, chosen) {
  const value = row.reason ? dot(row.reason) : row.value;
  return node("tr", { class: `r ${chosen ? "sel" : ""} ${row.same ? "twin" : ""}`, onclick: (event) => { if (!event.target.closest("a, .na")) location.hash = `#/metrics/${encodeURIComponent(row.name)}`; } },
    node("th", { scope: "row", class: "lab" }, node("a", { href: `#/metrics/${encodeURIComponent(row.name)}`, "aria-current": chosen ? "true" : null }, bdi(row.label)), row.same ? node("span", { class: "dim same" }, `= ${row.same}`) : node("bdi", { class: "mono" }, row.name), row.calibration ? [" ", node("span", { class: "chip" }, row.calibration)] : null),
    node("td", { class: `n v ${TONES[row.verdict] || ""}` }, node("b", {}, value)),
    node("td", { class: "iv" }, intervalBar(row.bar, row.verdict)),
    node("td", { class: "n ft2" }, row.interval_reason ? dot(row.interval_reason) : row.interval),
    node("td", { class: "n" }, node("span", { class: "phone-only" }, "n "), row.n),
    node("td", { class: "n cv" }, row.coverage === "·" ? dot(row.skipped || row.reason || "nothing was applicable") : row.covered === false ? node("b", { "data-tip": row.skipped, tabindex: "0" }, row.coverage) : row.coverage),
    node("td", { class: "n ft2" }, row.better || ""));
}

function figurePanel(row) {
  const bars = (group) => [node("span", { class: "g" }, bdi(group.by)), ...group.rows.flatMap((one) => [
    one.href ? node("a", { href: one.href }, bdi(one.name)) : bdi(one.name), intervalBar(one.bar) || node("span", {}), node("span", { class: "n", "data-tip": `n ${one.n}` }, one.reason ? dot(one.reason) : one.value),
    one.target ? node("span", { class: "g" }, bdi(one.target)) : null]),
  group.more ? node("span", { class: "g" }, `and ${counted(group.more, "more group")}`) : null];
  const section = (title, ...inside) => node("section", {}, node("h3", {}, title), inside);
  const worst = (row.worst || []).map(([id, value]) => { const place = index.ids.indexOf(id); return place < 0 ? node("p", {}, bdi(id), ` ${value}`) : callRow(place, value); });
  return node("aside", { class: "card panel", "aria-label": "About the figure" },
    node("a", { class: "x", href: "#/metrics", "aria-label": "Close" }, "✕"),
    node("h2", {}, bdi(row.label)), node("p", { class: "mono dim" }, bdi(row.name)),
    node("p", {}, node("b", { class: `big ${TONES[row.verdict] || ""}` }, row.reason ? dot(row.reason) : row.value), " ", node("span", { class: "dim" }, row.interval_reason ? `no interval: ${row.interval_reason}` : `95 % interval ${row.interval}`, `, n ${row.n}, ${row.coverage === "·" ? "nothing applicable" : `${row.coverage} covered`}`)),
    intervalBar(row.bar, row.verdict),
    row.same ? node("p", { class: "dim" }, `It has the same value as ${row.same} in every ${facts.noun}.`) : null,
    row.target ? node("p", {}, `target ${row.target} `, verdictOf(row.verdict)) : null,
    row.points ? node("p", { class: "dim" }, `of 10 points: ${row.points}`) : null,
    row.question ? section("What it measures", node("p", { class: "mut" }, bdi(row.question), row.better ? ` ${capital(row.better)} is better.` : "")) : null,
    row.judged ? section("The judge", node("p", { class: "mut" }, bdi(row.judged))) : null,
    row.skipped ? section("Not measured", node("p", { class: "mut" }, bdi(row.skipped))) : null,
    row.spread ? section(`How the ${nouns()} spread`, spreadOf(row.spread, true), node("p", { class: "ends dim" }, node("span", {}, row.spread.first || ""), node("span", {}, row.spread.middle), node("span", {}, row.spread.last || ""))) : null,
    (row.groups || []).length ? section("By group", node("div", { class: "mult" }, row.groups.map(bars))) : null,
    worst.length ? section(`Worst ${nouns()}`, node("div", { class: "list" }, worst)) : null);
}
