"""What wrong answers near the right one are paid.

    python -m tools.near_misses [--tasks gcd dice] [--items 10]
        [--levels defaults 0 0.5 1] [--cascade FILE] [--markdown] [--json FILE]

The right answer to many items of each task is changed in each of some hundred ways of
`tools/answer_texts/near_changes.py`: a digit or a letter changed, an entry dropped
or swapped, half a per cent more, two answers, the right one denied. Each stands there
as it is and in one dress. That it is wrong is checked without any scorer, by
`tools/answer_texts/surely_wrong.py`; a change that is right after all is left
out, and one of which nothing is known is counted by itself.

Shown are the answers paid in full and the mean pay, by the four scorers of
`tools/correct_answers.py`, and every change of a task that `normalized` pays in
full. The exit status is 1 if there is one.
"""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.answer_texts.audit_command import audit, build_parser
from tools.answer_texts.four_scorers import FULL, SCORERS, load_cascade, scores
from tools.answer_texts.near_changes import (
    CHANGES,
    DRESSES,
    KIND_OF,
    other_answer,
)
from tools.answer_texts.sampled_items import (
    SampledItem,
    sampled_items,
)
from tools.answer_texts.surely_wrong import is_wrong

FIRST_SEED = 16_000_000
SHOWN_CHARS = 60


@dataclasses.dataclass
class Pay:
    """What one change of the answers to a task is paid.

    Attributes:
        task: The registered task.
        change: Its name.
        known: Whether the answers are wrong for sure.
        answers: How many there were.
        full: Scorer to how many it paid in full.
        total: Scorer to the sum of what it paid.
        paid: Right answer, wrong answer of the first that `normalized` paid in full.
    """

    task: str
    change: str
    known: bool
    answers: int = 0
    full: dict[str, int] = dataclasses.field(default_factory=dict)
    total: dict[str, float] = dataclasses.field(default_factory=dict)
    paid: list[tuple[str, str]] = dataclasses.field(default_factory=list)

    def add(self, scorer: str, value: float) -> None:
        self.full[scorer] = self.full.get(scorer, 0) + (value >= FULL)
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
        dress = chance.choice(list(DRESSES))
        if dress != "as it stands":
            found.append((name, bool(wrong), DRESSES[dress](text)))
    return found


def measure(
    task: str, levels: Sequence[float], items: int, seed: int, cascade: Path | None
) -> list[Pay]:
    """Score wrong answers to the items of a task."""
    compared = load_cascade(cascade)
    found: dict[tuple[str, bool], Pay] = {}
    asked = sampled_items(task, levels, items, seed)
    for item in asked:
        chance = random.Random(item.seed)
        others = [other.right for other in asked if other is not item]
        answers = wrong_answers(item, others, chance)
        paid = scores(item, [text for _, _, text in answers], compared)
        for place, (name, known, text) in enumerate(answers):
            pay = found.setdefault((name, known), Pay(task, name, known))
            pay.answers += 1
            for scorer, values in paid.items():
                pay.add(scorer, values[place])
            if paid["normalized"][place] >= FULL:
                pay.paid.append((item.right, text))
    return list(found.values())


def table(
    head: str, rows: Mapping[str, Sequence[Pay]], markdown: bool
) -> Iterable[str]:
    """Yield the lines of a table: answers, paid in full and mean pay by scorer."""
    present = {scorer for pays in rows.values() for pay in pays for scorer in pay.full}
    scorers = [scorer for scorer in SCORERS if scorer in present]
    if markdown:
        yield f"| {head} | answers | {' | '.join(scorers)} |"
        yield "|---|" + "--:|" * (len(scorers) + 1)
    else:
        yield f"{head:34} answers" + "".join(f"{scorer:>18}" for scorer in scorers)
    for name, pays in rows.items():
        answers = sum(pay.answers for pay in pays)
        cells = []
        for scorer in scorers:
            full = sum(pay.full[scorer] for pay in pays)
            mean = sum(pay.total[scorer] for pay in pays) / answers
            cells.append(f"{full} ({mean:.3f})")
        if markdown:
            shown = name.replace("|", "\\|")
            yield f"| `{shown}` | {answers} | {' | '.join(cells)} |"
        else:
            yield f"{name:34} {answers:7}" + "".join(f"{cell:>18}" for cell in cells)


def grouped(pays: Iterable[Pay], by: str) -> dict[str, list[Pay]]:
    """Return pays by task or by change."""
    rows: dict[str, list[Pay]] = defaultdict(list)
    for pay in pays:
        rows[getattr(pay, by)].append(pay)
    return dict(rows)


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}...")


def report(pays: Sequence[Pay], markdown: bool) -> Iterable[str]:
    """Yield the lines of all tables."""
    wrong = [pay for pay in pays if pay.known]
    unknown = [pay for pay in pays if not pay.known]
    kinds: dict[str, list[Pay]] = defaultdict(list)
    for pay in wrong:
        kinds[KIND_OF[pay.change]].append(pay)
    tables: dict[str, dict[str, list[Pay]]] = {"change": dict(kinds)}
    if not markdown:
        tables = {"task": grouped(wrong, "task"), "change": grouped(wrong, "change")}
    for head, rows in tables.items():
        yield from table(head, rows | ({"all": wrong} if wrong else {}), markdown)
        yield ""
    if unknown and not markdown:
        yield from table("perhaps right", grouped(unknown, "task"), markdown)
        yield ""
    for word, part in (("PAID", wrong), ("perhaps right, paid", unknown)):
        for pay in part:
            if pay.paid:
                right, text = pay.paid[0]
                share = f"{len(pay.paid)} of {pay.answers}"
                example = f"{_shown(text)} for {_shown(right)}"
                yield f"{word} {pay.task}: {pay.change}, {share}: {example}"


def main() -> int:
    """Measure and print."""
    parser = build_parser(__doc__.splitlines()[0], FIRST_SEED)
    options = parser.parse_args()
    found = audit(measure, options)
    pays = [pay for of_task in found.values() for pay in of_task]
    print("\n".join(report(pays, options.markdown)))
    if options.json:
        rows = [dataclasses.asdict(pay) for pay in pays]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(any(pay.known and pay.full["normalized"] for pay in pays))


if __name__ == "__main__":
    sys.exit(main())
