"use strict";
(() => {
  const PAGE_ROWS = 100;
  const LONG_SILENCE = 2;
  const FIRST_TURNS = 100;
  const MORE_TURNS = 100;
  const SVG = "http://www.w3.org/2000/svg";
  const STATUS = { u: "unmeasured", n: "not applicable", e: "error" };
  const $ = (id) => document.getElementById(id);

  // Everything from a log goes through here: as text, never as markup.
  function node(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  }

  function drawn(tag, attributes) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }

  async function unpack(id) {
    const text = $(id).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // Letters large or small, without a change of their number.
  const seeker = (text) => new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "iu");
  const reasonText = (code) => code.replaceAll("_", " ");
  // As Python writes it: a value half-way between two goes to the even one.
  function fixed(value, digits) {
    const exact = Math.abs(value).toFixed(60);
    const point = exact.indexOf(".") + 1;
    const cut = exact.slice(0, point + digits);
    const halfway = /^50*$/.test(exact.slice(point + digits));
    const text = halfway && Number(cut.at(-1)) % 2 === 0 ? cut : Math.abs(value).toFixed(digits);
    const [whole, part] = text.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return `${value < 0 ? "-" : ""}${grouped}${part ? `.${part}` : ""}`;
  }

  // The same words as in the terminal: see words.py.
  function valueText(value, unit) {
    const number = unit === "share" ? 100 * value : value;
    const digits = { share: 1, ratio: 3 }[unit] || 2;
    let text = fixed(number, digits);
    if (number !== 0 && Math.abs(number) < 0.5 * 10 ** -digits) text = String(Number(number.toPrecision(2)));
    else if (unit === "share" && number > 99.9 && number < 100) text = "99.9";
    else if (unit === "count") text = text.replace(/\.?0+$/, "");
    if (unit === "share") return `${text} %`;
    return unit === "count" || unit === "ratio" ? text : `${text} ${unit}`;
  }

  function cellText(cell, column) {
    if (typeof cell === "number") return valueText(cell, column.unit);
    return `${STATUS[cell[0]]}: ${reasonText(index.reasons[Number(cell.slice(1))])}`;
  }

  const statusOf = (cell) => (typeof cell === "number" ? "v" : cell[0]);
  const counted = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

  let index;
  let run;
  let full;
  let broke, lost;
  const texts = new Map();
  const stories = new Map();
  const filter = { text: "", metric: "", status: "", low: null, high: null, last: false, dimensions: {} };
  let shown = [];
  let visible = PAGE_ROWS;
  let opened = -1;
  let asked = 0;
  let steps = 0;
  let unknown = [];
  let waiting = [];

  // ------------------------------------------------------------------ the list

  function prepare() {
    $("filters").hidden = false;
    index.columns.forEach((column, place) => $("metric").append(node("option", { value: place }, column.metric)));
    for (const [place, dimension] of index.dimensions.entries()) {
      // One value says something where others have none.
      if (dimension.values.length < 2 && dimension.codes.every((code) => code >= 0)) continue;
      const label = dimension.name;
      let input;
      if (dimension.values.length <= 200) {
        input = node("select", { "data-dimension": place }, node("option", { value: "" }, "any"));
        dimension.values.forEach((value) => input.append(node("option", { value }, value)));
      } else {
        input = node("input", { "data-dimension": place, type: "search", placeholder: counted(dimension.values.length, "value"), autocomplete: "off" });
      }
      $("dimensions").append(node("label", {}, label, input));
    }
    $("filters").addEventListener("submit", (event) => event.preventDefault());
    $("filters").addEventListener("input", (event) => {
      if (event.target.id === "search") later(readForm);
      else readForm();
    });
    $("clear").addEventListener("click", () => { location.hash = "#conversations"; setFilter(new URLSearchParams()); });
    $("more").addEventListener("click", () => {
      const next = shown[visible];
      visible += PAGE_ROWS;
      drawRows();
      if (next) $(`row-${next[0]}`).focus();
    });
  }

  let timer = 0;
  function later(work) {
    clearTimeout(timer);
    timer = setTimeout(work, 150);
  }

  function readForm() {
    filter.text = $("search").value.trim();
    if ($("metric").value !== filter.metric) filter.low = filter.high = null;
    filter.metric = $("metric").value;
    filter.status = $("status").value;
    filter.dimensions = {};
    for (const input of document.querySelectorAll("[data-dimension]")) {
      if (input.value) filter.dimensions[input.dataset.dimension] = input.value;
    }
    // A filter can be sent to somebody: it stands in the address, unless something else does by now.
    if (opened < 0) history.replaceState(null, "", filterHash());
    refresh();
  }

  function filterHash() {
    const query = new URLSearchParams();
    if (filter.text) query.set("text", filter.text);
    if (filter.metric !== "") query.set("metric", index.columns[filter.metric].metric);
    if (filter.status) query.set("status", filter.status);
    if (filter.low !== null) {
      query.set("low", filter.low);
      if (filter.high !== null) query.set("high", filter.high);
      if (filter.last) query.set("last", "1");
    }
    for (const [place, value] of Object.entries(filter.dimensions)) query.set(`by.${index.dimensions[place].name}`, value);
    const text = query.toString();
    return text ? `#find?${text}` : "#conversations";
  }

  function setFilter(query) {
    filter.text = query.get("text") || "";
    const metric = index.columns.findIndex((column) => column.metric === query.get("metric"));
    filter.metric = metric < 0 ? "" : String(metric);
    filter.status = query.get("status") || "";
    const number = (name) => (query.get(name) && Number.isFinite(Number(query.get(name))) ? Number(query.get(name)) : null);
    filter.low = number("low");
    filter.high = number("high");
    filter.last = query.get("last") === "1";
    filter.dimensions = {};
    const known = new Set(["text", "metric", "status", "low", "high", "last", ...index.dimensions.map((one) => `by.${one.name}`)]);
    unknown = [...query.keys()].filter((key) => !known.has(key));
    for (const name of ["low", "high"]) if (query.has(name) && number(name) === null) unknown.push(`${name}=${query.get(name)}`);
    if (query.get("metric") && metric < 0) unknown.push(`metric ${query.get("metric")}`);
    $("search").value = filter.text;
    $("metric").value = filter.metric;
    $("status").value = filter.status;
    for (const input of document.querySelectorAll("[data-dimension]")) {
      const value = query.get(`by.${index.dimensions[input.dataset.dimension].name}`) || "";
      input.value = value;
      if (value) filter.dimensions[input.dataset.dimension] = value;
    }
    return refresh();
  }

  function holds(place) {
    for (const [dimension, value] of Object.entries(filter.dimensions)) {
      const { values, codes } = index.dimensions[dimension];
      const mine = values[codes[place]];
      if (mine === undefined) return false;
      // Whoever types may stop half-way; a value that is there means itself alone.
      if (values.includes(value) ? mine !== value : !seeker(value).test(mine)) return false;
    }
    const { metric, status, low, high, last } = filter;
    if (status === "broke") { if (!broke.has(place)) return false; }
    else if (status && metric !== "") { if (statusOf(index.columns[metric].cells[place]) !== status) return false; }
    else if (status) { if (!index.columns.some((column) => statusOf(column.cells[place]) === status)) return false; }
    if (low !== null && metric !== "") {
      const cell = index.columns[metric].cells[place];
      // Cells are rounded to twelve digits, bins are not.
      const slack = 1e-9 * Math.max(1, Math.abs(low), Math.abs(high || 0));
      if (typeof cell !== "number" || cell < low - slack) return false;
      if (high !== null && (last ? cell > high + slack : cell >= high - slack)) return false;
    }
    return true;
  }

  // Of a score, what a log or a judge put there.
  const told = (marks) => (marks || []).flatMap((mark) => [mark.status === "measured" ? "" : mark.text, ...(mark.evidence || []).map((fact) => fact[1])]);

  // As it was said: pieces of one reading are joined, what is only missing there is left out.
  const saidIn = (one) => [
    ...(one.readings || []).map((reading) => reading.pieces.filter((piece) => piece[0] !== "-").map((piece) => piece[1]).join("")),
    one.title || "", ...(one.facts || []).map((fact) => fact[1]), ...(one.notes || []), ...told(one.marks),
  ];

  async function textOf(place) {
    if (!texts.has(place)) {
      const story = await storyOf(place);
      const said = [];
      for (const stretch of story.stretches || []) {
        said.push(...told(stretch.marks), ...(stretch.happenings || []).flatMap(saidIn));
      }
      said.push(...(story.about || []).map((fact) => fact[1]), ...(story.notes || []), ...(story.because || []), ...told(story.scores), ...told(story.elsewhere));
      texts.set(place, said.join("\n"));
    }
    return texts.get(place);
  }

  async function storyOf(place) {
    if (!stories.has(place)) stories.set(place, await unpack(`story-${place}`));
    return stories.get(place);
  }

  async function refresh() {
    const mine = (asked += 1);
    const wanted = filter.text ? seeker(filter.text) : null;
    const found = [];
    if (wanted) $("count").textContent = "Searching…";
    for (let place = 0; place < index.ids.length; place += 1) {
      if (!holds(place)) continue;
      if (!wanted) { found.push([place, null]); continue; }
      const named = [index.ids[place], ...index.dimensions.map((one) => one.values[one.codes[place]] || "")];
      if (named.some((name) => wanted.test(name))) { found.push([place, null]); continue; }
      if (!full.has(place)) continue;
      const text = await textOf(place);
      if (mine !== asked) return;
      const hit = wanted.exec(text);
      if (hit) {
        const end = hit.index + hit[0].length;
        found.push([place, [text.slice(Math.max(0, hit.index - 40), hit.index), hit[0], text.slice(end, end + 60)]]);
      }
    }
    if (filter.metric !== "") found.sort(byMetric(index.columns[filter.metric]));
    shown = found;
    visible = PAGE_ROWS;
    drawRows();
  }

  function byMetric(column) {
    const sign = column.better === "higher" ? 1 : -1;
    return ([a], [b]) => {
      const x = column.cells[a];
      const y = column.cells[b];
      if (typeof x === "number" && typeof y === "number") return sign * (x - y) || a - b;
      return (typeof x === "number" ? 0 : 1) - (typeof y === "number" ? 0 : 1) || a - b;
    };
  }

  function drawRows() {
    $("list").replaceChildren(...shown.slice(0, visible).map(row));
    $("more").hidden = shown.length <= visible;
    $("more").textContent = `Show more: ${Math.min(PAGE_ROWS, shown.length - visible)} of ${(shown.length - visible).toLocaleString("en-US")} left`;
    let words = `${counted(shown.length, "conversation")} of ${index.ids.length.toLocaleString("en-US")} listed here`;
    if (filter.text && full.size < index.ids.length) words += `; what was said was searched in the ${full.size.toLocaleString("en-US")} that are here in full`;
    if (filter.low !== null && filter.metric !== "") {
      const column = index.columns[filter.metric];
      words += `; ${column.metric} from ${valueText(filter.low, column.unit)}${filter.high === null ? " on" : ` to ${valueText(filter.high, column.unit)}`}`;
    }
    if (unknown.length) words += `; not known here and left out: ${unknown.join(", ")}`;
    $("count").textContent = `${words}.`;
  }

  function because(place) {
    const reasons = index.because[place].map(([column, share, failure]) => {
      const { metric, unit, better, cells } = index.columns[column];
      const count = Math.round(share * index.measured[column]);
      const compared = `${better === "lower" ? "higher" : "lower"} than ${count.toLocaleString("en-US")} of ${index.measured[column].toLocaleString("en-US")}`;
      const failed = ["", "below its pass mark", "misses its target", "failed"][failure];
      return `${metric} ${valueText(cells[place], unit)}: ${[failed, count || !failure ? compared : ""].filter(Boolean).join(", ")}`;
    });
    return lost.has(place) ? [lost.get(place), ...reasons] : reasons;
  }

  function row([place, match]) {
    const why = node("ul", { class: "plain why" });
    if (filter.metric !== "") {
      const column = index.columns[filter.metric];
      why.append(node("li", {}, `${column.metric}: ${cellText(column.cells[place], column)}`));
    } else {
      if (broke.has(place)) why.append(node("li", {}, `the integration broke: ${broke.get(place)}`));
      for (const line of because(place).slice(0, 2)) why.append(node("li", {}, line));
      if (broke.has(place)) { /* said above */ } else if (index.behind[place] === null && !lost.has(place)) why.append(node("li", { class: "soft" }, "no metric with a direction was measured"));
      else if (!because(place).length) why.append(node("li", { class: "soft" }, "worse than no other in any metric"));
    }
    if (match) why.append(node("li", { class: "soft" }, "…", match[0], node("mark", {}, match[1]), match[2], "…"));
    const chips = index.dimensions.flatMap(({ name, values, codes }) =>
      codes[place] < 0 ? [] : [node("span", { class: "chip", title: name, dir: "auto" }, name === "trial" ? `trial ${values[codes[place]]}` : values[codes[place]])]);
    if (broke.has(place)) chips.unshift(node("span", { class: "chip bad" }, "integration broke"));
    if (!full.has(place)) chips.push(node("span", { class: "chip" }, "scores only"));
    return node("li", {}, node("a", { class: "row", href: link(place), id: `row-${place}` },
      node("span", { class: "place" }, String(place + 1)),
      node("span", {}, node("span", { class: "id", dir: "auto" }, index.ids[place]), node("span", { class: "chips" }, chips)), why));
  }

  const link = (place, turn) => `#conversation=${encodeURIComponent(index.ids[place])}${turn === undefined ? "" : `&turn=${turn}`}`;

  // ------------------------------------------------------------------ one conversation

  async function open(place, turn) {
    opened = place;
    const story = full.has(place) ? await storyOf(place) : null;
    if (opened !== place) return;
    const article = $("conversation");
    article.replaceChildren(...head(place, story), ...(story ? body(place, story) : brief(place)));
    $("overview").hidden = true;
    article.hidden = false;
    document.title = `${index.ids[place]} · ${run.name}`;
    article.focus({ preventScroll: true });
    const stretches = (story && story.stretches) || [];
    const wanted = filter.text && turn === null ? seeker(filter.text) : null;
    const hit = wanted && stretches.flatMap((stretch, at) => (stretch.happenings || []).map((one) => [at, one])).find(([, one]) => saidIn(one).some((text) => wanted.test(text)));
    const asked = turn === null ? -1 : stretches.findIndex((stretch) => String(stretch.turn) === turn);
    // With some more below, so that what was asked for can stand at the top.
    drawTurns(Math.max(asked, hit ? hit[0] : 0) + FIRST_TURNS);
    const aimed = asked < 0 ? null : $(`turn-${turn}`);
    if (aimed) aimed.scrollIntoView();
    else if (hit) aim(hit[1].seq);
    else window.scrollTo(0, 0);
    while (waiting.length && opened === place) {
      await new Promise((go) => { setTimeout(go); });
      if (opened === place) drawTurns(MORE_TURNS);
    }
  }

  function head(place, story) {
    const at = shown.findIndex(([one]) => one === place);
    const step = (by, label, key) => {
      const next = at < 0 ? undefined : shown[at + by];
      return node("a", { class: "step", href: next ? link(next[0]) : null, "aria-disabled": next ? null : "true", "aria-keyshortcuts": key, id: key === "j" ? "next" : "previous" }, label);
    };
    const dimensions = index.dimensions.flatMap(({ name, values, codes }) =>
      codes[place] < 0 ? [] : [node("span", { class: "chip" }, `${name}: ${values[codes[place]]}`)]);
    return [
      node("div", { class: "top" },
        node("a", { id: "back", href: filterHash(), "aria-keyshortcuts": "Escape" }, "← All conversations"),
        pictures && pictures.back(),
        step(-1, "↑ Previous (k)", "k"), step(1, "↓ Next (j)", "j"),
        node("span", { class: "soft" }, `${place + 1} of ${run.conversations.toLocaleString("en-US")}, worst first`)),
      node("h1", { id: "conversation-title", dir: "auto" }, index.ids[place]),
      node("div", { class: "chips" }, broke.has(place) ? node("span", { class: "chip bad" }, "integration broke") : null, dimensions),
      node("ul", { class: "plain because" }, (story && story.because ? story.because : because(place)).map((line) => node("li", {}, line))),
    ];
  }

  function brief(place) {
    const rows = index.columns.map((column) => node("tr", {}, node("th", { scope: "row" }, column.metric), node("td", {}, cellText(column.cells[place], column))));
    return [
      node("p", { class: "banner warn" }, "Of this conversation the page holds the scores only. Where the run is, this shows it whole: ",
        node("code", {}, `convoscope show ${run.place} ${index.ids[place].startsWith("-") ? "-- " : ""}'${index.ids[place].replaceAll("'", "'\\''")}'`)),
      node("table", { class: "stack facts" }, node("tbody", {}, rows)),
    ];
  }

  function body(place, story) {
    waiting = (story.stretches || []).map((stretch) => () => turnOf(place, stretch));
    const none = waiting.length ? null : node("p", {}, "The log holds no event of this conversation.");
    return [
      (story.notes || []).length ? node("div", { class: "whole-notes" }, story.notes.map(repair)) : null,
      story.timeline ? lanes(story.timeline) : node("p", { class: "soft" }, "Nothing that was said or done has a time, so there is no timeline."),
      node("div", { class: "conversation-grid" },
        node("div", { id: "turns" }, node("h2", {}, "Turn by turn"), none),
        node("aside", {},
          node("div", { class: "card" }, node("h2", {}, "Scores"), scoreTable(story.scores || []),
            (story.elsewhere || []).length ? [node("h3", {}, "Of other subjects"), scoreTable(story.elsewhere)] : null),
          node("div", { class: "card" }, node("h2", {}, "About"), pairs(story.about || []),
            (story.context || []).map(([name, text]) => node("details", {}, node("summary", {}, name), node("pre", {}, text)))))),
    ].filter(Boolean);
  }

  // A long conversation is drawn piece by piece, so that its beginning is there at once.
  function drawTurns(count) {
    if (waiting.length) $("turns").append(...waiting.splice(0, count).map((draw) => draw()));
  }

  function scoreTable(marks) {
    return node("table", { class: "scores" }, node("tbody", {}, marks.map((mark) => node("tr", {},
      node("th", { scope: "row" }, mark.subject ? `${mark.subject}: ` : "", breakable(mark.metric), mark.judge ? node("span", { class: "soft" }, ` ${mark.judge}`) : null),
      node("td", {}, node("span", { class: mark.status === "measured" ? (mark.bad ? "bad-value" : "") : "soft" }, said(mark)),
        (mark.evidence || []).length ? node("details", { class: "data" }, node("summary", {}, "evidence"), pairs(mark.evidence)) : null)))));
  }

  // A long name breaks at its dots and underscores.
  const breakable = (name) => name.split(/(?<=[._])/).flatMap((part) => [part, node("wbr")]);
  const said = (mark) => (mark.status === "measured" ? mark.text : `${mark.status === "not_applicable" ? "not applicable" : mark.status}: ${mark.text}`);
  const pairs = (facts) => node("dl", { class: "pairs" }, facts.map(([name, text]) => [node("dt", {}, name), node("dd", { dir: "auto" }, text)]));
  const repair = (note) => node("p", { class: "repair" }, note);

  function turnOf(place, stretch) {
    const name = stretch.turn === undefined || stretch.turn === null ? "Without turns" : `Turn ${stretch.turn}`;
    return node("section", { class: "turn", id: stretch.turn === undefined ? null : `turn-${stretch.turn}`, "aria-label": name },
      node("header", {}, node("h3", {}, node("a", { href: link(place, stretch.turn) }, name)), marksOf(stretch.marks)),
      (stretch.happenings || []).map(eventOf));
  }

  function marksOf(marks) {
    if (!marks || !marks.length) return null;
    return node("div", { class: "marks" }, marks.map((mark) => {
      const words = `${mark.metric}${mark.judge ? ` [${mark.judge}]` : ""} ${said(mark)}`;
      const style = `chip${mark.bad ? " bad" : ""}`;
      if (!(mark.evidence || []).length) return node("span", { class: style }, words);
      return node("details", {}, node("summary", { class: style }, words), pairs(mark.evidence));
    }));
  }

  function eventOf(one) {
    const when = one.at === undefined || one.at === null ? null : node("span", { class: "when" }, `${one.at.toFixed(1)} s`);
    const style = `event ${one.kind} ${["user", "assistant"].includes(one.role) ? one.role : ""} ${one.bad ? "bad" : ""}`;
    const facts = one.facts || [];
    const inside = one.kind === "utterance"
      ? [...(one.readings || []).map((reading) => readingOf(reading, one.readings.length)), (one.readings || []).length ? null : node("p", { class: "soft" }, "no words in the log"), facts.length ? pairs(facts) : null]
      : [facts.length ? node("div", { class: "box" }, pairs(facts)) : null];
    const head = one.kind === "utterance"
      ? [node("span", { class: "who", dir: "auto" }, one.title), one.role && one.role !== one.title ? node("span", {}, one.role) : null]
      : [node("span", {}, one.does || one.kind), node("span", { class: "who", dir: "auto" }, one.title || "")];
    // What the machinery reports of itself is seldom read: one line, until it is asked for.
    if (one.kind === "component_metric") {
      const gist = facts.slice(0, 4).map(([name, text]) => `${name} ${text}`).join(", ");
      return node("details", { class: style, id: `event-${one.seq}` }, node("summary", { class: "head" }, head, when, node("span", { class: "gist", dir: "auto" }, gist)), inside, marksOf(one.marks), (one.notes || []).map(repair));
    }
    if (one.bad) head.push(node("span", { class: "chip bad" }, one.kind === "utterance" ? "cut off" : "failed"));
    return node("div", { class: style, id: `event-${one.seq}` }, node("div", { class: "head" }, head, when), inside, marksOf(one.marks), (one.notes || []).map(repair));
  }

  function readingOf(reading, count) {
    const tags = { "=": "span", "+": "ins", "-": "del" };
    const words = node("p", { class: "said", dir: "auto" }, reading.pieces.map(([op, text]) => node(tags[op], op === "=" ? {} : { title: op === "+" ? "not in the text above" : "only in the text above" }, text)));
    if (count === 1 && reading.kinds.length === 1 && reading.kinds[0] !== "heard" && (reading.confidence === undefined || reading.confidence === null)) return words;
    const sure = reading.confidence === undefined || reading.confidence === null ? "" : `, ${Math.round(100 * reading.confidence)} % sure`;
    return node("div", { class: "reading" }, node("span", { class: "kind", title: (reading.sources || []).join(", ") }, `${reading.kinds.join(" and ")}${sure}`), words);
  }

  // ------------------------------------------------------------------ along the clock

  function lanes(timeline) {
    const { length } = timeline;
    const scale = (seconds) => (1000 * seconds) / (length || 1);
    const rows = timeline.lanes.map((lane) => laneOf(lane, lane.role || lane.kind, (svg) => {
      for (const span of lane.spans || []) {
        const end = span.end === undefined || span.end === null ? span.start : span.end;
        const width = Math.max(3, scale(end - span.start));
        const bar = drawn("rect", { class: "span", x: Math.min(scale(span.start), 1000 - width), y: 3, width, height: 14,
          "data-tip": `${lane.name}${span.label ? ` ${span.label}` : ""}: ${span.start.toFixed(1)}${end > span.start ? ` to ${end.toFixed(1)}` : ""} s` });
        bar.addEventListener("click", () => aim(span.seq));
        svg.append(bar);
      }
    }));
    const silences = timeline.gaps || [];
    const overlaps = timeline.overlaps || [];
    if (silences.length || overlaps.length) {
      rows.push(laneOf({ name: "overlaps, silence" }, "between", (svg) => {
        for (const gap of silences) {
          svg.append(drawn("rect", { class: `gap${gap.end - gap.start >= LONG_SILENCE ? " long" : ""}`, x: scale(gap.start), y: 5, width: scale(gap.end - gap.start), height: 10, "data-tip": `silence of ${(gap.end - gap.start).toFixed(2)} s at ${gap.start.toFixed(1)} s` }));
        }
        for (const over of overlaps) {
          svg.append(drawn("rect", { class: "overlap", x: scale(over.start), y: 2, width: Math.max(3, scale(over.end - over.start)), height: 16, "data-tip": `both speak for ${(over.end - over.start).toFixed(2)} s at ${over.start.toFixed(1)} s` }));
        }
      }));
    }
    const tracks = timeline.tracks || [];
    if (tracks.length) {
      rows.push(node("div", { class: "lane audio", id: "audio-lane" }, node("span", {}, "sound"), node("span", {}, `${tracks.join(", ")} (recorded; not in this page)`)));
    }
    const total = (spans) => spans.reduce((sum, span) => sum + span.end - span.start, 0);
    const longest = silences.reduce((most, gap) => (!most || gap.end - gap.start > most.end - most.start ? gap : most), null);
    const words = [length ? `${length.toFixed(1)} s` : "one moment in time"];
    if (overlaps.length) words.push(`${counted(overlaps.length, "overlap")} of ${total(overlaps).toFixed(1)} s in all`);
    if (longest) words.push(`longest silence ${(longest.end - longest.start).toFixed(1)} s at ${longest.start.toFixed(1)} s`);
    if (timeline.endless && (silences.length || overlaps.length)) words.push(`${counted(timeline.endless, "utterance")} without an end, around which silence cannot be told`);
    if (timeline.unplaced) words.push(`${counted(timeline.unplaced, "moment")} of other clocks cannot be placed`);
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => node("span", {}, `${(part * length).toFixed(length < 20 ? 1 : 0)} s`));
    return node("figure", { class: "lanes card", "aria-label": `Timeline: ${words.join(", ")}` },
      node("figcaption", { class: "soft" }, `Timeline: ${words.join(", ")}.`), rows,
      length ? node("div", { class: "lane" }, node("span", {}), node("span", { class: "scale" }, ticks)) : null);
  }

  function laneOf(lane, style, fill) {
    const svg = drawn("svg", { viewBox: "0 0 1000 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    fill(svg);
    return node("div", { class: `lane ${["user", "assistant", "tools", "states"].includes(style) ? style : ""}` }, node("span", {}, lane.name), svg);
  }

  function aim(seq) {
    if (!$(`event-${seq}`)) drawTurns(waiting.length);
    const target = $(`event-${seq}`);
    if (target) point(target);
  }

  function point(target) {
    for (const one of document.querySelectorAll(".event.aim")) one.classList.remove("aim");
    target.classList.add("aim");
    target.scrollIntoView({ block: "center" });
  }

  // Only where the run holds states: see flow.js.
  const pictures = typeof flowPictures === "undefined" ? null : flowPictures({
    $, node, drawn, unpack, counted, link, idOf: (place) => index.ids[place], isFull: (place) => full.has(place), isOpen: () => opened >= 0,
  });

  // ------------------------------------------------------------------ where we are

  async function route() {
    const mine = (steps += 1);
    const hash = location.hash.slice(1);
    // The skip link: whatever is open stays so.
    if (hash === "content") return;
    if (hash.startsWith("conversation=")) {
      const query = new URLSearchParams(hash);
      const place = index.ids.indexOf(query.get("conversation"));
      if (place >= 0) { await open(place, query.get("turn")); return; }
      showOverview("conversations");
      $("count").replaceChildren("The conversation ", node("bdi", {}, query.get("conversation")), " is not listed in this page.");
      return;
    }
    if (hash.startsWith("find?")) {
      await setFilter(new URLSearchParams(hash.slice(5)));
      if (mine === steps) showOverview("conversations");
      return;
    }
    showOverview(hash);
    if (pictures) pictures.route(hash);
  }

  function showOverview(section) {
    const was = opened;
    opened = -1;
    waiting = [];
    $("overview").hidden = false;
    $("conversation").hidden = true;
    $("conversation").replaceChildren();
    document.title = run.title;
    const row = was < 0 ? null : $(`row-${was}`);
    const target = section && document.getElementById(section);
    if (row && (!section || section === "conversations")) {
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: "center" });
      // The browser may put back where the page stood when it was shorter.
      requestAnimationFrame(() => row.scrollIntoView({ block: "nearest" }));
    }
    else if (target && (was >= 0 || section === "conversations")) target.scrollIntoView();
  }

  function keys(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const press = (id) => { const aimed = $(id); if (aimed && aimed.getAttribute("href")) { event.preventDefault(); location.hash = aimed.getAttribute("href"); } };
    if (event.key === "/") { event.preventDefault(); history.pushState(null, "", filterHash()); showOverview("conversations"); $("search").focus(); }
    else if (opened >= 0 && event.key === "j") press("next");
    else if (opened >= 0 && event.key === "k") press("previous");
    else if (opened >= 0 && event.key === "Escape") press("back");
    else if (event.key === "Escape" && pictures) pictures.escape();
  }

  function tips() {
    const tip = $("tip");
    const place = (event) => {
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4))}px`;
      tip.style.top = `${event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 16}px`;
    };
    const show = (event) => {
      const text = event.target instanceof Element && event.target.closest("[data-tip]");
      tip.hidden = !text || !text.dataset.tip;
      if (!tip.hidden) { tip.textContent = text.dataset.tip; place(event); }
    };
    document.addEventListener("pointerover", show);
    document.addEventListener("pointermove", show);
    document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
  }

  function theme() {
    const button = $("theme");
    const themes = ["auto", "light", "dark"];
    button.hidden = false;
    button.addEventListener("click", () => {
      const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
      if (next === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = next;
      button.textContent = `Theme: ${next}`;
    });
  }

  async function start() {
    theme();
    tips();
    ({ run, index } = await unpack("index"));
    run.title = document.title;
    full = new Set(run.full);
    broke = new Map(index.broke);
    lost = new Map(index.lost);
    prepare();
    if (pictures) await pictures.start();
    await setFilter(new URLSearchParams());
    document.addEventListener("click", (event) => {
      if (!(event.target instanceof Element)) return;
      const bar = event.target.closest(".filters");
      const asked = bar ? bar.dataset.link : event.target.closest('a[href^="#"]')?.getAttribute("href");
      // The same address again is no change of it, but somebody asked.
      if (asked && asked === location.hash) route();
      else if (bar) location.hash = bar.dataset.link;
    });
    document.addEventListener("keydown", keys);
    addEventListener("hashchange", route);
    let folded = [];
    addEventListener("beforeprint", () => {
      drawTurns(waiting.length);
      folded = [...document.querySelectorAll("details:not(.data):not([open])")];
      for (const one of folded) one.open = true;
    });
    addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
    await route();
    document.documentElement.dataset.ready = "yes";
  }

  start().catch((error) => {
    $("count").textContent = typeof DecompressionStream === "undefined"
      ? "This browser is too old to unfold the conversations. Its figures are above; `convoscope show` prints the rest."
      : `The conversations cannot be shown: ${error.message}`;
  });
})();
