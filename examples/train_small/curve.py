"""The table and the picture of what was trained.

    python curve.py WORK

reads the results in a folder of train_small.py and writes results.json, results.md and
learning.png there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
mpl.use("Agg")

from matplotlib import pyplot as plt

from examples.train_small.evaluation import shown
from examples.train_small.recipe import RESULT
from examples.trainer.checkpoints import HISTORY, read_rows, write_whole
from rg_env.results.numbers import Estimate

Result = Mapping[str, Any]

SMOOTHED_STEPS, SMOOTHED_GROUPS = 10, 200
"""Over so many a curve is the mean."""

MOST_IN_A_ROW = 3


def read(work: Path) -> list[dict[str, Any]]:
    """Read the results of all runs that are done, with the history of each."""
    results = []
    for path in sorted(work.glob(f"seed-*/*/{RESULT}")):
        result = json.loads(path.read_text(encoding="utf-8"))
        result["history"] = read_rows(path.parent / "checkpoints" / HISTORY)
        for when in ("before", "after"):
            scores = result[when].items()
            result[when] = {task: Estimate(**score) for task, score in scores}
        results.append(result)
    return results


def table(results: Sequence[Result]) -> str:
    """Return the held-out scores, and what was sampled for them, in Markdown."""
    scores = [
        "| run | task | seed | before | after | rise | beyond both intervals |",
        "|---|---|---|---|---|---|---|",
    ]
    sampled = [
        "| run | tasks | seed | steps | min | groups | signal | held out | left out |",
        "|---|---|---|---|---|---|---|---|---|",
    ]

    def add(lines: list[str], *cells: object) -> None:
        lines.append(f"| {' | '.join(map(str, cells))} |")

    for result in results:
        for task, after in result["after"].items():
            before = result["before"][task]
            add(
                scores,
                *(result["run"], task, result["seed"], shown(before), shown(after)),
                f"{after.mean - before.mean:+.3f}",
                "yes" if after.low > before.high else "no",
            )
        groups = result["sampled"]
        add(
            sampled,
            *(result["run"], ", ".join(result["tasks"]), result["seed"]),
            *(result["steps"], f"{groups[-1][0] / 60:.1f}", len(groups)),
            f"{sum(flag for *_, flag in groups) / len(groups):.1%}",
            *(result["held_out_questions"], result["left_out_questions"]),
        )
    return "\n".join([*scores, "", *sampled]) + "\n"


def write(work: Path) -> list[Path]:
    """Write what there is to say of a folder; return the files."""
    results = read(work)
    if not results:
        return []
    paths = [work / "results.json", work / "results.md", work / "learning.png"]
    write_whole(paths[0], json.dumps(results, default=vars))
    write_whole(paths[1], table(results))
    draw(results, paths[2])
    return paths


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw a panel for each kind of run on a task, and one for what was drawn among."""
    panels: dict[str, list[Result]] = {}
    for result in results:
        task, *others = result["tasks"]
        among = f"{task} among {len(others) + 1}"
        title = among if others else f"{task}, {result['run']}"
        panels.setdefault(title, []).append(result)
    columns = min(MOST_IN_A_ROW, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, drawn) in zip(axes.flat, panels.items(), strict=False):
        for result in drawn:
            (_draw_signal if len(result["tasks"]) > 1 else _draw_scores)(axis, result)
        axis.set_title(title, fontsize="medium")
        handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
        axis.legend(handles.values(), handles, fontsize="x-small")
    figure.tight_layout()
    new = path.with_suffix(".new")
    figure.savefig(new, dpi=110, format="png")
    new.replace(path)
    plt.close(figure)


def _draw_scores(axis: Any, result: Result) -> None:
    """Draw the sampled reward as a line, held-out scores as points with intervals."""
    rewards = _smoothed([step["reward"] for step in result["history"]], SMOOTHED_STEPS)
    steps, label = len(rewards), f"seed {result['seed']}: reward of the batches"
    (line,) = axis.plot(range(1, steps + 1), rewards, label=label)
    scores = [score for when in ("before", "after") for score in result[when].values()]
    axis.errorbar(
        [0, steps],
        [score.mean for score in scores],
        [
            [score.mean - score.low for score in scores],
            [score.high - score.mean for score in scores],
        ],
        fmt="o",
        capsize=3,
        color=line.get_color(),
        label=f"seed {result['seed']}: held out, with its 95 % interval",
    )
    levels = [level for _, _, level, *_ in result["sampled"]]
    if any(level is not None for level in levels):
        places = [i * steps / len(levels) for i in range(len(levels))]
        mean = _smoothed(levels, SMOOTHED_GROUPS)
        axis.plot(places, mean, ":", color=line.get_color(), label="level")
    axis.set_xlabel("step")
    axis.set_ylabel("score")


def _draw_signal(axis: Any, result: Result) -> None:
    """Draw which share of the groups has a signal, by the minutes of the run."""
    minutes = [seconds / 60 for seconds, *_ in result["sampled"]]
    shares = _smoothed([float(flag) for *_, flag in result["sampled"]], SMOOTHED_GROUPS)
    axis.plot(minutes, shares, label=f"{result['run']}, seed {result['seed']}")
    axis.set_xlabel("minutes")
    axis.set_ylabel("groups with a signal")


def _smoothed(values: Sequence[float], over: int) -> list[float]:
    """Return the mean of each value and those before it, `over` in all."""
    parts = (values[max(0, i - over + 1) : i + 1] for i in range(len(values)))
    return [sum(part) / len(part) for part in parts]


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
