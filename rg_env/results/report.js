// Sorts tables and shows rollouts. Scripts beside the page hand data over as calls of REPORT.
// Every text goes into the page as a text node.
"use strict";

const PAGE = 100, CHUNK = 256;
const byId = (id) => document.getElementById(id);
const list = byId("rollouts"), article = byId("rollout"), more = byId("more");
const names = [...list.tHead.rows[0].cells].map((head) => head.textContent);
const selects = [...document.querySelectorAll("select")];
let rows = [], shown = [], opened = null, chunk = [];

const known = (value) => value !== null && value !== undefined && value !== "";
const text = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

function element(tag, given, ...children) {
  const made = Object.assign(document.createElement(tag), given);
  made.append(...children);
  return made;
}

function form(value) {
  if (typeof value !== "number") return value ?? "";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.min(value, 0.999).toFixed(3); // a score of less than 1 does not look like 1
}

/** Lets the headings of a table sort by `value(row, column)`; `sort` gets the order of rows. */
function sortable(table, value, sort) {
  const heads = [...table.tHead.rows[0].cells];
  const { compare } = new Intl.Collator("en", { numeric: true });
  heads.forEach((head, k) => head.firstChild.addEventListener("click", () => {
    const way = head.ariaSort === "ascending" ? "descending" : "ascending";
    for (const other of heads) other.ariaSort = null;
    head.ariaSort = way;
    sort((one, other) => {
      const a = value(one, k), b = value(other, k);
      if (!known(a) || !known(b)) return known(b) - known(a); // unknown is last either way
      return (way === "ascending" ? 1 : -1) * (typeof a === "number" ? a - b : compare(a, b));
    });
  }));
}

function filter() {
  const wanted = selects.filter((of) => of.value).map((of) => [names.indexOf(of.name), of.value]);
  shown = rows.filter((row) => wanted.every(([k, value]) => row[k] === value));
  draw(PAGE);
}

function draw(count) {
  list.tBodies[0].replaceChildren(...shown.slice(0, count).map((row) => {
    const [first, ...cells] = row.map((value) =>
      element("td", { className: typeof value === "number" ? "n" : "" }, form(value)));
    first.replaceChildren(element("button", {}, form(row[0])));
    const onclick = () => open(row).then(() => article.scrollIntoView());
    return Object.assign(element("tr", { onclick }, first, ...cells), { row });
  }));
  byId("count").textContent = `${form(Math.min(count, shown.length))} of ${form(shown.length)}`;
  more.hidden = count >= shown.length;
  more.onclick = () => draw(count + PAGE);
}

/** Returns the texts of a rollout; those of one file are in memory. */
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
  const isDefault = !known(level) && !Object.keys(params ?? {}).length;
  const isOurs = category !== "own" && /^\w+$/.test(task) && Number.isInteger(seed);
  if (!isOurs || !(known(level) || isDefault)) return "";
  const options = known(level) ? ` --level ${level}` : "";
  return `${list.dataset.command} show ${task} --seed ${seed}${options}`;
}

async function open(row) {
  opened = row;
  for (const tr of list.tBodies[0].rows) tr.classList.toggle("open", tr.row === row);
  const texts = await textsOf(row);
  if (opened !== row) return;
  const { question, answer, gold_answer: gold, completion, system, ...facts } = texts;
  const [, thinking, said] = /^([^]*<\/think>)?([^]*)$/.exec(completion ?? "");
  const parts = { "System prompt": system, Question: question, Answer: answer,
    "Gold answer": gold, Thinking: thinking, Completion: said, "Prints the item": command(texts) };
  const about = Object.entries(facts).filter(([, value]) => known(value) && value !== false);
  byId("opened").replaceChildren(
    ...Object.entries(parts).filter(([, value]) => known(value)).map(([title, value]) =>
      element("details", { open: !/^(System|Thinking)/.test(title) }, element("summary", {}, title),
        element("pre", { tabIndex: 0 }, text(value)))),
    element("p", {}, about.map(([name, value]) => `${name}: ${text(value)}`).join(" · ")));
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
  sortable(table, value, (by) => table.tBodies[0].append(...[...table.tBodies[0].rows].sort(by)));
}

const REPORT = {
  samples(lines) {
    rows = lines.map((line, index) => Object.assign(line, { index }));
    for (const select of selects) {
      const values = new Set(rows.map((row) => row[names.indexOf(select.name)]));
      select.append(...[...values].map((value) => element("option", { value }, value)));
      select.addEventListener("change", filter);
    }
    sortable(list, (row, k) => row[k], (by) => filter(rows.sort(by)));
    filter();
    for (const { id, textContent } of document.querySelectorAll("section:not([hidden]) > h2")) {
      document.querySelector("nav").append(element("a", { href: `#${id}` }, textContent));
    }
    document.body.dataset.ready = performance.now().toFixed(0);
  },
  texts(read) { chunk = read; },
};
