// ------------------------------------------------------------------ one conversation

const WINDOW = 150;
const opened = { place: -1, call: null, from: 0 };

async function callScreen(id, second) {
  const place = index.ids.indexOf(id);
  if (place < 0) {
    return [node("h1", {}, "Not in this page"), node("p", {}, `The ${facts.noun} `, node("bdi", {}, id), " is not listed in this page. ", node("code", {}, `convoscope show ${facts.place} '${id.replaceAll("'", "'\\''")}'`), facts.where || "", " prints it, if the run has it.")];
  }
  const call = full.has(place) ? await storyOf(place) : null;
  Object.assign(opened, { place, call, from: 0 });
  const order = list.shown.length && list.shown.includes(place) ? list.shown : index.ids.map((_, at) => at);
  const at = order.indexOf(place);
  list.at = list.shown === order ? at : list.at;
  const step = (to, key, sign, name) => (order[to] === undefined ? null : node("a", { class: "btn", id: name, href: linkTo(order[to]), "aria-label": `${capital(name)} ${facts.noun}` }, sign, node("kbd", {}, key)));
  const kind = kindOf(place);
  const reasons = call ? call.reasons || [] : (index.reasons[place] || []).map((text) => [text]);
  const head = [
    node("div", { class: "nav2" }, node("a", { href: filterHash(), id: "back" }, capital(nouns())), " / ", node("bdi", { class: "mono" }, id), node("span", { class: "dim" }, `${number(at + 1)} of ${number(order.length)}${list.sort ? "" : `, ${facts.order}`}`),
      node("span", { class: "steps" }, step(at - 1, "k", "↑ ", "previous"), step(at + 1, "j", "↓ ", "next"))),
    node("div", { class: "ch" }, outcomeSign(kind), node("div", {}, node("h1", {}, bdi(call ? call.title : `${capital(OUTCOME_SIGNS[kind][1])}${index.ended[place] ? ` in ${index.ended[place]}` : ""}`)),
      call && call.meta ? node("p", { class: "dim", dir: "auto" }, call.meta, partnerOf(place)) : node("p", { class: "dim" }, partnerOf(place)),
      reasons.length ? node("ul", { class: "why-l" }, reasons.map(([text, seconds, clock]) => node("li", {}, clock ? node("a", { class: "mono", href: linkTo(place, seconds) }, clock) : null, bdi(text)))) : null)),
  ];
  if (!call) return [...head, node("p", { class: "meta" }, `The words of this ${facts.noun} are not in this page. `, node("code", {}, `convoscope show ${facts.place} '${id.replaceAll("'", "'\\''")}'`), facts.where || "", " prints it.")];
  const turns = node("div", { id: "turns" });
  const article = node("article", { "aria-label": id }, ...head, lanesOf(call, place), node("div", { class: "conv" }, turns, scoresOf(call)));
  const wanted = second === undefined ? -1 : second.startsWith("event-") ? (call.lines || []).findIndex((line) => line.seq === Number(second.slice(6))) : lineAt(call, Number(second));
  drawLines(turns, call, place, wanted < 0 ? 0 : Math.floor(wanted / WINDOW) * WINDOW);
  if (player) hearFrom(article, place);
  if (player && wanted >= 0 && call.lines[wanted].at !== undefined) player.seek(call.lines[wanted].at);
  requestAnimationFrame(() => { if (wanted >= 0) aim(wanted); });
  return [article];
}

// The same scenario on the other side: the other call, or both side by side.
function partnerOf(place) {
  const partner = (index.partners || [])[place];
  if (!partner) return null;
  const [id, kind, at, pair, earlier] = partner;
  const { compare } = facts;
  const words = `same scenario with ${earlier ? compare.baseline : compare.sides[compare.sides.length - 1].name}: `;
  const name = OUTCOME_SIGNS[index.kinds[kind]][1];
  return [" · ", at >= 0 ? node("a", { href: linkTo(at), id: "partner" }, words, name) : pair >= 0 ? node("a", { href: `#/compare/${pair}` }, words, name) : [words, node("bdi", { class: "mono" }, id), `, ${name}`],
    at >= 0 && pair >= 0 ? [" · ", node("a", { href: `#/compare/${pair}` }, "side by side")] : null];
}

