// ------------------------------------------------------------------ to listen

// The call that can be heard. Nothing of its recording is loaded before the first click.
let player = null;
const SPEEDS = [0.75, 1, 1.25, 1.5, 2];
const STEP = 5;

function closePlayer() {
  if (player) player.close();
  player = null;
}

// Plays the files of a recording on one clock, that of the lanes, and moves what shows where it is.
function listen(call, figure, timeline, low, high) {
  const { files, marks = [] } = call.sound;
  const spans = (timeline ? timeline.lanes : []).filter((lane) => lane.kind === "speaker").flatMap((lane) => lane.spans || []).sort((a, b) => a.start - b.start);
  const states = (timeline ? timeline.lanes : []).filter((lane) => lane.kind === "states").flatMap((lane) => lane.spans || []);
  const lineOfSeq = new Map((call.lines || []).map((line, at) => [line.kind === "words" ? line.seq : -1, at]));
  const jumps = [...new Set(marks.map((mark) => mark[1]))].sort((a, b) => a - b);
  const audios = [];
  let [words, parts] = [[], []];
  let [second, speed, timer, last, follows, current] = [Math.max(low, files[0].start), 1, 0, 0, true, -1];

  const within = (at) => files[at].start <= second && second < files[at].start + files[at].seconds;
  const problem = node("p", { class: "bad small", role: "status", hidden: true });
  const say = (words) => { problem.textContent = words; problem.hidden = false; };
  const audioOf = (at) => {
    if (audios[at]) return audios[at];
    const { src, inside, type, name } = files[at];
    const audio = node("audio", { preload: "auto" });
    audio.src = inside === undefined ? src : URL.createObjectURL(new Blob([Uint8Array.from(atob($(`sound-${inside}`).textContent), (letter) => letter.charCodeAt(0))], { type }));
    audio.addEventListener("error", () => { stop(); say(`The browser cannot play ${name}: ${audio.error && audio.error.code === 2 ? "loading failed" : "the file is not there, or its format is unknown to the browser"}.`); });
    audio.addEventListener("loadedmetadata", () => { if (Math.abs(audio.currentTime - audio.wanted) > 0.1) audio.currentTime = audio.wanted; });
    // A server without byte ranges gives the file from its beginning only.
    audio.addEventListener("seeked", () => { if (audio.wanted - audio.currentTime > 1) { stop(); say(`${name} cannot be played from here: the server of this page does not send parts of files (HTTP Range).`); } });
    figure.append(audio);
    audios[at] = audio;
    return audio;
  };
  const put = (at) => { const audio = audioOf(at); audio.wanted = second - files[at].start; audio.currentTime = audio.wanted; audio.playbackRate = SPEEDS[speed]; };
  const stop = () => { clearInterval(timer); timer = 0; for (const audio of audios) if (audio) audio.pause(); paint(); };

  function tick() {
    let lead = -1;
    files.forEach((file, at) => {
      const audio = audios[at];
      if (!within(at) || (audio && audio.ended)) { if (audio && !audio.paused) audio.pause(); return; }
      if (!audio || audio.paused) {
        if (!audio || Math.abs(audio.currentTime + file.start - second) > 0.05) put(at);
        audioOf(at).play().catch((error) => { if (error.name === "NotAllowedError") stop(); });
      } else if (lead >= 0 && Math.abs(audio.currentTime + file.start - second) > 0.2) put(at);
      if (lead < 0) lead = at;
    });
    const now = performance.now();
    // While a file loads, time stands still; where no file has sound, it goes on by itself.
    if (lead < 0) second += ((now - last) / 1000) * SPEEDS[speed];
    else if (audios[lead].readyState) second = files[lead].start + audios[lead].currentTime;
    last = now;
    if (second >= high - 0.02) { second = high; stop(); } else paint();
  }
  function start() {
    if (timer) return;
    if (second >= high - 0.02) second = low;
    problem.hidden = true;
    last = performance.now();
    timer = setInterval(tick, 50);
    tick();
  }
  function seek(to) {
    second = Math.max(low, Math.min(high, to));
    audios.forEach((audio, at) => { if (audio && within(at)) put(at); else if (audio) audio.pause(); });
    paint(true);
  }

  // ---------------------------------------------------------------- what shows where it is

  const button = (label) => node("button", { type: "button", class: "play", "aria-label": label, onclick: () => (timer ? stop() : start()) });
  const [large, small] = [button("Play"), button("Play")];
  const [clock, slimClock, where] = [node("b", { id: "now" }), node("b"), node("bdi", { class: "dim" })];
  const rate = node("select", { "aria-label": "Speed" }, SPEEDS.map((one, at) => node("option", { value: at, selected: one === 1 }, `${one}×`)));
  rate.addEventListener("change", () => pace(Number(rate.value)));
  const pace = (to) => { speed = Math.max(0, Math.min(SPEEDS.length - 1, to)); rate.value = speed; for (const audio of audios) if (audio) audio.playbackRate = SPEEDS[speed]; };
  const follow = node("button", { type: "button", class: "btn on", "aria-pressed": "true", onclick: () => { follows = !follows; follow.setAttribute("aria-pressed", follows); follow.classList.toggle("on", follows); } }, "Follow");
  const key = (name) => node("kbd", {}, name);
  figure.prepend(node("div", { class: "player" }, large, node("span", { class: "now" }, clock, node("span", { class: "dim" }, ` / ${clockOf(high, true)}`)), rate, spans.length ? follow : null,
    node("span", { class: "dim hint wide-only" }, key("Space"), " play ", key("←"), key("→"), ` ${STEP} s `, jumps.length ? [key("["), key("]"), " mark "] : null, key(","), key("."), " speed")), problem);
  const strip = node("div", { class: "lane wv" }, waveOf(call.sound.waves, files, low, high, 300, () => "m"), node("div", { class: "ph" }, node("i")));
  for (const to of jumps.slice(0, 120)) { const at = node("i", { class: "tick" }); at.style.left = `${(100 * (to - low)) / (high - low)}%`; strip.append(at); }
  const slim = node("div", { class: "slim", hidden: true }, small, slimClock, strip, where);
  figure.append(slim);

  const shape = (playing) => drawn("svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" }, drawn("path", { d: playing ? "M2.5 2h3v10h-3zM8.5 2h3v10h-3z" : "M3.5 1.5v11l9-5.5z" }));
  let drawnAs = null;
  function paint(jumped) {
    const share = high > low ? (100 * (second - low)) / (high - low) : 0;
    for (const one of figure.querySelectorAll(".ph i")) one.style.left = `${share}%`;
    clock.textContent = slimClock.textContent = clockOf(second > -0.5 ? Math.max(0, second) : second, true);
    if (drawnAs !== Boolean(timer)) {
      drawnAs = Boolean(timer);
      for (const one of [large, small]) { one.replaceChildren(shape(drawnAs)); one.setAttribute("aria-label", drawnAs ? "Pause" : "Play"); }
    }
    const state = states.filter((one) => one.start <= second).pop();
    where.textContent = state ? state.label : "";
    // The turn that began last, unless it is over and an earlier one goes on.
    let says = null;
    for (const span of spans) {
      if (span.start > second + 0.01) break;
      if (!says || span.end === undefined || second < span.end || says.end <= second) says = span;
    }
    const line = says && lineOfSeq.has(says.seq) ? lineOfSeq.get(says.seq) : -1;
    if (line !== current || jumped) tint(line, jumped);
    parts.forEach((part, place) => part.classList.toggle("on", Boolean(words[place]) && words[place][0] <= second && second < words[place][1]));
  }
  // The words of a turn as elements, where their times are known.
  function split(target, line) {
    words = (call.lines[line].three || {}).words || [];
    parts = [];
    const text = target.querySelector(".text");
    if (!text || !words.length) return;
    if (!text.querySelector(".w")) {
      const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
      const found = [];
      while (walker.nextNode()) found.push(walker.currentNode);
      for (const one of found) one.replaceWith(...one.data.split(/(\s+)/).filter(Boolean).map((part) => (part.trim() ? node("span", { class: "w" }, part) : part)));
    }
    const made = [...text.querySelectorAll(".w")];
    if (made.length === words.length) parts = made;
  }
  function tint(line, jumped) {
    current = line;
    for (const part of parts) part.classList.remove("on");
    [words, parts] = [[], []];
    for (const one of document.querySelectorAll(".tu.now, .tc.now")) one.classList.remove("now");
    if (line < 0) return;
    const moves = follows && (timer || jumped);
    if (moves && (line < opened.from || line >= opened.from + WINDOW)) drawLines($("turns"), opened.call, opened.place, Math.floor(line / WINDOW) * WINDOW);
    const target = $(`line-${line}`);
    if (!target) return;
    target.classList.add("now");
    split(target, line);
    const box = target.getBoundingClientRect();
    if (moves && timer && (box.top < 120 || box.bottom > innerHeight - 70)) target.scrollIntoView({ block: "center" });
  }

  // ---------------------------------------------------------------- how it is reached

  figure.addEventListener("click", ({ target, clientX }) => {
    const lane = target.closest(".lane");
    const mark = target.closest("[data-second]");
    if (mark) player.play(Number(mark.dataset.second));
    else if (lane) { const box = lane.getBoundingClientRect(); player.play(low + ((clientX - box.left) / box.width) * (high - low)); }
  });
  // A click leaves the focus where it is: Space goes on to mean play.
  figure.addEventListener("mousedown", (event) => { if (event.target.closest("button")) event.preventDefault(); });
  const observer = new IntersectionObserver(([seen]) => { slim.hidden = seen.isIntersecting; }, { rootMargin: "-60px 0px 100000px 0px" });
  observer.observe(figure.querySelector(".sc"));

  closePlayer();
  player = {
    now: () => second,
    knowsTimes: Boolean(timeline),
    play(to) { seek(to); start(); },
    seek,
    key({ key: pressed, target }) {
      const beyond = jumps.filter((one) => (pressed === "]" ? one > second + 0.05 : one < second - 0.3));
      if (pressed === " ") { if (target.closest("button, summary")) return false; if (timer) stop(); else start(); }
      else if (pressed === "ArrowLeft" || pressed === "ArrowRight") seek(second + (pressed === "ArrowLeft" ? -STEP : STEP));
      else if (pressed === "[" || pressed === "]") { if (beyond.length) seek(pressed === "]" ? beyond[0] : beyond[beyond.length - 1]); }
      else if (pressed === "," || pressed === ".") pace(speed + (pressed === "," ? -1 : 1));
      else return false;
      return true;
    },
    close() { stop(); observer.disconnect(); for (const audio of audios) if (audio) { audio.removeAttribute("src"); audio.load(); } },
  };
  paint();
}

// To go to a line is to hear it, where there is sound.
function listenTo(line) {
  const { at } = (opened.call.lines || [])[line] || {};
  aim(line);
  if (player && player.knowsTimes && at !== undefined) player.play(at);
}

function hearFrom(article, place) {
  article.classList.add("hear");
  article.addEventListener("click", (event) => {
    if (!player || !player.knowsTimes || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("a");
    const address = `${linkTo(place)}/`;
    if (link && (link.getAttribute("href") || "").startsWith(address)) {
      const second = Number(link.getAttribute("href").slice(address.length));
      if (Number.isNaN(second)) return;
      event.preventDefault();
      history.replaceState(null, "", link.getAttribute("href"));
      aim(lineAt(opened.call, second));
      player.play(second);
      return;
    }
    const turn = event.target.closest(".tu");
    const { at } = (turn && opened.call.lines[Number(turn.id.slice(5))]) || {};
    if (at !== undefined && !event.target.closest("a, button, summary, details") && !String(getSelection())) player.play(at);
  });
}

