// ------------------------------------------------------------------ lanes

const clockOf = (seconds, tenths) => { const whole = Math.round(Math.abs(seconds) * (tenths ? 10 : 1)) / (tenths ? 10 : 1); return `${seconds < 0 && whole ? "−" : ""}${Math.floor(whole / 60)}:${(whole % 60).toFixed(tenths ? 1 : 0).padStart(tenths ? 4 : 2, "0")}`; };
const MARK_NAMES = { overlap: "overlap", dropout: "dropout", click: "click", clipping: "clipping", barge_in_lost: "barge-in lost", not_in_log: "not in the log", not_in_sound: "no sound", cut_off: "cut off?", silence: "silence", breakage: "breakage", words: "heard otherwise", pronunciation: "pronounced otherwise" };
const markName = (kind) => MARK_NAMES[kind] || kind.replaceAll("_", " ");
const manyOf = (kind) => ({ click: "clicks", clipping: "moments of clipping", silence: "silences", breakage: "breaks", barge_in_lost: "barge-ins lost" })[kind] || (/^(overlap|dropout)$/.test(kind) ? `${kind}s` : markName(kind));
const SHAPED = /^(overlap|dropout|click|clipping|breakage|barge_in_lost|not_in_log|not_in_sound|cut_off|silence)$/;
const shapeOf = (kind) => (SHAPED.test(kind) ? kind : "other");

function lanesOf(call, place, still) {
  const sound = still ? null : call.sound;
  const { timeline } = call;
  const problem = sound && sound.problem ? node("p", { class: "banner", role: "status" }, bdi(sound.problem)) : null;
  const heard = sound && sound.waves ? sound : null;
  // A recording that begins at an unknown moment of the log has a clock of its own.
  const apart = heard && timeline && sound.apart;
  const figures = [];
  if (apart || (heard && !timeline)) figures.push(laneFigure(call, null, heard, still, sound.caption));
  if (timeline) figures.push(laneFigure(call, timeline, apart ? null : heard, still, apart ? "drawn from the times of the log" : sound ? sound.caption : ""));
  if (!figures.length) figures.push(node("p", { class: "meta" }, call.caption));
  if (sound) figures[0].append(...[chipRow(call, sound)].filter(Boolean));
  return [problem, figures];
}

