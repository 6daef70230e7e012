// Sorts, searches and pages tables, draws curves, and shows rollouts. Scripts beside the page
// hand data over as calls of REPORT. Every text goes into the page as a text node.
"use strict";

const REPORT = (() => {
  const PAGE = 25, CHUNK = 256, KEPT_CHUNKS = 12;
  const byId = (id) => document.getElementById(id);

  // -- texts and elements --------------------------------------------------------------------

  const UNSEEN = new RegExp("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2066-\\u2069]|\\p{Cs}", "gu");
  const escaped = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const visible = (text) => String(text).replace(UNSEEN, escaped);
  const known = (value) => value !== null && value !== undefined && value !== "";
  const plain = (value) => value ?? "";
  const whole = (value) => (known(value) ? Math.round(value).toLocaleString("en") : "");
  // A score of less than 1 does not look like 1.
  const below = (value) => (value < 1 ? Math.min(value, 0.999) : value);
  const points = (value) => (known(value) ? below(value).toFixed(3) : "");

  function fill(made, given, children) {
    for (const [name, value] of Object.entries(given)) {
      if (typeof value === "function") made.addEventListener(name, value);
      else if (known(value)) made.setAttribute(name, value);
    }
    made.append(...children.map((child) => (child instanceof Node ? child : visible(child))));
    return made;
  }
  const element = (tag, given = {}, ...children) =>
    fill(document.createElement(tag), given, children);
  const svgElement = (tag, given, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), given, children);
  const button = (text, click) => element("button", { type: "button", click }, text);

  // -- tables --------------------------------------------------------------------------------

  function compare(a, b) {
    if (!known(a) || !known(b)) return known(b) - known(a);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  /**
   * Makes a table sortable, with a search and pages where it has many rows.
   * `value(row, column)` is what a cell is sorted by, and `draw(row)` returns the row's element.
   */
  function tabulate(table, rows, value, draw, accepts = () => true) {
    const heads = [...table.tHead.rows[0].cells], card = table.closest(".card");
    const status = element("span", { role: "status" });
    const previous = button("‹ previous", () => turn(-1));
    const next = button("next ›", () => turn(1));
    const tools = element("div", { class: "bar" });
    let shown = rows, page = 0, words = [];

    function show() {
      const from = page * PAGE, part = shown.slice(from, from + PAGE);
      table.tBodies[0].replaceChildren(...part.map(draw));
      const range = part.length ? `${whole(from + 1)} to ${whole(from + part.length)}` : "none";
      status.textContent = `${range} of ${whole(shown.length)}`;
      previous.disabled = page === 0;
      next.disabled = from + PAGE >= shown.length;
    }
    function turn(by) {
      page += by;
      show();
    }
    function sort() {
      const k = heads.findIndex((head) => head.ariaSort);
      const sign = heads[k]?.ariaSort === "descending" ? -1 : 1;
      const keyed = shown.map((row) => [k < 0 ? null : value(row, k), row]);
      // An unknown value is last, whichever way it is sorted.
      keyed.sort(([a], [b]) => (known(a) && known(b) ? sign : 1) * compare(a, b));
      shown = keyed.map(([, row]) => row);
      page = 0;
      show();
    }
    function find() {
      const text = (row) => heads.map((_, k) => value(row, k)).join("\n").toLowerCase();
      const matches = (row) => words.every((word) => text(row).includes(word));
      shown = rows.filter((row) => accepts(row) && (!words.length || matches(row)));
      sort();
    }
    for (const head of heads) {
      const click = () => {
        const way = head.ariaSort === "ascending" ? "descending" : "ascending";
        for (const other of heads) other.ariaSort = null;
        head.ariaSort = way;
        sort();
      };
      head.replaceChildren(button(head.textContent, click));
    }
    if (rows.length > 5) {
      const input = (event) => {
        words = event.target.value.toLowerCase().split(/\s+/).filter(known);
        find();
      };
      tools.append(element("input", { type: "search", placeholder: "Search", input }));
    }
    card.prepend(tools);
    if (rows.length > PAGE) card.append(element("div", { class: "bar" }, previous, next, status));
    show();
    return { find, tools, beside: (row, by) => shown[shown.indexOf(row) + by] };
  }

  /** Returns rows as CSV; a figure has one more column, with its interval. */
  function csv(heads, rows) {
    const quoted = (text) => `"${text.replace(/^[=+\-@]/, "'$&").replaceAll('"', '""')}"`;
    const line = (cells) => cells.flat().map(quoted).join(",");
    const intervals = heads.map((_, k) => rows.some((tr) => tr.cells[k].querySelector("small")));
    const head = (name, k) => (intervals[k] ? [name, `${name}, 95 % interval`] : name);
    const cell = (td, k) => {
      const value = td.dataset.value ?? td.textContent;
      return intervals[k] ? [value, plain(td.querySelector("small")?.textContent)] : value;
    };
    const lines = rows.map((tr) => line([...tr.cells].map(cell)));
    return `\ufeff${[line(heads.map(head)), ...lines].join("\r\n")}\r\n`;
  }

  function numberTable(table) {
    const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
    const rows = [...table.tBodies[0].rows];
    const name = table.closest("section").querySelector("h2").id;
    const value = (tr, k) => {
      const { dataset, textContent } = tr.cells[k];
      return dataset.value === undefined ? textContent : Number(dataset.value);
    };
    for (const td of table.querySelectorAll("td[data-run]")) {
      const choice = { run: td.dataset.run, [heads[0]]: td.textContent };
      td.replaceChildren(button(td.textContent, () => choose(choice)));
    }
    const save = () => {
      const href = URL.createObjectURL(new Blob([csv(heads, rows)], { type: "text/csv" }));
      element("a", { href, download: `${name}.csv` }).click();
    };
    tabulate(table, rows, value, (tr) => tr).tools.append(button("CSV", save));
  }

  // -- curves --------------------------------------------------------------------------------

  const WIDTH = 360, HEIGHT = 200, LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 22;
  const color = (k) => `color: hsl(${(210 + 137.5 * k) % 360} 70% 48%)`;
  const brief = (value) => (Math.abs(value) > 1 ? whole(value) : points(value));

  function ticks(low, high) {
    const power = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => (high - low) / n <= 5.5);
    const first = Math.ceil(low / step), last = Math.floor(high / step + 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  }

  /** Draws lines over steps, each with its number, label and points; returns them. */
  function chart(figure) {
    const lines = JSON.parse(figure.dataset.lines), all = lines.flatMap(([, , of]) => of);
    const steps = all.map(([step]) => step), values = all.map(([, value]) => value);
    const first = Math.min(...steps), last = Math.max(...steps);
    const low = Math.min(0, ...values), top = Math.max(...values), high = top > 1 ? top * 1.05 : 1;
    const x = (step) => LEFT + ((step - first) / (last - first)) * (WIDTH - LEFT - RIGHT);
    const y = (value) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    const text = (n) => n.toLocaleString("en", { notation: "compact", maximumFractionDigits: 2 });
    const across = ticks(low, high).flatMap((n) => [
      svgElement("path", { class: "grid", d: `M${LEFT} ${y(n)}H${WIDTH - RIGHT}` }),
      svgElement("text", { x: LEFT - 6, y: y(n) + 4, "text-anchor": "end" }, text(n)),
    ]);
    const below = ticks(first, last).map((n) =>
      svgElement("text", { x: x(n), y: HEIGHT - 6, "text-anchor": "middle" }, text(n)));
    const paths = lines.map(([k, , of]) => svgElement("path", {
      d: `M${of.map(([step, value]) => `${x(step)} ${y(value)}`).join("L")}`, style: color(k),
    }));
    const caption = figure.firstElementChild, title = caption.textContent;
    const ends = lines.map(([, label, of]) => `${label} ends at ${brief(of.at(-1)[1])}`);
    const about = visible(`${title} over steps: ${ends.join(", ")}`);
    const given = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": about };
    const svg = svgElement("svg", given, ...across, ...below, ...paths);

    function read(event) {
      const box = svg.getBoundingClientRect(), scale = WIDTH / box.width;
      const px = (event.clientX - box.left) * scale, py = (event.clientY - box.top) * scale;
      const far = ([step, value]) => Math.hypot(x(step) - px, y(value) - py);
      const marks = lines.flatMap(([, label, of], k) => of.map((at) => [far(at), at, label, k]));
      const [, [step, value], label, near] = marks.reduce((a, b) => (b[0] < a[0] ? b : a));
      caption.textContent = visible(`${title}: ${brief(value)} at step ${whole(step)}, ${label}`);
      svg.classList.add("read");
      paths.forEach((path, k) => path.classList.toggle("near", k === near));
    }
    svg.addEventListener("pointermove", read);
    svg.addEventListener("pointerdown", read);
    svg.addEventListener("pointerleave", () => {
      caption.textContent = title;
      svg.classList.remove("read");
    });
    figure.append(svg);
    return lines;
  }

  function curves() {
    const lines = [...document.querySelectorAll("figure[data-lines]")].flatMap(chart);
    const labels = new Map(lines.map(([k, label]) => [k, label]));
    const key = document.querySelector(".key");
    for (const [k, label] of labels) {
      key.append(element("span", {}, element("i", { style: color(k) }), label));
    }
    key.closest("section").hidden = !lines.length;
  }

  // -- rollouts ------------------------------------------------------------------------------

  const list = byId("rollouts"), article = byId("rollout");
  const labels = JSON.parse(list.dataset.labels), meanings = JSON.parse(list.dataset.meanings);
  const chosen = { run: "", task: "", outcome: "" };
  const chunks = new Map();
  let table, opened = null;

  // Title, value and text of each column.
  const COLUMNS = [
    ["task", (row) => row.task, plain], ["score", (row) => row.score, points],
    ["outcome", (row) => row.outcome, plain], ["run", (row) => labels[row.run], plain],
    ["level", (row) => row.level, points], ["step", (row) => row.step, whole],
    ["tokens", (row) => row.tokens, whole], ["answer", (row) => row.answer, plain],
  ];
  const isNumber = (form) => (form === plain ? "" : "n");
  const colored = (word) => (["right", "partial", "wrong"].includes(word) ? word : "");

  function choose(choice) {
    for (const name of Object.keys(chosen)) {
      const select = byId(`by-${name}`);
      select.value = choice[name] ?? "";
      chosen[name] = select.value;
    }
    table.find();
    byId("list").scrollIntoView();
  }

  function select(name, options) {
    const change = (event) => {
      chosen[name] = event.target.value;
      table.find();
    };
    const made = element("select", { id: `by-${name}`, "aria-label": name, change });
    for (const [value, text] of [["", `all ${name}s`], ...options]) {
      made.append(Object.assign(element("option", {}, text), { value }));
    }
    return made;
  }

  function rolloutTable(rows) {
    const hasRuns = labels.length > 1;
    const columns = COLUMNS.filter(([title, value]) =>
      (title === "run" ? hasRuns : rows.some((row) => known(value(row)))));
    for (const [title, , form] of columns) {
      list.tHead.rows[0].append(element("th", { scope: "col", class: isNumber(form) }, title));
    }
    const cell = (row, [title, value, form]) => {
      const text = form(value(row));
      const kind = title === "outcome" ? colored(text) : isNumber(form);
      return element("td", { class: kind }, title === "task" ? button(text, () => {}) : text);
    };
    const draw = (row) => {
      const given = { class: row === opened ? "open" : "", click: () => open(row, true) };
      const cells = columns.map((column) => cell(row, column));
      return Object.assign(element("tr", given, ...cells), { rollout: row });
    };
    const names = (of) => [...new Set(rows.map(of))].map((name) => [name, name]);
    const accepts = (row) =>
      Object.entries(chosen).every(([name, value]) => value === "" || String(row[name]) === value);
    table = tabulate(list, rows, (row, k) => columns[k][1](row), draw, accepts);
    table.tools.append(select("run", labels.map((label, k) => [k, label])),
      select("task", names((row) => row.task).sort()),
      select("outcome", names((row) => row.outcome)));
    byId("by-run").hidden = !hasRuns;
  }

  /** Returns the texts of a rollout; those of the newest files stay in memory. */
  async function textsOf(row) {
    const number = Math.floor(row.index / CHUNK) + 1;
    if (!chunks.has(number)) {
      await new Promise((load, error) => {
        const src = `texts-${String(number).padStart(4, "0")}.js`;
        document.head.append(element("script", { src, load, error }));
      });
    }
    for (const old of [...chunks.keys()].slice(0, -KEPT_CHUNKS)) chunks.delete(old);
    return chunks.get(number)[row.index % CHUNK];
  }

  const asText = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  const pre = (value, none) =>
    (known(value) ? element("pre", { tabindex: 0 }, asText(value)) : element("p", {}, none));
  const titled = (title, ...nodes) => element("div", {}, element("h3", {}, title), ...nodes);
  const folded = (title, text) =>
    element("details", {}, element("summary", {}, title), pre(text, ""));

  function completion(text) {
    const after = (text ?? "").lastIndexOf("</think>") + 1;
    if (!after) return [titled("Completion", pre(text, "The file holds none."))];
    const end = after + "</think>".length - 1;
    return [folded(`Thinking, ${whole(end)} characters`, text.slice(0, end)),
      titled("Completion after the thinking", pre(text.slice(end), "Nothing follows."))];
  }

  /** Returns the command that prints the item, if `show` can make it. */
  function command({ task, seed, level, params, category }) {
    const isDefault = !known(level) && !Object.keys(params ?? {}).length;
    const isOurs = category !== "own" && /^\w+$/.test(task) && Number.isInteger(seed);
    if (!isOurs || !(known(level) || isDefault)) return [];
    const words = [list.dataset.command, "show", task, "--seed", seed];
    if (known(level)) words.push("--level", level);
    return [titled("To print this item", pre(words.join(" ")))];
  }

  const ELSEWHERE = new Set(["task", "score", "outcome", "question", "answer", "gold_answer",
    "completion", "system", "category", "source", "place", "run"]);
  const facts = (row) => Object.entries(row)
    .filter(([name, value]) => !ELSEWHERE.has(name) && known(value) && value !== false)
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${asText(value)}`).join(" · ");

  async function open(row, goes) {
    opened = row;
    for (const tr of list.tBodies[0].rows) tr.classList.toggle("open", tr.rollout === row);
    const texts = await textsOf(row);
    if (opened !== row) return;
    const about = [row.task, `score ${points(row.score) || "none"}`, labels[row.run]].join(" · ");
    const outcome = element("b", { class: colored(row.outcome) }, row.outcome);
    byId("opened").replaceChildren(
      element("p", {}, `${about} · `, outcome, row.outcome in meanings ? ": " : "",
        plain(meanings[row.outcome])),
      titled("Question", pre(texts.question, "The file holds none.")),
      element("div", { class: "beside" }, titled("Answer", pre(texts.answer, "None was found.")),
        titled("Gold answer", pre(texts.gold_answer, "None is recorded."))),
      ...completion(texts.completion),
      ...(known(texts.system) ? [folded("System prompt", texts.system)] : []),
      ...command(texts),
      element("p", {}, facts(texts)),
      element("p", {}, `From ${texts.source}, ${texts.place}`));
    article.hidden = false;
    if (goes) article.scrollIntoView();
  }
  const beside = (by) => () => {
    const row = table.beside(opened, by);
    if (row) open(row, false);
  };

  return {
    samples([lines, previews]) {
      const names = ["run", "task", "score", "outcome", "level", "step", "tokens"];
      rolloutTable(lines.map((line, index) => {
        const row = { index, answer: previews[index] };
        names.forEach((name, k) => { row[name] = line[k]; });
        return row;
      }));
      document.querySelectorAll("table.numbers").forEach(numberTable);
      curves();
      article.prepend(element("div", { class: "bar" }, button("‹ previous", beside(-1)),
        button("next ›", beside(1))));
      for (const head of document.querySelectorAll("section:not([hidden]) > h2")) {
        document.querySelector("nav").append(
          element("a", { href: `#${head.id}` }, head.textContent));
      }
      document.body.dataset.ready = performance.now().toFixed(0);
    },
    texts([number, rows]) { chunks.set(number, rows); },
  };
})();
