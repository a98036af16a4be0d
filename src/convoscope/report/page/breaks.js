// ------------------------------------------------------------------ where it breaks

function breaksScreen(flowText, stateText, query) {
  const { flow, no_states, groups = [], alike, panels = [] } = facts.breaks;
  const parts = [];
  if (flow) {
    const number = flow.flows[Number(flowText)] ? Number(flowText) : 0;
    const one = flow.flows[number];
    const state = stateText !== undefined && one.states[Number(stateText)] ? Number(stateText) : one.opens;
    const view = flowView(one, query);
    const to = (place) => flowHash(number, place, one, view);
    parts.push(node("div", { class: "head" }, node("h1", {}, "Where it breaks"), node("span", { class: "dim" }, bdi(flow.flows.length > 1 ? flow.line : `${one.name}: ${one.about}`))));
    if (flow.flows.length > 1) parts.push(node("div", { class: "seg flows" }, flow.flows.map((other, place) => node("a", { class: `btn ${place === number ? "on" : ""}`, href: `#/breaks/${place}`, "aria-current": place === number ? "true" : null }, bdi(other.name), node("span", { class: "dim" }, other.line)))), node("p", { class: "dim about" }, bdi(one.about)));
    parts.push(flowSwitches(one, number, state, view),
      node("div", { class: "two" },
        node("div", { class: "left" }, node("div", { class: "card flow" }, flowPicture(one, view, state, to), flowBars(one, view, state, to), legend(), unseen(one, to)), (one.measures || []).length ? measureTable(one, view, to) : null),
        statePanel(one, state, to)));
    if (flow.left_out) parts.push(node("p", { class: "dim" }, flow.left_out));
    const tables = [...(one.tables || []), ...(flow.tables || [])];
    if (tables.length) parts.push(node("section", { "aria-label": "In numbers" }, tables.map(flowTable)));
  } else parts.push(node("div", { class: "head" }, node("h1", {}, "Where it breaks")), node("p", { class: "mut" }, coded(no_states)));
  if (groups.length || alike) {
    parts.push(node("section", { "aria-label": "Groups that stand apart" }, node("div", { class: "head" }, node("h2", {}, "Groups that stand apart"), node("span", { class: "dim" }, `against all other ${nouns()}; only what holds after correction`)),
      node("ul", { class: "card box apart" }, groups.map((one) => node("li", {}, node("span", { class: `chip ${one.worse ? "bad" : "good"}` }, one.worse ? "✕ worse" : "✓ better"), node("span", { class: "w" }, bdi(one.sentence)), one.href ? node("a", { class: "btn", href: one.href }, one.calls) : node("span", { class: "dim" }, one.calls))),
        alike ? node("li", { class: "mut" }, bdi(alike)) : null)));
  }
  for (const panel of panels) parts.push(familyPanel(panel));
  return parts;
}

// What is shown, and of which version: the address holds both.
function flowView(flow, query) {
  const wanted = new URLSearchParams(query);
  const measures = flow.measures || [];
  const measure = measures.find((one) => one.name === wanted.get("show")) || measures[0];
  const version = flow.pictures.length > 1 ? (flow.versions || []).indexOf(wanted.get("of")) + 1 : 0;
  return { measure, version };
}

function flowHash(number, state, flow, { measure, version }) {
  const query = new URLSearchParams();
  if (measure && measure !== flow.measures[0]) query.set("show", measure.name);
  if (version) query.set("of", flow.versions[version - 1]);
  const text = query.toString();
  return `#/breaks/${number}/${state}${text ? `?${text}` : ""}`;
}

