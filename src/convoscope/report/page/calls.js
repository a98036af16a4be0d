// ------------------------------------------------------------------ the list

const list = { filters: {}, text: "", sort: "", shown: [], at: 0, top: 0, asked: 0, unknown: [], open: new Set(), query: "" };
const texts = [];
const MANY = 7;

const filterHash = () => {
  const query = new URLSearchParams(list.filters);
  if (list.text) query.set("text", list.text);
  if (list.sort) query.set("sort", list.sort);
  const text = query.toString();
  return text ? `#/calls?${text}` : "#/calls";
};

function readFilters(query) {
  if (query === list.query) return;
  list.query = query;
  const wanted = new URLSearchParams(query);
  list.filters = {};
  list.text = wanted.get("text") || "";
  list.sort = wanted.get("sort") || "";
  list.unknown = [];
  for (const [key, value] of wanted) {
    if (key === "text" || key === "sort") continue;
    if (index.facets.some((facet) => facet.key === key)) list.filters[key] = value;
    else list.unknown.push(`${key}=${value}`);
  }
  list.at = list.top = 0;
}

function callsScreen(query) {
  readFilters(query);
  const search = node("input", { type: "search", id: "search", placeholder: "Find by id, reason, words", "aria-label": `Find ${nouns()}`, autocomplete: "off" });
  search.value = list.text;
  search.addEventListener("input", () => { list.text = search.value.trim(); changed(); });
  const sort = node("select", { "aria-label": "Sort" }, node("option", { value: "" }, capital(facts.order)), node("option", { value: "id" }, "By id"), index.columns.map((column) => node("option", { value: column.name }, column.label)));
  sort.value = list.sort;
  sort.addEventListener("change", () => { list.sort = sort.value; changed(); });
  const box = node("div", { class: "vlist", id: "list", tabindex: "0", role: "list", "aria-label": capital(nouns()) }, node("div", { class: "vpad" }));
  box.addEventListener("scroll", () => { list.top = box.scrollTop; drawRows(); });
  return [
    node("div", { class: "head" }, node("h1", { id: "count", "aria-live": "polite" }), node("span", { class: "dim", id: "found" })),
    node("div", { class: "tbar" }, node("label", { class: "search" }, search, node("kbd", {}, "/")),
      node("button", { type: "button", class: "btn phone-only", "aria-expanded": "false", onclick: (event) => { const open = $("facets").classList.toggle("open"); event.target.setAttribute("aria-expanded", String(open)); } }, "Filter"),
      node("label", { class: "sort" }, "Sort ", sort), node("button", { type: "button", class: "btn", id: "clear", hidden: true, onclick: () => { location.hash = "#/calls"; } }, "Clear filters"),
      node("span", { class: "dim keys-hint" }, node("kbd", {}, "j"), " ", node("kbd", {}, "k"), " move, ", node("kbd", {}, "Enter"), " open")),
    node("p", { class: "dim", id: "bounds-line" }, bounds.map((line) => [coded(line), " "])),
    node("div", { class: "cl" }, node("div", { class: "fac", id: "facets", role: "group", "aria-label": "Filters" }),
      wideAs(node("div", { class: "card" }, node("div", { class: "vh", "aria-hidden": "true" }, node("span", {}), node("span", {}, facts.noun), node("span", {}, "why"), node("span", { class: "c-e" }, "lost in"), versionFacet() ? node("span", { class: "c-e" }, "version") : null, index.moved ? node("span", { class: "c-e" }, bdi(index.moved)) : null, index.columns.map((column) => node("span", { class: "n c-e", "data-tip": `${column.label} (${column.name})` }, column.label))), box))),
  ];
}

const versionFacet = () => (index.version >= 0 ? index.facets[index.version] : null);

// As many columns as there are: the style sheet leaves them out where there is no room.
function wideAs(made) {
  const narrow = [versionFacet() ? "minmax(0, 74px)" : "", index.moved ? "64px" : "", ...index.columns.map((column) => (column.name === "length" ? "48px" : "minmax(0, 84px)"))];
  made.style.setProperty("--more", narrow.filter(Boolean).join(" ") || "0");
  return made;
}

