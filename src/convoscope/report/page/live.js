// ------------------------------------------------------------------ logs that are followed

let news;
// The rows that are shown; new ones wait while somebody points into the list.
let rows = [];

const ago = (since) => { const minutes = Math.max(0, Math.round((Date.now() / 1000 - since) / 60)); return minutes ? `${minutes} min` : "less than a minute"; };
const clock = (at) => new Date(at * 1000).toTimeString().slice(0, 5);
const said = () => {
  if (news.ended) return `The watch ended at ${clock(news.written)}. `;
  if (Date.now() / 1000 - news.written > 2 * news.renewed) return `Watch has written nothing since ${clock(news.written)}. `;
  return stalledFor();
};
const stalledFor = () => (news.newest && Date.now() / 1000 - news.newest >= news.stalled ? `No new line for ${ago(news.newest)}. ` : "");
const isPointed = () => ["hover", "focus-within"].some((state) => $("arrivals") && $("arrivals").matches(`:${state}`));
const rowKey = (row) => `${row.at} ${row.id}`;

// How old the page is; what came since waits for a click, as it would throw a reader out of what he reads.
function ageLine() {
  const came = news.total - facts.live.total;
  const isNew = news.run !== facts.live.run;
  $("age").hidden = $("content").dataset.screen === "live";
  const text = `${said()}As of ${clock(facts.live.written)}, ${ago(facts.live.written)} ago.`;
  $("age").replaceChildren(text, ...(isNew ? [` ${came > 0 ? counted(came, `new ${facts.noun}`) : "The figures have changed"}, `, node("button", { class: "btn", type: "button", id: "renew", onclick: renew }, "show")] : []));
}

function renew() {
  try { sessionStorage.setItem("convoscope-scroll", scrollY); } catch { /* a browser without storage begins at the top */ }
  location.reload();
}

function liveScreen() {
  rows = news.calls;
  return [node("h1", { class: "verdict", id: "lasthour" }), node("p", { class: "dim", id: "lag" }), node("ul", { id: "missed" }),
    node("p", { id: "waiting", "aria-live": "polite" }), node("div", { id: "arrivals" })];
}

// What is on the screen becomes the news, without a blink: only texts that changed.
function refreshLive() {
  ageLine();
  if ($("content").dataset.screen !== "live") return;
  const shown = new Set(rows.map(rowKey));
  const came = news.calls.filter((row) => !shown.has(rowKey(row))).length;
  const waits = came > 0 && isPointed();
  if (!waits) rows = news.calls;
  say("lasthour", solid(`${said()}${capital(news.answer || `Nothing yet: following ${news.logs}`)}.`));
  const running = news.running ? ` ${counted(news.running, facts.noun)} ${news.running === 1 ? "goes" : "go"} on: not counted.` : "";
  say("lag", solid(news.newest ? `Newest line ${clock(news.newest)}, read ${clock(news.written)}.${running}${news.ended ? "" : ` Looked for every ${counted(Math.round(news.every), "second")}.`}` : `No log yet in ${news.logs}.`));
  const missed = news.targets.join("\n");
  if ($("missed").dataset.of !== missed) { $("missed").dataset.of = missed; $("missed").replaceChildren(...news.targets.map((text) => node("li", { class: "bad" }, solid(text)))); }
  $("waiting").replaceChildren(...(waits ? [`${counted(came, `new ${facts.noun}`)}, `, node("button", { class: "btn", type: "button", onclick: () => { rows = news.calls; drawArrivals(); $("waiting").replaceChildren(); } }, "show")] : []));
  drawArrivals();
}

function say(id, text) { if ($(id).textContent !== text) $(id).textContent = text; }

const WORDS = { done: "good", lost: "bad" };
function drawArrivals() {
  const key = rows.map(rowKey).join("\n");
  if ($("arrivals").dataset.of === key) return;
  $("arrivals").dataset.of = key;
  const link = (row) => (index.ids.includes(row.id) ? node("a", { href: linkTo(index.ids.indexOf(row.id)) }, bdi(row.id)) : bdi(row.id));
  $("arrivals").replaceChildren(rows.length ? node("table", { class: "arrivals" }, rows.map((row) => node("tr", {}, node("td", {}, clock(row.at)),
    node("td", { class: WORDS[row.word] || "" }, row.word), node("td", {}, link(row)), node("td", {}, bdi(row.text)), node("td", {}, bdi(row.agent)), node("td", {}, row.length))))
    : node("p", { class: "dim" }, `No ${facts.noun} ended within the last hour.`));
}

// News lie beside the page, in a file that hands them over. Where there is none, the age says so.
let frame;
function lookForNews() {
  if (frame) frame.remove();
  frame = node("iframe", { src: `live.html?${Date.now()}`, hidden: true, sandbox: "allow-scripts", title: "news" });
  document.body.append(frame);
}

function followLogs() {
  if (!facts.live) return;
  $("content").before(node("p", { class: "age", id: "age" }));
  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow || typeof event.data !== "object" || event.data.written < news.written) return;
    news = event.data;
    refreshLive();
  });
  setInterval(lookForNews, 1000 * facts.live.every);
  setInterval(refreshLive, 1000 * Math.min(20, facts.live.every));
  refreshLive();
  lookForNews();
  try { scrollTo(0, Number(sessionStorage.getItem("convoscope-scroll")) || 0); sessionStorage.removeItem("convoscope-scroll"); } catch { /* as above */ }
}
