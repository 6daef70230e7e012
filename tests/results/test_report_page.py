"""The page of a report in a browser: what it shows, loads, filters and survives."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from rg_env.results.numbers import paired, row_of, table_of, with_parts
from rg_env.results.report import write_report
from rg_env.results.sources import Sources
from tests.support.hostile_texts import HOSTILE
from tests.support.reported import dump, group, published, rollout
from tools.browser import BROWSERS, Browser

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        not any(map(shutil.which, BROWSERS)), reason="no chromium is installed"
    ),
]

ATTACKS = [
    *("<script>alert(1)</script>", "</pre></details><img src=x onerror=alert(2)>"),
    *("\"'><svg onload=alert(3)>", "</script><script>alert(4)</script>"),
    *("&lt;b&gt; &amp; &#60;", "\n\nbegins with empty lines", "a\r\nb\tc\rd"),
    *("\x00\x1b[31m\x7f", "left \u202e right", "line \u2028 break"),
    "half a pair \ud800",
]
TEXTS = [*ATTACKS, *(h.text for h in HOSTILE if 0 < len(h.text) <= 10_000)]
LONG = "<answer>" + "7" * 2_000_000 + "</answer>"
PRE = "[...document.querySelectorAll('#rollout pre')].map(p => p.textContent)"
ROWS = "document.querySelectorAll('#found-rows tbody tr')"
FOUND = "document.getElementById('found').textContent"


def visible(text: str) -> str:
    """What has to be seen of a text: signs for what nobody can see."""

    def sign(found: re.Match[str]) -> str:
        code = ord(found[0])
        if code < 32:
            return chr(0x2400 + code)
        return "\u2421" if code == 127 else f"\\u{code:04x}"

    unseen = r"[\x00-\x08\x0b-\x1f\x7f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return re.sub(unseen + "|[\ud800-\udfff]", sign, text)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of groups of a run: tasks, levels and outcomes that differ."""
    folder = tmp_path_factory.mktemp("training")
    lines = [
        group(
            rollout("<think>I add.</think><answer>2</answer>", 1.0, answer="2"),
            rollout("<answer>3</answer>", k % 2 / 2, answer="3"),
            rollout("I do not know.", outcome="no_answer", answer=None),
            task=["gcd", "lcm", "spell_backward"][k % 3],
            level=k / 20,
            seed=k,
            minute=k,
        )
        | {"step": k // 5}
        for k in range(20)
    ]
    lines.append(group(rollout(LONG, answer=LONG[8:-9]), task="long", minute=30))
    steps = [{"step": k, "mean_score": k / 9, "loss": 3} for k in range(9)]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, steps)))
    dump(folder, lines)
    write_report([str(folder)], folder / "report")
    return folder / "report" / "index.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of texts that no page may take for anything but text."""
    folder = tmp_path_factory.mktemp("hostile")
    lines = [
        group(
            rollout(f"{text}.", question=text, answer=text, finish_reason=text),
            rollout("plain", question=text),
            task=f"task {text}".encode(errors="replace").decode()[:60],
            gold=text,
        )
        for text in TEXTS
    ]
    dump(folder, lines)
    answers = [(text, text, 0.0) for text in TEXTS[:5]]
    published(folder, "run <b onclick=alert(5)>", "gcd", answers)
    names = ("<style>*{display:none}<", "<img src=x onerror=alert(6)>")
    rows = [{"task": name, "category": name, "score": 1.0} for name in names]
    (folder / f"{names[0]}style>.jsonl").write_text("\n".join(map(json.dumps, rows)))
    alarm = (ATTACKS[0], ATTACKS[1], 3, ATTACKS[2], ATTACKS)
    numbers = {"step": 1, ATTACKS[0]: 1, "alarms": [alarm]}
    (folder / "metrics.jsonl").write_text(json.dumps(numbers))
    paths = [str(folder)]
    out = folder / "report"
    write_report(paths, out, title=ATTACKS[0])
    return out / "index.html"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two models, which disagree on one item of each of two tasks."""
    folder = tmp_path_factory.mktemp("models")
    for task in ("gcd", "lcm"):
        for name, last in (("model_a", 1.0), ("model_b", 0.0)):
            answers = [(f"What is {k}?", str(k), 1.0) for k in range(9)]
            answers.append(("What is 9?", f"9 of {name}", last))
            published(folder, name, task, answers)
    write_report([str(folder)], folder / "report")
    return folder / "report" / "index.html"


def open_reader(browser: Browser, page: Path, place: str) -> None:
    browser.open(page, place)
    browser.wait(f"{FOUND}.includes(' of ') && {ROWS}.length > 0")


def pick(browser: Browser, id_: str, label: str) -> None:
    """Choose an option of a list by what it says."""
    browser.run(
        f"{{ const s = document.getElementById('{id_}');"
        f" s.value = [...s.options].find(o => o.text === {label!r}).value;"
        " s.dispatchEvent(new Event('change', {bubbles: true})) }"
    )


def read_texts(browser: Browser) -> list[str]:
    """Return the files of texts that the page asked for, by name."""
    paths = [unquote(urlsplit(url).path) for url in browser.requests]
    return [Path(path).name for path in paths if "texts-" in path]


# -- opening it ------------------------------------------------------------------------


def test_it_opens_from_the_disk_without_an_error_and_asks_only_for_its_files(
    browser: Browser, training: Path
) -> None:
    browser.requests.clear()
    browser.open(training)
    own = [url for url in browser.requests if url != "about:blank"]
    assert all(url.startswith(training.parent.as_uri()) for url in own)
    assert browser.run("document.querySelectorAll('#task-rows tbody tr').length") == 4
    assert browser.errors == []
    # One run has nothing to be compared with.
    comparing = "[...document.querySelectorAll('.pair, #by-difference')]"
    assert browser.run(f"{comparing}.every(e => e.offsetParent === null)")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1200, "light")])
def test_nothing_runs_out_of_a_narrow_window_in_light_and_dark(
    browser: Browser, training: Path, width: int, scheme: str
) -> None:
    browser.size(width)
    browser.prefer(scheme)
    open_reader(browser, training, "task=long&open=60")
    browser.wait(f"{PRE}.length > 3")
    assert browser.run("document.documentElement.scrollWidth") <= width
    ink = browser.run("getComputedStyle(document.body).color")
    assert ink == {"dark": "rgb(227, 232, 238)", "light": "rgb(28, 36, 48)"}[scheme]
    assert browser.errors == []
    browser.prefer("light")
    browser.size(1200)


# -- the reader ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "count"),
    [
        ("outcome=right", 20),
        ("outcome=no_answer&task=lcm", 7),
        ("low=0.5&high=0.7", 15),
        ("text=I ADD&task=gcd", 7),
        ("text=nowhere", 0),
    ],
)
def test_rollouts_are_filtered(
    browser: Browser, training: Path, place: str, count: int
) -> None:
    browser.open(training, place)
    browser.wait(f"{FOUND} === '{count} of 61 rollouts'")
    assert browser.errors == []


def test_a_rollout_is_read_when_it_is_opened_its_thinking_folded(
    browser: Browser, training: Path
) -> None:
    browser.requests.clear()
    open_reader(browser, training, "outcome=right&task=gcd")
    assert read_texts(browser) == []
    browser.run(f"{ROWS}[0].querySelector('button').click()")
    browser.wait(f"{PRE}.length > 3")
    assert read_texts(browser) == ["texts-0001.js"]
    said: str = browser.run("document.getElementById('rollout').textContent")
    assert "right: full score" in said and "Gold answer" in said
    assert "completion tokens: 5" in said
    folded = "document.querySelector('#rollout section details')"
    assert browser.run(f"{folded}.open") is False
    assert browser.run(f"{folded}.querySelector('pre').textContent") == (
        "<think>I add.</think>"
    )
    assert "<answer>2</answer>" in browser.run(PRE)


# -- two beside each other -------------------------------------------------------------


def test_one_click_goes_from_a_task_to_what_they_disagree_on(
    browser: Browser, models: Path
) -> None:
    browser.open(models)
    disagree = "#task-rows tbody tr:last-child td.n button"
    browser.run(f"document.querySelector('{disagree}').click()")
    browser.wait(f"{FOUND}.startsWith('2 of 40 rollouts, of items')")
    rows: Any = browser.run(
        f"[...{ROWS}].map(r => [1, 4, 2].map(k => r.cells[k].textContent))"
    )
    assert rows == [["lcm", "model_a", "1.000"], ["lcm", "model_b", "0.000"]]
    counted = "[...document.querySelectorAll('#task-rows td.n button')]"
    browser.wait(f"{counted}.every(b => b.textContent === '1 item')")
    browser.run(f"{ROWS}[0].querySelector('button').click()")
    browser.wait("document.querySelectorAll('#rollout section').length === 2")
    texts = browser.run(PRE)
    assert {"9 of model_a", "9 of model_b"} <= set(texts)
    assert browser.errors == []


# -- any number of runs ----------------------------------------------------------------

SAVED = """
(async () => {
  const saved = new Promise((done) => {
    URL.createObjectURL = (blob) => { done(blob); return '#'; };
  });
  document.querySelector('BOX .csv').click();
  return await (await saved).text();
})()
"""


def saved_rows(browser: Browser, box: str) -> list[dict[str, str]]:
    """Return the rows of the CSV file of a table, by their headings."""
    text: str = browser.run(SAVED.replace("BOX", box)).removeprefix("\ufeff")
    return [*csv.DictReader(io.StringIO(text, newline=""))]


def texts(browser: Browser, places: str) -> list[str]:
    found: list[str] = browser.run(
        f"[...document.querySelectorAll({places!r})].map(e => e.textContent)"
    )
    return found


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of three checkpoints of a run, which get better, and its report."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for step in (100, 200, 300):
        name = f"a-model-with-a-long-name-of-7B-grpo-seed1-step-{step}-final"
        scores = [float(k * step % 700 < step) for k in range(12)]
        rows = [
            {"task": task, "category": task[0], "question": f"What is {k}?"}
            | {"level": k % 2, "score": score, "outcome": ["wrong", "right"][score > 0]}
            for task in ("gcd", "graph_color", "lcm")
            for k, score in enumerate(scores)
        ]
        (folder / name).mkdir()
        text = "\n".join(map(json.dumps, rows))
        (folder / name / "samples.jsonl").write_text(text)
    write_report([str(folder)], folder / "report")
    return folder


def test_more_than_two_runs_stand_in_a_matrix_that_is_saved(
    browser: Browser, checkpoints: Path
) -> None:
    browser.open(checkpoints / "report" / "index.html")
    cut = [f"a-model-wit…step-{step}-final" for step in (100, 200, 300)]
    assert texts(browser, "#run-rows td:first-child") == cut
    shown = texts(browser, "#matrix-rows tbody tr:first-child .heat")
    rows = saved_rows(browser, "#matrix-rows")
    assert [row["task"] for row in rows] == ["gcd", "graph_color", "lcm"]
    assert [text[:5] for text in shown] == [f"{float(rows[0][c]):.3f}" for c in cut]


def test_the_difference_of_any_two_runs_is_that_of_compare(
    browser: Browser, checkpoints: Path
) -> None:
    first, *_, last = sorted(checkpoints.glob("a-*"))
    browser.open(checkpoints / "report" / "index.html", f"a={first.name}&b={last.name}")
    browser.wait("[...document.querySelectorAll('.card')].length > 3")
    card = "[...document.querySelectorAll('.card')].map(c => c.innerText)"
    browser.wait(f"{card}.some(t => t.startsWith('B \u2212 A'))")
    said = next(text for text in browser.run(card) if text.startswith("B"))
    files = [path / "samples.jsonl" for path in (first, last)]
    samples = [[*Sources([file]).samples()] for file in files]
    rows = (row_of(sample, n) for n, those in enumerate(samples) for sample in those)
    of = paired(with_parts(table_of(rows)), 0, 1)["all", ""]["by_item"]
    assert of is not None
    numbers = [float(n.replace("\u2212", "-")) for n in re.findall(r"\S\d.\d+", said)]
    assert numbers == pytest.approx([of.mean, of.low, of.high], abs=6e-4)
    assert f"{of.samples} shared items" in said


@pytest.mark.parametrize(
    ("kind", "names"), [("category", ["g", "l"]), ("level", ["0 to 0.1", "0.9 to 1"])]
)
def test_scores_are_summed_by_category_and_by_level(
    browser: Browser, checkpoints: Path, kind: str, names: list[str]
) -> None:
    browser.open(checkpoints / "report" / "index.html", f"by={kind}")
    assert texts(browser, "#task-rows tbody td:first-child") == names
    rows = saved_rows(browser, "#task-rows")
    counts = {"category": [72, 36], "level": [54, 54]}[kind]
    assert [int(row["rollouts"]) for row in rows] == counts
    for row in rows:
        low, high = row["95 % interval"].split(" to ")
        assert low < row["score"] < high


# -- hostile texts ---------------------------------------------------------------------


WALK = """
(async () => {
  const box = document.getElementById('rollout'), found = [];
  for (let place = FIRST; place <= LAST; place += 1) {
    const isOpen = () => box.textContent.includes(` · rollout ${place} · `);
    const end = Date.now() + 9000;
    while (!isOpen() && Date.now() < end) await new Promise(setTimeout);
    found.push(isOpen() ? PRE : []);
    box.querySelectorAll('button')[1].click();
  }
  return found;
})()
"""


def test_every_hostile_text_is_shown_letter_by_letter(
    browser: Browser, hostile: Path
) -> None:
    open_reader(browser, hostile, "open=7")
    first, last = 8, 7 + 2 * len(TEXTS)
    words = {"FIRST": first, "LAST": last, "PRE": PRE}
    walk = re.sub("FIRST|LAST|PRE", lambda word: str(words[word[0]]), WALK)
    for place, shown in enumerate(browser.run(walk), first):
        text = TEXTS[(place - first) // 2]
        assert shown.count(visible(text)) >= 2, (text, shown)
        whole = [*shown, "".join(shown[-2:])]  # where it has thinking
        assert place % 2 or visible(f"{text}.") in whole
    assert browser.errors == []


def test_no_hostile_text_becomes_a_tag(browser: Browser, hostile: Path) -> None:
    open_reader(browser, hostile, "text=alert")
    live = "img, svg:not(.dtcc svg), iframe, object, b[onclick], [onerror], [onload]"
    live += ", body style"
    for by in ("task", "category"):
        pick(browser, "by", {"task": "tasks", "category": "categories"}[by])
        assert browser.run(f"document.querySelectorAll({live!r}).length") == 0
    assert any(text.startswith("<style>") for text in texts(browser, "#matrix-rows th"))
    outside = "[...document.scripts].filter(s => !s.src)"
    assert browser.run(f"{outside}.length") == 0
    assert browser.run("document.title") == ATTACKS[0]
    (note,) = texts(browser, "details.note")
    assert all(visible(text) in note for text in ATTACKS[:3])
    assert browser.errors == []