function laneFigure(call, timeline, sound, still, caption) {
  const { silences = [] } = call;
  const { lanes = [], overlaps = [], tracks = [] } = timeline || {};
  const { waves = [], marks = [], quality = [], files = [] } = sound || {};
  const low = Math.min(0, ...files.map((file) => file.start));
  const high = Math.max(timeline ? timeline.length : 0, ...files.map((file) => file.start + file.seconds));
  const length = high - low;
  const size = (seconds) => (length ? (100 * seconds) / length : 0);
  const scale = (second) => size(second - low);
  const failed = new Set(call.failed || []);
  const putIn = (track) => (start, end, style, label, tip) => {
    const bar = node("i", { class: style, "data-tip": tip }, label || "");
    bar.style.left = `${Math.min(99.6, scale(start))}%`;
    bar.style.width = `${Math.max(0.3, Math.min(100, scale(end)) - Math.min(99.6, scale(start)))}%`;
    if (!sound && !still) bar.addEventListener("click", () => aim(lineAt(call, start)));
    track.append(bar);
  };
  const both = [...overlaps.map((one) => [one.start, one.end]), ...marks.filter(([kind]) => kind === "overlap").map(([, start, end]) => [start, end])];
  const isIn = (spans) => (second) => spans.some(([start, end]) => start <= second && second < end);
  const says = (role) => isIn(lanes.filter((lane) => lane.kind === "speaker" && lane.role === role).flatMap((lane) => lane.spans || []).filter((span) => span.end !== undefined).map((span) => [span.start, span.end]));
  const [agent, caller, over] = [says("assistant"), says("user"), isIn(both)];
  // One channel has all voices: the times of the log say whose a moment is.
  const sides = (second) => (agent(second) === caller(second) ? "m" : agent(second) ? "a" : "u");
  const colours = (role) => (second) => (over(second) ? "x" : role === "assistant" ? "a" : role === "user" ? "u" : "m");
  const bars = Math.max(420, 0.4 * Math.min(4000, 2.6 * length));
  const first = !waves.length ? undefined : sound.apart ? 0 : waves[0].lane;
  const marksOf = (put, at) => {
    for (const [kind, start, end, text, lane] of marks) if ((lane === null && kind === "silence" ? at : lane === null ? first : lane) === at && kind !== "overlap") put(start, end, `mark ${shapeOf(kind)}`, "", `${markName(kind)}${text ? `: ${text}` : ""}, ${clockOf(start, true)}`);
  };
  const silent = (role) => silences.filter((one) => !one[2] || one[2] === role).slice(0, 100);
  const named = (name, track) => [node("span", { class: "ln" }, bdi(name)), track];
  const waveLane = (name, role, own, at) => {
    const track = node("div", { class: "lane wv" }, waveOf(own, files, low, high, bars, own[0].mixed ? sides : colours(role)));
    const put = putIn(track);
    for (const [start, end] of both.slice(0, 200)) put(start, end, "over", "", `both speak for ${(end - start).toFixed(1)} s`);
    for (const [start, end, , text] of at === undefined ? [] : silent(role)) put(start, end, "mark silence", "", `${text} of silence`);
    if (at !== undefined || sound.apart || own[0] === waves[0]) marksOf(put, sound.apart ? waves.indexOf(own[0]) : at);
    return named(name, track);
  };
  const plainLane = (lane, at) => {
    const track = node("div", { class: "lane" });
    const put = putIn(track);
    const spans = lane.spans || [];
    const lostSpan = spans.filter((span) => span.label === call.lost_in).pop();
    const style = { tools: "tk", states: "st" }[lane.kind] || (lane.role === "assistant" ? "a" : "u");
    for (const span of spans.slice(0, 300)) {
      const end = span.end === undefined ? span.start : span.end;
      const bad = failed.has(span.seq);
      const lost = lane.kind === "states" && call.lost_in && span === lostSpan;
      put(span.start, lane.kind === "states" && span.end === undefined ? high : end, `${style} ${bad || lost ? "x" : ""}`, size(end - span.start) > 6 || lane.kind === "states" ? span.label : "", `${lane.name}${span.label ? ` ${span.label}` : ""}: ${span.start.toFixed(1)}${end > span.start ? ` to ${end.toFixed(1)}` : ""} s${bad ? ", failed" : lost ? ", lost here" : ""}`);
    }
    if (lane.role === "assistant") for (const one of overlaps.slice(0, 200)) put(one.start, one.end, "ov", "", `both speak for ${(one.end - one.start).toFixed(1)} s`);
    if (lane.kind === "speaker") for (const [start, end, , text] of silent(lane.role)) put(start, end, "si", size(end - start) > 4 ? node("span", {}, text) : "", `${text} of silence`);
    if (lane.kind === "speaker") marksOf(put, at);
    return named(lane.name, track);
  };
  const qualityLane = () => {
    const track = node("div", { class: "lane ql" });
    const worst = Math.min(...quality.map((one) => one[2]));
    quality.forEach(([start, end, value, isLow], index) => {
      putIn(track)(start, end, isLow ? "q x" : "q", "", `sound quality ${value.toFixed(2)} of 5, ${clockOf(start, true)}`);
      track.lastChild.style.height = `${Math.max(6, Math.min(100, 25 * (value - 1)))}%`;
      if (value > worst) return;
      // Beside its bar, where no other one is.
      const [before, behind] = [quality[index - 1], quality[index + 1]];
      const label = node("b", { class: isLow ? "bad" : "" }, `${value.toFixed(1)} of 5`);
      if ((behind ? scale(behind[0]) : 100) - scale(end) > 6) label.style.left = `${scale(end)}%`;
      else if (scale(start) - (before ? scale(before[1]) : 0) > 6) label.style.right = `${100 - scale(start)}%`;
      else return;
      track.append(label);
    });
    return named("quality", track);
  };
  const broken = marks.filter(([kind]) => SHAPED.test(kind));
  const loose = waves.filter((wave) => wave.lane === undefined);
  const wide = node("div", { class: "lanes" },
    broken.length ? [node("span", {}), markRow(broken, scale)] : null,
    [...new Set(loose.map((wave) => wave.name))].map((name) => { const own = loose.filter((wave) => wave.name === name); return waveLane(name, own[0].role, own); }),
    lanes.map((lane, at) => { const own = waves.filter((wave) => wave.lane === at); return lane.kind !== "speaker" ? null : own.length ? waveLane(lane.name, lane.role, own, at) : plainLane(lane, at); }),
    quality.length ? qualityLane() : null,
    lanes.map((lane, at) => (lane.kind === "speaker" ? null : plainLane(lane, at))),
    node("span", {}), node("div", { class: "axis" }, length ? ticksOf(low, high).map((second) => { const at = node("span", { class: scale(second) < 2 ? "first" : scale(second) > 98 ? "last" : "" }, clockOf(second)); at.style.left = `${scale(second)}%`; return at; }) : null),
    sound ? node("div", { class: "ph", "aria-hidden": "true" }, node("i")) : null);
  wide.style.minWidth = `${Math.min(4000, 2.6 * length)}px`;
  const made = node("figure", { class: "card tl", "aria-label": timeline ? `Timeline: ${call.caption}` : "Recording" },
    node("figcaption", {}, node("span", {}, timeline ? call.caption : ""), node("span", { class: "dim" }, caption ? bdi(caption) : tracks.length ? `recorded: ${tracks.slice(0, 2).join(", ")}; the sound is not in this page` : "no recording in the log: drawn from the times of speech")),
    node("div", { class: "sc", tabindex: "0", role: "region", "aria-label": "Lanes" }, wide));
  if (sound) listen(call, made, timeline, low, high);
  return made;
}