// What became of the pair: the earlier side, then the later one.
function moveOf(place) {
  const partner = index.partners[place];
  if (!partner) return node("span", { class: "c-e" }, dot("no pair on the other side"));
  const [, kind, , , earlier] = partner;
  const [first, last] = earlier ? [index.kinds[kind], kindOf(place)] : [kindOf(place), index.kinds[kind]];
  return node("span", { class: "c-e mv" }, outcomeSign(first), node("span", { "aria-hidden": "true" }, "→"), outcomeSign(last));
}

function changed() {
  list.at = list.top = 0;
  list.query = filterHash().split("?")[1] || "";
  history.replaceState(null, "", filterHash());
  refreshList();
}

const holds = (place, but) => index.facets.every(({ key, values, codes }) => key === but || list.filters[key] === undefined || values[codes[place]] === list.filters[key]);

// What can be searched of one conversation without unfolding it.
function textOf(place) {
  if (texts[place] === undefined) texts[place] = [index.ids[place], ...(index.reasons[place] || []), ...index.facets.map((facet) => facet.labels[facet.codes[place]] || "")].join("\n").toLowerCase();
  return texts[place];
}

// The words of those that are here in full are unfolded once somebody searches.
const spoken = new Map();
async function unfoldWords() {
  for (const place of full) {
    if (spoken.has(place)) continue;
    const call = await storyOf(place);
    const said = (call.lines || []).flatMap((line) => [line.title || "", ...(line.readings || []).map((reading) => reading.pieces.filter((piece) => piece[0] !== "-").map((piece) => piece[1]).join("")), ...(line.facts || []).map((fact) => fact[1])]);
    spoken.set(place, [...said, ...(call.about || []).map((fact) => fact[1]), ...(call.notes || [])].join("\n").toLowerCase());
    stories.delete(place);
  }
}

async function refreshList() {
  const mine = (list.asked += 1);
  const wanted = list.text.toLowerCase();
  const find = () => {
    const found = [];
    for (let place = 0; place < index.ids.length; place += 1) {
      if (holds(place) && (!wanted || textOf(place).includes(wanted) || (spoken.get(place) || "").includes(wanted))) found.push(place);
    }
    list.shown = found;
    sortRows();
    drawList();
  };
  find();
  if (wanted && spoken.size < full.size) {
    $("found").textContent = "Searching the words…";
    await unfoldWords();
    if (mine === list.asked && $("list")) find();
  }
}

function sortRows() {
  if (list.sort === "id") list.shown.sort((a, b) => (index.ids[a] < index.ids[b] ? -1 : index.ids[a] > index.ids[b] ? 1 : a - b));
  const column = index.columns.find((one) => one.name === list.sort);
  if (column) list.shown.sort((a, b) => (column.codes[a] < 0) - (column.codes[b] < 0) || column.codes[b] - column.codes[a] || a - b);
}

const filtered = () => Object.keys(list.filters).length > 0 || list.text !== "";

function drawList() {
  const total = filtered() ? list.shown.length : facts.total;
  $("count").textContent = `${number(total)} of ${counted(facts.total, facts.noun)}`;
  const about = [];
  if (list.text && full.size < index.ids.length) about.push(`words were searched in ${number(full.size)}`);
  if (filtered() && index.ids.length < facts.total) about.push(`looked for among the first ${number(index.ids.length)}`);
  if (list.unknown.length) about.push(`not known here and left out: ${list.unknown.join(", ")}`);
  $("found").textContent = about.join("; ");
  $("clear").hidden = !filtered();
  $("facets").replaceChildren(...index.facets.flatMap(facetOf));
  list.at = Math.max(0, Math.min(list.at, list.shown.length - 1));
  drawRows(true);
}

