"use strict";
const $ = (id) => document.getElementById(id);
// The lists of the program: of activities in words, and of the fields that tables have a column for.
const WORDS = %ACTIVITIES%;
const TASK_COLUMNS = %TASK_COLUMNS%, LINK_COLUMNS = %LINK_COLUMNS%;

// All text of the job is put in as text, never as HTML.
function make(tag, attributes, ...children) {
  const svg = ["svg", "path", "line", "text", "rect", "g"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "text") node.textContent = value;
    else if (name === "style") node.style.cssText = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const known = (x) => x !== null && x !== undefined && Number.isFinite(x);
function number(x, digits = 3) {
  if (!known(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e15 || size < 1e-4) return x.toExponential(digits - 1);
  if (size >= 1000) return Math.round(x).toLocaleString("en");
  return String(Number(x.toPrecision(digits)));
}
function scaled(x, unit) {
  if (!known(x)) return "–";
  for (const [size, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(x) >= size) return number(x / size) + " " + prefix + unit;
  }
  return number(x) + " " + unit;
}
function time(s) {
  if (!known(s)) return "–";
  if (s < 60) return Math.round(s) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.round(s % 60) + " s";
  return Math.floor(s / 3600) + " h " + Math.floor((s % 3600) / 60) + " min";
}
const at = (record, path) => path.split(".").reduce((part, name) => (part ? part[name] : undefined), record);
function cell(x, column) {
  if (!known(x)) return "–";
  if (column.shown === "whole") return x.toLocaleString("en");
  if (column.shown === "two_digits") return x.toFixed(2);
  if (column.shown === "scaled") return scaled(x, column.unit.replace("bytes", "B"));
  return number(x) + (column.unit === "us" ? " µs" : "");
}
const head = (column) => [column.head, "", column.help];
const percent = (x) => (known(x) ? (100 * x).toFixed(x < 0.0995 ? 1 : 0) + "%" : "–");

function figure(title, value, unit, below, share) {
  const parts = [make("h2", { text: title }), make("b", { text: value })];
  if (unit) parts[1].append(make("small", { text: unit }));
  if (known(share)) parts.push(make("div", { class: "meter" }, make("i", { style: `width:${100 * Math.min(1, share)}%` })));
  parts.push(make("p", { class: "quiet", text: below || "" }));
  return make("div", { class: "figure" }, ...parts);
}

function speedFigure(s) {
  const e = s.expected;
  if (!e) return figure("Speed", number(s.steps_per_s), "steps/s", known(s.examples_per_s) ? scaled(s.examples_per_s, unit(s) + "/s") : "");
  const ratio = known(s.steps_per_s) ? `${(s.steps_per_s / e.steps_per_s).toFixed(2)} of ` : "";
  return figure("Speed", number(s.steps_per_s), "steps/s", `${ratio}${number(e.steps_per_s)} expected (${number(e.low)} to ${number(e.high)})`, s.steps_per_s / e.steps_per_s);
}
function unit(s) {
  const worker = s.tasks.find((t) => t.unit);
  return worker ? worker.unit : "examples";
}
function stepFigure(s) {
  const goal = s.goal.global_step, done = s.global_step;
  const left = s.goal.seconds ? s.goal.seconds - s.seconds : known(goal) && s.steps_per_s > 0 ? (goal - done) / s.steps_per_s : null;
  const text = known(left) && left > 0 ? `of ${goal ? number(goal) : time(s.goal.seconds)}; about ${time(left)} left` : goal ? `of ${number(goal)}` : `${time(s.seconds)} so far`;
  return figure("Global step", known(done) ? done.toLocaleString("en") : "0", "", text, known(goal) ? done / goal : s.goal.seconds ? s.seconds / s.goal.seconds : null);
}
function showFigures(s) {
  const h = s.history, last = (list) => (list.length ? list[list.length - 1] : null);
  const all = [speedFigure(s), stepFigure(s)];
  all.push(figure("Loss", number(s.loss.last, 4), "", known(s.loss.first) ? `${number(s.loss.first, 4)} in the first step` : ""));
  if (s.expected || !known(s.examples_per_s) || s.tasks.length > 1) {
    const bytes = last(h.received);
    all.push(known(last(h.staleness)) && s.tasks.length > 1
      ? figure("Staleness", number(last(h.staleness)), "updates", known(bytes) ? `links: ${scaled(last(h.sent), "B/s")} out, ${scaled(bytes, "B/s")} in` : "")
      : figure("Examples", known(s.examples_per_s) ? scaled(s.examples_per_s, "").trim() : "–", unit(s) + "/s", ""));
  } else {
    const task = s.tasks[0];
    all.push(figure("Cores", number(task.use && task.use.cores), "busy", task.use ? `${scaled(task.use.peak_memory_bytes, "B")} of memory at most` : ""));
  }
  $("figures").replaceChildren(...all);
}

// Charts: width is that of the card, so that text keeps its size.
const HEIGHT = 190, LEFT = 46, RIGHT = 10, TOP = 8, BOTTOM = 22;
function ticks(least, most, count) {
  const rough = (most - least) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= rough) * power;
  const all = [];
  for (let v = Math.ceil(least / step) * step; v <= most + step / 1e4; v += step) all.push(Math.abs(v) < step / 1e4 ? 0 : v);
  return all;
}
function timeTicks(most, count) {
  const step = [5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400].find((x) => most / x <= count) || most;
  const all = [];
  for (let v = 0; v <= most; v += step) all.push(v);
  return all;
}
const timeLabel = (s) => (s === 0 ? "0" : s < 120 && s % 60 ? s + " s" : s < 7200 ? Math.round(s / 60) + " min" : s / 3600 + " h");

class Chart {
  constructor(title, describe) {
    this.describe = describe;
    this.svg = make("svg", { role: "img", "aria-label": title });
    this.legend = make("ul", { class: "legend" });
    this.node = make("div", { class: "chart" }, make("h2", { text: title }), this.svg, this.legend);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
  }
  frame(seconds, most, label, least = 0) {
    this.width = this.svg.clientWidth || 500;
    this.seconds = seconds;
    this.end = Math.max(10, seconds[seconds.length - 1] || 0);
    this.least = least;
    this.most = most > least ? most : least + 1;
    const apart = seconds.slice(1).map((s, i) => s - seconds[i]).sort((a, b) => a - b);
    this.widest = 4 * (apart[apart.length >> 1] || Infinity);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.svg.replaceChildren();
    for (const v of ticks(this.least, this.most, 4)) {
      this.svg.append(make("line", { class: "rule", x1: LEFT, x2: this.width - RIGHT, y1: this.y(v), y2: this.y(v) }),
        make("text", { x: LEFT - 6, y: this.y(v) + 4, "text-anchor": "end", text: label(v) }));
    }
    for (const t of timeTicks(this.end, Math.max(2, Math.floor(this.width / 90)))) {
      const anchor = t === 0 ? "start" : this.x(t) > this.width - RIGHT - 20 ? "end" : "middle";
      this.svg.append(make("text", { x: this.x(t), y: HEIGHT - 6, "text-anchor": anchor, text: timeLabel(t) }));
    }
  }
  x(t) { return LEFT + (t / this.end) * (this.width - LEFT - RIGHT); }
  y(v) { return HEIGHT - BOTTOM - ((v - this.least) / (this.most - this.least)) * (HEIGHT - TOP - BOTTOM); }
  // Nothing is drawn across a time of which nothing is known.
  isGap(i) { return i > 0 && this.seconds[i] - this.seconds[i - 1] > this.widest; }
  line(values, colour, faint) {
    let path = "", open = false;
    values.forEach((v, i) => {
      if (this.isGap(i)) open = false;
      if (!known(v)) { open = false; return; }
      path += `${open ? "L" : "M"}${this.x(this.seconds[i]).toFixed(1)} ${this.y(Math.min(v, this.most)).toFixed(1)}`;
      open = true;
    });
    this.svg.append(make("path", { d: path, fill: "none", stroke: colour, "stroke-width": faint ? 1 : 2, opacity: faint ? 0.45 : 1, "stroke-linejoin": "round", "stroke-linecap": "round" }));
  }
  band(low, high) {
    this.svg.append(make("rect", { x: LEFT, width: this.width - LEFT - RIGHT, y: this.y(high), height: Math.max(1, this.y(low) - this.y(high)), fill: "var(--band)" }));
  }
  areas(shares) {
    const below = this.seconds.map(() => 0);
    for (const [name, values] of Object.entries(shares)) {
      let runs = [], run = null;
      values.forEach((v, i) => {
        if (!known(v)) { run = null; return; }
        if (this.isGap(i)) run = null;
        if (!run) runs.push(run = []);
        run.push([i, below[i], below[i] = Math.min(1, below[i] + v)]);
      });
      for (const each of runs) {
        const at = (i, v) => `${this.x(this.seconds[i]).toFixed(1)} ${this.y(v).toFixed(1)}`;
        const path = "M" + each.map(([i, , top]) => at(i, top)).join("L") + "L" + each.reverse().map(([i, low]) => at(i, low)).join("L") + "Z";
        this.svg.append(make("path", { d: path, fill: `var(--${name})`, stroke: "var(--card)", "stroke-width": 0.5 }));
      }
    }
  }
  name(entries) {
    this.legend.replaceChildren(...entries.map(([colour, text]) => make("li", {}, make("i", { style: `background:${colour}` }), make("span", { text }))));
  }
  point(event) {
    if (!this.seconds || !this.seconds.length) return;
    const box = this.svg.getBoundingClientRect();
    const t = ((event.clientX - box.left - LEFT) / (this.width - LEFT - RIGHT)) * this.end;
    let best = 0;
    this.seconds.forEach((s, i) => { if (Math.abs(s - t) < Math.abs(this.seconds[best] - t)) best = i; });
    this.leave();
    this.svg.append(make("line", { class: "cross", x1: this.x(this.seconds[best]), x2: this.x(this.seconds[best]), y1: TOP, y2: HEIGHT - BOTTOM }));
    const tip = $("tip");
    tip.textContent = [time(this.seconds[best]) + " after the start", ...this.describe(best)].join("\n");
    tip.hidden = false;
    const right = event.clientX + 16 + tip.offsetWidth > window.innerWidth;
    tip.style.left = Math.max(4, right ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16) + "px";
    tip.style.top = event.clientY + 12 + "px";
  }
  leave() {
    for (const cross of this.svg.querySelectorAll(".cross")) cross.remove();
    $("tip").hidden = true;
  }
}

let state = null;
const h = () => state.history;
const describeShares = (key) => (i) => Object.entries(h()[key]).reverse().map(([name, list]) => `${percent(list[i])} ${WORDS[name] || name}`);
const charts = {
  speed: new Chart("Speed, steps/s of all workers", (i) => [`${number(h().steps_per_s[i])} steps/s`]),
  workers: new Chart("Time of the workers", describeShares("worker_share")),
  servers: new Chart("Time of the parameter servers", describeShares("ps_share")),
  loss: new Chart("Loss", (i) => [number(h().loss[i], 4)]),
  staleness: new Chart("Staleness, updates of others", (i) => [`${number(h().staleness[i])} updates`]),
  bytes: new Chart("Links of the workers, bytes/s", (i) => [`${scaled(h().sent[i], "B/s")} out`, `${scaled(h().received[i], "B/s")} in`]),
};
// The same order of colours as in the pictures of paceline plot.
const CURVES = ["push", "input", "compute", "queue", "wait", "pull", "other"].map((name) => `var(--${name})`);
const curve = (i) => CURVES[i % CURVES.length];
const largest = (...lists) => Math.max(0, ...lists.flat().filter(known));

function drawShares(chart, key) {
  chart.frame(h().seconds, 1, (v) => Math.round(100 * v) + "%");
  chart.areas(h()[key]);
  chart.name(Object.keys(h()[key]).map((name) => [`var(--${name})`, WORDS[name] || name]));
}
// The mean of the last points, a twentieth of all.
function smoothed(values) {
  const count = Math.floor(values.length / 20);
  if (count < 2) return null;
  return values.map((v, i) => {
    if (!known(v)) return v;
    const last = values.slice(Math.max(0, i + 1 - count), i + 1).filter(known);
    return last.reduce((sum, x) => sum + x, 0) / last.length;
  });
}
function drawLines(chart, lists, label, smooth) {
  const all = lists.map(([values]) => values), least = Math.min(0, ...all.flat().filter(known));
  chart.frame(h().seconds, 1.08 * largest(...all), label, 1.08 * least);
  for (const [values, colour] of lists) {
    const mean = smooth ? smoothed(values) : null;
    if (mean) chart.line(values, colour, true);
    chart.line(mean || values, colour);
  }
  chart.name(lists.filter((entry) => entry[2]).map(([, colour, text]) => [colour, text]));
}

// Numbers that the program names "loss/valid" stand beside the loss; others have a chart for each family.
const own = new Map();
function familiesOfNumbers() {
  const families = new Map();
  for (const tag of Object.keys(h().numbers || {})) {
    const [family, ...rest] = tag.split("/");
    if (!families.has(family)) families.set(family, []);
    families.get(family).push([tag, rest.join("/")]);
  }
  for (const family of families.keys()) {
    if (family !== "loss" && !own.has(family)) {
      own.set(family, new Chart(family, (i) => (familiesOfNumbers().get(family) || []).map(([tag, name]) => `${number(h().numbers[tag][i], 4)} ${name}`)));
    }
  }
  return families;
}
const listsOf = (members, first) => members.map(([tag, name], i) => [h().numbers[tag], curve(first + i), name]);
function drawSpeed() {
  const e = state.expected, chart = charts.speed;
  chart.frame(h().seconds, 1.08 * Math.max(largest(h().steps_per_s), e ? e.high : 0), (v) => number(v));
  if (e) chart.band(e.low, e.high);
  chart.line(h().steps_per_s, curve(0));
  chart.name([[curve(0), "measured"], ...(e ? [["var(--band)", "expected, 80 of 100 runs"]] : [])]);
}
function showCharts() {
  const any = (list) => list.some(known);
  const shown = [charts.speed, charts.workers];
  if (Object.keys(h().ps_share).length) shown.push(charts.servers);
  const families = familiesOfNumbers(), losses = families.get("loss") || [];
  if (any(h().loss)) shown.push(charts.loss);
  for (const family of families.keys()) if (own.has(family)) shown.push(own.get(family));
  if (any(h().staleness) && state.tasks.length > 1) shown.push(charts.staleness);
  if (any(h().received)) shown.push(charts.bytes);
  const now = [...$("charts").children];
  if (now.length !== shown.length || shown.some((chart, i) => chart.node !== now[i])) $("charts").replaceChildren(...shown.map((chart) => chart.node));
  drawSpeed();
  drawShares(charts.workers, "worker_share");
  if (shown.includes(charts.servers)) drawShares(charts.servers, "ps_share");
  if (shown.includes(charts.loss)) drawLines(charts.loss, [[h().loss, curve(0), losses.length ? "train" : ""], ...listsOf(losses, 1)], (v) => number(v), true);
  for (const [family, members] of families) if (own.has(family)) drawLines(own.get(family), listsOf(members, 0), (v) => number(v), true);
  if (shown.includes(charts.staleness)) drawLines(charts.staleness, [[h().staleness, curve(0)]], (v) => number(v));
  if (shown.includes(charts.bytes)) drawLines(charts.bytes, [[h().received, "var(--pull)", "received"], [h().sent, "var(--push)", "sent"]], (v) => scaled(v, "").trim());
}

function table(kind, heads, rows) {
  const head = heads.map(([name, style, help]) => make("th", { class: style || "", scope: "col", text: name, ...(help && { title: help }) }));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell, i) => {
    const td = make("td", { class: heads[i][1] || "", "data-name": heads[i][0] });
    if (cell instanceof Node) td.append(cell); else td.textContent = cell;
    if (cell && cell.dataset && cell.dataset.bad) td.classList.add("bad");
    return td;
  })));
  return make("table", { class: kind }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
}
function shareBar(share) {
  const parts = Object.entries(share || {});
  if (!parts.length) return make("span", { class: "quiet", text: "no timed step yet" });
  const text = parts.filter(([, v]) => v >= 0.005).map(([name, v]) => `${percent(v)} ${WORDS[name] || name}`).join(", ");
  return make("div", { class: "bar", title: text, role: "img", "aria-label": text },
    ...parts.map(([name, v]) => make("i", { style: `width:${100 * v}%;background:var(--${name})` })));
}
function standing(t) {
  if (!known(t.heard_s)) return make("span", { text: "not heard of", "data-bad": 1 });
  if (t.heard_s > 5) return make("span", { text: `silent for ${time(t.heard_s)}`, "data-bad": 1 });
  if (t.still_s > 5 && state.state === "training") return make("span", { text: `no step for ${time(t.still_s)}`, "data-bad": 1 });
  return make("span", { text: "steps" });
}
function showTasks() {
  const ps = state.tasks.some((t) => t.task.startsWith("ps:"));
  const columns = TASK_COLUMNS.filter((c) => !c.if_known || (state.tasks.length > 1 && state.tasks.some((t) => known(at(t, c.path)))));
  const heads = [["Task"], ["State", "left"], ...columns.map(head), ["Time", "wide"]];
  const rows = state.tasks.map((t) => [t.task, standing(t),
    ...columns.map((c) => (c.of_workers && !t.task.startsWith("worker:") ? "" : cell(at(t, c.path), c))), shareBar(t.recent.share)]);
  $("tasks").replaceChildren(table("tasks", heads, rows));
  const names = new Set(state.tasks.flatMap((t) => Object.keys(t.recent.share)));
  $("legend").replaceChildren(...[...names].map((name) => make("li", {}, make("i", { style: `background:var(--${name})` }), make("span", { text: WORDS[name] || name }))));
  return ps;
}
function showLinks() {
  const rows = state.tasks.flatMap((t) => (t.links || []).map((l) => [`${t.task} → ${l.to}`, l.kind + (l.encrypted ? " + TLS" : ""),
    ...LINK_COLUMNS.map((c) => cell(at(l, c.path), c))]));
  $("links-section").hidden = rows.length === 0;
  $("links").replaceChildren(table("links", [["From → to"], ["Kind", "left"], ...LINK_COLUMNS.map(head)], rows));
}
function showInputs() {
  const rows = state.tasks.filter((t) => t.input).map((t) => [t.task, `${number(t.input.capacity)}/s`, `${t.input.threads} of ${t.input.most_threads}`, percent(t.input.seconds > 0 ? t.input.waited / t.input.seconds : null), t.input.slowest || "–", String(t.input.bad)]);
  $("inputs-section").hidden = rows.length === 0;
  $("inputs").replaceChildren(table("inputs", [["Task"], ["Could make"], ["Threads"], ["Waited for"], ["Slowest stage"], ["Bad records"]], rows));
}
function showLines() {
  const several = state.tasks.length > 1;
  const all = state.tasks.flatMap((t) => t.lines.slice(several ? -5 : -12).map((line) => make("div", {}, ...(several ? [make("b", { text: t.task })] : []), document.createTextNode(line))));
  $("lines").replaceChildren(...(all.length ? all : [make("div", { text: "Nothing was printed yet." })]));
}

