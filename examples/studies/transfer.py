"""What does training on one task teach of others?

    pip install '.[report]' torch
    python examples/studies/transfer.py
    python examples/studies/transfer.py --only chain_sum eight 2

The warm start of a seed has read some items of each of eight tasks, four of each of two
categories. Then each task is trained alone, and all eight are measured on held-out
questions; `start` is the warm start itself. A completion pays 1.0 if it is right, else
0.0.

The first table has the scores of `start`, and a row for each task that was trained on
with the changes of what was measured. The second one has, for each category, how much
its tasks change when they are trained themselves, when another task of the category is
(intra-domain), and when a task of the other category is (inter-domain).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.studies.cells import Cells, mean_over, shown
from examples.studies.mixture import (
    held_out,
    means_of,
    questions_of,
    right,
    small,
    started,
)
from examples.train_small.train import train, use_one_thread, without

CATEGORIES = {
    "algorithmic": [
        *("spell_backward", "rotate_matrix", "spiral_matrix", "letter_jumble")
    ],
    "arithmetic": ["leg_counting", "chain_sum", "gcd", "count_bits"],
}
EIGHT = [task for tasks in CATEGORIES.values() for task in tasks]
START, SEEDS = "start", (0, 1, 2)

SHOWN, TARGET, HELD_OUT, TOKENS = 600, 0.35, 50, 120_000
"""Items of each task and their mean in the warm start, and how much is measured and
generated."""


def run(arm: str, _: str, seed: int, share: float) -> dict[str, Any]:
    """Return the held-out mean of each task after training on one, or of the start."""
    use_one_thread()
    asked = held_out([small(task) for task in EIGHT], HELD_OUT)
    of_start = [(small(task, seed=seed + 1_000), SHOWN) for task in EIGHT]
    policy = started("transfer", of_start, asked, TARGET, seed)
    if arm != START:
        tasks = small(arm, seed=seed)
        unseen = without(tasks, questions_of(asked))
        tokens = round(share * TOKENS)
        for _round in train(policy, unseen, right, lambda *_: None, tokens, seed):
            pass
    return {task: mean for (task, _), mean in means_of(policy, asked, seed).items()}


class Matrix(Cells):
    """Cells whose arms and metrics are tasks."""

    def table(self) -> str:
        """Return both tables, of the seeds that have all cells."""
        of = {(arm, seed): result for (arm, _, seed), result in self.results().items()}
        seeds = [s for s in self.seeds if all((arm, s) in of for arm in self.arms)]
        if not seeds:
            return "no seed has all cells yet"

        def grown(arm: str, task: str) -> list[float]:
            return [of[arm, seed][task] - of[START, seed][task] for seed in seeds]

        def row(name: str, values: Iterable[Sequence[float]], low: float) -> str:
            means = (shown(mean_over(of_seeds, (low, 1))) for of_seeds in values)
            return f"| {name} | {' | '.join(means)} |"

        lines = [f"| Trained on | {' | '.join(EIGHT)} |", "|---" * 9 + "|"]
        lines.append(row(START, ([of[START, s][t] for s in seeds] for t in EIGHT), 0))
        lines += (row(arm, (grown(arm, task) for task in EIGHT), -1) for arm in EIGHT)
        lines += ["", "| Category | Itself | Intra-domain | Inter-domain |"]
        lines.append("|---" * 4 + "|")
        for category, tasks in CATEGORIES.items():
            pairs = list(product(EIGHT, tasks))
            kinds = [
                [grown(arm, task) for arm, task in pairs if arm == task],
                [grown(arm, t) for arm, t in pairs if arm in tasks and arm != t],
                [grown(arm, task) for arm, task in pairs if arm not in tasks],
            ]
            by_seed = ([*map(fmean, zip(*kind, strict=True))] for kind in kinds)
            lines.append(row(category, by_seed, -1))
        return "\n".join(lines)


STUDY = Matrix("transfer", (*EIGHT, START), ("eight",), SEEDS, EIGHT, run)

if __name__ == "__main__":
    STUDY.main()
