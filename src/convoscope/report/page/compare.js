// ------------------------------------------------------------------ two versions, or two runs

function compareScreen(pairText, query) {
  const { compare } = facts;
  if (pairText !== undefined && compare.pairs && compare.pairs[Number(pairText)]) return pairScreen(Number(pairText));
  const wanted = new URLSearchParams(query).get("side");
  const side = compare.sides.find((one) => one.name === wanted) || compare.sides[compare.sides.length - 1];
  const switches = compare.sides.length > 1 ? node("div", { class: "seg flows" }, compare.sides.map((one) => node("a", { class: `btn ${one === side ? "on" : ""}`, href: `#/compare?${new URLSearchParams({ side: one.name })}`, "aria-current": one === side ? "true" : null }, bdi(`${one.name} against ${compare.baseline}`)))) : null;
  return [
    node("h1", { class: "verdict" }, compare.verdict.map((line) => [node("span", { class: "line" }, line.map(([text, strong, tone]) => node(strong ? "b" : "span", { class: tone }, bdi(text)))), " "])),
    compare.meta.map((line) => node("p", { class: "meta" }, bdi(line))),
    node("section", { "aria-label": "Figures" }, switches, comparedTable(compare, side)),
    movedLists(compare),
    (compare.groups || []).length ? node("section", { "aria-label": "Groups that moved" }, node("div", { class: "head" }, node("h2", {}, "Groups that moved"), node("span", { class: "dim" }, "only what holds after correction")), node("ul", { class: "card box apart" }, compare.groups.map(([sentence, worse]) => node("li", {}, node("span", { class: `chip ${worse ? "bad" : "good"}` }, worse ? "✕ worse" : "✓ better"), node("span", { class: "w" }, bdi(sentence)))))) : null,
    (compare.mix || []).length ? node("section", { "aria-label": "Another mix" }, node("div", { class: "head" }, node("h2", {}, "The mix moved"), node("span", { class: "dim" }, "differences are held within each kind where that matters")), node("ul", { class: "card box" }, compare.mix.map((line) => node("li", {}, bdi(line))))) : null,
  ];
}

const FINDINGS = { worse: ["✕", "bad"], better: ["✓", "good"], open: ["", ""], not_compared: ["", ""] };

function differenceBar(bar, tone) {
  if (!bar) return null;
  const made = node("span", { class: `db ${tone}`, role: "img", "aria-label": bar.text });
  const put = (name, left, width) => { const part = node("i", { class: name }); part.style.left = `${left}%`; if (width !== undefined) part.style.width = `${width}%`; made.append(part); };
  put("zero", 50);
  put("band", bar.low, bar.high - bar.low);
  put("tick", bar.value);
  return made;
}

function comparedTable(compare, side) {
  const row = (one, tone) => node("tr", { class: "r", onclick: (event) => { if (!event.target.closest("a, .na")) location.hash = `#/metrics/${encodeURIComponent(one.name)}`; } },
    node("th", { scope: "row", class: "lab" }, node("a", { href: `#/metrics/${encodeURIComponent(one.name)}` }, bdi(one.label))),
    node("td", { class: "n was" }, one.before === "·" ? dot(one.reason) : one.before), node("td", { class: "n now" }, one.after === "·" ? dot(one.reason) : one.after),
    node("td", { class: "iv" }, differenceBar(one.bar, one.small ? "" : tone)),
    node("td", { class: "df" }, one.difference ? node("b", { class: one.small ? "" : tone }, one.difference) : null, " ", node("span", { class: "dim" }, one.interval)),
    node("td", { class: "rm dim" }, bdi(one.remark)));
  const body = compare.sides.length ? side.parts.flatMap((part) => {
    const [sign, tone] = FINDINGS[part.finding];
    const count = part.rows.length + (part.folded || []).length;
    const rows = [node("tr", { class: "fam" }, node("th", { colspan: "6", scope: "rowgroup" }, node("span", { class: tone }, sign ? `${sign} ` : ""), node("b", {}, bdi(part.title)), " ", node("span", { class: "dim" }, number(count)))), ...part.rows.map((one) => row(one, tone))];
    if (!count) rows.push(node("tr", {}, node("td", { colspan: "6", class: "dim" }, "No figure.")));
    if ((part.folded || []).length) {
      const more = node("tr", { class: "fam more" }, node("th", { colspan: "6" }, node("button", { type: "button", "aria-expanded": "false", onclick: () => more.replaceWith(...part.folded.map((one) => row(one, tone))) }, part.finding === "open" ? `${counted(part.folded.length, "more figure")} without a clear difference` : `${counted(part.folded.length, "figure")}, and why`)));
      rows.push(more);
    }
    if (part.related) rows.push(node("tr", { class: "silent" }, node("td", { colspan: "6" }, bdi(part.related))));
    return rows;
  }) : [];
  return node("div", { class: "card" }, node("table", { class: "tbl cmp" },
    node("thead", {}, node("tr", {}, node("th", { scope: "col" }, "figure"), node("th", { scope: "col", class: "n" }, bdi(compare.baseline)), node("th", { scope: "col", class: "n" }, bdi(side.name)), node("th", { scope: "col", class: "iv" }, node("span", { class: "way" }, node("span", {}, "← worse"), node("span", {}, "no change"), node("span", {}, "better →"))), node("th", { scope: "col" }, bdi(`${side.name} minus ${compare.baseline}`)), node("th", { scope: "col" }, "each row on its own scale"))),
    node("tbody", {}, body)));
}