// The last line that had begun by then.
function lineAt(call, second) {
  let found = -1;
  (call.lines || []).forEach((line, place) => { if (line.at !== undefined && line.at <= second + 0.05 && (line.kind === "words" || line.kind === "tool")) found = place; });
  return found;
}

function aim(line) {
  const { call, place } = opened;
  if (line < opened.from || line >= opened.from + WINDOW) drawLines($("turns"), call, place, Math.floor(line / WINDOW) * WINDOW);
  for (const one of document.querySelectorAll(".tu.now, .tc.now")) one.classList.remove("now");
  const target = $(`line-${line}`);
  if (!target) return;
  target.classList.add("now");
  target.scrollIntoView({ block: "center" });
}

function drawLines(turns, call, place, from) {
  const lines = call.lines || [];
  opened.from = from;
  // Where no line has a time, there is no column for it.
  turns.classList.toggle("timeless", !lines.some((line) => line.clock));
  const part = lines.slice(from, from + WINDOW);
  const jump = (to, words) => node("p", { class: "jump" }, node("button", { type: "button", class: "btn", onclick: () => { drawLines(turns, call, place, to); turns.scrollIntoView(); } }, words));
  turns.replaceChildren(...[
    from ? jump(from - WINDOW, `Lines ${number(from - WINDOW + 1)} to ${number(from)}`) : null,
    ...part.map((line, at) => lineOf(line, from + at, place)),
    lines.length > from + WINDOW ? jump(from + WINDOW, `Lines ${number(from + WINDOW + 1)} to ${number(Math.min(lines.length, from + 2 * WINDOW))} of ${number(lines.length)}`) : null,
    lines.length ? null : node("p", { class: "mut" }, "No words are known."),
  ].filter(Boolean));
}

function lineOf(line, at, place) {
  const id = `line-${at}`;
  if (line.kind === "state") return node("p", { class: `stt ${line.bad ? "x" : ""}`, id }, node("b", {}, bdi(line.title)), line.note || "");
  if (line.kind === "silence") return node("p", { class: "gap", id }, line.title);
  if (line.kind === "more") return fold(node("bdi", {}, line.title), () => pairs(line.facts || []), { class: "tc quiet", id });
  if (line.kind === "tool") {
    return node("div", { class: "tool-line" }, fold([node("bdi", { class: "mono who" }, line.title), node("span", { class: line.bad ? "bad" : "dim" }, bdi(`${line.bad ? "✕ " : ""}${line.note || ""}`))], () => pairs(line.facts || []), { class: `tc ${line.bad ? "x" : ""}`, id }), chipsOf(line.chips));
  }
  const evidence = (line.chips || []).flatMap((chip) => (chip[2] || []).map((text) => text.slice(text.indexOf(": ") + 2))).filter((text) => text.length >= 6);
  const readings = line.readings || [];
  return node("div", { class: `tu ${line.role === "assistant" ? "ag" : ""}`, id },
    line.clock ? node("a", { class: "tm", href: linkTo(place, line.at) }, line.clock) : node("span", { class: "tm" }),
    node("bdi", { class: "wh" }, line.who),
    node("div", {}, readings.map((reading, number) => readingOf(reading, number, readings.length, evidence)), readings.length ? null : node("p", { class: "dim" }, "no words in the log"), threeOf(line.three), chipsOf(line.chips),
      (line.facts || []).length ? fold("also in the log", () => pairs(line.facts), { class: "small" }) : null));
}

// What was meant, what was spoken, what was heard: only where names, codes, amounts or dates differ.
const threeOf = (three) => (three && three.rows ? node("div", { class: "three" }, three.rows.map(([name, pieces]) => node("p", {}, node("span", { class: "dim" }, name), node("span", { dir: "auto" }, pieces.map(([tone, text]) => (tone ? node("span", { class: tone }, text) : text))))), node("p", { class: "sum" }, bdi(three.sum))) : null);

