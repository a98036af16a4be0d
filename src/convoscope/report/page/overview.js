// ------------------------------------------------------------------ the overview

function overviewScreen() {
  const { verdict, meta, outcomes = [], cards = [], notes = [], causes = [], remaining = [], rough = [], folds = [], ...rest } = facts.overview;
  const part = (one) => { const made = node("a", { class: one.kind, href: one.href, "aria-label": `${number(one.count)} ${one.label}`, "data-tip": `${number(one.count)} ${one.label}` }); made.style.flexGrow = one.count; return made; };
  return [
    rest.banner ? node("p", { class: "banner", role: "alert" }, rest.banner) : null,
    node("h1", { class: "verdict" }, verdict.map((clause) => [node("b", {}, bdi(clause.lead)), clause.rest ? node("span", { class: clause.tone || "" }, bdi(clause.rest)) : null, " "])),
    meta ? node("p", { class: "meta" }, meta) : null,
    outcomes.length ? node("div", { class: "ob" }, outcomes.map(part)) : null,
    outcomes.length ? node("ul", { class: "obl" }, outcomes.map((one) => node("li", {}, node("a", { href: one.href }, node("i", { class: one.kind }), node("b", {}, number(one.count)), ` ${one.label}`)))) : null,
    cards.length ? node("section", { "aria-label": "Key figures" },
      node("div", { class: "head" }, node("h2", {}, "Key figures"), node("span", { class: "dim" }, rest.cards_line), node("a", { class: "more", href: "#/metrics" }, "All figures")),
      node("div", { class: "cards" }, cards.map(card))) : null,
    notes.map((note) => node("p", { class: "meta", dir: "auto" }, coded(note))),
    causesOf(causes, remaining, rough, rest),
    node("section", { "aria-label": "What is not here" }, folds.map((one) => fold([coded(one.line)], () => node("ul", { class: "in" }, one.lines.map((line) => node("li", { dir: "auto" }, coded(line)))), { class: "fold" }))),
    node("p", { class: "ft" }, rest.footer, " This page holds conversations: whoever has it can read them. It asks nothing of the network."),
  ];
}

function card(one) {
  const last = one.target ? [`target ${one.target} `, verdictOf(one.verdict), one.remark ? `, ${one.remark}` : ""] : one.remark || "no target";
  return node("a", { class: "card kf", href: `#/metrics/${encodeURIComponent(one.name)}` },
    node("span", { class: "l" }, one.label),
    node("span", { class: "row" }, node("span", { class: `big ${TONES[one.verdict] || (one.bad ? "bad" : "")}` }, one.value, one.unit ? node("small", {}, ` ${one.unit}`) : null), spreadOf(one.spread)),
    intervalBar(one.bar, one.verdict),
    node("span", { class: "f" }, node("span", {}, one.interval || "no interval"), node("span", {}, `n ${one.n}`, one.coverage ? [", ", node("b", {}, `${one.coverage} covered`)] : null)),
    node("span", { class: "t" }, last));
}

function causesOf(causes, remaining, rough, rest) {
  const title = causes.length || remaining.length ? "Where it breaks" : rough.length ? (facts.order.startsWith("trials") ? "Where trials disagree" : "What was slow or rough") : "";
  if (!title && !rest.nothing_lost) return null;
  const rows = causes.map((one, place) => {
    const bar = node("i", {});
    bar.style.width = `${one.share}%`;
    const evidence = one.evidence && (one.example ? node("a", { href: one.example }, bdi(one.evidence)) : bdi(one.evidence));
    return node("li", { class: "cause" }, node("span", { class: "rk" }, String(place + 1)),
      node("div", { class: "lost" }, node("b", {}, number(one.lost)), " lost", node("div", { class: "bar" }, bar)),
      node("div", {}, node("p", { class: "s" }, bdi(one.sentence)), evidence ? node("p", { class: "ev" }, evidence) : null),
      node("div", { class: "go" }, node("a", { class: "btn", href: one.href }, one.calls), one.state ? node("a", { class: "btn", href: one.state }, "State") : null));
  });
  const others = remaining.map((one) => node("li", { class: "cause rest" }, node("span", { class: "rk" }), node("span", {}, `${number(one.lost)} lost`), node("span", {}, bdi(one.sentence)), node("div", { class: "go" }, node("a", { href: one.href }, "Show them"))));
  const roughRows = rough.map((one) => { const place = index.ids.indexOf(one.conversation); return node("li", {}, place < 0 ? [bdi(one.conversation), " ", one.reason] : callRow(place, one.reason)); });
  return node("section", { "aria-label": title || "Where it breaks" },
    rest.nothing_lost ? node("p", { class: "meta" }, rest.nothing_lost) : null,
    title ? node("div", { class: "head" }, node("h2", {}, title), rest.causes_line ? node("span", { class: "dim" }, rest.causes_line) : null, screens().includes("breaks") ? node("a", { class: "more", href: "#/breaks" }, "Flow and groups") : null) : null,
    rows.length || others.length ? node("ol", { class: "card" }, rows, others) : null,
    roughRows.length ? node("ol", { class: "card list box" }, roughRows) : null);
}
