"""How near misses are scored: wrong answers close to the right one.

    python -m tools.near_misses [--tasks gcd dice] [--items 10]
        [--levels defaults 0 0.5 1] [--cascade FILE] [--markdown] [--json FILE]

The right answer to many items of each task is changed in each of some hundred ways of
`tools/answer_texts/near_changes.py`, bare and in one formatting. That it is wrong is
checked without any scorer, by `tools/answer_texts/surely_wrong.py`; a change that is
right after all is left out, and one of which nothing is known is counted by itself.

Shown are the answers scored in full and the mean score, by the four scorers of
`tools/correct_answers.py`, and every change of a task that `normalized` scores in full.
The exit status is 1 if there is one.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tools.answer_texts.audit_command import audit, build_parser, table
from tools.answer_texts.four_scorers import FULL, SCORERS, load_cascade, scores
from tools.answer_texts.near_changes import (
    CHANGES,
    FORMATTING,
    KIND_OF,
    other_answer,
)
from tools.answer_texts.sampled_items import SampledItem, sampled_items
from tools.answer_texts.surely_wrong import is_wrong

FIRST_SEED = 16_000_000
SHOWN_CHARS = 60
Lines = Iterable[str]


@dataclasses.dataclass
class Scored:
    """How one change of the answers to a task is scored.

    Attributes:
        task: The registered task.
        change: Its name.
        known: Whether the answers are wrong for sure.
        answers: How many there were.
        full: Scorer to how many it scored in full.
        total: Scorer to the sum of its scores.
        examples: Right and wrong answer of those that `normalized` scored in full.
    """

    task: str
    change: str
    known: bool
    answers: int = 0
    full: Counter[str] = dataclasses.field(default_factory=Counter)
    total: dict[str, float] = dataclasses.field(default_factory=dict)
    examples: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def add(self, scorer: str, value: float) -> None:
        self.full[scorer] += value >= FULL
        self.total[scorer] = self.total.get(scorer, 0.0) + value


def wrong_answers(
    item: SampledItem, others: list[str], chance: random.Random
) -> list[tuple[str, bool, str]]:
    """Return name of the change, whether it is wrong for sure, and the text."""
    found = []
    for name, change in CHANGES.items():
        text = change(item.right, other_answer(item.right, others, chance), chance)
        if text is None or not text.strip():
            continue
        wrong = is_wrong(item, text)
        if wrong is False:
            continue
        found.append((name, bool(wrong), text))
        formatting = chance.choice(list(FORMATTING))
        if formatting != "as it stands":
            found.append((name, bool(wrong), FORMATTING[formatting](text)))
    return found


def measure(
    task: str, levels: Sequence[float], items: int, seed: int, cascade: Path | None
) -> list[Scored]:
    """Score wrong answers to the items of a task."""
    compared = load_cascade(cascade)
    found: dict[tuple[str, bool], Scored] = {}
    sampled = sampled_items(task, levels, items, seed)
    for item in sampled:
        chance = random.Random(item.seed)
        others = [other.right for other in sampled if other is not item]
        answers = wrong_answers(item, others, chance)
        values = scores(item, [text for _, _, text in answers], compared)
        for place, (name, known, text) in enumerate(answers):
            one = found.setdefault((name, known), Scored(task, name, known))
            one.answers += 1
            for scorer, of_scorer in values.items():
                one.add(scorer, of_scorer[place])
            if values["normalized"][place] >= FULL:
                one.examples.append((item.right, text))
    return list(found.values())


def _table(head: str, rows: Mapping[str, Sequence[Scored]], markdown: bool) -> Lines:
    present = {scorer for row in rows.values() for one in row for scorer in one.total}
    scorers = [scorer for scorer in SCORERS if scorer in present]
    cells = {}
    for name, row in rows.items():
        answers = sum(one.answers for one in row)
        cells[name] = [str(answers)]
        for scorer in scorers:
            full = sum(one.full[scorer] for one in row)
            mean = sum(one.total[scorer] for one in row) / answers
            cells[name].append(f"{full} ({mean:.3f})")
    yield from table([head, "answers", *scorers], cells, markdown)
    yield ""


def _grouped(
    rows: Iterable[Scored], key: Callable[[Scored], str]
) -> dict[str, list[Scored]]:
    found: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}...")


def report(rows: Sequence[Scored], markdown: bool) -> Lines:
    """Yield the lines of all tables."""
    wrong = [row for row in rows if row.known]
    unknown = [row for row in rows if not row.known]
    if markdown:
        tables = {"change": _grouped(wrong, lambda row: KIND_OF[row.change])}
    else:
        tables = {
            "task": _grouped(wrong, lambda row: row.task),
            "change": _grouped(wrong, lambda row: row.change),
        }
    for head, by_name in tables.items():
        yield from _table(head, by_name | ({"all": wrong} if wrong else {}), markdown)
    if unknown and not markdown:
        by_task = _grouped(unknown, lambda row: row.task)
        yield from _table("perhaps right", by_task, markdown)
    for word, part in (("SCORED", wrong), ("perhaps right, scored", unknown)):
        for row in part:
            if row.examples:
                right, text = row.examples[0]
                share = f"{len(row.examples)} of {row.answers}"
                example = f"{_shown(text)} for {_shown(right)}"
                yield f"{word} {row.task}: {row.change}, {share}: {example}"


def main() -> int:
    """Measure and print."""
    parser = build_parser(__doc__.splitlines()[0], FIRST_SEED)
    options = parser.parse_args()
    found = audit(measure, options)
    rows = [row for of_task in found.values() for row in of_task]
    print("\n".join(report(rows, options.markdown)))
    if options.json:
        shown = json.dumps([dataclasses.asdict(row) for row in rows], indent=1)
        options.json.write_text(shown, encoding="utf-8")
    return int(any(row.known and row.full["normalized"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
