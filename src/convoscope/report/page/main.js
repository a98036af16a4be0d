// ------------------------------------------------------------------ where we are

const TITLES = { overview: "Overview", metrics: "Metrics", judges: "Judges", breaks: "Where it breaks", calls: "", compare: "Compare", live: "Live" };
const screens = () => ["overview", "metrics", facts.breaks.flow || (facts.breaks.groups || []).length || facts.breaks.alike || (facts.breaks.panels || []).length ? "breaks" : null, "calls", facts.compare ? "compare" : null, facts.live ? "live" : null].filter(Boolean);
let step = 0;
let left = "";

async function route() {
  const mine = (step += 1);
  const hash = location.hash;
  // The skip link: whatever is open stays so.
  if (hash === "#content") { $("content").focus(); return; }
  const [path, query = ""] = hash.slice(2).split(/\?(.*)/s);
  const [screen, ...rest] = path.split("/").map(decoded);
  const alone = facts.total === 1 && !hash ? index.ids[0] : undefined;
  const name = alone !== undefined ? "call" : screen === "call" ? "call" : screens().includes(screen) || (screen === "judges" && facts.judges) ? screen : hash ? "overview" : facts.opens || "overview";
  // A time of the call that is open: the recording goes there, and the call stays as it is.
  if (name === "call" && player && rest[1] !== undefined && $("content").dataset.screen === "call" && index.ids[opened.place] === rest[0] && opened.place >= 0 && !rest[1].startsWith("event-")) {
    aim(lineAt(opened.call, Number(rest[1])));
    player.seek(Number(rest[1]));
    return;
  }
  closePlayer();
  const parts = name === "call" ? await callScreen(alone === undefined ? rest[0] || "" : alone, rest[1])
    : name === "compare" ? await compareScreen(rest[0], query)
    : { overview: overviewScreen, metrics: () => figuresScreen(rest[0]), judges: judgesScreen, breaks: () => breaksScreen(rest[0], rest[1], query), calls: () => callsScreen(query), live: liveScreen }[name]();
  if (mine !== step) return;
  const main = $("content");
  const same = main.dataset.screen === name && name !== "call" && name !== "compare";
  main.dataset.screen = name;
  main.className = name === "calls" || (name === "compare" && rest[0]) ? "wide" : "";
  main.replaceChildren(...parts.flat(Infinity).filter(Boolean));
  tabs({ call: "calls", judges: "metrics" }[name] || name);
  document.title = name === "call" ? `${decoded(rest[0] || alone || "")} · ${facts.name}` : title;
  if (name === "calls") refreshList();
  if (facts.live && $("age")) refreshLive();
  if (name === "breaks") seeChosen();
  if (name === "metrics" && rest[0] && innerWidth >= 1180) main.querySelector("tr.sel")?.scrollIntoView({ block: "nearest" });
  else if (!same || name === "overview") { if (!(name === "call" && rest[1])) scrollTo(0, 0); }
  if (left !== "" && !same) main.focus({ preventScroll: true });
  left = name;
}

// An address is typed by anybody: what cannot be read stands for itself.
function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function tabs(current) {
  const phone = { breaks: "Breaks" };
  $("tabs").replaceChildren(...screens().map((name) => node("a", { href: name === "calls" ? filterHash() : `#/${name}`, "aria-current": name === current ? "page" : null },
    phone[name] ? [node("span", { class: "wide-only" }, TITLES[name]), node("span", { class: "phone-only" }, phone[name])] : TITLES[name] || capital(nouns()),
    name === "calls" ? node("span", { class: "ct" }, number(facts.total)) : null)));
}

function keys(event) {
  // AltGr writes [ and ] on many keyboards.
  if ((event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph")) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing && event.key === "Escape") { event.target.blur(); return; }
  if (typing) return;
  const screen = $("content").dataset.screen;
  const press = (id) => { const target = $(id); if (target) { event.preventDefault(); location.hash = target.getAttribute("href"); } };
  if (event.key === "?") { $("keys").showModal(); }
  else if ($("keys").open) return;
  else if (screen === "call" && player && player.key(event)) event.preventDefault();
  else if (/^[1-467]$/.test(event.key)) { const name = ["overview", "metrics", "breaks", "calls", "", "compare", "live"][event.key - 1]; if (screens().includes(name)) location.hash = name === "calls" ? filterHash() : `#/${name}`; }
  else if (event.key === "5" && index.ids.length) location.hash = linkTo(opened.place < 0 ? 0 : opened.place);
  else if (event.key === "/") {
    event.preventDefault();
    const search = document.querySelector("input[type=search]");
    if (search) search.focus();
    else { location.hash = filterHash(); setTimeout(() => $("search") && $("search").focus(), 50); }
  }
  else if (screen === "calls" && (event.key === "j" || event.key === "k")) moveRow(event.key === "j" ? 1 : -1);
  else if (screen === "calls" && event.key === "Enter" && list.shown.length && !event.target.closest("a, button")) location.hash = linkTo(list.shown[list.at]);
  else if (/^(call|compare)$/.test(screen) && event.key === "j") press("next");
  else if (/^(call|compare)$/.test(screen) && event.key === "k") press("previous");
  else if (/^(call|compare)$/.test(screen) && event.key === "Escape") press("back");
  else if (/^(metrics|judges)$/.test(screen) && event.key === "Escape") location.hash = "#/metrics";
  else if (screen === "breaks" && event.key === "Escape") location.hash = "#/overview";
}

let title;
async function start() {
  title = document.title;
  theme();
  tips();
  const [all, listing, words] = await Promise.all(["facts", "index", "bounds"].map(unpack));
  facts = all;
  ({ index } = listing);
  full = new Set(listing.full);
  news = facts.live;
  bounds = words;
  $("run").textContent = facts.name;
  $("help").addEventListener("click", () => $("keys").showModal());
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", route);
  addEventListener("resize", () => drawRows());
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) { if (one.fill) one.fill(); one.open = true; }
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
  await route();
  followLogs();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  $("content").append(node("p", { class: "banner" }, typeof DecompressionStream === "undefined"
    ? "This browser is too old to unfold the page. `convoscope show` prints the same." : `The page cannot be shown: ${error.message}`));
});