// What happens at moments, above the lanes. Marks of a kind that are near each other share a name: 3 dropouts.
function markRow(marks, scale) {
  const groups = [];
  for (const [kind, start, , text] of marks.slice(0, 200)) {
    const group = groups.findLast((one) => one.kind === kind);
    if (group && scale(start) - scale(group.start) < 12) group.count += 1;
    else groups.push({ kind, start, text, count: 1 });
  }
  let last = -99;
  return node("div", { class: "mk" }, groups.map(({ kind, start, text, count }, index) => {
    const at = scale(start);
    const next = groups[index + 1];
    const label = count > 1 ? `${count} ${manyOf(kind)}` : markName(kind);
    // A name ends before the next mark begins, and has no other one through it.
    const room = (next ? scale(next.start) : 100) - at;
    const name = at - last > 9 && at < 92 && room > 0.7 * label.length;
    if (name) last = at;
    // The chips go to all of them: only those with a name are in the order of Tab.
    const made = node(name ? "button" : "i", { type: name && "button", "data-second": start, "aria-label": name && `${label} at ${clockOf(start, true)}`, "data-tip": `${label}${text && count === 1 ? `: ${text}` : ""}` }, name ? label : "");
    made.style.left = `${at}%`;
    return made;
  }));
}

// Whole steps of 1, 5, 10, 30 seconds or minutes, from 0:00 on; the end of the call has its own.
function ticksOf(low, high) {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200].find((one) => (high - low) / one <= 6) || 14400;
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  return ticks;
}

// Legend, count and jump in one: each click goes to the next moment of its kind.
function chipRow(call, sound) {
  const { chips = [], needs } = sound;
  if (!chips.length && !needs) return null;
  const go = (seconds) => {
    if (!seconds.length) return;
    const next = seconds.find((second) => second > (player ? player.now() + 0.05 : -Infinity));
    const second = next === undefined ? seconds[0] : next;
    if (player) player.play(second);
    else aim(lineAt(call, second));
  };
  return node("div", { class: "counts", role: "group", "aria-label": "What the lanes mark; each goes there" },
    chips.map(([kind, text, seconds = []]) => (seconds.length ? node("button", { type: "button", class: "btn", onclick: () => go(seconds) }, node("i", { class: `key ${kind === "quality" ? kind : `mark ${shapeOf(kind)}`}`, "aria-hidden": "true" }), text) : node("span", { class: "c0" }, text))),
    needs ? node("span", { class: "c0" }, dot(sound.why), ` ${needs} `, node("code", {}, "--audio FOLDER")) : null);
}

// Bars of a waveform, on the scale of the file; `kindOf` gives each moment its colour.
function waveOf(waves, files, low, high, most, kindOf) {
  const paths = { a: "", u: "", m: "", x: "" };
  for (const { peaks, rate, file } of waves) {
    const levels = Uint8Array.from(atob(peaks), (letter) => letter.charCodeAt(0));
    const step = Math.max(1, Math.round(((high - low) / most) * rate));
    for (let from = 0; from < levels.length; from += step) {
      const half = (47 * Math.max(...levels.subarray(from, from + step))) / 255;
      if (half < 0.7) continue;
      const second = files[file].start + from / rate;
      const width = (0.72 * step) / rate;
      paths[kindOf(second)] += `M${second.toFixed(2)} ${(50 - half).toFixed(1)}h${width.toFixed(2)}v${(2 * half).toFixed(1)}h-${width.toFixed(2)}z`;
    }
  }
  const svg = drawn("svg", { viewBox: `${low} 0 ${Math.max(0.1, high - low)} 100`, preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const [kind, d] of Object.entries(paths)) if (d) svg.append(drawn("path", { class: kind, d }));
  return svg;
}

