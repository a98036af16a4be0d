// ------------------------------------------------------------------ where it breaks

function breaksScreen(flowText, stateText) {
  const { flow, no_states, groups = [], alike, panels = [] } = facts.breaks;
  const parts = [node("div", { class: "head" }, node("h1", {}, "Where it breaks"), flow ? node("span", { class: "dim" }, flow.line) : null)];
  if (flow) {
    const number = flow.flows[Number(flowText)] ? Number(flowText) : 0;
    const one = flow.flows[number];
    const state = stateText !== undefined && one.states[Number(stateText)] ? Number(stateText) : one.opens;
    if (flow.flows.length > 1) parts.push(node("div", { class: "seg flows" }, flow.flows.map((other, place) => node("a", { class: `btn ${place === number ? "on" : ""}`, href: `#/breaks/${place}`, "aria-current": place === number ? "true" : null }, bdi(other.name), node("span", { class: "dim" }, other.line)))));
    parts.push(node("div", { class: "two" },
      node("div", { class: "card flow" }, flowPicture(one, number, state), flowBars(one, number, state), legend(flow)),
      statePanel(one, state)));
    if (flow.left_out) parts.push(node("p", { class: "dim" }, flow.left_out));
    if (one.versions && one.versions.length) parts.push(versionTable(one, number));
    const tables = [...(one.tables || []), ...(flow.tables || [])];
    if (tables.length) parts.push(node("section", { "aria-label": "In numbers" }, tables.map(flowTable)));
  } else parts.push(node("p", { class: "mut" }, coded(no_states)));
  if (groups.length || alike) {
    parts.push(node("section", { "aria-label": "Groups that stand apart" }, node("div", { class: "head" }, node("h2", {}, "Groups that stand apart"), node("span", { class: "dim" }, `against all other ${nouns()}; only what holds after correction`)),
      node("ul", { class: "card box apart" }, groups.map((one) => node("li", {}, node("span", { class: `chip ${one.worse ? "bad" : "good"}` }, one.worse ? "✕ worse" : "✓ better"), node("span", { class: "w" }, bdi(one.sentence)), one.href ? node("a", { class: "btn", href: one.href }, one.calls) : node("span", { class: "dim" }, one.calls))),
        alike ? node("li", { class: "mut" }, bdi(alike)) : null)));
  }
  for (const panel of panels) parts.push(familyPanel(panel));
  return parts;
}

// What a family declared: a sentence, tables that unfold, remarks.
function familyPanel({ title, line, tables = [], remarks = [] }) {
  const rest = (rows) => (rows.length > 100 ? node("p", { class: "dim" }, `and ${number(rows.length - 100)} more`) : null);
  return node("section", { "aria-label": title }, node("div", { class: "head" }, node("h2", {}, title)), node("p", { class: "mut" }, bdi(line)),
    tables.map(([columns, rows, name]) => fold([node("b", {}, name), node("span", { class: "dim" }, counted(rows.length, "row"))], () => [table(columns.map((one) => one[0]), rows.slice(0, 100).map((row) => node("tr", {}, row.map(([text, , , link]) => node("td", {}, link ? node("a", { href: link }, bdi(text)) : bdi(text))))), { label: name }), rest(rows)], { class: "fold" })),
    remarks.map((words) => node("p", { class: "dim" }, bdi(words))));
}

