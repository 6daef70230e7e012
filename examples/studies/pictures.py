"""Draws the pictures of docs/learning.md from the results of the studies.

    pip install matplotlib
    python examples/studies/pictures.py

Cells that are not there yet are left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matplotlib import pyplot

from examples.studies import choices, wrong_rewards
from examples.studies.cells import Cells

DOCS = Path(__file__).resolve().parents[2] / "docs"
OURS, OTHERS = "tab:blue", "tab:gray"


def by_arm(study: Cells, metric: str, before: str, label: str) -> None:
    """Draw how much a metric has grown: a dot for each seed, a bar for their mean."""
    results, arms = study.results(), study.arms
    size = (2.3 * len(study.tasks) + 1.2, 0.3 * len(arms) + 1.1)
    _, panels = pyplot.subplots(
        1, len(study.tasks), sharey=True, figsize=size, layout="constrained"
    )
    for panel, task in zip(panels, study.tasks, strict=True):
        of_task = {(a, s): of for (a, t, s), of in results.items() if t == task}
        panel.axvline(0, color="black", linewidth=0.8)
        for y, arm in enumerate(arms):
            color = OTHERS if y else OURS
            of_arm = [of for (a, _), of in of_task.items() if a == arm]
            values = [of[metric] - of[before] for of in of_arm]
            if values:
                panel.plot(values, [y] * len(values), "o", alpha=0.5, color=color)
                panel.plot(fmean(values), y, "|", markersize=16, color=color)
        panel.set_title(task, fontsize="medium")
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(arms)), arms)
    panels[0].invert_yaxis()
    pyplot.gcf().supxlabel(label, fontsize="medium")
    pyplot.savefig(DOCS / f"{study.name}.png", dpi=110)


if __name__ == "__main__":
    learned = "true accuracy of sampled answers, less that before training"
    by_arm(wrong_rewards.STUDY, "sampled", "sampled_before", learned)
    learned = "mean held-out score during training, less that before it"
    by_arm(choices.STUDY, "area", "start", learned)
