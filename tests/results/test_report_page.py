"""The page of a report in a browser: what it shows, loads, filters and survives."""

import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from rg_env.errors import visible
from rg_env.installation import COMMAND
from rg_env.results.report import write_report
from tests.support.hostile_texts import HOSTILE
from tests.support.reported import dump, group, published, rollout, write_lines
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
PRE = "[...document.querySelectorAll('#opened pre')].map(p => p.textContent)"
ROWS = "document.querySelectorAll('#rollouts tbody tr')"
COUNT = "document.getElementById('count').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def training(tmp_path_factory):
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
    write_lines(folder / "metrics.jsonl", steps)
    dump(folder, lines)
    write_report([str(folder)], folder / "report")
    return folder / "report" / "index.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
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
    published(folder, "run <b onclick=alert(5)>", "gcd", TEXTS[:5])
    names = ("<style>*{display:none}<", "<img src=x onerror=alert(6)>")
    rows = [{"task": name, "category": name, "score": 1.0} for name in names]
    write_lines(folder / f"{names[0]}style>.jsonl", rows)
    alarm = (ATTACKS[0], ATTACKS[1], 3, ATTACKS[2], ATTACKS)
    numbers = [{"step": k, "mean_score": 1, "alarms": [alarm]} for k in range(2)]
    write_lines(folder / "'><b onclick=alert(7)>_metrics.jsonl", numbers)
    out = folder / "report"
    write_report([str(folder)], out, title=ATTACKS[0])
    return out / "index.html"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """The page of twenty checkpoints of a run, which get better."""
    folder = tmp_path_factory.mktemp("checkpoints")
    for step in range(20):
        name = f"a-model-with-a-long-name-of-7B-grpo-seed1-step-{step:02}-final"
        rows = [
            {"task": task, "question": f"What is {k}?", "score": float(k < step)}
            for task in ("gcd", "graph_color", "lcm")
            for k in range(12)
        ]
        write_lines(folder / name / "samples.jsonl", rows)
    write_report([str(folder)], folder / "report")
    return folder / "report" / "index.html"


def texts(browser, places):
    return browser.run(
        f"[...document.querySelectorAll({places!r})].map(e => e.textContent)"
    )


def click(browser, place):
    browser.run(f"document.querySelector({place!r}).click()")


def give(browser, place, value):
    """Give a field a value, as somebody who types or chooses it."""
    browser.run(
        f"{{ const field = document.querySelector({place!r}); field.value = {value!r};"
        " for (const kind of ['input', 'change'])"
        " field.dispatchEvent(new Event(kind, {bubbles: true})) }"
    )


def open_first(browser):
    click(browser, "#rollouts tbody td button")
    browser.wait("document.getElementById('opened').textContent.includes('source: ')")


def read_texts(browser):
    """Return the files of texts that the page asked for, by name."""
    paths = [unquote(urlsplit(url).path) for url in browser.requests]
    return [Path(path).name for path in paths if "texts-" in path]


# -- opening it ------------------------------------------------------------------------


def test_it_opens_from_the_disk_without_an_error_and_asks_only_for_its_files(
    browser, training
):
    browser.requests.clear()
    browser.open(training)
    own = [url for url in browser.requests if url != "about:blank"]
    assert all(url.startswith(training.parent.as_uri()) for url in own)
    titles = texts(browser, "nav a")
    sections = ["Tasks", "Categories", "Levels", "Outcomes", "Rollouts"]
    assert titles == ["Runs", "Over time", *sections]
    assert browser.errors == []


@pytest.mark.parametrize(("width", "scheme"), [(375, "dark"), (1400, "light")])
@pytest.mark.parametrize("page", ["training", "checkpoints", "hostile"])
def test_nothing_runs_out_of_a_narrow_window_in_light_and_dark(
    browser,
    page,
    width,
    scheme,
    request,
):
    browser.size(width)
    browser.prefer(scheme)
    browser.open(request.getfixturevalue(page))
    open_first(browser)
    assert browser.run("document.documentElement.scrollWidth") <= width
    ink = browser.run("getComputedStyle(document.body).color")
    assert ink == {"dark": "rgb(227, 232, 238)", "light": "rgb(28, 36, 48)"}[scheme]
    assert browser.errors == []
    browser.prefer("light")
    browser.size(1200)


# -- tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "column", "up", "down"),
    [
        ("list", 3, "0", "0.950"),  # a level
        ("list", 1, "0", "1"),
        ("outcomes", 1, "0.164", "0.328"),
        (
            "outcomes",
            3,
            "full score",
            "score 0, or up to 0.05 if the answer is readable",
        ),
    ],
)
def test_a_click_on_a_heading_sorts_what_is_unknown_last(
    browser, training, title, column, up, down
):
    browser.open(training)
    table = f"document.getElementById('{title}').closest('section')"
    head = f"{table}.querySelectorAll('th button')[{column}].click()"
    cells = f"[...{table}.querySelectorAll('tbody tr')].map(r => r.cells[{column}])"
    for first in (up, down):
        browser.run(head)
        shown = browser.run(f"{cells}.map(cell => cell.innerText.split('\\n')[0])")
        assert shown[0] == first
        assert column != 3 or title != "list" or shown[-1] == ""


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"outcome": "right"}, 20),
        ({"outcome": "no_answer", "task": "lcm"}, 7),
        ({"outcome": "partial", "task": "long"}, 0),
    ],
)
def test_rollouts_are_filtered(browser, training, fields, count):
    browser.open(training)
    for name, value in fields.items():
        give(browser, f"select[name={name}]", value)
    assert browser.run(COUNT) == f"{count} of {count}"
    assert browser.run(f"{ROWS}.length") == count
    assert browser.errors == []