const chipsOf = (chips) => ((chips || []).length ? node("p", { class: "chs" }, chips.map(([text, bad = true, behind = []]) => node("span", { class: `chip ${bad ? "bad" : ""}`, tabindex: behind.length ? "0" : null, "data-tip": behind.join("\n") || null }, bad ? "✕ " : "", bdi(text)))) : null);

function readingOf(reading, number, count, evidence) {
  const tags = { "+": "ins", "-": "del" };
  const pieces = reading.pieces.map(([op, text]) => (op === "=" ? marked(text, evidence) : node(tags[op], {}, text)));
  const plain = count === 1 && reading.confidence === undefined;
  const sure = reading.confidence === undefined ? "" : `, ${Math.round(100 * reading.confidence)} % sure`;
  return node("p", { class: number ? "heard" : "said", dir: "auto" }, plain || (!number && count > 1 && reading.confidence === undefined) ? null : node("span", { class: "dim kind", "data-tip": (reading.sources || []).join(", ") || null }, `${reading.kinds.join(" and ")}${sure}: `), node("span", { class: "text" }, pieces));
}

// Words that are the evidence of a score.
function marked(text, evidence) {
  const hit = evidence.find((words) => text.includes(words));
  if (!hit) return text;
  const at = text.indexOf(hit);
  return [text.slice(0, at), node("mark", {}, hit), text.slice(at + hit.length)];
}

// ------------------------------------------------------------------ scores

// What annotators found, each with the utterances that tell it.
function findingsOf({ findings = [], lines = [] }) {
  const jump = ([seq, name]) => node("button", { type: "button", class: "btn mono", onclick: () => listenTo(lines.findIndex((line) => line.kind === "words" && line.seq === seq)) }, name);
  return [...new Set(findings.map((one) => one.by))].map((by) => {
    const own = findings.filter((one) => one.by === by);
    const row = ({ text, is_open, places = [] }) => node("li", {}, node("span", { class: is_open ? "bad" : "" }, is_open ? "✕ " : "", bdi(text)), places.length ? places.slice(0, 6).map(jump) : node("span", { class: "dim" }, "no place given"), places.length > 6 ? node("span", { class: "dim" }, `and ${number(places.length - 6)} more`) : null);
    return node("section", { class: "found", "aria-label": capital(by) }, node("h2", {}, bdi(capital(by))), node("ul", {}, own.slice(0, 60).map(row), own.length > 60 ? node("li", { class: "dim" }, `and ${number(own.length - 60)} more`) : null));
  });
}

// ------------------------------------------------------------------ opinions of judges

// Each rating is a dot on the scale; equal ones are beside each other.
function dotsOf(dots, mark, tone) {
  const track = node("span", { class: "tr" });
  const put = (name, left) => { const made = node("i", { class: name }); made.style.left = left; track.append(made); };
  if (mark !== undefined) put("mk", `${mark}%`);
  dots.slice(0, 40).forEach((at, place) => {
    const equal = dots.filter((one) => one === at).length;
    const before = dots.slice(0, place).filter((one) => one === at).length;
    put(`d ${tone ? (at < mark ? "x" : "ok") : ""}`, `calc(${at}% + ${Math.max(-3, Math.min(3, before - (equal - 1) / 2)) * 7}px)`);
  });
  return track;
}