function flowPicture(flow, number, chosen) {
  const [width, height, states, edges, labels] = flow.picture;
  const after = reached(flow.down, chosen);
  const inside = new Set([chosen, ...after]);
  const leads = new Set(flow.down.map(([from, to]) => `${from} ${to}`));
  const svg = drawn("svg", { class: "flow-picture", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The states of ${flow.name}, from top to bottom` });
  // As large as there is room, and no smaller than can be read.
  svg.style.maxWidth = `${width * Math.min(1.15, Math.max(0.88, 850 / height))}px`;
  svg.style.minWidth = `${Math.min(width, 1400) * 0.72}px`;
  svg.append(drawn("defs", {}, drawn("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, drawn("path", { class: "hatch", d: "M0 0V7" }))));
  for (const [source, target, style, path, head, wide, , tip] of edges) {
    const on = inside.has(source) && leads.has(`${source} ${target}`);
    svg.append(drawn("g", { class: `${style} ${on ? "on" : ""}`, "data-tip": tip }, drawn("path", { class: "line", d: path, "stroke-width": wide }), drawn("path", { class: "head", d: head })));
  }
  for (const [, , [x, y, text]] of labels) svg.append(words("count", x, y, text));
  for (const [place, [x, y, wide, high], round, style, names, figures, barX, bar, tip] of states) {
    const end = style.includes(" end");
    svg.append(drawn("a", { class: `${style} ${place === chosen ? "chosen" : ""}`, href: `#/breaks/${number}/${place}`, "aria-label": tip, "data-tip": tip, "aria-current": place === chosen ? "true" : null },
      drawn("rect", { class: "box", x, y, width: wide, height: high, rx: round }),
      /failure|escalation/.test(style) ? drawn("rect", { class: "hatched", x, y, width: wide, height: high, rx: round, fill: "url(#hatch)" }) : [],
      end ? drawn("rect", { class: "inner", x: x + 3, y: y + 3, width: wide - 6, height: high - 6, rx: round - 3 }) : [],
      bar ? drawn("rect", { class: "stuck", x: barX, y: y + high - 8, width: bar, height: 4, rx: 2 }) : [],
      names.map(([at, top, text]) => words("name", at, top, text)), words("figures", ...figures)));
  }
  const [fewerStates, fewerEdges] = flow.picture.slice(6);
  const fewer = [fewerStates ? `${counted(fewerStates, "state")}, the least visited` : "", fewerEdges ? counted(fewerEdges, "edge") : ""].filter(Boolean).join(", and ");
  return [node("div", { class: "sc flow-box", tabindex: "0", role: "region", "aria-label": `Picture of ${flow.name}` }, svg), fewer ? node("p", { class: "lg" }, `Not drawn: ${fewer}.`) : null];
}

function words(style, x, y, text) {
  const made = drawn("text", { class: style, x, y });
  made.textContent = text;
  return made;
}

// Along the edges that lead on: what returns to a state has been there before.
function reached(down, state) {
  const found = new Set();
  const waiting = [state];
  while (waiting.length) {
    const from = waiting.pop();
    for (const [one, other] of down) if (one === from && other !== state && !found.has(other)) { found.add(other); waiting.push(other); }
  }
  return found;
}

// The same as bars, one for each state: on a phone instead of the picture.
function flowBars(flow, number, chosen) {
  const most = Math.max(...flow.states.map((state) => state.n), 1);
  const bar = (state, place) => {
    const [on, lost] = [node("i", {}), node("i", { class: "lost" })];
    on.style.width = `${(100 * (state.n - (state.lost || 0))) / most}%`;
    lost.style.width = `${(100 * (state.lost || 0)) / most}%`;
    return node("a", { href: `#/breaks/${number}/${place}`, "aria-current": place === chosen ? "true" : null }, node("bdi", {}, state.name), node("span", {}, counted(state.n, facts.noun), state.lost ? node("b", { class: "bad" }, ` −${state.lost}`) : null), node("span", { class: "tr" }, on, lost));
  };
  return node("div", { class: "fun" }, flow.states.slice(0, 60).map(bar));
}

function legend(flow) {
  const swatch = (style) => drawn("svg", { width: 20, height: 12, "aria-hidden": "true" }, drawn("g", { class: `state ${style}` }, drawn("rect", { class: "box", x: 1, y: 1, width: 18, height: 10, rx: 3 })));
  return node("ul", { class: "lg", "aria-label": "Legend" }, node("li", {}, "lost here:"), flow.legend.map(([level, text]) => node("li", {}, swatch(`lost-${level}`), text)), node("li", {}, swatch("lost-unknown"), "not known"), node("li", {}, swatch("untested"), "no visit"), node("li", {}, "dashed: back to a state before"));
}