// Counts are of what would remain; without a filter they are of the whole run.
function facetOf(facet) {
  let { counts } = facet;
  if (filtered()) {
    counts = facet.values.map(() => 0);
    const wanted = list.text.toLowerCase();
    for (let place = 0; place < index.ids.length; place += 1) {
      const code = facet.codes[place];
      if (code >= 0 && holds(place, facet.key) && (!wanted || textOf(place).includes(wanted) || (spoken.get(place) || "").includes(wanted))) counts[code] += 1;
    }
  }
  const chosen = list.filters[facet.key];
  const open = list.open.has(facet.key);
  const order = facet.values.map((value, code) => code).filter((code) => counts[code] || facet.values[code] === chosen);
  const most = open ? 60 : MANY;
  const shown = order.slice(0, most);
  if (chosen !== undefined && !shown.some((code) => facet.values[code] === chosen) && facet.values.includes(chosen)) shown.push(facet.values.indexOf(chosen));
  // What is different in each tells nothing beside the list; an address and the search still find it.
  if (!shown.length || (chosen === undefined && !facet.tells) || (chosen === undefined && facet.values.length > MANY && facet.counts.every((count) => count === 1))) return [];
  const button = (code) => node("button", { type: "button", "aria-pressed": String(facet.values[code] === chosen), onclick: () => {
    if (facet.values[code] === chosen) delete list.filters[facet.key];
    else list.filters[facet.key] = facet.values[code];
    list.query = filterHash().split("?")[1] || "";
    location.hash = filterHash();
    changed();
  } }, node("bdi", {}, facet.labels[code] || "(empty)"), node("span", {}, number(counts[code])));
  const more = order.length - shown.length + (filtered() ? 0 : facet.others || 0);
  return [node("h3", {}, bdi(facet.title)), ...shown.map(button),
    more > 0 && !open ? node("button", { type: "button", class: "mut", onclick: () => { list.open.add(facet.key); drawList(); } }, `${number(more)} more`, node("span", {})) : more > 0 ? node("p", { class: "dim" }, `${number(more)} more: search for them`) : null].filter(Boolean);
}

const rowHeight = () => (innerWidth < 760 ? 62 : 40);

// Only the rows in sight are there, and a few beside them.
function drawRows(jump) {
  const box = $("list");
  if (!box) return;
  const high = rowHeight();
  const pad = box.firstElementChild;
  if (!list.shown.length) {
    pad.style.height = "auto";
    pad.replaceChildren(node("p", { class: "none" }, `No ${facts.noun} fits these filters. `, node("button", { type: "button", class: "btn", onclick: () => { location.hash = "#/calls"; } }, "Clear filters")));
    return;
  }
  pad.style.height = `${list.shown.length * high}px`;
  if (jump) box.scrollTop = list.top;
  const first = Math.max(0, Math.floor(box.scrollTop / high) - 5);
  const last = Math.min(list.shown.length, first + Math.ceil(box.clientHeight / high) + 10);
  const rows = [];
  for (let at = first; at < last; at += 1) rows.push(row(list.shown[at], at, high));
  pad.replaceChildren(...rows);
}

function row(place, at, high) {
  const [first, ...rest] = index.reasons[place] || [];
  const cell = (column) => {
    const code = column.codes[place];
    return node("span", { class: `n c-e ${(column.badSet ||= new Set(column.bad)).has(place) ? "x" : ""}` }, code < 0 ? dot(column.reasons[-1 - code]) : column.texts[code]);
  };
  const made = node("a", { class: `vr ${at === list.at ? "cur" : ""}`, href: linkTo(place), role: "listitem", "aria-setsize": list.shown.length, "aria-posinset": at + 1, "data-place": place },
    outcomeSign(kindOf(place)), node("bdi", { class: "id" }, index.ids[place]),
    node("span", { class: "why" }, first ? node("b", {}, bdi(first)) : node("span", { class: "dim" }, "nothing stands out"), rest.length ? node("span", { class: "mut" }, "; ", bdi(rest.join("; "))) : null),
    node("bdi", { class: "mono dim c-e" }, index.ended[place] || ""), versionFacet() ? node("bdi", { class: "c-e" }, versionFacet().labels[versionFacet().codes[place]] || "") : null, index.moved ? moveOf(place) : null, index.columns.map(cell));
  made.style.top = `${at * high}px`;
  made.addEventListener("click", () => { list.at = at; });
  return made;
}

function moveRow(step) {
  const box = $("list");
  const high = rowHeight();
  list.at = Math.max(0, Math.min(list.shown.length - 1, list.at + step));
  const top = list.at * high;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + high > box.scrollTop + box.clientHeight) box.scrollTop = top + high - box.clientHeight;
  list.top = box.scrollTop;
  drawRows();
}
