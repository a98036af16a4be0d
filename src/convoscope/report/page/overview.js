// ------------------------------------------------------------------ the overview

function overviewScreen() {
  const { verdict, meta, outcomes = [], cards = [], notes = [], more_bad = [], causes = [], remaining = [], rough = [], folds = [], ...rest } = facts.overview;
  const part = (one) => { const made = node("a", { class: one.kind, href: one.href, "aria-label": `${number(one.count)} ${one.label}`, "data-tip": `${number(one.count)} ${one.label}` }); made.style.flexGrow = one.count; return made; };
  return [
    rest.banner ? node("p", { class: "banner", role: "alert" }, rest.banner) : null,
    verdictLines(verdict),
    meta ? node("p", { class: "meta" }, meta) : null,
    outcomes.length ? node("div", { class: `obx ${rest.target === undefined ? "" : "aimed"}` }, node("div", { class: "ob" }, outcomes.filter((one) => one.counted).map(part)), rest.target === undefined ? null : targetMark(rest.target, rest.target_text)) : null,
    outcomes.length ? node("ul", { class: "obl" }, outcomes.map((one) => node("li", {}, node("a", { href: one.href }, node("i", { class: one.kind }), node("b", {}, number(one.count)), ` ${one.label}`)))) : null,
    cards.length ? node("section", { "aria-label": "Key figures" },
      node("div", { class: "head" }, node("h2", {}, "Key figures"), node("span", { class: "dim" }, rest.cards_line), node("a", { class: "more", href: "#/metrics" }, "All figures")),
      node("div", { class: "cards" }, cards.map(card)), node("div", { id: "tried" }, triedOf(cards))) : null,
    moreBadOf(more_bad),
    notes.map((note) => node("p", { class: "meta", dir: "auto" }, coded(note))),
    causesOf(causes, remaining, rough, rest),
    node("section", { "aria-label": "What is not here" }, folds.map((one) => fold([coded(one.line)], () => node("ul", { class: "in" }, one.lines.map((line) => node("li", { dir: "auto" }, coded(line)))), { class: "fold" }))),
    node("p", { class: "ft" }, rest.footer, " This page holds conversations: whoever has it can read them. It asks nothing of the network."),
  ];
}

// Bad figures without a card: the first few, each a link; the table of all figures has the others.
const moreBadOf = (figures) => (figures.length ? node("p", { class: "meta bad" }, `${counted(figures.length, "more bad figure")}: `, figures.slice(0, 4).map(([text, name], place) => [place ? "; " : "", node("a", { href: `#/metrics/${encodeURIComponent(name)}` }, bdi(text))]), figures.length > 4 ? ["; ", node("a", { href: "#/metrics" }, `and ${number(figures.length - 4)} more`)] : null) : null);

const verdictLines = (lines) => node("h1", { class: "verdict" }, lines.map((line) => [node("span", { class: "line" }, line.map(([text, strong, tone]) => node(strong ? "b" : "span", { class: tone }, bdi(solid(text))))), " "]));

function targetMark(at, text) {
  const made = node("span", { class: "aim" }, node("span", {}, text));
  made.style.left = `${at}%`;
  if (at > 60) made.classList.add("end");
  return made;
}

// Targets that are tried: nothing is kept but by the option that the page names.
const tried = new Set();

function card(one) {
  const on = one.trial && tried.has(one.name);
  const shown = on ? { ...one, ...one.trial, bad: false } : one;
  const button = one.trial ? node("button", { type: "button", class: "btn", "aria-pressed": String(Boolean(on)), onclick: (event) => {
    if (!tried.delete(one.name)) tried.add(one.name);
    const old = event.target.closest(".kf");
    const made = card(one);
    old.replaceWith(made);
    made.querySelector("button").focus();
    $("tried").replaceChildren(...[triedOf(facts.overview.cards)].filter(Boolean));
  } }, on ? "undo" : `try ${one.trial.target}`) : null;
  const last = shown.target ? [on ? "tried " : "target ", `${shown.target} `, verdictOf(shown.verdict), shown.remark ? `, ${shown.remark}` : ""] : [one.remark ? `${one.remark}; ` : "", one.trial ? `no target; ${one.trial.source}` : "no target"];
  return node("div", { class: "card kf" },
    node("a", { class: "l", href: `#/metrics/${encodeURIComponent(one.name)}` }, one.label),
    node("span", { class: "row" }, node("span", { class: `big ${TONES[shown.verdict] || (shown.bad ? "bad" : "")}` }, one.value, one.unit ? node("small", {}, ` ${one.unit}`) : null), spreadOf(shown.spread)),
    intervalBar(shown.bar, shown.verdict),
    node("span", { class: "f" }, node("span", {}, one.interval || "no interval"), node("span", {}, `n ${one.n}`, one.coverage ? node("b", {}, `, ${one.coverage} covered`) : null)),
    node("span", { class: "t" }, node("span", { class: shown.target || one.remark ? "" : "src" }, last), button));
}