def test_a_click_on_a_task_lists_the_rollouts_of_that_run_and_task(
    browser, checkpoints
):
    browser.open(checkpoints)
    assert browser.run(COUNT) == "100 of 720"
    click(browser, "#more")
    assert browser.run(COUNT) == "200 of 720"
    name = "a-model-with-a-long-name-of-7B-grpo-seed1-step-19-final"
    click(browser, f"a[data-run='{name}'][data-task=gcd]")
    assert browser.run(COUNT) == "12 of 12"
    assert {*texts(browser, "#rollouts td:nth-child(2)")} == {"gcd"}
    open_first(browser)  # its texts are in the third file
    assert "step-19-final/samples.jsonl" in texts(browser, "#opened")[0]


# -- the reader ------------------------------------------------------------------------


def test_a_rollout_is_read_when_it_is_opened_its_thinking_folded(browser, training):
    browser.requests.clear()
    browser.open(training)
    assert read_texts(browser) == []
    open_first(browser)
    assert read_texts(browser) == ["texts-0001.js"]
    (said,) = texts(browser, "#opened")
    assert all(f in said for f in ("outcome: right", "seed: 0", "max_numbers"))
    folded = texts(browser, "#opened details:not([open]) pre")
    assert folded == ["Think.", "<think>I add.</think>"]
    assert {"<answer>2</answer>", f"{COMMAND} show gcd --seed 0 --level 0"} <= set(
        browser.run(PRE)
    )


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"level": 0.25}, "--seed 7 --level 0.25"),
        ({"params": {}}, "--seed 7"),
        ({"params": {"max_value": 3}}, None),
        ({"task": "of_my_own", "level": 0.25}, None),
    ],
)
def test_a_command_is_given_where_show_can_make_the_item(
    browser, tmp_path, changes, options
):
    path = dump(tmp_path / "d", [group(rollout("2", 1.0)) | changes])
    write_report([str(path)], tmp_path / "report")
    browser.open(tmp_path / "report" / "index.html")
    open_first(browser)
    commands = [text for text in browser.run(PRE) if COMMAND in text]
    assert commands == ([] if options is None else [f"{COMMAND} show gcd {options}"])


# -- hostile texts ---------------------------------------------------------------------


WALK = """
(async () => {
  const box = document.getElementById('opened'), found = [];
  const next = document.querySelectorAll('#rollout > .bar button')[1];
  for (let place = FIRST; place < LAST; place += 1) {
    if (place) next.click();
    const end = `place: ${(place >> 1) + 1}.${place % 2 + 1} `;
    while (!box.textContent.includes(end)) await new Promise((go) => setTimeout(go));
    found.push(PRE);
  }
  return found;
})()
"""


def test_every_hostile_text_is_shown_letter_by_letter(browser, hostile):
    browser.open(hostile)
    runs = browser.run(
        "[...document.querySelectorAll('[name=run] option')].map(o => o.value)"
    )
    dumped = next(name for name in runs if "0123abcd" in name)
    give(browser, "[name=run]", dumped)
    open_first(browser)
    walk = WALK.replace("PRE", PRE)
    found = []
    while len(found) < 2 * len(TEXTS):  # in parts, each of which is quick
        last = min(len(found) + 40, 2 * len(TEXTS))
        part = walk.replace("FIRST", str(len(found))).replace("LAST", str(last))
        found += browser.run(part)
    for place, shown in enumerate(found):
        text = TEXTS[place // 2]
        assert shown.count(visible(text)) >= 2, (text, shown)
        ends = [k for k, part in enumerate(shown) if part.endswith("</think>")]
        whole = [*shown, *("".join(shown[k : k + 2]) for k in ends)]
        assert place % 2 or visible(f"{text}.") in whole
    assert browser.errors == []


def test_no_hostile_text_becomes_a_tag(browser, hostile):
    browser.open(hostile)
    open_first(browser)
    live = "img, svg:not(figure svg), iframe, object, [onclick], [onerror], [onload]"
    live += ", body style"
    assert browser.run(f"document.querySelectorAll({live!r}).length") == 0
    assert any(text.startswith("<style>") for text in texts(browser, "td"))
    outside = "[...document.scripts].filter(s => !s.src)"
    assert browser.run(f"{outside}.length") == 0
    assert browser.run("document.title") == ATTACKS[0]
    (note,) = texts(browser, "details.note")
    assert all(visible(text) in note for text in ATTACKS[:3])
    assert browser.errors == []
