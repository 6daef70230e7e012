"""The share of correct answers scored in full, in each formatting and notation.

    python -m tools.correct_answers [--tasks gcd dice] [--items 10]
        [--levels defaults 0 0.5 1] [--cascade FILE] [--markdown] [--json FILE]

The right answer to many items of each task is written in every way of
`tools/answer_texts/`: some hundred kinds of formatting, and the notations of its kind.
Four scorers score them:

- library: the library's own, with the answer as it stands;
- cascade: its `cascade_score`, which no release has. `--cascade` names the file
  `reasoning_gym/scoring.py` of the library's main branch; the column is left out
  without it. It needs the package math-verify to compare LaTeX;
- exact: ours with `normalize_answers: false`;
- normalized: ours as it is by default.

`--markdown` prints what a page needs: the tables of all tasks, of the kinds, and of the
tasks below 0.97.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.answer_texts.audit_command import audit, build_parser, table
from tools.answer_texts.formatting import GENERAL
from tools.answer_texts.four_scorers import FULL, SCORERS, load_cascade, scores
from tools.answer_texts.notations import KIND_OF, notations_of
from tools.answer_texts.sampled_items import sampled_items

FIRST_SEED = 15_000_000
WORTH_NAMING = 0.97

Shares = Mapping[str, float]
"""Scorer to the share that it scores in full."""


def measure(
    task: str, levels: Sequence[float], items: int, seed: int, cascade: Path | None
) -> dict[str, dict[str, list[int]]]:
    """Return, by notation and scorer, how many answers and how many scored in full."""
    compared = load_cascade(cascade)
    found: dict[str, dict[str, list[int]]] = {}
    for item in sampled_items(task, levels, items, seed):
        texts = notations_of(item)
        for scorer, values in scores(item, list(texts.values()), compared).items():
            for name, value in zip(texts, values, strict=True):
                counts = found.setdefault(name, {}).setdefault(scorer, [0, 0])
                counts[0] += 1
                counts[1] += value >= FULL
    return found


Found = Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]
"""Task, notation, scorer to the number of answers and of those scored in full."""


def mean(shares: Iterable[Shares]) -> dict[str, float]:
    """Return the mean of shares by scorer."""
    columns: dict[str, list[float]] = defaultdict(list)
    for row in shares:
        for scorer, share in row.items():
            columns[scorer].append(share)
    return {scorer: sum(column) / len(column) for scorer, column in columns.items()}


def shares(found: Found) -> dict[tuple[str, str], dict[str, float]]:
    """Return the shares of each task and notation."""
    return {
        (task, name): {s: full / count for s, (count, full) in counts.items()}
        for task, by_name in found.items()
        for name, counts in by_name.items()
    }


def by(place: int, cells: Mapping[tuple[str, str], Shares]) -> dict[str, Shares]:
    """Return the mean by task (place 0) or by notation (place 1)."""
    rows: dict[str, list[Shares]] = defaultdict(list)
    for key, share in cells.items():
        rows[key[place]].append(share)
    return {name: mean(row) for name, row in rows.items()}


def _table(head: str, rows: Mapping[str, Shares], markdown: bool) -> list[str]:
    scorers = [s for s in SCORERS if any(s in row for row in rows.values())]
    cells = {name: [f"{row[s]:.2f}" for s in scorers] for name, row in rows.items()}
    return table([head, *scorers], cells, markdown)


def by_kind(cells: Mapping[tuple[str, str], Shares]) -> dict[str, Shares]:
    """Return the mean of the notations of each kind."""
    kinds: dict[str, list[Shares]] = {kind: [] for kind in KIND_OF.values()}
    for name, row in by(1, cells).items():
        kinds[KIND_OF[name]].append(row)
    return {kind: mean(rows) for kind, rows in kinds.items() if rows}


def report(
    cells: Mapping[tuple[str, str], Shares], below: float, markdown: bool
) -> list[str]:
    """Return the lines of all tables; for a page only what is short."""
    formatting = {key: row for key, row in cells.items() if key[1] in GENERAL}
    kinds = {key: row for key, row in cells.items() if key[1] not in GENERAL}
    parts = {"formatting": formatting, "notations of its kind": kinds, "both": cells}
    means = {
        f"all tasks, {name}": mean(by(0, part).values())
        for name, part in parts.items()
        if part
    }
    tasks = by(0, cells)
    few = {task: row for task, row in tasks.items() if row["normalized"] < WORTH_NAMING}
    lost = {
        f"{task}: {name}": row
        for (task, name), row in cells.items()
        if row["normalized"] < below
    }
    tables: dict[str, Mapping[str, Shares]] = {
        "all": means,
        "kind": by_kind(cells),
        f"below {WORTH_NAMING}": few,
    }
    if not markdown:
        tables |= {"task": tasks, "notation": by(1, cells)}
        tables[f"scored by normalized in less than {below}"] = lost
    lines: list[str] = []
    for head, rows in tables.items():
        lines += [*_table(head, rows, markdown), ""] if rows else []
    return lines


def main() -> int:
    """Measure and print."""
    parser = build_parser(__doc__.splitlines()[0], FIRST_SEED)
    parser.add_argument(
        "--below", type=float, default=0.8, help="list what scores less"
    )
    options = parser.parse_args()
    found = audit(measure, options)
    print("\n".join(report(shares(found), options.below, options.markdown)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