function triedOf(cards) {
  const options = cards.filter((one) => one.trial && tried.has(one.name)).map((one) => one.trial.option);
  if (!options.length) return null;
  const text = options.join(" ");
  const copy = node("button", { type: "button", class: "btn", onclick: () => {
    const field = node("textarea", { class: "copy", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    copy.textContent = done ? "Copied" : "Select and copy it";
    copy.focus();
  } }, "Copy, to keep");
  return node("p", { class: "card tried", "aria-live": "polite" }, node("b", {}, `${counted(options.length, "target")} tried`), node("code", {}, text), copy);
}

// The words of a judge, under its name, each apart from ours; they lead to the conversation that they are about.
function opinionOf({ opinion, example }) {
  if (!opinion) return null;
  const [lead, reason, quote] = opinion;
  const words = [bdi(lead), ": ", reason ? ["“", bdi(reason), "” "] : null, quote ? ["It quotes “", bdi(quote), "”"] : null];
  return node("p", { class: "ev" }, example ? node("a", { href: example }, words) : words);
}

function causesOf(causes, remaining, rough, rest) {
  const title = causes.length || remaining.length ? "Where it breaks" : rough.length ? (facts.order.startsWith("trials") ? "Where trials disagree" : "What was slow or rough") : "";
  if (!title && !rest.nothing_lost) return null;
  const rows = causes.map((one, place) => {
    const bar = node("i", {});
    bar.style.width = `${one.share}%`;
    const quote = one.quote && (one.example ? node("a", { href: one.example }, bdi(one.quote)) : bdi(one.quote));
    const version = ([name, text, length, worse]) => { const made = node("i", { class: worse ? "worse" : "" }); made.style.width = `${length}%`; return [bdi(name), node("span", { class: "tr" }, made), node("span", { class: worse ? "n bad" : "n" }, text)]; };
    return node("li", { class: "cause" }, node("span", { class: "rk" }, String(place + 1)),
      node("div", { class: "lost" }, node("b", {}, number(one.lost)), " lost", node("div", { class: "bar" }, bar)),
      node("div", {}, node("p", { class: "s" }, bdi(one.sentence)), one.evidence || quote ? node("p", { class: "ev" }, one.evidence ? bdi(one.evidence) : null, " ", quote) : null, opinionOf(one)),
      (one.versions || []).length ? node("div", { class: "vs", role: "group", "aria-label": "Lost of those that came there, by version" }, one.versions.map(version)) : node("span", {}),
      node("div", { class: "go" }, node("a", { class: "btn", href: one.href }, one.calls), one.state ? node("a", { class: "btn", href: one.state }, "State") : null));
  });
  const others = remaining.map((one) => node("li", { class: "cause rest" }, node("span", { class: "rk" }), node("span", {}, `${number(one.lost)} lost`), node("span", {}, bdi(one.sentence), opinionOf(one)), node("div", { class: "go" }, node("a", { href: one.href }, "Show them"))));
  const roughRows = rough.map((one) => { const place = index.ids.indexOf(one.conversation); return node("li", {}, place < 0 ? [bdi(one.conversation), " ", one.reason] : callRow(place, one.reason)); });
  return node("section", { "aria-label": title || "Where it breaks" },
    rest.nothing_lost ? node("p", { class: "meta" }, rest.nothing_lost) : null,
    title ? node("div", { class: "head" }, node("h2", {}, title), rest.causes_line ? node("span", { class: "dim" }, rest.causes_line) : null, screens().includes("breaks") ? node("a", { class: "more", href: "#/breaks" }, "Flow and groups") : null) : null,
    rows.length || others.length ? node("ol", { class: "card" }, rows, others) : null,
    roughRows.length ? node("ol", { class: "card list box" }, roughRows) : null);
}
