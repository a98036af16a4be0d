// Labels: one question at a time, by keyboard; what is given back is a file.
let sheet;
let at = 0;
let before = null;
let labels = new Map();
// Digits of a rating that may go on: 1 on a scale to 10.
let typed = "";

const keyOf = (row) => JSON.stringify([row.conversation, row.turn, row.rubric]);
const labelOf = (row) => labels.get(keyOf(row)) || { notes: "" };
const isRated = (row) => labelOf(row).rating !== undefined;

// What was labelled stays in this browser until it is saved; where that is not allowed, only while the page is open.
function remember() {
  try { localStorage.setItem(sheet.id, JSON.stringify({ rater: $("rater").value, labels: [...labels] })); } catch { /* not allowed here */ }
}
function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(sheet.id) || "null");
    if (kept) { labels = new Map(kept.labels); $("rater").value = kept.rater; }
  } catch { /* not allowed here */ }
}

function rate(rating) {
  const row = sheet.rows[at];
  typed = "";
  if (!row) return;
  labels.set(keyOf(row), { ...labelOf(row), rating, at: new Date().toISOString() });
  remember();
  before = at;
  const next = sheet.rows.findIndex((one, place) => place > at && !isRated(one));
  const first = sheet.rows.findIndex((one) => !isRated(one));
  at = next >= 0 ? next : first >= 0 ? first : sheet.rows.length;
  draw();
}

function undo() {
  if (before === null) return;
  typed = "";
  labels.delete(keyOf(sheet.rows[before]));
  at = before;
  before = null;
  remember();
  draw();
}

function type(row, key) {
  const begun = sheet.rubrics[row.rubric].ratings.map(String).filter((one) => one.startsWith(typed + key));
  if (!begun.length) return;
  typed += key;
  if (begun.length === 1 && begun[0] === typed) rate(Number(typed));
  else draw();
}

function step(by) {
  typed = "";
  at = Math.max(0, Math.min(sheet.rows.length, at + by));
  draw();
}

// ------------------------------------------------------------------ drawing

function draw() {
  const done = sheet.rows.filter(isRated).length;
  const bar = node("i", {});
  bar.style.width = `${(100 * done) / Math.max(1, sheet.rows.length)}%`;
  const row = sheet.rows[at];
  $("content").replaceChildren(
    node("p", { class: "dim" }, `${number(done)} of ${number(sheet.rows.length)} labelled`, row ? `, this is number ${number(at + 1)}` : ""),
    node("div", { class: "prog", role: "progressbar", "aria-label": "Labelled", "aria-valuenow": done, "aria-valuemin": 0, "aria-valuemax": sheet.rows.length }, bar),
    row ? questionOf(row) : ending(done));
  $("status").textContent = row ? sheet.rubrics[row.rubric].question : "All rows were shown.";
  const marked = document.querySelector(".w1.rated");
  if (marked) marked.scrollIntoView({ block: "nearest" });
  else scrollTo(0, 0);
}

