"""The published scores of models beside ours, and the causes of the differences.

    python -m tools.published_models scores.jsonl > tools/published_models.md

`rescore` has written the file, as for `tools/real_answers.py`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from rg_env.results.estimates import HAS_SCORE, estimate_means
from rg_env.task_rules.table import TABLE
from tools.tables import markdown

PAGE = """\
# Published models, scored again

`python -m tools.published_models` has made this page with reasoning-gym {version} from
the [published completions](https://github.com/open-thought/reasoning-gym-eval) of
eleven models, most of them of early 2025.

- `all` is the mean published score of all completions. The other columns are of the
  `shared` ones: every model of the version has a published score and one of ours for
  their item, so that ranks are of the same items. The installed library does not make
  some items again, and some reference answers are wrong: see the excluded ones.
- Intervals are at 95 % and for other items of the same tasks: clustered by item, with
  each task as a stratum. A difference is ours less published, paired by completion.
- `library` is the mean score by the installed library of the answers that we read.
- The five causes add up to the difference:
  - `format`: we read no answer, such as where there are two, or another one;
  - `newer scorer`: the installed library scores the same answer differently;
  - `wrong in full`: the library scores 1.0, and we less;
  - `partial credit`: the library scores less than 1.0, and we still less;
  - `refused`: we score more, for another notation or another right answer.
- The pairs are those that ours ranks the other way round; columns are of `model` less
  `model 2`. An order or a change is beyond chance if its interval excludes 0.
- Tasks are those with the largest differences over all models. `fault` is that of the
  library's scorer; [the pages on scoring](../docs/scoring.md) have the others.

The tables compare two scorers of the same texts. They do not tell which of them teaches
a model more, or what a model would score with another prompt, temperature or limit.
"""

RUN = re.compile(r"[^_]+_(.+)_\d{8}_\d{6}")
"""COMPANY_MODEL_DATE_TIME, the folder of a model's results."""

MAX_TASKS = 15
PUBLISHED = pl.col("saved")
LIBRARY = pl.col("library")
OURS = pl.col("ours")
VALUES = {"published": PUBLISHED, "ours": OURS, "difference": OURS - PUBLISHED}
"""Score to its value, which has an interval."""

READ = LIBRARY - PUBLISHED
CORRECTED = OURS - LIBRARY
LOWERED = CORRECTED.clip(upper_bound=0.0)
CAUSES = {
    "format": READ * pl.col("read_anew"),
    "newer scorer": READ * ~pl.col("read_anew"),
    "wrong in full": LOWERED * (LIBRARY >= 1.0),
    "partial credit": LOWERED * (LIBRARY < 1.0),
    "refused": CORRECTED.clip(lower_bound=0.0),
}
"""Cause to its part of the difference of a completion, which is their sum."""

ITEM = ["version", "task", "item"]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    answers = {(row[of] or "").strip() for of in ("saved_answer", "answer")}
    return {
        "version": Path(row["source"]).parts[-4],
        "model": RUN.sub(r"\1", row["run"]),
        "item": hash(row["question"]),
        "read_anew": len(answers) > 1,
        **{name: row[name] for name in ("category", "task", "outcome", "score")},
        **row["scores"],
    }


def read(lines: Iterable[bytes]) -> pl.DataFrame:
    """Return the completions of `rescore` as a table, with the parts of differences.

    `read_anew` is whether our answer is another text than the published one, and
    `shared` whether the item has both scores for every model of its version.
    """
    table = pl.DataFrame(map(_row, map(json.loads, lines)), infer_schema_length=None)
    has_both = HAS_SCORE & PUBLISHED.is_not_null()
    model = pl.col("model")
    models = model.filter(has_both).n_unique().over(*ITEM)
    is_of_all = models == model.n_unique().over("version")
    return table.with_columns(shared=has_both & is_of_all, **CAUSES)


def compared(
    shared: pl.DataFrame, by: Sequence[str], within: tuple[float, float] | None = None
) -> pl.DataFrame:
    """Return the values of each part with intervals, and the parts of differences.

    The columns `mean ours` and so on are numbers. `within` is what scores can be, if
    not from 0 to 1.
    """
    found = shared.group_by(by).agg(pl.col("library", *CAUSES).mean())
    for name, value in VALUES.items():
        limits = (-1.0, 1.0) if name == "difference" else within
        rows = [
            (*key, of.mean, f"{of.mean:.3f} ({of.interval()})")
            for key, of in estimate_means(shared, value, by, within=limits).items()
        ]
        columns = [*by, f"mean {name}", name]
        found = found.join(pl.DataFrame(rows, columns, orient="row"), on=by)
    return found


def models(table: pl.DataFrame, part: Sequence[str]) -> pl.DataFrame:
    """Return the models of each part with their ranks, by ours the best one first."""
    by = [*part, "model"]
    every = table.group_by(by).agg(
        pl.col("shared").sum(), completions=pl.len(), all=PUBLISHED.mean()
    )
    found = every.join(compared(table.filter("shared"), by), on=by)
    means = pl.col("mean published", "mean ours").round(9)
    ranks = means.rank("min", descending=True).over(part).name.replace("mean", "rank")
    return found.select(
        *by, "completions", "shared", "all", *VALUES, ranks, "library", *CAUSES
    ).sort(*part, "rank ours", "model")


def exchanged(table: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs that ours ranks the other way round, as first less second."""
    numbers = ["saved", "library", "ours", *CAUSES]
    of_models = table.filter("shared").group_by(*ITEM, "model")
    items = of_models.agg(pl.col(numbers).mean())
    pairs = items.join(items, on=ITEM, suffix=" 2").with_columns(
        pl.col(name) - pl.col(f"{name} 2") for name in numbers
    )
    by = ["version", "model", "model 2"]
    found = compared(pairs, by, (-1.0, 1.0))
    found = found.filter(pl.col("mean ours") > 0, pl.col("mean published") < 0)
    return found.select(*by, *VALUES, *CAUSES).sort(by)


def tasks(table: pl.DataFrame) -> pl.DataFrame:
    """Return the tasks of each version with the largest differences over all models."""
    faults = {t: of.fix.fault for t, of in TABLE.items() if of.fix}
    by = ["version", "task"]
    found = compared(table.filter("shared"), by)
    found = found.sort("version", -pl.col("mean difference").abs())
    fault = pl.col("task").replace_strict(faults, default="")
    largest = found.group_by("version", maintain_order=True).head(MAX_TASKS)
    return largest.select(*by, *VALUES, *CAUSES, fault=fault)


def excluded(table: pl.DataFrame) -> pl.DataFrame:
    """Return why completions have no score of ours, with their published mean."""
    names = pl.col("task").unique().sort().str.join(", ")
    lost = table.filter(~HAS_SCORE).group_by("version", "outcome")
    found = lost.agg(completions=pl.len(), published=PUBLISHED.mean(), tasks=names)
    return found.sort("version", "outcome")


def page(table: pl.DataFrame) -> str:
    tables = {
        "Models": models(table, ["version"]),
        "Exchanged ranks": exchanged(table),
        "Tasks": tasks(table),
        "Excluded completions": excluded(table),
        "Categories": models(table, ["version", "category"]).drop("library", *CAUSES),
    }
    return f"{PAGE.format(version=version('reasoning-gym'))}\n{markdown(tables)}"


if __name__ == "__main__":
    with Path(sys.argv[1]).open("rb") as lines:
        print(page(read(lines)))
