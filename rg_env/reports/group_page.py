"""The page of groups: question, gold answer and every rollout, in one file.

It needs no network and runs nothing: it opens from the disk, a closed group costs the
browser next to nothing, and whatever a model wrote stands there letter by letter.

Mends B24 of docs/host_defects.md: the framework's page takes messages for markdown, in
which `<think>` and `<answer>` disappear and a model's HTML is live. This page is made
without it, by a template that escapes every value.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from rg_env import ending
from rg_env.reports.outcome_words import OUTCOMES
from rg_env.rollouts.group_json import read_groups
from rg_env.scoring.score import outcome_of

logger = logging.getLogger(__name__)

SIMULATED = (
    "The model is simulated: these texts and scores say nothing about any real one."
)
NOT_RECORDED = "not_recorded"
"""Stands for the outcome of a rollout whose file holds none."""

INLINE_CHARS = 80
"""What the heading of a rollout shows of its answer."""

# A control character would be invisible, or be changed by the browser: it is shown by
# the sign that Unicode has for it. Tab and line feed are what they look like.
_CONTROL_SIGNS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_CONTROL_SIGNS[0x7F] = 0x2421


@dataclasses.dataclass(frozen=True)
class ShownRollout:
    """A rollout as the page shows it.

    Attributes:
        text: The completion.
        score: In [0, 1].
        outcome: Why the score is what it is; None where the file does not say.
        answer: The extracted answer, None where there was none.
    """

    text: str
    score: float
    outcome: str | None
    answer: str | None

    @property
    def colour(self) -> str:
        """The class of its colour: right, partial, wrong, or none without an answer."""
        word = self.outcome or outcome_of(self.score)
        return word if word in ("right", "partial", "wrong") else "none"

    @property
    def begin_of_answer(self) -> str:
        """What the heading shows of the answer: all of it, or its beginning."""
        first, _, rest = (self.answer or "").strip().partition("\n")
        is_cut = bool(rest) or len(first) > INLINE_CHARS
        return f"{first[:INLINE_CHARS]} …" if is_cut else first

    @property
    def is_answer_cut(self) -> bool:
        """Whether the heading does not show all of the answer."""
        return (self.answer or "") != self.begin_of_answer


@dataclasses.dataclass(frozen=True)
class ShownGroup:
    """A group as the page shows it.

    Attributes:
        task: The task of its item, "group" where the file does not say.
        level: The level of its item, in [0, 1]; None if no level made it.
        prompt: Role and text of each message before the completion.
        gold_answer: The library's answer; None where it has none.
        rollouts: Shape (G,), at least one.
    """

    task: str
    level: float | None
    prompt: Sequence[tuple[str, str]]
    gold_answer: str | None
    rollouts: Sequence[ShownRollout]

    @property
    def mean_score(self) -> float:
        """The mean of the scores, in [0, 1]."""
        return sum(r.score for r in self.rollouts) / len(self.rollouts)

    @property
    def num_right(self) -> int:
        """Rollouts of full score."""
        return sum(rollout.colour == "right" for rollout in self.rollouts)


@dataclasses.dataclass
class _Totals:
    """What the head of the page says of all groups."""

    groups: int = 0
    score_sum: float = 0.0
    outcomes: Counter[str] = dataclasses.field(default_factory=Counter)
    colours: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, group: ShownGroup) -> None:
        self.groups += 1
        for rollout in group.rollouts:
            self.score_sum += rollout.score
            self.outcomes[rollout.outcome or NOT_RECORDED] += 1
            self.colours[rollout.colour] += 1

    @property
    def rollouts(self) -> int:
        return sum(self.outcomes.values())


# -- what the files hold ---------------------------------------------------------------


class _Wanted(TypedDict, total=False):
    """The fields of a line that are shown; the token lists are ten times as long."""

    task: Any
    item_id: Any
    level: Any
    gold_answer: Any
    messages: Any
    scores: Any
    outcomes: Any
    answers: Any
    rollouts: Any


_WANTED = msgspec.json.Decoder(_Wanted)


def _decode(line: bytes) -> Any:
    try:
        return _WANTED.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(line)  # it takes half a pair of a surrogate


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _prompt(conversation: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(_text(m["role"]), _text(m["content"])) for m in conversation[:-1]]


def _shown(row: Mapping[str, Any], rollouts: Sequence[ShownRollout]) -> ShownGroup:
    conversations = row.get("messages") or [row["rollouts"][0]["conversation"]]
    gold, level = row.get("gold_answer"), row.get("level")
    return ShownGroup(
        task=_text(row.get("task") or row.get("item_id") or "group"),
        level=level if isinstance(level, (int, float)) else None,
        prompt=_prompt(conversations[0]),
        gold_answer=None if gold is None else _text(gold),
        rollouts=rollouts,
    )


def groups_of_rows(path: Path) -> Iterator[ShownGroup]:
    """Yield the groups of a file of `process`; rows without messages are left out."""
    for row in read_groups(path, _decode):
        if not row.get("messages"):
            continue
        nothing = [None] * len(row["messages"])
        parts = zip(
            row["messages"],
            row["scores"],
            row.get("outcomes") or nothing,
            row.get("answers") or nothing,
            strict=True,
        )
        rollouts = [
            ShownRollout(_text(messages[-1]["content"]), float(score), outcome, answer)
            for messages, score, outcome, answer in parts
        ]
        yield _shown(row, rollouts)


def groups_of_dumps(paths: Iterable[Path]) -> Iterator[ShownGroup]:
    """Yield the groups of dump files."""
    for path in paths:
        for row in read_groups(path, _decode):
            rollouts = [
                ShownRollout(
                    _text(rollout["conversation"][-1]["content"]),
                    float(rollout["score"]),
                    rollout.get("outcome"),
                    rollout.get("answer"),
                )
                for rollout in row["rollouts"]
            ]
            yield _shown(row, rollouts)


# -- the page --------------------------------------------------------------------------


def _verbatim(text: str) -> str:
    return text.translate(_CONTROL_SIGNS)


def _score(value: float) -> str:
    """Return a score with two decimals; what is less than 1 does not look like 1."""
    return f"{value if value >= 1.0 else min(value, 0.99):.2f}"


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"verbatim": _verbatim, "score": _score}
    return environment


def _written_groups(
    groups: Iterable[ShownGroup], template: Template
) -> Iterator[tuple[ShownGroup, str]]:
    """Yield each group with its part of the page."""
    common: Sequence[tuple[str, str]] | None = None
    for number, group in enumerate(groups, start=1):
        system = group.prompt[:-1]
        common = system if common is None else common
        yield (
            group,
            template.render(
                number=number,
                group=group,
                own_system=[] if system == common else system,
                question=group.prompt[-1][1] if group.prompt else "",
            ),
        )


def _outcome_rows(totals: _Totals) -> list[tuple[str, int, str, str]]:
    """Return word, rollouts, colour and meaning of each outcome, the best first."""
    known = {word: number for number, word in enumerate(OUTCOMES)}
    found = sorted(
        totals.outcomes, key=lambda word: (known.get(word, len(known)), word)
    )
    return [
        (
            word,
            totals.outcomes[word],
            word if word in ("right", "partial", "wrong") else "none",
            OUTCOMES.get(word, ""),
        )
        for word in found
    ]


def write_page(
    groups: Iterable[ShownGroup], page: Path, *, title: str, is_simulated: bool
) -> int:
    """Write a page; one that was there is replaced when the new one is whole.

    Memory holds one group at a time.

    Args:
        groups: What it shows, in this order.
        page: The file.
        title: Its heading.
        is_simulated: Whether it says that the model is simulated.

    Returns:
        Groups on the page.

    Raises:
        OSError: The disk does not take it; nothing of it is left.
        Stopped: A signal came; nothing of it is left either.
    """
    templates = _templates()
    totals, system = _Totals(), None
    form: dict[str, Any] = {
        "mode": "w+",
        "encoding": "utf-8",
        # Half a pair of a surrogate is no character: its code is shown.
        "errors": "backslashreplace",
        "newline": "",
    }
    part = page.with_name(f"{page.name}.part")
    with ending.undoing(), contextlib.ExitStack() as stack:
        body = stack.enter_context(tempfile.TemporaryFile(dir=page.parent, **form))
        template = templates.get_template("group_page_group.html")
        for group, text in _written_groups(groups, template):
            body.write(text)
            totals.add(group)
            system = group.prompt[:-1] if system is None else system
        body.seek(0)
        stack.callback(part.unlink, missing_ok=True)
        with part.open(**form) as file:
            head = templates.get_template("group_page.html").render(
                title=title,
                note=SIMULATED if is_simulated else "",
                totals=totals,
                outcomes=_outcome_rows(totals),
                system=system or [],
            )
            before, _, after = head.partition("<!-- groups -->\n")
            file.write(before)
            shutil.copyfileobj(body, file)
            file.write(after)
        part.replace(page)
    return totals.groups


def write_page_of(rows: Path, *, is_simulated: bool = False) -> Path | None:
    """Write the page beside a file of rows.

    Returns:
        Where it is; None without rows, and where the disk does not take it.
    """
    if not rows.exists():
        return None
    page = rows.with_name(f"{rows.name.removesuffix('.jsonl')}.html")
    try:
        write_page(
            groups_of_rows(rows),
            page,
            title=f"Groups in {rows.name}",
            is_simulated=is_simulated,
        )
    except OSError as error:
        logger.error("the page %s cannot be written: %s", page, error)
        return None
    return page
