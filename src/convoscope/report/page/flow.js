"use strict";
// The pictures of flows: a chosen state, what comes after it, and its conversations. page.js lends what it has.
const flowPictures = ({ $, node, drawn, unpack, counted, idOf, link, isFull, isOpen }) => {
  const LEAST = 0.92; // letters of 12 px stay at 11
  const pictures = [...document.querySelectorAll(".flow-one")];
  const choice = $("flow-choice");
  const scales = new Map();
  let flows;
  let chosen = null;
  let left = "";

  const shown = () => (choice ? Number(choice.value) : 0);
  const part = (flow, selector) => pictures[flow].querySelector(selector);
  const boxOf = (flow, state) => part(flow, `[data-state="${state}"]`);

  // ------------------------------------------------------------------ which flow, and how large

  function show(flow) {
    if (choice) choice.value = String(flow);
    pictures.forEach((one, place) => { one.hidden = place !== flow; });
    if (!scales.has(flow)) zoom(flow, "first");
  }

  function zoom(flow, how) {
    const svg = part(flow, ".flow-picture");
    const box = part(flow, ".flow-box");
    const { width, height } = svg.viewBox.baseVal;
    const now = scales.get(flow) || 1;
    const fits = Math.min(1, (box.clientWidth - 2) / width);
    const next = {
      fit: Math.min(fits, Math.min(46 * 15, innerHeight * 0.8) / height),
      whole: 1,
      in: Math.min(3, now * 1.25),
      out: Math.max(0.1, now / 1.25),
      // At first as large as it can be read, and no larger than there is room.
      first: fits >= LEAST ? fits : 1,
    }[how];
    scales.set(flow, next);
    svg.style.width = `${width * next}px`;
    svg.style.height = `${height * next}px`;
    if (how === "first" && next * width > box.clientWidth) {
      const first = svg.querySelector("[data-state]").getBoundingClientRect();
      box.scrollLeft += first.left + first.width / 2 - box.getBoundingClientRect().left - box.clientWidth / 2;
    }
  }

  // ------------------------------------------------------------------ the blast radius

  // Along the edges that lead on: what returns to a state has been there before.
  function downstream(flow, state) {
    const after = new Map();
    for (const [from, to] of flows[flow].down) after.set(from, [...(after.get(from) || []), to]);
    const found = new Set();
    const waiting = [state];
    while (waiting.length) {
      for (const next of after.get(waiting.pop()) || []) {
        if (next !== state && !found.has(next)) { found.add(next); waiting.push(next); }
      }
    }
    return found;
  }

  function clear() {
    if (!chosen) return;
    const { flow } = chosen;
    chosen = null;
    part(flow, ".flow-picture").classList.remove("choosing");
    for (const one of pictures[flow].querySelectorAll(".chosen, .downstream")) one.classList.remove("chosen", "downstream");
    for (const one of pictures[flow].querySelectorAll(".missing")) one.remove();
    for (const one of pictures[flow].querySelectorAll("[aria-current]")) one.removeAttribute("aria-current");
    part(flow, "[data-zoom=clear]").hidden = true;
    part(flow, ".flow-panel").replaceChildren(node("p", { class: "soft" }, "Choose a state to see what comes after it."));
  }

  function choose(flow, state) {
    clear();
    chosen = { flow, state };
    show(flow);
    const reached = downstream(flow, state);
    const svg = part(flow, ".flow-picture");
    svg.classList.add("choosing");
    const inside = new Set([state, ...reached]);
    for (const one of svg.querySelectorAll("[data-state]")) {
      const number = Number(one.dataset.state);
      if (number === state) { one.classList.add("chosen"); one.setAttribute("aria-current", "true"); }
      else if (reached.has(number)) one.classList.add("downstream");
    }
    const leads = new Set(flows[flow].down.map(([from, to]) => `${from} ${to}`));
    for (const one of svg.querySelectorAll("[data-from]")) {
      const { from, to } = one.dataset;
      if (inside.has(Number(from)) && leads.has(`${from} ${to}`)) one.classList.add("downstream");
    }
    const { cause } = flows[flow].states[state];
    for (const [number, missed] of (cause && cause.starves) || []) if (reached.has(number)) mark(flow, number, missed);
    part(flow, "[data-zoom=clear]").hidden = false;
    part(flow, ".flow-panel").replaceChildren(...panel(flow, state, reached));
    part(flow, ".flow-panel").scrollTop = 0;
  }

  // How many conversations a state misses, on the corner of its box.
  function mark(flow, state, missed) {
    const target = boxOf(flow, state);
    if (!target) return;
    const box = target.querySelector(".box");
    const at = (name) => Number(box.getAttribute(name));
    const text = `−${missed.toLocaleString("en-US")}`;
    const wide = 7.5 * text.length + 8;
    const badge = drawn("g", { class: "missing" });
    badge.append(drawn("rect", { x: at("x") + at("width") - wide + 8, y: at("y") - 9, width: wide, height: 17, rx: 8.5 }));
    const words = drawn("text", { x: at("x") + at("width") - wide / 2 + 8, y: at("y") + 3.5 });
    words.textContent = text;
    badge.append(words);
    target.append(badge);
  }

  // ------------------------------------------------------------------ the panel

  const nameOf = (flow, state) => {
    const { name } = flows[flow].states[state];
    return boxOf(flow, state) ? node("a", { href: `#state=${flow}.${state}` }, node("bdi", {}, name)) : node("bdi", {}, name);
  };
  const sentence = (words) => words[0].toUpperCase() + words.slice(1);
  const told = (lines) => node("ul", { class: "told" }, lines.map((words) => node("li", {}, sentence(words))));
  const listed = (title, rows) => (rows.length ? [node("h4", {}, title), node("ul", { class: "plain" }, rows.map((row) => node("li", {}, row)))] : []);

  function panel(flow, state, reached) {
    const facts = flows[flow].states[state];
    const about = [facts.n ? counted(facts.n, "conversation") : "no conversation", facts.segment ? `segment ${facts.segment}` : "", facts.end ? `end: ${facts.end}` : ""];
    return [
      node("h4", { class: "title" }, node("bdi", {}, facts.name)),
      node("p", { class: "soft" }, about.filter(Boolean).join(" · ")),
      facts.few ? node("p", { class: "verdict undetermined" }, facts.few) : null,
      facts.note ? node("p", {}, facts.note) : null,
      ...diagnosis(facts),
      ...radius(flow, facts, reached),
      ...conversations(facts),
      ...(facts.figures ? [node("h4", {}, "Figures"), node("table", {}, node("tbody", {}, facts.figures.map(figure)))] : []),
      ...neighbours(flow, state),
    ].filter(Boolean);
  }

  function diagnosis({ cause, n, end }) {
    if (!cause) return n && !end ? [node("p", { class: "soft" }, "Nothing is wrong with it by the marks of the analysis.")] : [];
    return [
      node("p", {}, node("strong", {}, `${sentence(cause.headline)}.`)),
      told(cause.evidence),
      node("p", {}, `${sentence(cause.cost)}.`),
      ...(cause.if_median.length ? [node("h4", {}, "If it were like the others"), told(cause.if_median)] : []),
    ];
  }

  function radius(flow, { cause }, reached) {
    if (!reached.size) return [node("p", { class: "soft" }, "It leads on to no other state.")];
    const starved = ((cause && cause.starves) || []).filter(([number]) => reached.has(number));
    return [
      node("h4", {}, "Blast radius"),
      node("p", {}, `${counted(reached.size, "state")} come${reached.size === 1 ? "s" : ""} after it.`,
        starved.length ? " About so many conversations are missing there because of it:" : ""),
      starved.length ? node("ul", { class: "plain" }, starved.slice(0, 8).map(([number, missed]) => node("li", {}, nameOf(flow, number), ` −${missed.toLocaleString("en-US")}`))) : null,
      starved.length > 8 ? node("p", { class: "soft" }, `and ${starved.length - 8} more, in the picture`) : null,
    ];
  }

  const figure = ([label, value, under, reason]) => node("tr", {},
    node("th", { scope: "row" }, label),
    node("td", { class: "number", title: reason || null }, value, under ? node("span", { class: "under" }, under) : null, reason ? node("span", { class: "under" }, reason) : null));

  function neighbours(flow, state) {
    const most = 10;
    const side = (mine, other) => flows[flow].edges.filter((edge) => edge[mine] === state).sort((a, b) => b[2] - a[2])
      .map((edge) => [edge[other] === state ? "itself" : nameOf(flow, edge[other]), ` ${edge[2].toLocaleString("en-US")}×`]);
    const cut = (rows) => (rows.length > most ? [...rows.slice(0, most), node("span", { class: "soft" }, `and ${rows.length - most} more`)] : rows);
    return [...listed("Led to", cut(side(0, 1))), ...listed("Came from", cut(side(1, 0)))];
  }

  function conversations({ places, stalled, n }) {
    if (!places) return [];
    const here = places.map((place, at) => [place, at < stalled]).filter(([place]) => idOf(place) !== undefined);
    const rows = here.map(([place, stuck]) => node("li", {},
      node("a", { href: link(place) }, node("bdi", {}, idOf(place))), " ",
      stuck ? node("span", { class: "chip bad" }, "stuck here") : null, " ", isFull(place) ? null : node("span", { class: "chip" }, "scores only")));
    const words = here.length < n ? `${here.length.toLocaleString("en-US")} of ${n.toLocaleString("en-US")} here; ` : "";
    return [node("h4", {}, "Conversations"), node("p", { class: "soft" }, `${words}${stalled.toLocaleString("en-US")} got stuck in it${stalled ? ", first" : ""}; the worst first.`),
      rows.length ? node("div", { class: "flow-ids", tabindex: "0", role: "region", "aria-label": "Conversations of this state" }, node("ul", {}, rows)) : null].filter(Boolean);
  }

  // ------------------------------------------------------------------ where we are

  // Behind # stands state=FLOW.STATE, by their numbers in this page.
  function route(hash) {
    const found = /^state=(\d+)\.(\d+)$/.exec(hash);
    const [flow, state] = found ? [Number(found[1]), Number(found[2])] : [-1, -1];
    if (!flows[flow] || !boxOf(flow, state)) { clear(); left = ""; return false; }
    const from = document.activeElement;
    choose(flow, state);
    left = `#${hash}`;
    const target = boxOf(flow, state);
    const frame = part(flow, ".flow-box");
    if (from !== target) {
      const seen = frame.getBoundingClientRect();
      if (seen.top < 0 || seen.top > innerHeight * 0.6 || seen.bottom < 80) pictures[flow].scrollIntoView();
      const [box, inner] = [target.getBoundingClientRect(), frame.getBoundingClientRect()];
      if (box.top < inner.top || box.bottom > inner.bottom) frame.scrollTop += box.top - inner.top - (inner.height - box.height) / 2;
      if (box.left < inner.left || box.right > inner.right) frame.scrollLeft += box.left - inner.left - (inner.width - box.width) / 2;
      if (!frame.contains(from) && !part(flow, ".flow-panel").contains(from)) target.focus({ preventScroll: true });
    }
    return true;
  }

  function prepare() {
    for (const [flow, one] of pictures.entries()) {
      one.querySelector(".flow-tools").hidden = false;
      one.querySelector(".flow-tools").addEventListener("click", (event) => {
        const how = event.target.dataset.zoom;
        if (how === "clear") { boxOf(flow, chosen.state).focus({ preventScroll: true }); leave(); }
        else if (how) zoom(flow, how);
      });
    }
    if (choice) choice.addEventListener("change", () => { leave(); show(Number(choice.value)); });
    show(shown());
  }

  function leave() {
    clear();
    left = "";
    if (location.hash.startsWith("#state=")) history.replaceState(null, "", "#flow");
  }

  async function start() {
    ({ flows } = await unpack("flow-facts"));
    prepare();
  }

  // From a conversation back to the state that it was opened from.
  const back = () => left && chosen && node("a", { href: left }, "← ", node("bdi", {}, flows[chosen.flow].states[chosen.state].name));
  const escape = () => { if (!chosen || isOpen()) return false; leave(); return true; };
  return { start, route, back, escape };
};
