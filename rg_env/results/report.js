// Sorts tables and shows rollouts. The scripts beside the page call REPORT with the data.
// Every text is put into the page as a text node, so it is never HTML.
"use strict";

const PAGE = 100, CHUNK = 256;
const byId = (id) => document.getElementById(id);
const list = byId("rollouts"), article = byId("rollout"), more = byId("more");
const names = [...list.tHead.rows[0].cells].map((head) => head.textContent);
const selects = [...document.querySelectorAll("select")];
let rows = [], shown = [], opened = null, chunk = [];

const isKnown = (value) => value !== null && value !== undefined && value !== "";
const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

function element(tag, properties, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function format(value) {
  if (typeof value !== "number") return value ?? "";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.min(value, 0.999).toFixed(3); // a score below 1 is not shown as 1
}

/** Makes the headings of a table call `sort` with the order of rows by `value(row, column)`. */
function sortable(table, value, sort) {
  const heads = [...table.tHead.rows[0].cells];
  const { compare } = new Intl.Collator("en", { numeric: true });
  heads.forEach((head, k) => head.firstChild.addEventListener("click", () => {
    const direction = head.ariaSort === "ascending" ? "descending" : "ascending";
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = direction;
    const sign = direction === "ascending" ? 1 : -1;
    sort((first, second) => {
      const a = value(first, k), b = value(second, k);
      if (!isKnown(a) || !isKnown(b)) return isKnown(b) - isKnown(a); // unknown values come last
      return sign * (typeof a === "number" ? a - b : compare(a, b));
    });
  }));
}

function filter() {
  const chosen = selects.filter((select) => select.value);
  shown = rows.filter((row) =>
    chosen.every(({ name, value }) => row[names.indexOf(name)] === value));
  draw(PAGE);
}

function draw(count) {
  list.tBodies[0].replaceChildren(...shown.slice(0, count).map((row) => {
    const [first, ...cells] = row.map((value) =>
      element("td", { className: typeof value === "number" ? "n" : "" }, format(value)));
    first.replaceChildren(element("button", {}, format(row[0])));
    const onclick = () => open(row).then(() => article.scrollIntoView());
    return Object.assign(element("tr", { onclick }, first, ...cells), { row });
  }));
  byId("count").textContent = `${format(Math.min(count, shown.length))} of ${format(shown.length)}`;
  more.hidden = count >= shown.length;
  more.onclick = () => draw(count + PAGE);
}

/** Returns the texts of a rollout; only one file of them is in memory. */
async function textsOf({ index }) {
  const number = Math.floor(index / CHUNK) + 1;
  if (chunk[0] !== number) {
    await new Promise((onload, onerror) => {
      const src = `texts-${String(number).padStart(4, "0")}.js`;
      document.head.append(element("script", { src, onload, onerror }));
    });
  }
  return chunk[1][index % CHUNK];
}

/** Returns the command that prints the item, "" if `show` cannot make it. */
function command({ task, seed, level, params, category }) {
  const isDefault = !isKnown(level) && !Object.keys(params ?? {}).length;
  const isOurs = category !== "own" && /^\w+$/.test(task) && Number.isInteger(seed);
  if (!isOurs || !(isKnown(level) || isDefault)) return "";
  const options = isKnown(level) ? ` --level ${level}` : "";
  return `${list.dataset.command} show ${task} --seed ${seed}${options}`;
}

async function open(row) {
  opened = row;
  for (const tr of list.tBodies[0].rows) tr.classList.toggle("open", tr.row === row);
  const texts = await textsOf(row);
  if (opened !== row) return;
  const { question, answer, gold_answer: gold, completion, system, ...facts } = texts;
  const [, thinking, rest] = /^([^]*<\/think>)?([^]*)$/.exec(completion ?? "");
  const parts = { "System prompt": system, Question: question, Answer: answer,
    "Gold answer": gold, Thinking: thinking, Completion: rest, "Prints the item": command(texts) };
  const shownFacts = Object.entries(facts).filter(([, value]) => isKnown(value) && value !== false);
  byId("opened").replaceChildren(
    ...Object.entries(parts).filter(([, value]) => isKnown(value)).map(([title, value]) =>
      element("details", { open: !/^(System|Thinking)/.test(title) }, element("summary", {}, title),
        element("pre", { tabIndex: 0 }, text(value)))),
    element("p", {}, shownFacts.map(([name, value]) => `${name}: ${text(value)}`).join(" · ")));
  article.hidden = false;
}

article.querySelectorAll("button").forEach((button, k) => button.addEventListener("click", () => {
  const row = shown[shown.indexOf(opened) + (k ? 1 : -1)];
  if (row) open(row);
}));
for (const link of document.querySelectorAll("a[data-run]")) {
  link.addEventListener("click", () => {
    for (const select of selects) select.value = link.dataset[select.name] ?? "";
    filter();
  });
}
for (const table of document.querySelectorAll("table.numbers")) {
  const value = ({ cells }, k) =>
    ("value" in cells[k].dataset ? Number(cells[k].dataset.value) : cells[k].textContent);
  const [body] = table.tBodies;
  sortable(table, value, (order) => body.append(...[...body.rows].sort(order)));
}

const REPORT = {
  samples(lines) {
    rows = lines.map((line, index) => Object.assign(line, { index }));
    for (const select of selects) {
      const values = new Set(rows.map((row) => row[names.indexOf(select.name)]));
      select.append(...[...values].map((value) => element("option", { value }, value)));
      select.addEventListener("change", filter);
    }
    sortable(list, (row, k) => row[k], (order) => filter(rows.sort(order)));
    filter();
    for (const { id, textContent } of document.querySelectorAll("section:not([hidden]) > h2")) {
      document.querySelector("nav").append(element("a", { href: `#${id}` }, textContent));
    }
    document.body.dataset.ready = performance.now().toFixed(0);
  },
  texts(numberAndTexts) { chunk = numberAndTexts; },
};
