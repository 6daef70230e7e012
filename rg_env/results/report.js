// What the page of a report does. Data comes as calls of REPORT from scripts beside it:
// overview at the start, all else when it is looked at. Every text goes
// into the page as a text node.
"use strict";

const REPORT = (() => {
  const ALL = -1, NONE = -1, DIFFERENCE = 0.5, KEPT_CHUNKS = 12, PAGE = 25, PAGE_OF_READER = 10;
  const DEFAULTS = { a: ALL, b: NONE, by: "task", task: ALL, outcome: ALL, low: "", high: "", text: "", differ: false, open: NONE };
  const state = { ...DEFAULTS };
  const tables = {}, charts = [], chunks = new Map();
  let data, parts, samples, hits = [], ticket = 0, differing = null;

  // -- texts and elements ------------------------------------------------------------

  const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Cs}/gu;
  const sign = (c) => {
    const code = c.charCodeAt(0);
    return code < 32 ? String.fromCharCode(0x2400 + code) : code === 127 ? "\u2421" : "\\u" + code.toString(16).padStart(4, "0");
  };
  const visible = (text) => String(text).replace(UNSEEN, sign);
  const byId = (id) => document.getElementById(id);

  function el(tag, given, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given || {})) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, visible(value));
    }
    made.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : visible(c))));
    return made;
  }
  const link = (text, click) => el("button", { class: "link", type: "button", click }, text);
  const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);
  const share = (part, whole) => (whole ? part / whole : null);
  const percent = (value) => (known(value) ? `${(100 * (value < 1 ? Math.min(value, 0.999) : value)).toFixed(1)}%` : "");
  // What is less than 1 does not look like 1.
  const points = (value) => (known(value) ? (value < 1 ? Math.min(value, 0.999) : value).toFixed(3) : "");
  const signed = (value) => (known(value) ? (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(3) : "");
  const span = (low, high, form = points) => (known(low) && known(high) ? `${form(low)} to ${form(high)}` : "");
  const whole = (value) => (known(value) ? Math.round(value).toLocaleString("en") : "");
  const colour = (word) => (["right", "partial", "wrong"].includes(word) ? `o-${word}` : "o-none");

  /** Return names cut in the middle to a length; no two become the same. */
  function shortened(names, length) {
    const cut = (name) => (name.length <= length ? name : `${name.slice(0, length / 2 - 2)}…${name.slice(-length / 2 - 1)}`);
    const found = names.map(cut);
    return found.map((name, k) => (found.indexOf(name) === found.lastIndexOf(name) ? name : names[k]));
  }

  // -- numbers -----------------------------------------------------------------------

  const runName = (run) => (run === ALL ? "all runs" : data.runs[run].name);
  const shortName = (run) => (run === ALL ? "all runs" : data.runs[run].short);
  const lettered = (run) => (isPair() ? `${run === state.a ? "A" : "B"}: ${shortName(run)}` : shortName(run));
  const isPair = () => state.b !== NONE && state.a !== ALL && state.a !== state.b;

  const ofRun = (run) => (run === ALL ? data.all : data.runs[run]);

  /** Return the figures of a part of a run; of all parts, the ends of their intervals too. */
  function figures(run, part) {
    if (part === ALL) {
      const { samples, figures: of } = ofRun(run), each = (value) => Object.fromEntries(of.map((found, k) => [data.figures[k + 1], found && value(found)]));
      return { samples, ...each(([mean]) => mean), low: of[0]?.[1], high: of[0]?.[2], ends: each(([, low, high]) => [low, high]) };
    }
    const row = data.cells.get(`${run},${part}`);
    return row ? Object.fromEntries(data.figures.map((name, k) => [name, row[k + 2] < 0 ? null : row[k + 2]])) : { samples: 0 };
  }

  const figureColumns = () => [
    ["score", "score", points, "Mean score"],
    ["right", "right", percent, "Share with full score"],
    ["pass", `pass@${data.k}`, percent, `Chance that one of ${data.k} completions of an item is right`],
    ["answered", "answered", percent, "Share with an answer that could be scored"],
    ["variance", "with variance", percent, "Share of groups whose scores differ"],
    ["level", "level", points, "Mean level of the items, 0 to 1"],
    ["length", `length, ${data.unit}`, whole, `Mean length of the completions in ${data.unit}`],
    ["truncated", "truncated", percent, "Share that reached their longest length"],
  ];

  /** Return B less A on the items that both have, if the report has it. */
  function differenceOf(part) {
    const row = data.differences.find(([a, b, of]) => of === part && Math.min(a, b) === Math.min(state.a, state.b) && Math.max(a, b) === Math.max(state.a, state.b));
    if (!row) return undefined;
    const [a, , , mean, low, high, items] = row;
    return state.a === a ? { mean, low, high, items } : { mean: -mean, low: -high, high: -low, items };
  }

  function showCards() {
    const all = (isPair() ? [state.a, state.b] : [state.a]).map((run) => figures(run, ALL));
    const line = (tag, k, text) => el(tag, { class: isPair() ? "ab"[k] : false }, text);
    const card = (label, title, ...lines) => el("div", { class: "card", title }, el("span", {}, label), ...lines.flat());
    const note = "with 95 % intervals, clustered by item", between = isPair() && differenceOf(ALL);
    const cards = figureColumns().filter(([key]) => all.some((f) => known(f[key]))).map(([key, label, form, title]) => card(label, `${title}, ${note}`,
      ...all.map((f, k) => [line("b", k, form(f[key]) || "–"), line("small", k, span(...(f.ends[key] || []), form))])));
    if (between) cards.splice(1, 0, card("B − A", `Mean difference, ${note}`, el("b", {}, signed(between.mean)), el("small", {}, span(between.low, between.high, signed)), el("small", {}, `${whole(between.items)} shared items`)));
    byId("cards").replaceChildren(card("rollouts", false, ...all.map((f, k) => line("b", k, whole(f.samples)))), ...cards);
  }

  // -- tables ------------------------------------------------------------------------

  const asText = (value, type) => (type === "display" ? document.createTextNode(visible(value)) : visible(value));
  // What is unknown is sorted as less than all else, and saved as nothing.
  const numeric = (form) => (value, type) => (type === "display" ? form(value) : known(value) ? value : type === "csv" ? "" : -9);

  function table(box, columns, rows, more) {
    if (tables[box]) tables[box].destroy();
    const heads = columns.map((column) => el("th", { scope: "col", title: column.about || false }, column.title));
    const made = el("table", { class: "display compact", style: "width:100%" }, el("thead", {}, el("tr", {}, ...heads)));
    byId(box).replaceChildren(made);
    const name = box.replace("-rows", "s"), isSearched = rows.length > 3 && more.searching !== false;
    // A title that it is given becomes HTML; without one it keeps the text of the heading.
    const untitled = columns.map(({ title, ...column }) => ({ ...column, ariaTitle: visible(title) }));
    tables[box] = new DataTable(made, { data: rows, columns: untitled, autoWidth: false, pageLength: PAGE, paging: rows.length > (more.pageLength || PAGE),
      layout: { topStart: isSearched ? "search" : null, topEnd: more.serverSide ? null : { buttons: [{ extend: "csv", text: "CSV", className: "csv", title: null, filename: name, escapeExcelFormula: true, exportOptions: { orthogonal: "csv" } }] }, bottomStart: isSearched || more.serverSide ? "info" : null, bottomEnd: "paging" }, ...more });
    return made;
  }

  const bar = (value, k) => el("span", { class: "meter" }, el("span", { class: k ? "bar second" : "bar", style: `width:${(100 * (value || 0)).toFixed(1)}%` }));
  const scoreColumn = (title) => ({ title, data: "score", className: "n", render: (v, type) => (type !== "display" ? numeric(points)(v, type) : known(v) ? el("span", {}, points(v), " ", bar(v)) : "") });
  const intervalColumn = (form, value) => ({ title: "95 % interval", data: null, className: "n soft", orderable: false, about: "Clustered by item",
    render: (row) => span(value(row)?.low, value(row)?.high, form) });
  const partsShown = () => parts.filter((part) => part.kind === state.by);

  /** Show the rollouts of a part; of a category, its tasks. */
  function openPart(part, more) {
    if (part.kind === "task") choose({ task: part.number, outcome: ALL, low: "", high: "", differ: false, ...more }, true);
    if (part.kind === "level") choose({ task: ALL, outcome: ALL, low: part.low, high: part.low === part.high || part.high === 1 ? part.high : part.high - 0.0001, differ: false, ...more }, true);
    if (part.kind !== "category") return;
    choose({ by: "task", ...more }, false);
    tables["task-rows"].search(part.name).draw();
    document.querySelector("#task-rows input").focus();
  }
  const partColumn = () => ({ title: state.by, data: "name", render: (v, type, row) => (type === "display" ? link(v, () => openPart(row.part)) : row.part.low ?? visible(v)) });

  function showTasks() {
    const rows = partsShown().map((part) => {
      const a = figures(state.a, part.number), b = isPair() ? figures(state.b, part.number) : null;
      return { part, name: part.name, category: part.category, ...a, b: b && b.score, between: b && differenceOf(part.number),
        differs: b && differing ? (differing.byTask.get(part.number) || 0) : null, both: a.samples + (b ? b.samples : 0) };
    }).filter((row) => row.both);
    const columns = [partColumn(), scoreColumn(isPair() ? "score A" : "score")]; // first what a narrow window shows
    const about = state.by === "task" && parts.some((part) => part.kind === "category") ? [{ title: "category", data: "category", render: asText }] : [];
    about.push({ title: isPair() ? "rollouts A" : "rollouts", data: "samples", className: "n", render: numeric(whole) });
    if (isPair()) {
      const between = (title, key, form) => ({ title, data: null, className: "n", render: (row, type) => numeric(form)(row.between?.[key], type) });
      columns.push({ title: "score B", data: "b", className: "n", render: numeric(points) });
      columns.push({ ...between("B − A", "mean", signed), about: "Mean difference on the items that both have" }, intervalColumn(signed, (row) => row.between), between("shared items", "items", whole), ...about);
      if (state.by === "task") columns.push({ title: "they disagree", data: "differs", className: "n", render: (v, type, row) => (type !== "display" ? numeric(whole)(v, type)
        : v === 0 ? row.between ? "0 items" : "" : link(known(v) ? times(v, "item") : "show", () => choose({ task: row.part.number, outcome: ALL, differ: true }, true))) });
    } else columns.push(intervalColumn(points, (row) => row), ...about);
    for (const [key, label, form, note] of isPair() ? [] : figureColumns().slice(1)) { // the cards have those of both
      if (rows.some((row) => known(row[key]))) columns.push({ title: label, about: note, data: key, className: "n", render: numeric(form) });
    }
    table("task-rows", columns, rows, { order: [[0, "asc"]] });
  }

  /** Show the scores of all parts and runs, if there are more than two. */
  function showMatrix() {
    byId("matrix").parentElement.hidden = data.runs.length < 3;
    if (data.runs.length < 3) return;
    const cell = (run, part) => { const found = figures(run, part); return known(found.score) ? found : null; };
    const rows = partsShown().map((part) => ({ part, name: part.name, of: data.runs.map((_, run) => cell(run, part.number)) }));
    const shown = (run, row) => {
      const { score, low, high } = row.of[run];
      return el("span", { class: "heat", style: `--heat:${(60 * score).toFixed(0)}%` }, row.part.kind === "category" ? points(score) : link(points(score), () => openPart(row.part, { a: run, b: NONE })), el("small", {}, span(low, high)));
    };
    const columns = data.runs.map(({ short }, run) => ({ title: short, about: runName(run), data: null, className: "n", render: (row, type) => (type === "display" ? row.of[run] ? shown(run, row) : "" : numeric()(row.of[run]?.score, type)) }));
    table("matrix-rows", [partColumn(), ...columns], rows, { order: [[0, "asc"]] });
  }

  function showRuns() {
    const rows = data.runs.map((run, number) => ({ number, name: run.name, items: run.items, ...figures(number, ALL) }));
    const name = (v, type, row) => (type === "display" ? el("span", { title: v }, link(shortName(row.number), () => choose({ a: row.number }, false))) : visible(v));
    const columns = [{ title: "run or model", data: "name", render: name }];
    for (const [key, label, form, about] of figureColumns()) {
      const shown = (row) => el("span", {}, form(row[key]), key === "score" && known(row.score) ? el("span", {}, " ", bar(row.score)) : "", el("small", { class: "soft" }, span(...(row.ends[key] || []), form)));
      if (rows.some((row) => known(row[key]))) columns.push({ title: label, about: `${about}, with its 95 % interval`, data: null, className: "n", render: (row, type) => (type === "display" ? shown(row) : numeric()(row[key], type)) });
    }
    for (const [key, title] of [["samples", "rollouts"], ["items", "items"]]) {
      if (rows.some((row) => known(row[key]))) columns.push({ title, data: key, className: "n", render: numeric(whole) });
    }
    table("run-rows", columns, rows, { order: [] });
  }

  const times = (count, noun) => `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;

  function showOutcomes() {
    const places = isPair() ? [state.a, state.b] : [state.a], runs = places.map(ofRun);
    const rows = data.outcomes.map(([word, meaning], number) => ({ word, meaning, number, of: runs.map((run) => { const [n, ...ends] = run.outcomes[number] || [0]; return { n, share: share(n, run.samples), ends }; }) }))
      .filter((row) => row.of.some(({ n }) => n));
    const columns = [{ title: "outcome", data: "word", render: (v, type, row) => (type === "display" ? link(v, () => choose({ outcome: row.number, differ: false }, true)) : visible(v)) }];
    places.forEach((_, k) => {
      const name = (text) => (isPair() ? `${text} ${"AB"[k]}` : text), shown = ({ share, ends }) => el("span", {}, percent(share), el("small", { class: "soft" }, span(...ends, percent)));
      columns.push({ title: name("rollouts"), data: null, className: "n", render: (row, type) => numeric(whole)(row.of[k].n, type) }, { title: name("share"), about: "With its 95 % interval, clustered by item", data: null, className: "n",
        render: (row, type) => (type === "display" ? shown(row.of[k]) : numeric()(row.of[k].share, type)) });
    });
    columns.push({ title: "what it means", data: "meaning", render: asText });
    table("outcome-rows", columns, rows, { order: [], searching: false });
  }

  // -- charts ------------------------------------------------------------------------

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const HUES = [["--a", []], ["--b", [7, 3]], ["--c", [2, 2]], ["--d", [9, 3, 2, 3]], ["--e", [4, 2]], ["--f", [1, 3]]]; // with dashes
  const hueOf = ({ hue }) => HUES[hue % HUES.length], shade = (line) => `var(${hueOf(line)[0]})`;

  const swatch = (line) => el("i", { style: `color:${shade(line)};background:currentColor` });

  /** Draw lines, each with a label, a hue, its values and perhaps an interval of each. */
  function chart(box, title, x, lines, { figure: shows = null, names = null } = {}) {
    const isUnit = shows === points || shows === percent, form = (v) => (known(v) ? (shows || ((n) => String(Number(n.toPrecision(4)))))(v) : "–"), label = (v) => (names ? names(v) : whole(v));
    const at = el("span", { class: "at" });
    const figure = el("figure", {}, el("figcaption", {}, el("span", {}, title), at));
    byId(box).append(figure);
    const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "12px system-ui" };
    const series = [{}], columns = [x], bands = [];
    const add = (values, given) => { series.push({ spanGaps: true, points: { show: x.length < 3 }, ...given }); return columns.push(values) - 1; };
    for (const line of lines) {
      const [name, dash] = hueOf(line), stroke = style(name), faint = `${stroke}33`;
      if (line.high) bands.push({ series: [add(line.high, { width: 0, stroke: faint }), add(line.low, { width: 0, stroke: faint })], fill: faint });
      add(line.values, { stroke, dash, width: 1.5 });
    }
    const top = (u, low, high) => (isUnit ? [0, 1.02] : [Math.min(0, low || 0), Math.max(0, high || 0) * 1.05 || (low < 0 ? 0 : 1)]);
    const read = ({ cursor: { idx } }) => at.replaceChildren(...(known(idx) ? [`${label(x[idx])}: `, ...lines.flatMap((line) => [el("b", { style: `color:${shade(line)}` }, form(line.values[idx])), " "])] : []));
    const drawn = new uPlot({ width: Math.max(200, figure.clientWidth - 16), height: 180, legend: { show: false }, bands, scales: { x: { time: false }, y: { range: top } }, hooks: { setCursor: [read] },
      axes: [{ ...axis, size: 30, ...(names ? { values: (_, ticks) => ticks.map(label) } : {}) }, { ...axis, size: 52, ...(shows === percent ? { values: (_, ticks) => ticks.map((v) => `${Number((100 * v).toFixed(2))}%`) } : {}) }], series }, columns, figure);
    charts.push(drawn);
    drawn.root.setAttribute("role", "img");
    drawn.root.setAttribute("aria-label", visible(`${title}: ${lines.map((line) => `${line.label} ends at ${form(line.values.findLast(known))}`).join(", ")}`));
  }

  /** Say above charts which colour is which run, in one line. */
  function legend(box, lines, more) {
    const shown = lines.map((line) => el("span", { title: line.title || line.label }, swatch(line), line.label));
    byId(box).replaceChildren(...shown, more ? el("span", {}, more) : "");
  }

  const chosenRuns = () => (isPair() ? [state.a, state.b] : state.a !== ALL ? [state.a] : data.runs.map((_, k) => k).slice(0, HUES.length));
  const CURVES = { mean_score: "score", "train/mean_score": "score", "train/groups_with_variance": "variance", "train/level": "level", "train/completion_tokens": "length", "train/truncated": "truncated", "eval/mean_score": "score" };

  function showCurves() {
    const isOf = (run, one) => data.runs[run].name === one.name || data.runs[run].name.endsWith(`, ${one.name}`);
    const own = chosenRuns().flatMap((run, hue) => data.metrics.filter((one) => isOf(run, one)).map((one) => ({ ...one, hue, label: lettered(run), title: runName(run) })));
    const drawn = own.length ? own : data.metrics.slice(0, HUES.length).map((one, hue) => ({ ...one, hue, label: one.name }));
    for (const name of [...new Set(drawn.flatMap((one) => Object.keys(one.values)))]) {
      const of = drawn.filter((one) => one.values[name]?.filter(known).length > 1);
      if (!of.length) continue;
      const [x, ...values] = uPlot.join(of.map((one) => [one.steps, one.values[name]]));
      const lines = of.map((one, k) => ({ ...one, values: values[k] }));
      const [, label, figure] = figureColumns().find(([one]) => one === CURVES[name]) || [null, name, null];
      chart("curve-charts", `${label.replace(data.unit, "tokens")}${name.startsWith("eval/") ? " of evaluations" : ""} over steps`, x, lines, { figure });
    }
    const left = data.metrics.length - drawn.length;
    legend("curve-legend", drawn, left > 0 && state.a === ALL ? `and ${left} more: choose a run as A` : "");
  }

  function showLevels() {
    const drawn = isPair() ? [state.a, state.b] : [state.a], levels = parts.filter((part) => part.kind === "level");
    if (levels.length < 2) return;
    const lines = drawn.map((run, k) => {
      const of = levels.map((part) => figures(run, part.number)), values = (key) => of.map((one) => one[key]);
      return { label: lettered(run), title: runName(run), hue: k, values: values("score"), low: values("low"), high: values("high") };
    });
    chart("level-charts", "score by level, with intervals", levels.map((part) => (part.low + part.high) / 2), lines, { figure: points, names: (v) => Number(v.toFixed(3)) });
    legend("level-legend", lines);
  }

  function showCharts() {
    charts.splice(0).forEach((one) => one.destroy());
    for (const id of ["curves", "levels"]) byId(id).parentElement.hidden = false;
    byId("curve-charts").replaceChildren();
    byId("level-charts").replaceChildren();
    showCurves();
    showLevels();
    byId("curves").parentElement.hidden = !data.metrics.some((one) => one.steps.length > 1); // one step is no curve
    byId("levels").parentElement.hidden = !byId("level-charts").children.length;
    byId("runs").parentElement.hidden = data.runs.length < 2;
    for (const link of document.querySelectorAll("body > nav a")) link.hidden = document.querySelector(link.hash).parentElement.hidden;
  }

  // -- samples and texts, loaded when they are looked at -----------------------------

  const loading = new Map();
  function load(file) {
    if (!loading.has(file)) {
      loading.set(file, new Promise((done, failed) => {
        const script = el("script", { src: file, load: () => { script.remove(); done(); }, error: () => { loading.delete(file); failed(new Error(`${file} is not there`)); } });
        document.head.append(script);
      }));
    }
    return loading.get(file);
  }
  const getSamples = () => load("samples.js");
  const chunkOf = (i) => { let k = samples.starts.length - 1; while (samples.starts[k] > i) k -= 1; return k + 1; };
  async function getChunk(number) {
    const file = `texts-${String(number).padStart(4, "0")}.js`;
    await load(file);
    const chunk = chunks.get(number);
    chunks.delete(number);
    chunks.set(number, chunk); // the newest are kept
    for (const old of [...chunks.keys()].slice(0, -KEPT_CHUNKS)) { chunks.delete(old); loading.delete(`texts-${String(old).padStart(4, "0")}.js`); }
    return chunk;
  }
  async function textsOf(i) {
    const number = chunkOf(i), chunk = await getChunk(number);
    return chunk.rows[i - samples.starts[number - 1]];
  }

  /** Find the items on which A and B disagree. */
  function findDifferences() {
    if (!isPair() || !samples) { differing = null; return; }
    const means = new Map();
    samples.run.forEach((run, i) => {
      if ((run !== state.a && run !== state.b) || samples.score[i] === null) return;
      const of = means.get(samples.item[i]) || means.set(samples.item[i], [0, 0, 0, 0, samples.task[i]]).get(samples.item[i]);
      const k = run === state.a ? 0 : 2;
      of[k] += samples.score[i];
      of[k + 1] += 1;
    });
    differing = { items: new Set(), byTask: new Map() };
    for (const [item, [a, n, b, m, task]] of means) {
      if (!n || !m || Math.abs(b / m - a / n) < DIFFERENCE) continue;
      differing.items.add(item);
      differing.byTask.set(task, (differing.byTask.get(task) || 0) + 1);
    }
  }

  // -- the reader --------------------------------------------------------------------

  function isHit(i) {
    const run = samples.run[i], level = samples.level[i];
    if (state.a !== ALL && run !== state.a && run !== state.b) return false;
    if (state.task !== ALL && samples.task[i] !== state.task) return false;
    if (state.outcome !== ALL && samples.outcome[i] !== state.outcome) return false;
    if (state.low !== "" && !(level !== null && level >= Number(state.low) - 1e-9)) return false;
    if (state.high !== "" && !(level !== null && level <= Number(state.high) + 1e-9)) return false;
    return !(state.differ && differing) || differing.items.has(samples.item[i]);
  }

  async function withText(found, mine) {
    const wanted = state.text.toLowerCase(), kept = [];
    for (let at = 0; at < found.length;) {
      const number = chunkOf(found[at]), chunk = await getChunk(number), start = samples.starts[number - 1];
      if (mine !== ticket) return null;
      for (; at < found.length && found[at] - start < chunk.rows.length; at += 1) {
        const { question, gold_answer: gold, completion, answer } = chunk.rows[found[at] - start];
        if ([question, gold, completion, answer].flat().some((part) => known(part) && String(part).toLowerCase().includes(wanted))) kept.push(found[at]);
      }
      byId("found").textContent = `Looking for the text: ${percent(at / found.length)} read, ${whole(kept.length)} found`;
    }
    return kept;
  }

  async function find() {
    const mine = ++ticket;
    byId("found").textContent = "Loading …";
    await getSamples();
    if (isPair() && !differing) { findDifferences(); showTasks(); showCards(); }
    let found = [];
    for (let i = 0; i < samples.run.length; i += 1) if (isHit(i)) found.push(i);
    if (state.text) found = await withText(found, mine);
    if (mine !== ticket) return;
    // What is compared is adjacent.
    hits = isPair() ? found.sort((i, j) => samples.item[i] - samples.item[j] || (samples.run[i] === state.b) - (samples.run[j] === state.b) || i - j) : found;
    byId("found").textContent = `${whole(hits.length)} of ${whole(samples.run.length)} rollouts`
      + (state.differ && isPair() ? `, of items whose mean scores differ by ${DIFFERENCE} or more` : "");
    if (tables["found-rows"]) tables["found-rows"].page(0).draw();
    else showFound();
  }

  function showFound() {
    const word = (k) => data.outcomes[k][0];
    const columns = [
      ["rollout", (i) => i, (i) => link(`${i + 1}`, () => show(i))], ["task", (i) => data.tasks[samples.task[i]][0]], ["score", (i) => samples.score[i], (i) => points(samples.score[i])],
      ["outcome", (i) => word(samples.outcome[i]), (i) => el("span", { class: colour(word(samples.outcome[i])) }, word(samples.outcome[i]))],
      ["run or model", (i) => runName(samples.run[i]), (i) => el("span", { title: runName(samples.run[i]) }, shortName(samples.run[i]))], ["level", (i) => samples.level[i], (i) => points(samples.level[i])],
      ...(samples.step.some(known) ? [["step", (i) => samples.step[i], (i) => whole(samples.step[i])]] : []),
      ["length", (i) => samples.length[i], (i) => whole(samples.length[i])], ["answer", (i) => samples.preview[i] ?? ""],
    ];
    const made = table("found-rows", columns.map(([title, value, form]) => ({ title, data: null, className: title === "answer" ? "answer" : "", orderable: title !== "answer",
      render: (i, type) => (type === "display" ? [(form || ((k) => visible(value(k))))(i)].map((v) => (v instanceof Node ? v : document.createTextNode(v)))[0] : "") })), [], {
      serverSide: true, pageLength: PAGE_OF_READER, searching: false, paging: true, order: [],
      ajax: (asked, answer) => {
        const by = asked.order[0], sorted = by ? hits.slice() : hits;
        if (by) {
          const value = columns[by.column][1], way = by.dir === "desc" ? -1 : 1;
          sorted.sort((i, j) => { const x = value(i), y = value(j); return x === y ? i - j : x === null ? 1 : y === null ? -1 : x < y ? -way : way; });
          hits = sorted;
        }
        answer({ draw: asked.draw, recordsTotal: samples.run.length, recordsFiltered: hits.length, data: sorted.slice(asked.start, asked.start + asked.length) });
      },
      rowCallback: (row, i) => row.classList.toggle("open", i === state.open),
    });
    made.addEventListener("click", (event) => {
      const row = event.target.closest("tbody tr");
      if (row && !event.target.closest("button")) { const i = tables["found-rows"].row(row).data(); if (known(i)) show(i); }
    });
  }

  /** Return a text as nodes; what is too long for the page came as begin, end and length. */
  function shownText(text, place) {
    if (!Array.isArray(text)) return [visible(text)];
    const left = text[2] - text[0].length - text[1].length;
    return [visible(text[0]), el("mark", {}, `\n\n… ${whole(left)} of ${whole(text[2])} characters are left out here; all of them are in ${place} …\n\n`), visible(text[1])];
  }

  function completion(texts, outcome) {
    const parts = [].concat(texts.completion ?? ""), begun = parts[0].trimStart().startsWith("<think>") || outcome === "unfinished_thinking";
    const end = parts[0].lastIndexOf("</think>"), after = end + "</think>".length;
    if (texts.completion === null) return [el("p", {}, "The file holds no text.")];
    if (end < 0 && !begun) return [el("h3", {}, "Completion"), el("pre", { tabindex: 0 }, ...shownText(texts.completion, texts.place))];
    const thinking = end < 0 ? texts.completion : parts[0].slice(0, after);
    const rest = end < 0 ? "" : parts.length > 1 ? [parts[0].slice(after), parts[1], parts[2] - after] : parts[0].slice(after);
    const length = end < 0 ? (parts.length > 1 ? parts[2] : parts[0].length) : after;
    return [el("details", {}, el("summary", {}, `Thinking, ${whole(length)} characters`), el("pre", { tabindex: 0 }, ...shownText(thinking, texts.place))),
      el("h3", {}, "Completion after the thinking"), el("pre", { tabindex: 0 }, ...shownText(rest, texts.place))];
  }

  function oneRollout(i, texts) {
    const [word, meaning] = data.outcomes[samples.outcome[i]], { gold_answer: gold, facts } = texts;
    const short = (value) => (typeof value === "number" ? Number(value.toFixed(4)) : value);
    const listed = (value) => (value !== null && typeof value === "object" ? Object.entries(value).map(([k, v]) => `${k} ${short(v)}`).join(", ") : String(short(value)));
    const listedFacts = Object.entries(facts).map(([name, value]) => `${name.replaceAll("_", " ")}: ${listed(value)}`);
    const isSame = texts.answer !== null && texts.answer === gold;
    return el("section", {}, el("p", {}, el("b", {}, runName(samples.run[i])), ` · rollout ${i + 1} · score `, el("b", {}, points(samples.score[i]) || "none"), " · ", el("b", { class: colour(word) }, word), meaning ? `: ${meaning}` : ""),
      el("div", { class: "beside" },
        el("div", {}, el("h3", {}, isSame ? "Extracted answer, equal to the gold answer" : "Extracted answer"), texts.answer === null ? el("p", {}, "None was found.") : el("pre", { tabindex: 0 }, ...shownText(texts.answer, texts.place))),
        el("div", {}, el("h3", {}, "Gold answer"), gold === null ? el("p", {}, "None is recorded.") : el("pre", { tabindex: 0 }, ...shownText(gold, texts.place)))),
      listedFacts.length ? el("p", {}, listedFacts.join(" · ")) : null, ...completion(texts, word), el("p", {}, `From ${texts.place}`));
  }

  async function show(i, isQuiet) {
    state.open = i;
    save();
    await getSamples();
    const same = [];
    samples.item.forEach((item, k) => { if (item === samples.item[i]) same.push(k); });
    const apart = (k) => Math.abs((samples.score[k] || 0) - (samples.score[i] || 0));
    const partner = isPair() ? same.filter((k) => samples.run[k] !== samples.run[i] && (samples.run[k] === state.a || samples.run[k] === state.b)).sort((j, k) => apart(k) - apart(j))[0] : undefined;
    const shown = partner === undefined ? [i] : [i, partner].sort((x, y) => (samples.run[x] === state.b) - (samples.run[y] === state.b));
    const texts = await Promise.all(shown.map(textsOf));
    if (state.open !== i) return;
    const others = same.filter((k) => !shown.includes(k) && (!isPair() || samples.run[k] === state.a || samples.run[k] === state.b)).slice(0, 64);
    const about = [data.tasks[samples.task[i]][0], known(samples.level[i]) ? `level ${points(samples.level[i])}` : null].filter(known).join(", ");
    const step = (by, label) => el("button", { type: "button", click: () => move(by) }, label);
    byId("rollout").replaceChildren(el("p", { class: "filters" }, el("b", {}, about), step(-1, "‹ previous"), step(1, "next ›"), el("span", { class: "no-print" }, "also with ← and →")),
      el("h3", {}, "Question"), el("pre", { tabindex: 0 }, ...(texts[0].question === null ? ["The file holds none."] : shownText(texts[0].question, texts[0].place))),
      ...(texts[0].system ? [el("details", {}, el("summary", {}, "System prompt"), el("pre", { tabindex: 0 }, ...shownText(texts[0].system, texts[0].place)))] : []),
      el("div", { class: "beside" }, ...shown.map((k, n) => oneRollout(k, texts[n]))),
      ...(others.length ? [el("h3", {}, "Other rollouts of this item"), el("div", { class: "others" }, ...others.map((k) => el("button", { type: "button", class: colour(data.outcomes[samples.outcome[k]][0]), click: () => show(k) },
        `${data.runs.length > 1 ? `${shortName(samples.run[k])}: ` : ""}${points(samples.score[k])} ${samples.preview[k] ?? "no answer"}`)))] : []));
    if (tables["found-rows"]) tables["found-rows"].rows().every(function mark() { this.node().classList.toggle("open", this.data() === i); });
    if (!isQuiet) goTo("rollout");
  }

  /** Scroll to an element, which takes the focus with it. */
  function goTo(id) {
    byId(id).focus({ preventScroll: true });
    byId(id).scrollIntoView({ block: "start" });
  }

  function move(by) {
    const at = hits.indexOf(state.open), next = hits[at < 0 ? 0 : Math.min(hits.length - 1, Math.max(0, at + by))];
    if (next !== undefined && next !== state.open) show(next, true);
  }

  // -- what is chosen ----------------------------------------------------------------

  function save() {
    const names = { a: (k) => data.runs[k].name, b: (k) => data.runs[k].name, task: (k) => data.tasks[k][0], outcome: (k) => data.outcomes[k][0] };
    const parts = Object.keys(DEFAULTS).filter((key) => state[key] !== DEFAULTS[key]).map((key) => `${key}=${encodeURIComponent((names[key] || String)(state[key]).toWellFormed())}`);
    try { history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname); } catch { /* a browser that wants none from the disk */ }
  }

  function read() {
    const given = new URLSearchParams(location.hash.slice(1)), at = (list, name) => list.findIndex((one) => String(Array.isArray(one) ? one[0] : one.name).toWellFormed() === name);
    const numbers = { a: data.runs, b: data.runs, task: data.tasks, outcome: data.outcomes };
    for (const [key, value] of given) {
      if (numbers[key]) state[key] = at(numbers[key], value);
      else if (key === "open") state.open = Number(value) < data.samples ? Number(value) : NONE;
      else if (key === "differ") state.differ = value === "true";
      else if (key in DEFAULTS) state[key] = value;
    }
    if (!partsShown().length) state.by = "task";
    return [...given.keys()].some((key) => key in DEFAULTS && !["a", "b", "by"].includes(key));
  }

  async function choose(changes, goes) {
    const isOther = ("a" in changes && changes.a !== state.a) || ("b" in changes && changes.b !== state.b);
    Object.assign(state, changes);
    if (isOther) differing = null;
    if (isOther && samples) findDifferences();
    if (!isPair()) state.differ = false;
    save();
    for (const [id, key] of [["by", "by"], ["run-a", "a"], ["run-b", "b"], ["by-task", "task"], ["by-outcome", "outcome"], ["by-low", "low"], ["by-high", "high"], ["by-text", "text"]]) byId(id).value = state[key];
    byId("by-difference").checked = state.differ;
    byId("by-difference").parentElement.hidden = !isPair();
    if (isOther) showOverview();
    else if ("by" in changes) { showTasks(); showMatrix(); }
    if (goes || samples || state.b !== NONE) await find();
    if (goes) goTo("rollouts"); // there is something to see only now
  }

  function showOverview() {
    showCards();
    showTasks();
    showMatrix();
    showOutcomes();
    showCharts();
  }

  function select(id, label, first, names, change) {
    const options = [[NONE, first], ...names.map((name, k) => [k, name])].map(([value, text]) => el("option", { value }, text));
    return el("label", {}, `${label} `, el("select", { id, change: (event) => change(Number(event.target.value)) }, ...options));
  }

  function later(act) {
    let timer;
    return (event) => { clearTimeout(timer); timer = setTimeout(act, 250, event.target.value); };
  }

  function controls() {
    if (data.runs.length > 2) byId("tasks").parentElement.before(byId("runs").parentElement);
    const names = data.runs.map((run) => run.short), sections = [...document.querySelectorAll("h2")];
    document.querySelector("body > nav").append(...sections.map((h) => el("a", { href: `#${h.id}` }, h.textContent)), el("span", { class: "pair" },
      select("run-a", "run A", "all runs", names, (a) => choose({ a }, false)), select("run-b", "run B", "none", names, (b) => choose({ b, a: state.a === ALL && b !== NONE ? (b === 0 ? 1 : 0) : state.a }, false))));
    document.querySelector(".pair").hidden = data.runs.length < 2;
    const level = (id, key, label) => el("label", {}, `${label} `, el("input", { id, type: "number", min: 0, max: 1, step: 0.05, size: 4, input: later((value) => choose({ [key]: value }, false)) }));
    byId("filters").append(select("by-task", "task", "all", data.tasks.map((task) => task[0]), (task) => choose({ task }, false)),
      select("by-outcome", "outcome", "all", data.outcomes.map((one) => one[0]), (outcome) => choose({ outcome }, false)), level("by-low", "low", "level from"), level("by-high", "high", "to"),
      el("label", {}, "text ", el("input", { id: "by-text", type: "search", input: later((text) => choose({ text }, false)) })),
      el("label", {}, el("input", { id: "by-difference", type: "checkbox", change: (event) => choose({ differ: event.target.checked }, false) }), " A and B disagree"),
      el("button", { type: "button", click: find }, "Show rollouts"));
    byId("filters").addEventListener("change", () => { if (!samples) find(); });
    const kinds = [["task", "tasks"], ["category", "categories"], ["level", "levels"]].filter(([kind]) => parts.some((part) => part.kind === kind));
    byId("by-choice").append(el("label", {}, "scores of ", el("select", { id: "by", change: (event) => choose({ by: event.target.value }, false) }, ...kinds.map(([value, text]) => el("option", { value }, text)))));
    byId("by-choice").hidden = kinds.length < 2;
    byId("rollouts").tabIndex = -1;
    document.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by && state.open !== NONE && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.closest("input, select, pre")) move(by);
    });
  }

  function redraws() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showCharts);
    addEventListener("resize", later(showCharts));
  }

  function about() {
    byId("about").append(visible(`${times(data.samples, "rollout")} of ${times(data.runs.length, "run")} in ${times(data.files, "file")} of ${data.paths.join(", ")}; made ${data.made}.`));
    byId("about").after(...(data.alarms.length ? [el("details", { class: "note" }, el("summary", {}, times(data.alarms.length, "alarm")), ...data.alarms.map((one) => el("p", {}, one)))] : []), ...data.unread.map((said) => el("p", {}, `Not read: ${said}`)), ...data.notes.map((said) => el("p", { class: "note" }, `${said[0].toUpperCase()}${said.slice(1)}.`)));
  }

  return {
    overview(given) {
      data = { ...given, cells: new Map(given.cells.map((row) => [`${row[0]},${row[1]}`, row])) };
      const shorts = shortened(data.runs.map((run) => run.name), 26), level = (value) => String(Number(value.toFixed(3)));
      data.runs.forEach((run, k) => { run.short = shorts[k]; });
      parts = [...data.tasks.map(([name, category]) => ({ kind: "task", name, category })),
        ...data.parts.map(([kind, low, high]) => (kind === "level" ? { kind, name: low === high ? level(low) : `${low} to ${high}`, low, high } : { kind, name: low }))].map((part, number) => ({ ...part, number }));
      DataTable.ext.errMode = "throw";
      about();
      controls();
      if (data.runs.length === 2) Object.assign(state, { a: 0, b: 1 });
      const goes = read();
      for (const key of ["a", "b"]) byId(`run-${key}`).value = state[key];
      byId("by").value = state.by;
      byId("by-difference").parentElement.hidden = !isPair();
      showCards();
      showRuns();
      showTasks();
      showMatrix();
      showOutcomes();
      showCharts();
      redraws();
      const begin = async (goes) => { if (goes) await choose({}, goes); if (state.open !== NONE) show(state.open); };
      begin(goes);
      addEventListener("hashchange", () => { Object.assign(state, DEFAULTS); begin(read()); });
      document.body.dataset.ready = performance.now().toFixed(0);
    },
    samples(given) { samples = given; },
    texts(given) { chunks.set(given.number, given); },
  };
})();