function flowSwitches(flow, place, state, view) {
  const measures = flow.measures || [];
  const button = (chosen, to, ...words) => node("a", { class: `btn ${chosen ? "on" : ""}`, href: flowHash(place, state, flow, { ...view, ...to }), "aria-current": chosen ? "true" : null }, words);
  const size = (count) => node("span", { class: "dim" }, number(count));
  return node("div", { class: "seg shows" },
    measures.length > 1 ? [node("span", { class: "dim" }, "Show"), measures.map((one) => button(one === view.measure, { measure: one }, one.title))] : null,
    flow.pictures.length > 1 ? [node("span", { class: "dim of" }, "of"), button(!view.version, { version: 0 }, `all ${nouns()} `, size(flow.sizes[0])), flow.versions.map((name, at) => button(view.version === at + 1, { version: at + 1 }, bdi(name), " ", size(flow.sizes[at + 1])))] : null);
}

// What a family declared: a sentence, tables that unfold, remarks.
function familyPanel({ title, line, tables = [], remarks = [] }) {
  const rest = (rows) => (rows.length > 100 ? node("p", { class: "dim" }, `and ${number(rows.length - 100)} more`) : null);
  return node("section", { "aria-label": title }, node("div", { class: "head" }, node("h2", {}, title)), node("p", { class: "mut" }, bdi(line)),
    tables.map(([columns, rows, name]) => fold([node("b", {}, name), node("span", { class: "dim" }, counted(rows.length, "row"))], () => [table(columns.map((one) => one[0]), rows.slice(0, 100).map((row) => node("tr", {}, row.map(([text, , , link]) => node("td", {}, link ? node("a", { href: link }, bdi(text)) : bdi(text))))), { label: name }), rest(rows)], { class: "fold" })),
    remarks.map((words) => node("p", { class: "dim" }, bdi(words))));
}