function statePanel(flow, state) {
  const one = flow.states[state];
  const section = (title, ...inside) => node("section", {}, node("h3", {}, title), inside);
  const places = (one.places || []).filter((place) => place < index.ids.length);
  return node("aside", { class: "card panel", "aria-label": "The chosen state", "aria-live": "polite" },
    node("h2", { class: "mono" }, bdi(one.name)),
    node("p", { class: "lead" }, node("b", {}, one.line)), one.interval ? node("p", { class: "dim" }, one.interval) : null,
    one.end ? node("p", { class: "dim" }, `An end of the flow: ${one.end}.`) : null,
    one.note ? node("p", { class: "dim" }, one.note) : null,
    (one.why || []).length ? section("Why", node("ul", { class: "why2" }, one.why.map(([lost, sentence, href]) => node("li", {}, node("b", {}, number(lost)), " ", node("a", { href }, bdi(sentence)))))) : null,
    (one.diagnosis || []).length ? section("What the figures say", node("ul", { class: "mut" }, one.diagnosis.map((line) => node("li", {}, bdi(line))))) : null,
    (one.fix || []).length ? section("If it were like the other states", node("ul", { class: "mut" }, one.fix.map((line) => node("li", {}, bdi(line))))) : null,
    (one.versions || []).length > 1 ? section("By version", node("div", { class: "mult" }, one.versions.slice(0, 8).flatMap((rate) => [bdi(rate.version), intervalBar(rate.bar), node("span", { class: "n", "data-tip": `n ${rate.n}` }, rate.text)]))) : null,
    places.length ? section(`${capital(nouns())}, worst first`, node("div", { class: "list" }, places.map((place) => callRow(place, (index.reasons[place] || [])[0]))), node("p", {}, node("a", { href: one.calls }, `All ${number(one.lost)}`))) : null,
    (one.figures || []).length ? fold("Figures of the state", () => node("table", { class: "plain" }, node("tbody", {}, one.figures.map(([label, value, under, reason]) => node("tr", {}, node("th", { scope: "row" }, label), node("td", { class: "n" }, reason ? dot(reason) : value, under ? node("small", { class: "dim" }, ` ${under}`) : null)))))) : null,
    (one.neighbours || []).length ? fold("Where it leads", () => node("ul", { class: "mut" }, one.neighbours.slice(0, 30).map(([how, name, count]) => node("li", {}, `${how} `, bdi(name), ` ${count}`)))) : null);
}

function versionTable(flow, number) {
  const rows = flow.states.map((state, place) => [state, place]).filter(([state]) => state.n && (state.versions || []).length).slice(0, 30);
  const cell = (state, version) => {
    const rate = (state.versions || []).find((one) => one.version === version);
    if (!rate) return node("td", { class: "none" }, dot("no visit of this version"));
    return node("td", { class: rate.level < 0 ? "few" : `h${rate.level}`, "data-tip": rate.level < 0 ? `n ${rate.n}: too few to conclude` : null }, rate.text, node("small", {}, ` n ${rate.n}`));
  };
  return node("section", { class: "by-version", "aria-label": "States by version" }, node("div", { class: "head" }, node("h2", {}, "States by version"), node("span", { class: "dim" }, "the share lost in each")),
    node("div", { class: "card box sc", tabindex: "0", role: "region", "aria-label": "States by version" }, node("table", { class: "heat" },
      node("thead", {}, node("tr", {}, node("th", { scope: "col" }, "state"), flow.versions.map((name) => node("th", { scope: "col" }, bdi(name))))),
      node("tbody", {}, rows.map(([state, place]) => node("tr", {}, node("th", { scope: "row", class: "mono" }, node("a", { href: `#/breaks/${number}/${place}` }, bdi(state.name))), flow.versions.map((name) => cell(state, name))))))));
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
