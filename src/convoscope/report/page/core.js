// What every screen needs: text that stays text, unfolding, words, marks.
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);

// Everything from a log goes through here: as text, never as markup.
function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "" && child !== false));
  return made;
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children.flat());
  return made;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

let facts;
let index;
let full;
let bounds;
const stories = new Map();
async function storyOf(place) {
  if (!stories.has(place)) stories.set(place, await unpack(`story-${place}`));
  return stories.get(place);
}

const number = (count) => count.toLocaleString("en-US");
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const nouns = () => `${facts.noun}s`;
const capital = (words) => words[0].toUpperCase() + words.slice(1);
// A number and its unit stay on one line.
const solid = (text) => text.replace(/(\d) (?=%|s\b|points\b)/g, "$1\u00a0");
const bdi = (text) => node("bdi", {}, text);
const linkTo = (place, second) => `#/call/${encodeURIComponent(index.ids[place])}${second === undefined ? "" : `/${second}`}`;
// Words between backticks are code.
const coded = (text) => text.split("`").map((part, place) => (place % 2 ? node("code", {}, part) : part));

// A dot is no number: its reason is there for whoever points, tabs or listens.
const dot = (reason) => node("span", { class: "na", tabindex: "0", "data-tip": reason || "not measured", "aria-label": `not measured: ${reason || "no value"}` }, "·");

const SIGNS = { missed: "✕ missed", met: "✓ met", "missed, too close": "✕ missed, too close to call", "met, too close": "✓ met, too close to call", "missed, no interval": "✕ missed, no interval", "met, no interval": "✓ met, no interval", undetermined: "undetermined" };
const TONES = { missed: "bad", met: "good" };
const verdictOf = (verdict) => (verdict ? node("b", { class: TONES[verdict] || "" }, SIGNS[verdict]) : null);

function intervalBar(bar, verdict) {
  if (!bar) return null;
  const made = node("span", { class: `ib ${TONES[verdict] || ""}`, role: "img", "aria-label": bar.text });
  const put = (name, left, width) => {
    const part = node("i", { class: name });
    part.style.left = `${left}%`;
    if (width !== undefined) part.style.width = `${width}%`;
    made.append(part);
  };
  if (bar.low !== undefined && bar.high !== undefined) put("band", bar.low, bar.high - bar.low);
  for (const target of bar.targets || []) put("target", target);
  put("tick", bar.value);
  return made;
}

// Bins as one path for those that are fine and one for those beyond the target.
function spreadOf(spread, large) {
  if (!spread) return null;
  if (spread.yes !== undefined) {
    const part = node("i", { class: spread.tone || "plain" });
    part.style.width = `${spread.yes}%`;
    return node("span", { class: "split", role: "img", "aria-label": spread.middle }, part);
  }
  const bins = spread.bins || [];
  const most = Math.max(...bins, 1);
  const bad = new Set(spread.bad || []);
  const [wide, high] = large ? [360, 64] : [88, 30];
  const step = wide / bins.length;
  const path = (wanted) => bins.map((count, place) => (count && bad.has(place) === wanted
    ? `M${(place * step).toFixed(1)} ${high}v${(-Math.max(1, (high * count) / most)).toFixed(1)}h${Math.max(1, step - 1).toFixed(1)}V${high}z` : "")).join("");
  const svg = drawn("svg", { class: "spread", viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": spread.middle });
  svg.append(drawn("path", { class: "bins", d: path(false) }), drawn("path", { class: "bins bad", d: path(true) }));
  if (large) bins.forEach((count, place) => svg.append(drawn("rect", { class: "hit", x: place * step, y: 0, width: step, height: high, "data-tip": spread.tips[place] })));
  return svg;
}

// A fold is one line that is worth reading while closed; what is inside is made when it is opened.
function fold(line, make, attributes) {
  const details = node("details", attributes, node("summary", {}, line));
  let made = false;
  const fill = () => { if (!made) { made = true; details.append(...[make()].flat(Infinity).filter(Boolean)); } };
  details.addEventListener("toggle", () => { if (details.open) fill(); });
  details.fill = fill;
  return details;
}

const pairs = (list) => node("dl", { class: "pairs" }, list.map(([name, text]) => [node("dt", {}, bdi(name)), node("dd", { dir: "auto" }, text)]));

function table(columns, rows, attributes) {
  return node("div", { class: "sc", tabindex: "0", role: "region", "aria-label": (attributes && attributes.label) || "Table" }, node("table", { class: "plain" },
    node("thead", {}, node("tr", {}, columns.map((name) => node("th", { scope: "col" }, name)))),
    node("tbody", {}, rows)));
}
const OUTCOME_SIGNS = { done: ["✓", "completed"], lost: ["✕", "lost"], handed_over: ["↗", "handed to a person"], unknown: ["?", "not known how it ended"], broken: ["!", "the integration broke"], no_user_speech: ["∅", "the user never spoke"], voicemail: ["✉", "a mailbox answered"], ivr: ["#", "a phone menu answered"] };
const outcomeSign = (kind) => node("span", { class: `oc ${kind}`, role: "img", "aria-label": OUTCOME_SIGNS[kind][1] }, OUTCOME_SIGNS[kind][0]);
const kindOf = (place) => index.kinds[index.outcomes[place]];
const callRow = (place, words) => node("a", { class: "li", href: linkTo(place) }, outcomeSign(kindOf(place)), node("bdi", { class: "id" }, index.ids[place]), node("bdi", { class: "w" }, words || ""));

// ------------------------------------------------------------------ tips

function tips() {
  const tip = $("tip");
  const show = (target, x, y) => {
    const owner = target instanceof Element && target.closest("[data-tip]");
    tip.hidden = !owner || !owner.dataset.tip;
    if (tip.hidden) return;
    tip.textContent = owner.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${Math.max(4, y + 16 + box.height > innerHeight ? y - box.height - 8 : y + 16)}px`;
  };
  document.addEventListener("pointerover", (event) => show(event.target, event.clientX, event.clientY));
  document.addEventListener("pointermove", (event) => show(event.target, event.clientX, event.clientY));
  document.addEventListener("focusin", ({ target }) => { const box = target.getBoundingClientRect(); show(target, box.left, box.bottom - 10); });
  document.addEventListener("focusout", () => { tip.hidden = true; });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true, capture: true });
}

function theme() {
  const themes = ["auto", "light", "dark"];
  $("theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    $("theme").textContent = `Theme: ${next}`;
  });
}