function judgedOf({ judged, lines = [] }) {
  if (!judged) return null;
  const jump = (seq) => listenTo(lines.findIndex((line) => (line.kind === "words" || line.kind === "tool") && line.seq === seq));
  const quote = (one) => [
    one.text ? (one.seq >= 0 ? node("button", { type: "button", class: "quo", onclick: () => jump(one.seq) }, "“", bdi(one.text), "” ", node("span", { class: "mono" }, one.where || "")) : node("p", { class: "quo" }, "“", bdi(one.text), "”")) : null,
    one.reason ? node("p", { class: "mut" }, one.judge ? node("b", {}, bdi(one.judge), ": ") : null, bdi(one.reason)) : null];
  const opinion = (one, place) => {
    const made = fold([bdi(one.label), node("b", { class: `v ${one.tone || ""}` }, one.value), node("span", { class: "st" }, one.tone ? node("b", { class: one.tone }, one.tone === "bad" ? "✕ " : "✓ ") : null, bdi(one.verdict))], () => [
      node("div", { class: "pnl", role: "img", "aria-label": one.judges.map((each) => `${each.judge} ${each.rating}`).join(", ") }, one.judges.map((each) => [one.judges.length > 1 ? bdi(each.judge) : node("span", {}, one.low), dotsOf(each.dots, one.mark, one.tone), node("span", { class: "n" }, one.judges.length > 1 ? each.rating : one.high)])),
      node("p", { class: "dim" }, [one.mark_text, one.asked].filter(Boolean).join("; ")),
      (one.quotes || []).map(quote),
      (one.by || []).map((words) => node("p", { class: "by dim" }, bdi(words)))], { class: "jd" });
    if (!place) { made.fill(); made.open = true; }
    return made;
  };
  return node("section", { class: "judged", "aria-label": "Judged" }, node("h2", {}, "Judged ", node("span", { class: "dim" }, judged.line)),
    (judged.addressed || []).length ? node("div", { class: "warn" }, node("b", {}, "The log addresses the judge"), " in ", judged.addressed.map((one, place) => [place ? ", " : "", one.seq >= 0 ? node("button", { type: "button", class: "lnk", onclick: () => jump(one.seq) }, one.where) : one.where]), ". The judges did not get that text.") : null,
    judged.scores.map(opinion));
}

function scoresOf(call) {
  const { bad = [], fine = [], other = [], silent = [], notes = [], about = [], context = [] } = call;
  const score = (one) => node("div", { class: "s1" }, node("div", { class: "h" }, bdi(one.label), one.value === "·" ? dot(one.note) : node("b", { class: bad.includes(one) ? "bad" : "" }, one.value)), one.note ? node("p", { class: "e" }, bdi(one.note)) : null, (one.facts || []).length ? fold("evidence", () => pairs(one.facts), { class: "small" }) : null);
  const many = (rows) => () => { const more = rows.length - 80; return [...rows.slice(0, 80).map(score), more > 0 ? node("p", { class: "dim" }, `and ${number(more)} more`) : null]; };
  const verb = (count) => (count === 1 ? "is" : "are");
  return node("aside", { class: "card scs", "aria-label": "Scores" },
    judgedOf(call),
    findingsOf(call),
    node("h2", {}, bad.length ? `${counted(bad.length, call.judged ? "other score" : "score")} ${verb(bad.length)} bad` : `No ${call.judged ? "other score" : "score"} ${fine.length ? "misses its mark" : other.length ? "is held against a mark" : "has a value"}`),
    bad.slice(0, 7).map(score),
    bad.length > 7 ? fold(`${number(bad.length - 7)} more ${verb(bad.length - 7)} bad`, many(bad.slice(7))) : null,
    fine.length ? fold(`${number(fine.length)} ${verb(fine.length)} fine`, many(fine)) : null,
    other.length ? fold(counted(other.length, bad.length || fine.length ? "other score" : "score"), many(other)) : null,
    silent.length ? fold([`${number(silent.length)} ${silent.length === 1 ? "has" : "have"} no value`, node("span", { class: "dim" }, call.silent_line)], many(silent)) : null,
    notes.length ? fold(counted(notes.length, "reading note"), () => node("ul", { class: "mut" }, notes.slice(0, 100).map((note) => node("li", {}, bdi(note))), notes.length > 100 ? node("li", {}, `and ${number(notes.length - 100)} more`) : null)) : null,
    about.length ? fold(`About this ${facts.noun}`, () => pairs(about)) : null,
    context.map(([name, text]) => fold(bdi(name), () => node("pre", { dir: "auto" }, text))));
}