function show() {
  const r = state.run;
  document.title = `${r.model} · ${number(state.steps_per_s)} steps/s`;
  $("model").textContent = r.model || "Paceline";
  $("pill").textContent = state.state;
  $("pill").className = "pill " + state.state;
  const workers = state.tasks.filter((t) => t.task.startsWith("worker:")).length, servers = state.tasks.length - workers;
  $("about").textContent = [r.strategy && (servers ? `${r.strategy}, ${servers} ps + ${workers} worker${workers > 1 ? "s" : ""}` : workers > 1 ? `${r.strategy}, ${workers} workers` : "one process"),
    r.precision, `on ${r.host}`, `since ${new Date(r.started).toLocaleString()}`, r.version].filter(Boolean).join(" · ");
  $("where").textContent = (r.out ? `The run is in ${r.out}. ` : "Nothing is written: there is no --out. ") + r.command;
  if (state.cause) $("cause").textContent = state.cause;
  showFigures(state);
  showCharts();
  showTasks();
  showLinks();
  showInputs();
  showLines();
}

let missed = 0;
async function poll() {
  try {
    const answer = await fetch("/state.json" + location.search, { cache: "no-store", signal: AbortSignal.timeout(4000) });
    if (!answer.ok) throw new Error(answer.statusText);
    state = await answer.json();
    missed = 0;
    $("stale").hidden = true;
    show();
  } catch (error) {
    if (++missed >= 3 || !state) {
      $("pill").textContent = "not reached";
      $("pill").className = "pill away";
      $("stale").hidden = false;
      $("stale").textContent = `The chief does not answer: the run has ended, or cannot be reached from here. ${state ? `What is shown is of ${time(state.seconds)} after its start.` : ""}${state && state.run.out ? ` Its report is ${state.run.out}/report.json.` : ""}`;
    }
  }
  setTimeout(poll, document.hidden ? 5000 : 1000);
}
// The page was asked for with a token where one is needed.
for (const link of document.querySelectorAll("footer a")) link.search = location.search;
window.addEventListener("resize", () => state && showCharts());
poll();