const MOVES = { fixed: ["lost", "done"], broken: ["done", "lost"] };
const moveSigns = (kind) => [outcomeSign(MOVES[kind][0]), node("span", { "aria-hidden": "true" }, "→"), outcomeSign(MOVES[kind][1])];

function movedLists(compare) {
  if (!(compare.lists || []).length) return null;
  const row = (place) => { const pair = compare.pairs[place]; return node("a", { class: "li", href: `#/compare/${place}` }, moveSigns(pair.moved), node("bdi", { class: "id" }, pair.scenario), node("bdi", { class: "w" }, pair.reason || "")); };
  const shown = innerWidth < 760 ? 5 : 8;
  return node("section", { "aria-label": "Fixed and broken" }, node("div", { class: "head" }, node("h2", {}, `Which ${nouns()} were fixed, which broke`), node("span", { class: "dim" }, "both sides of a scenario; a row shows them side by side")),
    node("div", { class: "moved" }, compare.lists.map((one) => node("div", { class: "card box list" }, node("h3", { class: one.kind === "broken" ? "bad" : "good" }, one.kind === "broken" ? "✕ " : "✓ ", bdi(one.title)), one.most ? node("p", { class: "mut" }, bdi(one.most)) : null,
      one.numbers.slice(0, shown).map(row),
      one.numbers.length > shown ? fold(`${number(one.numbers.length - shown)} more`, () => one.numbers.slice(shown).map(row), { class: "small" }) : null,
      one.href ? node("p", {}, node("a", { href: one.href }, "In the list")) : null))),
    compare.left_out ? node("p", { class: "dim" }, coded(compare.left_out)) : null);
}

// Both conversations of a pair, next to each other.
async function pairScreen(place) {
  const { compare } = facts;
  const pair = compare.pairs[place];
  const later = index.ids.indexOf(pair.after);
  const earlier = compare.is_one_run ? index.ids.indexOf(pair.before) : -1;
  const load = async (at) => (at >= 0 && full.has(at) ? storyOf(at) : null);
  const before = compare.is_one_run ? await load(earlier) : pair.here ? await baseStory(place) : null;
  const after = await load(later);
  const step = (to, key, sign, name) => (compare.pairs[to] ? node("a", { class: "btn", id: name, href: `#/compare/${to}`, "aria-label": `${capital(name)} pair` }, sign, node("kbd", {}, key)) : null);
  const [was, now] = MOVES[pair.moved];
  const side = (name, id, kind, call, at) => node("article", { class: "side", "aria-label": `${name}: ${id}` },
    node("div", { class: "ch" }, outcomeSign(kind), node("div", {}, node("h2", {}, bdi(name), " ", at >= 0 ? node("a", { class: "mono", href: linkTo(at) }, bdi(id)) : node("bdi", { class: "mono" }, id)), node("p", {}, bdi(call ? call.title : capital(OUTCOME_SIGNS[kind][1]))),
      call && (call.reasons || []).length ? node("ul", { class: "why-l" }, call.reasons.map(([text, , clock]) => node("li", {}, clock ? node("span", { class: "mono dim" }, clock) : null, bdi(text)))) : null)),
    call ? [lanesOf(call, at, true), node("div", { class: "said2" }, (call.lines || []).slice(0, WINDOW).map(pairLine), (call.lines || []).length > WINDOW ? node("p", { class: "dim" }, `and ${number(call.lines.length - WINDOW)} more lines`) : null)]
      : node("p", { class: "meta" }, `The words of this ${facts.noun} are not in this page; `, node("code", {}, "convoscope show"), " prints them."));
  return [
    node("div", { class: "nav2" }, node("a", { href: "#/compare", id: "back" }, "Compare"), " / ", node("bdi", { class: "mono" }, pair.scenario), node("span", { class: "dim" }, `${number(place + 1)} of ${number(compare.pairs.length)}, broken first`), node("span", { class: "steps" }, step(place - 1, "k", "↑ ", "previous"), step(place + 1, "j", "↓ ", "next"))),
    node("h1", {}, pair.moved === "broken" ? "It broke" : "It was fixed", pair.reason ? node("span", { class: "dim" }, " ", bdi(pair.reason)) : null),
    node("div", { class: "pair2" }, side(compare.baseline, pair.before, was, before, earlier), side(compare.sides[compare.sides.length - 1].name, pair.after, now, after, later)),
  ];
}

async function baseStory(place) {
  const key = `base-${place}`;
  if (!stories.has(key)) stories.set(key, await unpack(key));
  return stories.get(key);
}

function pairLine(line) {
  if (line.kind === "state") return node("p", { class: `stt ${line.bad ? "x" : ""}` }, node("b", {}, bdi(line.title)), line.note || "");
  if (line.kind === "silence") return node("p", { class: "gap" }, line.title);
  if (line.kind === "more") return null;
  if (line.kind === "tool") return node("p", { class: "tool2" }, node("bdi", { class: "mono" }, line.title), " ", node("span", { class: line.bad ? "bad" : "dim" }, bdi(`${line.bad ? "✕ " : ""}${line.note || ""}`)), chipsOf(line.chips));
  const readings = line.readings || [];
  return node("div", { class: `tu ${line.role === "assistant" ? "ag" : ""}` }, node("span", { class: "tm" }, line.clock || ""), node("bdi", { class: "wh" }, line.who), node("div", {}, readings.map((reading, at) => readingOf(reading, at, readings.length, [])), chipsOf(line.chips)));
}
