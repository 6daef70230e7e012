"""The page of groups: all that was written stands there, and none of it is live."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest

from rg_env.reports import group_page
from rg_env.reports.group_page import ShownGroup, ShownRollout
from rg_env.reports.outcome_words import ENDINGS, OUTCOMES
from rg_env.rollouts.group_json import encode_line
from rg_env.rollouts.ledger import RolloutOutcome
from rg_env.scoring.extraction import FormatFailure
from tests.support.hostile_texts import HOSTILE

ATTACKS = [
    "<script>alert(1)</script>",
    "</pre></details><img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "<!-- groups -->",
    "</style><style>body{display:none}</style>",
    "{{ 7 * 7 }}{% raw %}",
    "\n\nbegins with empty lines",
    "&lt;b&gt; &amp; &#60;",
    "a\r\nb\tc\rd",
    "\x00\x1b[31m\x7f",
    "left \u202e right",
    "half a pair \ud800",
]
TEXTS = [*ATTACKS, *(h.text for h in HOSTILE if len(h.text) <= 10_000)]
"""Length is another test's matter; this one reads the page in Python."""


class Page(HTMLParser):
    """What a browser finds: tags with their attributes, and texts by tag."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: dict[str, list[str]] = defaultdict(list)
        self.rollouts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        name = dict(attrs).get("class") or ""
        if name.startswith("rollout "):
            self.rollouts.append(name.removeprefix("rollout "))
        self._open.append(tag)
        self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data

    @property
    def blocks(self) -> list[str]:
        """The texts that are shown verbatim, as a browser reads them."""
        return [text.removeprefix("\n") for text in self.texts["pre"]]


def rollout(text: str = "t", score: float = 0.0, outcome: str | None = "wrong") -> Any:
    return ShownRollout(text, score, outcome, None)


def group(*rollouts: ShownRollout, **changes: Any) -> ShownGroup:
    prompt = [("system", "Think."), ("user", "What is 1 + 1?")]
    fields = {"task": "gcd", "level": None, "prompt": prompt, "gold_answer": "2"}
    return ShownGroup(**(fields | changes), rollouts=list(rollouts) or [rollout()])


def html_of(folder: Path, groups: Iterable[ShownGroup], **how: Any) -> str:
    page = folder / "page.html"
    how = {"title": "Groups", "is_simulated": False} | how
    group_page.write_page(groups, page, **how)
    return page.read_text(encoding="utf-8")


def hostile_group(text: str) -> ShownGroup:
    shown = ShownRollout(text, 0.0, "wrong", text)
    return group(shown, task=text, prompt=[("user", text)], gold_answer=text)


def visible(text: str) -> str:
    """What has to be seen of a text: signs for what nobody can see."""
    controls = {i: chr(0x2400 + i) for i in range(32) if i not in (9, 10)}
    return (
        text.translate(controls | {0x7F: "\u2421"})
        .encode(errors="backslashreplace")
        .decode()
    )


# -- verbatim and inert ----------------------------------------------------------------


def test_every_text_is_shown_letter_by_letter(tmp_path: Path) -> None:
    page = Page(html_of(tmp_path, map(hostile_group, TEXTS)))
    missing = [text for text in TEXTS if page.blocks.count(visible(text)) < 3]
    assert missing == []


def test_no_text_becomes_a_tag_or_an_attribute(tmp_path: Path) -> None:
    plain = Page(html_of(tmp_path, [hostile_group("plain"), hostile_group("x\ny")]))
    page = Page(html_of(tmp_path, map(hostile_group, TEXTS), title=ATTACKS[0]))
    assert page.tags <= plain.tags and page.attributes <= plain.attributes
    assert "script" not in page.tags


def test_it_loads_nothing_and_may_run_nothing(tmp_path: Path) -> None:
    html = html_of(tmp_path, [group()])
    assert "default-src 'none'" in html
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import|<script", html)


# -- what it says ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "outcome", "colour"),
    [
        (1.0, "right", "right"),
        (0.8, "right", "right"),  # the length penalty took its part
        (0.4, "partial", "partial"),
        (0.01, "wrong", "wrong"),
        (0.0, "wrong", "wrong"),
        (0.0, "no_answer", "none"),
        (0.0, "rejected", "none"),
        (1.0, None, "right"),
        (0.4, None, "partial"),
        (0.01, None, "wrong"),
    ],
)
def test_the_outcome_decides_the_colour(
    tmp_path: Path, score: float, outcome: str | None, colour: str
) -> None:
    page = Page(html_of(tmp_path, [group(rollout("t", score, outcome))]))
    assert page.rollouts == [colour]


def test_the_head_counts_groups_rollouts_and_outcomes(tmp_path: Path) -> None:
    groups = [
        group(rollout("a", 1.0, "right"), rollout("b", 0.0, "no_answer")),
        group(rollout("c", 1.0, "right"), rollout("d", 0.5, "partial")),
    ]
    page = Page(html_of(tmp_path, groups))
    assert page.texts["dd"] == ["2", "4", "0.62", "50%"]
    cells = [page.texts["td"][i : i + 3] for i in range(0, 12, 4)]
    assert cells == [
        ["right", "2", "50.0%"],
        ["partial", "1", "25.0%"],
        ["no_answer", "1", "25.0%"],
    ]


def test_a_score_below_1_is_not_shown_as_1(tmp_path: Path) -> None:
    html = html_of(tmp_path, [group(rollout("t", 0.9998, "partial"))])
    assert '<span class="score">0.99</span>' in html


def test_a_group_shows_its_question_and_gold_answer_once(tmp_path: Path) -> None:
    page = Page(html_of(tmp_path, [group(rollout("a"), rollout("b"))]))
    assert page.blocks == ["Think.", "What is 1 + 1?", "2", "a", "b"]


def test_another_system_prompt_stands_with_its_group(tmp_path: Path) -> None:
    other = group(prompt=[("system", "Guess."), ("user", "What is 2 + 2?")])
    page = Page(html_of(tmp_path, [group(), group(), other]))
    assert (page.blocks.count("Think."), page.blocks.count("Guess.")) == (1, 1)


def test_a_rollout_is_called_a_rollout(tmp_path: Path) -> None:
    page = Page(html_of(tmp_path, [group(rollout(), rollout())]))
    assert page.texts["strong"] == ["gcd", "Rollout 1", "Rollout 2"]


def test_it_says_that_the_model_is_simulated_where_it_is(tmp_path: Path) -> None:
    said = [html_of(tmp_path, [group()], is_simulated=is_so) for is_so in (True, False)]
    assert ["simulated" in html for html in said] == [True, False]


def test_a_page_without_groups_says_so_in_numbers(tmp_path: Path) -> None:
    assert Page(html_of(tmp_path, [])).texts["dd"] == ["0", "0"]


@pytest.mark.parametrize(
    ("answer", "begin", "blocks"),
    [
        ("7", ["7"], []),
        ("1 2\n3 4", ["1 2 …"], ["1 2\n3 4"]),
        ("x" * 200, ["x" * 80 + " …"], ["x" * 200]),
        ("", [], []),
        (None, [], []),
    ],
)
def test_a_long_answer_begins_in_the_heading_and_stands_whole_below(
    tmp_path: Path, answer: str | None, begin: list[str], blocks: list[str]
) -> None:
    shown = ShownRollout("text", 1.0, "right", answer)
    page = Page(html_of(tmp_path, [group(shown)]))
    assert (page.texts["code"], page.blocks[3:-1]) == (begin, blocks)


# -- size ------------------------------------------------------------------------------


def test_a_rollout_costs_little_beyond_its_text(tmp_path: Path) -> None:
    shown = ShownRollout("x" * 1_000, 0.0, "unfinished_thinking", "12345")
    sizes = [
        len(html_of(tmp_path, [group(*[shown] * 8)] * count)) for count in (10, 20)
    ]
    assert (sizes[1] - sizes[0]) / 80 < 1_000 + 400


# -- files -----------------------------------------------------------------------------


def messages(text: str) -> list[dict[str, str]]:
    roles = ("system", "user", "assistant")
    texts = ("Think.", "What?", text)
    return [{"role": r, "content": t} for r, t in zip(roles, texts, strict=True)]


def page_of_rows(folder: Path, *rows: dict[str, Any]) -> Page:
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join(map(encode_line, rows)))
    page = group_page.write_page_of(path)
    assert page is not None
    return Page(page.read_text(encoding="utf-8"))


def test_rows_are_shown_with_outcome_and_answer(tmp_path: Path) -> None:
    row = {
        "scores": [1.0, 0.0],
        "task": "gcd",
        "gold_answer": 7,
        "answers": ["7", None],
        "outcomes": ["right", "no_answer"],
        "level": 0.25,
        "messages": [messages("<answer>7</answer>"), messages("half \ud800")],
        "tokens": [[1], [2]],
    }
    page = page_of_rows(tmp_path, row)
    assert page.rollouts == ["right", "none"]
    assert page.texts["code"] == ["7"]
    assert page.blocks[-3:] == ["7", "<answer>7</answer>", "half \\ud800"]
    assert "level 0.25" in " ".join(page.texts["span"])


def test_rows_whose_names_have_a_dot_have_a_page_each(tmp_path: Path) -> None:
    names = ["run_t0.7", "run_t0.9", "run.jsonl"]
    for name in names:
        (tmp_path / name).touch()
    pages = [group_page.write_page_of(tmp_path / name) for name in names]
    assert [page and page.name for page in pages] == [
        "run_t0.7.html",
        "run_t0.9.html",
        "run.html",
    ]


def test_rows_of_the_framework_are_shown_by_their_scores(tmp_path: Path) -> None:
    old = {"scores": [1.0, 0.0], "messages": [messages("a"), messages("b")]}
    page = page_of_rows(tmp_path, {"scores": [1.0]}, old)
    assert page.rollouts == ["right", "wrong"]
    assert "not_recorded" in page.texts["td"]


def test_dumps_are_shown_those_of_the_original_too(tmp_path: Path) -> None:
    first = {"conversation": messages("a"), "score": 1.0}
    second = {"conversation": messages("b"), "score": 0.3, "outcome": "partial"}
    path = tmp_path / "dump.jsonl"
    lines = [
        {"item_id": "gcd", "rollouts": [first]},
        {"item_id": "x", "task": "lcm", "gold_answer": "4", "rollouts": [second]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = Page(html_of(tmp_path, group_page.groups_of_dumps([path])))
    assert page.rollouts == ["right", "partial"]
    assert page.texts["strong"] == ["gcd", "Rollout 1", "lcm", "Rollout 1"]


def test_a_page_that_cannot_be_made_leaves_the_old_one_and_nothing_else(
    tmp_path: Path,
) -> None:
    def broken() -> Iterable[ShownGroup]:
        yield group()
        raise OSError("the disk is gone")

    html = html_of(tmp_path, [group()])
    with pytest.raises(OSError, match="gone"):
        html_of(tmp_path, broken())
    assert [path.read_text() for path in tmp_path.iterdir()] == [html]


# -- words -----------------------------------------------------------------------------


def test_every_outcome_of_a_rollout_has_its_meaning(repo_root: Path) -> None:
    documented = (repo_root / "docs/answers_and_rewards.md").read_text()
    words = re.findall(r"^\| `(\w+)` \| (?!none)", documented, re.MULTILINE)
    assert set(words) == set(OUTCOMES) >= set(get_args(FormatFailure))


def test_every_ending_of_rollouts_has_its_meaning() -> None:
    assert list(ENDINGS) == list(get_args(RolloutOutcome))
