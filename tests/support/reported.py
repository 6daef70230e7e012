"""Files of each kind that a report reads, written by ourselves."""

import json
from html.parser import HTMLParser

from rg_env.group_encoding import encode_group
from rg_env.run.group import Rollout
from tests.support.groups import scored
from tests.support.published import document, write

UUID = "0123abcd-0000-4000-8000-000000000001"


def write_lines(path, rows):
    """Write a line for each row, a text as it is; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def rollout(text, score=0.0, **more):
    outcome = {1.0: "right", 0.0: "wrong"}.get(score, "partial")
    given = {"reward": score, "outcome": outcome, "answer": text.strip()}
    given |= {"finish_reason": "stop", "prompt_tokens": 9, "completion_tokens": 5}
    question = more.pop("question", "What is 1 + 1?")
    said = [("system", "Think."), ("user", question), ("assistant", text)]
    talk = [{"role": role, "content": content} for role, content in said]
    return Rollout(conversation=talk, score=score, **(given | more))


def group(
    *rollouts,
    task="gcd",
    gold="2",
    level=None,
    seed=7,
    minute=0,
):
    time = f"2026-01-31T12:{minute:02}:00+00:00"
    origin = {"index": seed, "seed": seed, "level": level, "params": {"max_numbers": 2}}
    record = scored(task, rollouts, gold, **origin)
    return record.line({"reasoning_gym": "0.1.25"}, time)


def dump(folder, groups):
    name = f"reasoning_gym_environment_rollouts_{UUID}_0000.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(encode_group(g) + b"\n" for g in groups))
    return folder / name


def published(folder, run, task, texts):
    """Write results in the layout of the published ones; a question and answer each."""
    entries = [{"question": text, "answer": text} for text in texts]
    found = document(task, "arithmetic", {}, entries, lambda place: ["right"])
    return write(folder, run, found)


def read_script(path):
    """Return what a script of a report hands over."""
    text = path.read_text(encoding="ascii")
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])


class Page(HTMLParser):
    """What a page says before anything is done with it.

    `tables` are title to rows by their headings, with the exact number of a cell;
    `curves` are caption to the style, label and points of each line,
    from 0 to 1000, the highest at 0.
    """

    def __init__(self):
        super().__init__()
        self.title = ""
        self.tables = {}
        self.notes = []
        self.curves = {}
        self._open = []
        self._figure = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self._open.append(tag)
        if tag == "tr":
            self.tables.setdefault(self.title, []).append([])
        elif tag in ("td", "th"):
            self.tables[self.title][-1].append(given.get("data-value") or "")
        elif tag == "p" and "main" not in self._open:
            self.notes.append("")
        elif tag == "polyline":
            pairs = (point.split(",") for point in (given["points"] or "").split())
            points = [(float(x), float(y)) for x, y in pairs]
            self._figure.append([given["style"], "", points])
        elif tag == "h2":
            self.title = ""

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        if inside == "h2":
            self.title += data
        elif inside == "p" and "main" not in self._open:
            self.notes[-1] += data
        elif inside == "figcaption":
            self._figure = self.curves.setdefault(data, [])
        elif inside == "title" and "polyline" in self._open:
            self._figure[-1][1] = data
        elif {"td", "th"} & {*self._open}:
            row = self.tables[self.title][-1]
            row[-1] = row[-1] or data.strip()


def read_page(folder):
    page = Page()
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    page.tables = {
        title: [dict(zip(heads, row, strict=True)) for row in rows]
        for title, (heads, *rows) in page.tables.items()
    }
    page.notes = [" ".join(note.split()) for note in page.notes if note]
    return page