function flowPicture(flow, { measure, version }, chosen, to) {
  const [width, height, ground, states, ribbons, falls, lost, returns] = flow.pictures[version];
  const svg = drawn("svg", { class: `flow-picture show-${measure ? measure.name : ""}`, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The states of ${flow.name}, from left to right` });
  svg.style.minWidth = `${Math.min(width, 4000)}px`;
  svg.style.maxWidth = `${width * 1.1}px`;
  svg.append(drawn("defs", {}, drawn("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, drawn("rect", { class: "gap", width: 6, height: 6 }), drawn("path", { class: "hatch", d: "M1.5 0V6" }))));
  for (const [path, head, label] of returns) svg.append(drawn("g", { class: "back" }, drawn("path", { class: "line", d: path }), drawn("path", { class: "head", d: head }), words("mid", ...label)));
  for (const [path, tip] of ribbons) svg.append(drawn("path", { class: "ribbon", d: path, "data-tip": tip }));
  if (lost.length) svg.append(drawn("path", { class: "ground", d: `M0 ${ground}H${width}` }));
  for (const [, stuck, over, tip] of falls) svg.append(drawn("g", { class: "fall", "data-tip": tip }, stuck ? drawn("path", { class: "stuck", d: stuck }) : [], over ? drawn("path", { class: "over", d: over, fill: "url(#hatch)" }) : []));
  for (const [x, , total, lines] of lost) svg.append(words("total", x, ground + 16, total), ...lines.map((line, at) => words("dim", x, ground + 30 + 13 * at, line)));
  for (const [place, x, y, high, style, names, visits, figure, tip] of states) {
    const goal = style.includes("goal");
    const cell = !goal && measure && place >= 0 ? ((flow.states[place].cells || {})[measure.name] || [])[version] : null;
    const label = [names.map(([at, top, text]) => words("name", at, top, `${goal ? "✓ " : ""}${text}`)), words("dim", visits[0], visits[1], goal ? `${visits[2]} of ${number(flow.sizes[version])}` : visits[2]),
      goal ? words("arrive", figure[0], figure[1], flow.goals[version]) : cell ? words(cell[1] ? "marked" : "dim", figure[0], figure[1], cell[0]) : []];
    const bar = drawn("rect", { class: "bar", x, y, width: 9, height: high });
    const on = place === chosen ? drawn("rect", { class: "on", x: x - 4, y: y - 4, width: 17, height: high + 8, rx: 3 }) : [];
    svg.append(place < 0 ? drawn("g", { class: style }, bar, ...label.flat()) : drawn("a", { class: `${style} ${place === chosen ? "chosen" : ""}`, href: to(place), "aria-label": tip.replace("\n", ". "), "data-tip": tip, "aria-current": place === chosen ? "true" : null }, drawn("rect", { class: "hit", x: x - 4, y: y - 52, width: 90, height: high + 56 }), bar, on, ...label.flat()));
  }
  return [node("div", { class: "sc flow-box", tabindex: "0", role: "region", "aria-label": `Picture of ${flow.name}` }, svg), flow.left_out ? node("p", { class: "lg" }, flow.left_out) : null];
}

function words(style, x, y, text) {
  const made = drawn("text", { class: style, x, y });
  made.textContent = text;
  return made;
}

// The same from top to bottom, losses to the right: on a phone instead of the picture.
function flowBars(flow, { version }, chosen, to) {
  const most = Math.max(...flow.states.map((state) => state.n), 1);
  const goals = new Set(flow.pictures[version][3].filter((one) => one[4].includes("goal")).map((one) => one[0]));
  const unseen = new Set(flow.unseen || []);
  const part = (name, count) => { const made = node("i", { class: name }); made.style.width = `${(100 * count) / most}%`; return made; };
  const bar = (state, place) => {
    const [n = state.n, stuck = 0, over = 0] = (state.counts || [])[version] || [];
    const lines = stuck + over ? [node("b", { class: "bad" }, `${number(stuck + over)} lost`), stuck ? `${number(stuck)} stuck` : null, over ? `${number(over)} to a person` : null] : goals.has(place) ? [node("b", { class: "good" }, flow.goals[version])] : [];
    return node("a", { href: to(place), class: goals.has(place) ? "goal" : "", "aria-current": place === chosen ? "true" : null },
      node("span", { class: "nm" }, goals.has(place) ? "✓ " : "", node("bdi", {}, state.name), node("small", {}, ` ${number(n)}`)), node("span", { class: "out" }, lines.filter(Boolean).map((line) => node("span", {}, line))),
      node("span", { class: "tr" }, part("bar", n)), goals.has(place) ? null : node("span", { class: "tr on" }, part("go", n - stuck - over), part("stuck", stuck), part("over", over)));
  };
  return node("div", { class: "fun" }, flow.states.map((state, place) => [state, place]).filter(([, place]) => !unseen.has(place)).slice(0, 60).map(([state, place]) => bar(state, place)));
}

function legend() {
  const swatch = (name) => node("i", { class: name });
  return node("ul", { class: "lg", "aria-label": "Legend" }, node("li", {}, swatch("go"), `${nouns()} that go on`), node("li", {}, swatch("stuck"), "stuck"), node("li", {}, swatch("over"), "handed to a person"), node("li", {}, swatch("goal"), "goal"), node("li", { class: "wide-only" }, swatch("back"), "go back"));
}

// States that are not in the picture can be chosen all the same.
function unseen(flow, to) {
  const places = (flow.unseen || []).slice(0, 60);
  return places.length ? node("p", { class: "lg" }, "Not drawn: ", places.map((place, at) => [at ? ", " : "", node("a", { href: to(place) }, bdi(flow.states[place].name)), flow.states[place].n ? ` (${flow.states[place].end || "end"}, ${number(flow.states[place].n)})` : " (no visit)"])) : null;
}

function fixOf(fix, flow, to) {
  const bar = (made, left, width) => { made.style.left = `${left}%`; if (width !== undefined) made.style.width = `${width}%`; return made; };
  return [
    fix.lead ? node("p", { class: "lead" }, node("b", { class: "good" }, fix.lead), " would reach the goal") : null,
    node("p", { class: "mut" }, fix.text, fix.verdict ? ` ${fix.verdict}` : ""),
    fix.lead ? node("div", { class: "gain", role: "img", "aria-label": `${fix.now_text}; ${fix.verdict}` }, bar(node("i", { class: "now" }), 0, fix.now), bar(node("i", { class: "then" }), fix.now, fix.then - fix.now), fix.target === undefined ? null : bar(node("i", { class: "target" }), fix.target)) : null,
    fix.lead ? node("p", { class: "ends dim" }, node("span", {}, fix.now_text), node("span", {}, fix.target_text || "")) : null,
    (fix.ranked || []).length > 1 ? node("div", { class: "ranks" }, fix.ranked.map(([place, text, length], at) => { const made = node("i", { class: at ? "" : "good" }); made.style.width = `${length}%`; return [node("a", { class: "mono", href: to(place) }, bdi(flow.states[place].name)), node("span", { class: "tr" }, made), node("span", { class: "n" }, text)]; })) : null];
}

function statePanel(flow, state, to) {
  const one = flow.states[state];
  const section = (title, ...inside) => node("section", {}, node("h3", {}, title), inside);
  const places = (one.places || []).filter((place) => place < index.ids.length);
  return node("aside", { class: "card panel", "aria-label": "The chosen state", "aria-live": "polite" },
    node("h2", { class: "mono" }, bdi(one.name)),
    node("p", { class: "lead" }, node("b", {}, one.split ? one.line.replace(/\.$/, "") : one.line), one.split ? `: ${one.split}.` : null), one.interval ? node("p", { class: "dim" }, one.interval) : null,
    one.end ? node("p", { class: "dim" }, `An end of the flow: ${one.end}.`) : null,
    one.note ? node("p", { class: "dim" }, one.note) : null,
    one.fix ? section("If it were like the other states", fixOf(one.fix, flow, to)) : null,
    (one.why || []).length ? section("Why", node("ul", { class: "why2" }, one.why.map(([lost, sentence, href]) => node("li", {}, node("b", {}, number(lost)), " ", node("a", { href }, bdi(sentence)))), one.again ? node("li", { class: "mut" }, one.again) : null)) : null,
    (one.diagnosis || []).length ? section("What the figures say", node("ul", { class: "mut" }, one.diagnosis.map((line) => node("li", {}, bdi(line))))) : null,
    (one.versions || []).length > 1 ? section("By version", node("div", { class: "mult" }, one.versions.flatMap(([name, text, cell]) => [bdi(name), dots([cell]), node("span", { class: "n" }, text)]))) : null,
    places.length ? section(`${capital(nouns())}, worst first`, node("div", { class: "list" }, places.map((place) => callRow(place, (index.reasons[place] || [])[0]))), node("p", {}, node("a", { href: one.calls }, `All ${number(one.lost)}`))) : null,
    (one.figures || []).length ? fold("Figures of the state", () => node("table", { class: "plain" }, node("tbody", {}, one.figures.map(([label, value, under, reason]) => node("tr", {}, node("th", { scope: "row" }, label), node("td", { class: "n" }, reason ? dot(reason) : value, under ? node("small", { class: "dim" }, ` ${under}`) : null)))))) : null,
    (one.neighbours || []).length ? fold("Where it leads", () => node("ul", { class: "mut" }, one.neighbours.slice(0, 30).map(([how, name, count]) => node("li", {}, `${how} `, bdi(name), ` ${count}`)))) : null);
}

// A dot for each version, with its interval, on one scale.
function dots(cells) {
  const known = cells.filter(Boolean);
  const made = node("span", { class: `dots d${cells.length}`, role: "img", "aria-label": known.map((cell) => cell[7]).join("; ") || "no value" });
  cells.forEach((cell, at) => {
    if (!cell) return;
    const put = (name, left, width) => { const mark = node("i", { class: `${name} v${at} ${cell[8] ? "few" : ""}` }); mark.style.left = `${left}%`; if (width !== undefined) mark.style.width = `${width}%`; made.append(mark); };
    if (cell[5] !== null && cell[6] !== null) put("band", cell[5], cell[6] - cell[5]);
    put("dot", cell[4]);
  });
  return made;
}

// One row for each state that is no end: the chosen measure, of each version.
function measureTable(flow, { measure }, to) {
  const versions = flow.versions || [];
  const rows = flow.states.map((state, place) => [state, place]).filter(([state]) => ((state.cells || {})[measure.name] || []).some(Boolean)).slice(0, 40);
  if (!rows.length) return null;
  const columns = versions.length ? versions : [`all ${nouns()}`];
  const cell = (one, reason) => (one ? node("td", { class: `n ${one[8] ? "few" : ""}`, "data-tip": one[7] }, one[2], " ", node("small", { class: "dim" }, one[3])) : node("td", { class: "n" }, dot(reason)));
  const title = versions.length ? `${measure.title}, ${versions.length === 2 ? versions.join(" against ") : "by version"}` : `${measure.title}, state by state`;
  const row = ([state, place]) => {
    const cells = state.cells[measure.name].slice(versions.length ? 1 : 0);
    const [text, tone, tip] = (state.changes || {})[measure.name] || ["", "", ""];
    return node("tr", {}, node("th", { scope: "row", class: "mono" }, node("a", { href: to(place) }, bdi(state.name))), cells.map((one) => cell(one, "nothing to measure in this version")), node("td", { class: "iv" }, dots(cells)),
      versions.length === 2 ? node("td", { class: `n chg ${tone}`, "data-tip": tip || null, tabindex: tip ? "0" : null }, text ? node(tone ? "b" : "span", {}, text) : dot("too few to compare, or it never happens here")) : null);
  };
  return node("section", { class: "by-version", "aria-label": title }, node("div", { class: "head" }, node("h2", {}, bdi(title)), node("span", { class: "dim" }, measure.about)),
    node("div", { class: "card sc", tabindex: "0", role: "region", "aria-label": title }, node("table", { class: "tbl states" },
      node("thead", {}, node("tr", {}, node("th", { scope: "col" }, "state"), columns.map((name, at) => node("th", { scope: "col", class: "n" }, versions.length ? node("i", { class: `key v${at}` }) : null, bdi(name))), node("th", { scope: "col", class: "iv" }, `${measure.title.toLowerCase()}, 95 % intervals, ${measure.scale}`), versions.length === 2 ? node("th", { scope: "col", class: "n" }, bdi(`${versions[1]} against ${versions[0]}`)) : null)),
      node("tbody", {}, rows.map(row)))));
}

function flowTable([title, head, columns, rows, more, note]) {
  const cell = ([value, under, reason, weak]) => node("td", { class: `n ${weak ? "bad" : ""}` }, reason ? dot(reason) : [bdi(value), under ? node("small", { class: "dim" }, ` ${under}`) : null]);
  return fold([node("b", {}, title), node("span", { class: "dim" }, counted(rows.length + more, "row"))], () => [
    table([head, ...columns], rows.map(([name, href, cells]) => node("tr", {}, node("th", { scope: "row" }, href ? node("a", { href }, bdi(name)) : bdi(name)), cells.map(cell))), { label: title }),
    node("p", { class: "dim" }, more ? `${counted(more, "more row")}. ` : "", note)], { class: "fold" });
}

// A large picture is scrolled to the state that is chosen.
function seeChosen() {
  const frame = document.querySelector(".flow-box");
  const chosen = frame && frame.querySelector(".chosen");
  if (!chosen) return;
  const [box, inner] = [chosen.getBoundingClientRect(), frame.getBoundingClientRect()];
  if (box.bottom > inner.bottom || box.top < inner.top) frame.scrollTop += box.top - inner.top - (inner.height - box.height) / 2;
  if (box.right > inner.right || box.left < inner.left) frame.scrollLeft += box.left - inner.left - (inner.width - box.width) / 2;
}