function questionOf(row) {
  const rubric = sheet.rubrics[row.rubric];
  const label = labelOf(row);
  const goesOn = (text) => rubric.ratings.some((one) => String(one) !== text && String(one).startsWith(text));
  const button = (rating) => node("button", { type: "button", class: rating >= rubric.passes_at ? "g" : "b", "aria-pressed": String(label.rating === rating), onclick: () => rate(rating) }, `${rating >= rubric.passes_at ? "✓" : "✕"} ${rating} `, node("kbd", {}, goesOn(String(rating)) ? `${rating} ↵` : rating));
  const notes = node("textarea", { rows: "2", id: "notes", "aria-label": "Notes", placeholder: "Notes (n), if any" });
  notes.value = label.notes;
  notes.addEventListener("input", () => { labels.set(keyOf(row), { ...labelOf(row), notes: notes.value }); remember(); });
  const lines = (sheet.calls[row.conversation] || []).map(([turn, who, text, kind]) => {
    const rated = row.turn !== "" && String(turn) === row.turn && kind === rubric.speaker;
    return node("div", { class: `w1 ${kind === "agent" ? "ag" : kind === "tool" ? "tool" : ""} ${rated ? "rated" : ""}` }, node("bdi", { class: "wh" }, who), node("span", { class: "text", dir: "auto" }, text));
  });
  return node("div", { class: "lbl" },
    node("div", { class: "card" },
      node("div", { class: "ask" }, node("h1", {}, rubric.question), node("p", { class: "mut" }, row.shown ? "Rate what is shown. " : row.turn === "" ? "Rate the whole conversation. " : "Rate the turn that is marked. ", rubric.criteria)),
      node("div", { class: "words", tabindex: "0", role: "region", "aria-label": row.shown ? "What is rated" : "The conversation" }, row.shown ? node("pre", { class: "text", dir: "auto" }, row.shown) : lines),
      node("div", { class: "rate" }, node("div", { class: "keys1" }, rubric.ratings.map(button), node("button", { type: "button", onclick: () => step(1) }, "Skip ", node("kbd", {}, "s"))),
        typed !== "" ? node("p", { class: "mut" }, `${typed} … Enter rates ${typed}, another digit goes on, Esc leaves it.`) : null, notes)),
    node("aside", { class: "card", "aria-label": "About this question" },
      node("h2", {}, "This conversation"),
      node("p", { class: "mut" }, node("bdi", { class: "mono" }, row.conversation)),
      node("p", { class: "mut" }, "Chosen: ", bdi(row.chosen), "."),
      row.about.map(([name, text]) => fold(name, () => node("pre", { dir: "auto" }, text))),
      isRated(row) ? node("p", { class: "mut" }, "The judge: ", bdi(row.verdicts), ".") : node("p", { class: "mut" }, "What the judge says is hidden until you have given your label."),
      beforeOf(),
      node("h2", {}, "How to rate"), node("p", { class: "dim" }, `${rubric.title}, version ${rubric.version}; from ${rubric.passes_at} on it passes`),
      rubric.text.map(([name, text]) => node("p", { class: "rub" }, name ? [node("b", {}, name), " "] : null, text)),
      node("h2", {}, "Keys"),
      node("dl", { class: "keys" }, [[rubric.ratings.join(" "), rubric.ratings.some((one) => goesOn(String(one))) ? "rate; Enter where the number may go on" : "rate"], ["s", "skip: I cannot say"], ["← →", "previous, next"], ["u", "undo"], ["n", "notes; Esc leaves them"]].map(([key, words]) => [node("dt", {}, node("kbd", {}, key)), node("dd", {}, words)]))));
}

function beforeOf() {
  if (before === null) return null;
  const row = sheet.rows[before];
  return [node("h2", {}, "The one before"), node("p", { class: "mut" }, "You: ", node("b", {}, labelOf(row).rating), ". The judge: ", bdi(row.verdicts), ". ", node("button", { type: "button", class: "btn", onclick: undo }, "Undo"))];
}

function ending(done) {
  return node("div", { class: "card ask" }, node("h1", {}, `${number(done)} of ${number(sheet.rows.length)} labelled.`),
    node("p", { class: "mut" }, "Save them, then: ", node("code", {}, "convoscope judge calibrate RUN --labels labels.csv")),
    node("p", {}, node("button", { type: "button", class: "btn", onclick: () => step(-1) }, "Back ", node("kbd", {}, "←"))));
}

// ------------------------------------------------------------------ the file

function given() {
  const rater = $("rater").value.trim();
  return sheet.rows.filter(isRated).map((row) => ({ conversation: row.conversation, turn: row.turn, rubric: row.rubric, version: sheet.rubrics[row.rubric].version, rating: labelOf(row).rating, rater, notes: labelOf(row).notes, chosen: row.chosen }));
}

// No spreadsheet shall take a cell for a formula.
const safe = (text) => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
const cell = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

function save(name, text) {
  const link = node("a", { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const saveCsv = () => save("labels.csv", [sheet.columns, ...given().map((row) => sheet.columns.map((name) => safe(String(row[name]))))].map((cells) => `${cells.map(cell).join(",")}\n`).join(""));
const saveJson = () => save("labels.jsonl", given().map((row) => `${JSON.stringify(row)}\n`).join(""));

// ------------------------------------------------------------------ keys

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const row = sheet.rows[at];
  if (row && /^\d$/.test(event.key)) type(row, event.key);
  else if (row && event.key === "Enter" && typed !== "" && sheet.rubrics[row.rubric].ratings.map(String).includes(typed)) rate(Number(typed));
  else if (event.key === "Escape" && typed !== "") step(0);
  else if (event.key === "ArrowRight" || event.key === "s") step(1);
  else if (event.key === "ArrowLeft") step(-1);
  else if (event.key === "u") undo();
  else if (event.key === "n" && $("notes")) $("notes").focus();
  else return;
  event.preventDefault();
}

async function start() {
  sheet = await unpack("data");
  $("run").textContent = sheet.run;
  recall();
  $("rater").addEventListener("input", remember);
  $("csv").addEventListener("click", saveCsv);
  $("jsonl").addEventListener("click", saveJson);
  theme();
  document.addEventListener("keydown", press);
  at = Math.max(0, sheet.rows.findIndex((row) => !isRated(row)));
  draw();
  document.documentElement.dataset.ready = "";
}
start().catch((error) => { $("content").append(node("p", { class: "banner" }, `The page cannot be shown: ${error.message}`)); });
