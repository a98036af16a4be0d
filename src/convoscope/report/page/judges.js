// ------------------------------------------------------------------ judges

// Figures and the judges behind them are two sides of one screen.
const metricsSwitch = (on) => (facts.judges ? node("div", { class: "seg" }, [["metrics", `Figures ${number(facts.figures.measured)}`], ["judges", `Judges ${number(facts.judges.judges)}`]].map(([name, words]) => node("a", { class: `btn ${name === on ? "on" : ""}`, href: `#/${name}`, "aria-current": name === on ? "true" : null }, words))) : null);

function judgesScreen() {
  const { line, why, totals = [], rows = [], apart = [], queue = [], ...rest } = facts.judges;
  const none = (text, reason) => (text ? text : dot(reason));
  const row = (one) => node("tr", {},
    node("th", { scope: "row" }, node("a", { href: `#/metrics/${encodeURIComponent(one.name)}` }, bdi(one.label))),
    node("td", { class: "mono" }, bdi(one.judge)),
    node("td", { class: "n" }, solid(one.value)),
    node("td", { class: "n" }, one.thin ? node("b", {}, one.coverage) : one.coverage),
    node("td", { class: "n" }, none(one.agrees, "no labels")),
    node("td", {}, one.bar ? node("span", { class: "kap" }, intervalBar(one.bar, one.tone === "good" ? "met" : ""), node("b", { class: "n" }, one.kappa)) : dot("no labels")),
    node("td", { class: "n" }, one.labels),
    node("td", { class: "n" }, none(one.passes, "no labels")),
    node("td", { class: "n" }, none(one.fails, "no labels")),
    node("td", { class: "n" }, none(one.took, "the server did not say")),
    node("td", {}, one.tone ? node("b", { class: one.tone }, "✓ ", one.state) : one.state));
  const differ = ([id, label, says]) => { const place = index.ids.indexOf(id); return node("tr", {}, node("th", { scope: "row" }, place < 0 ? bdi(id) : node("a", { href: linkTo(place) }, bdi(id))), node("td", {}, bdi(label)), node("td", {}, bdi(says))); };
  return [
    node("div", { class: "head" }, node("h1", {}, "Can these judges be believed?")),
    metricsSwitch("judges"),
    node("p", { class: "verdict v2" }, node("b", {}, line), " ", bdi(why || "")),
    node("dl", { class: "card jfacts" }, totals.map(([name, value, note]) => node("div", {}, node("dt", {}, name), node("dd", {}, node("b", {}, value), node("span", { class: "dim" }, note))))),
    node("section", { "aria-label": "Calibration" }, node("div", { class: "head" }, node("h2", {}, "Calibration"), node("span", { class: "dim" }, "against labels of people")),
      node("div", { class: "card box jt" }, table(["figure", "judge", "value", "coverage", "agrees", "κ, 0 to 1", "labels", "passes, people: fail", "fails, people: pass", "took", "state"], rows.map(row), { label: "Calibration" })),
      node("p", { class: "dim" }, "Calibrated: at least 50 labels, and the whole interval of κ above 0.4, unless other marks were asked for. κ is agreement beyond chance. What is not calibrated enters no verdict and has no colour.")),
    node("section", { "aria-label": "Disagreements" }, node("div", { class: "head" }, node("h2", {}, "Disagreements to look at"), node("span", { class: "dim" }, coded(rest.apart_line))),
      apart.length ? node("div", { class: "card box" }, table([capital(facts.noun), "what", "ratings"], apart.map(differ), { label: "Disagreements" })) : null),
    queue.length ? node("section", { "aria-label": "Worth labelling" }, node("div", { class: "head" }, node("h2", {}, "Worth labelling"), node("span", { class: "dim" }, "a third at random, else κ is biased")),
      node("div", { class: "card box" }, node("ul", {}, queue.map(([count, words, of]) => node("li", {}, node("b", {}, number(count)), " ", words, node("span", { class: "dim" }, " ", of)))), node("p", {}, node("code", {}, bdi(rest.command)), facts.where || ""))) : null,
  ];
}
