"""Draws a picture for docs/learning.md from the cells of a study.

pip install matplotlib
python examples/studies/pictures.py rewards
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from matplotlib import pyplot

from examples.studies import choices, rewards
from examples.studies.cells import ROOT, Study

STUDIES = (rewards.STUDY, rewards.FALSE_POSITIVES, *choices.STUDIES)


def draw(study: Study) -> None:
    """Draw how much the metric has grown: a dot for each seed, a bar for their mean."""
    _, panels = pyplot.subplots(
        1,
        len(study.tasks),
        sharex=True,
        sharey=True,
        squeeze=False,
        figsize=(2.3 * len(study.tasks) + 1.2, 0.3 * len(study.arms) + 1.1),
        layout="constrained",
    )
    metric = study.metrics[0]
    found = study.results()
    for panel, task in zip(panels[0], study.tasks, strict=True):
        panel.axvline(0, color="black", linewidth=0.8)
        panel.set_title(task, fontsize="medium")
        panel.grid(axis="x", alpha=0.3)
        for y, arm in enumerate(study.arms):
            of_arm = [of for (a, t, _), of in found.items() if (a, t) == (arm, task)]
            if values := [of[metric] - of["before"] for of in of_arm]:
                color = "tab:gray" if y else "tab:blue"
                panel.plot(values, [y] * len(values), "o", alpha=0.5, color=color)
                panel.plot(fmean(values), y, "|", markersize=16, color=color)
    panels[0][0].set_yticks(range(len(study.arms)), study.arms)
    panels[0][0].invert_yaxis()
    pyplot.gcf().supxlabel(f"{metric}, less that before training", fontsize="medium")
    pyplot.savefig(ROOT / "docs" / f"{study.name}.png", dpi=110)


if __name__ == "__main__":
    (wanted,) = [study for study in STUDIES if [study.name] == sys.argv[1:]]
    draw(wanted)
