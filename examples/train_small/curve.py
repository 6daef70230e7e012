"""The table and the pictures of what was trained.

    python curve.py WORK

reads the results in a folder of train_small.py and writes results.json, results.md and
learning.png there.
"""

from __future__ import annotations

import dataclasses
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
from examples.train_small.recipe import DURING, RESULT
from examples.train_small.whole_files import write_whole
from rg_env.reports.evaluation_summary import Estimate

Result = Mapping[str, Any]

SMOOTHED = 10
"""Steps over which a curve is the mean."""

PANELS_IN_A_ROW = 2


def read(work: Path) -> list[dict[str, Any]]:
    """Read the results of all runs that are done, with the history of each."""
    results = []
    for path in sorted(work.glob(f"seed-*/*/{RESULT}")):
        result = json.loads(path.read_text(encoding="utf-8"))
        result["history"] = _rows(path.parent / "checkpoints" / "history.jsonl")
        result["during"] = [
            (row.pop("step"), Estimate(**row)) for row in _rows(path.parent / DURING)
        ]
        for when in ("before", "after"):
            scores = result[when].items()
            result[when] = {task: Estimate(**score) for task, score in scores}
        results.append(result)
    return results


def _rows(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def table(results: Sequence[Result]) -> str:
    """Return the held-out scores as a table in Markdown."""
    lines = [
        "| run | task | seed | before | after | rise | beyond both intervals |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        for task, after in result["after"].items():
            before = result["before"][task]
            cells = [
                *(result["run"], task, result["seed"]),
                *(shown(before), shown(after)),
                f"{after.mean - before.mean:+.3f}",
                "yes" if after.low > before.high else "no",
            ]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += [
        "",
        "| run | tasks | seed | steps | groups | with a signal | ratio | asked |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        ratios = [step["ratios"]["mean"] for step in result["history"]]
        cells = [
            *(result["run"], ", ".join(result["tasks"]), result["seed"]),
            *(result["steps"], result["groups"]),
            f"{result['groups_with_signal']:.1%}",
            f"{min(ratios):.4f} to {max(ratios):.4f}",
            f"{result['held_out_that_were_asked']} of {result['held_out_questions']}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def write(work: Path) -> list[Path]:
    """Write what there is to say of a folder; return the files."""
    results = read(work)
    if not results:
        return []
    paths = [work / "results.json", work / "results.md", work / "learning.png"]
    write_whole(paths[0], json.dumps(results, default=dataclasses.asdict))
    write_whole(paths[1], table(results))
    draw(results, paths[2])
    return paths


def draw(results: Sequence[Result], path: Path) -> None:
    """Draw reward by step, one panel for each kind of run and its tasks."""
    panels: dict[str, list[Result]] = {}
    for result in results:
        tasks = result["tasks"]
        what = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
        panels.setdefault(f"{what}, {result['run']}", []).append(result)
    rows = -(-len(panels) // PANELS_IN_A_ROW)
    figure, axes = plt.subplots(
        rows, PANELS_IN_A_ROW, figsize=(10, 3.2 * rows), squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    for axis, (title, drawn) in zip(axes.flat, panels.items(), strict=False):
        for result in drawn:
            _draw_run(axis, result)
        axis.set_title(title)
        axis.set_xlabel("step")
        axis.set_ylabel("score")
        axis.legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_run(axis: Any, result: Result) -> None:
    """Draw the sampled reward as a line, held-out scores as points with intervals."""
    rewards = [step["reward"] for step in result["history"]]
    means = [
        sum(part) / len(part)
        for part in (
            rewards[max(0, i - SMOOTHED + 1) : i + 1] for i in range(len(rewards))
        )
    ]
    (line,) = axis.plot(
        range(1, len(means) + 1), means, label=f"seed {result['seed']}, sampled"
    )
    if len(result["tasks"]) == 1:
        scores = [(0, *result["before"].values())]
        scores += result["during"]
        scores.append((len(means), *result["after"].values()))
        for step, score in scores:
            below, above = score.mean - score.low, score.high - score.mean
            axis.errorbar(
                [step],
                [score.mean],
                [[below], [above]],
                fmt="o",
                capsize=3,
                color=line.get_color(),
            )
    levels = [level for _, level, *_ in result["levels"]]
    if any(level is not None for level in levels):
        places = [i * len(means) / len(levels) for i in range(len(levels))]
        axis.plot(places, levels, ":", color=line.get_color(), label="level")


if __name__ == "__main__":
    for written in write(Path(sys.argv[1])):
        print(written)
