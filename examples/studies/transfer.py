"""What does training on one task teach of others?

    pip install '.[report]' torch
    python examples/studies/transfer.py
    python examples/studies/transfer.py --only chain_sum eight 2

The warm start of a seed has read some items of each of eight tasks, four of each of two
categories. Then each task is trained alone, and all eight are measured on held-out
questions; `start` is the warm start itself. A completion pays 1.0 if it is right, else
0.0.

The first table has a row for what was trained on and a column for what was measured.
The second one has, for each category, how much its tasks change when they are trained
themselves, when another task of the category is (intra-domain), and when a task of the
other category is (inter-domain).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
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
        """Return the matrix and what it comes to, with intervals over the seeds."""
        results = {(arm, seed): of for (arm, _, seed), of in self.results().items()}
        lines = ["| Trained on | " + " | ".join(EIGHT) + " |", "|---" * 9 + "|"]
        for arm in (START, *EIGHT):
            of_arm = [of for (name, _), of in results.items() if name == arm]
            if of_arm:
                means = (mean_over([of[task] for of in of_arm]) for task in EIGHT)
                lines.append(f"| {arm} | {' | '.join(map(shown, means))} |")
        lines += ["", "| Category | Itself | Intra-domain | Inter-domain |", "|---" * 4]
        lines[-1] += "|"
        for category, tasks in CATEGORIES.items():
            kinds = zip(*self._changes(tasks, results), strict=True)
            means = (mean_over(kind, (-1.0, 1.0)) for kind in kinds)
            lines.append(f"| {category} | {' | '.join(map(shown, means))} |")
        return "\n".join(lines)

    def _changes(self, tasks: Any, results: Any) -> Iterator[tuple[float, ...]]:
        """Yield the three mean changes of the tasks of a category for each seed."""
        for seed in self.seeds:
            if not all((arm, seed) in results for arm in self.arms):
                continue
            start = results[START, seed]
            by_kind: list[list[float]] = [[], [], []]
            for arm in EIGHT:
                for task in tasks:
                    kind = 0 if arm == task else 1 if arm in tasks else 2
                    by_kind[kind].append(results[arm, seed][task] - start[task])
            yield tuple(map(fmean, by_kind))


STUDY = Matrix("transfer", (*EIGHT, START), ("eight",), SEEDS, EIGHT, run)

if __name__ == "__main__":
    STUDY.main()
