"""One answer under four scorers: the library's, its `cascade_score`, and ours twice.

`cascade_score` is what the library's main branch has in `reasoning_gym/scoring.py` and
no release: it strips LaTeX, then compares text, then numbers to 1 %, then with the
package math-verify. It is used if the installed library has it or a file is named.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rg_env.items import worker_jobs
from rg_env.scoring.score import as_unit
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks import library
from tools.answer_texts.sampled_items import SampledItem, time_limit

Cascade = Callable[..., float]

FULL = 1.0
"""What counts as scored in full."""

DEADLINE_S = 10
"""For one answer; the value is 0 after that."""

SCORERS = ("library", "cascade", "exact", "normalized")


def load_cascade(file: Path | None) -> Cascade | None:
    """Return `cascade_score` of a file or of the installed library, None without it."""
    found: Cascade
    if file is None:
        with contextlib.suppress(ImportError):
            found = importlib.import_module("reasoning_gym.scoring").cascade_score
            return found
        return None
    spec = importlib.util.spec_from_file_location("cascade_of_a_file", file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"--cascade {file}: this is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.cascade_score
    return found


def _value(score: Callable[[], Any]) -> float:
    """Return what a scorer gives; nothing where it raises or takes too long."""
    try:
        with time_limit(DEADLINE_S), contextlib.redirect_stdout(io.StringIO()):
            return as_unit(score())
    except Exception:  # noqa: BLE001 - foreign code on foreign text
        return 0.0


def scores(
    item: SampledItem, texts: Sequence[str], cascade: Cascade | None
) -> dict[str, list[float]]:
    """Score texts as answers to an item.

    Returns:
        Scorer to one value in [0, 1] for each text; without the cascade if it is None.
    """
    dataset = library.scoring_dataset(item.task, item.params)
    entry = dict(item.entry)
    answers = [text.strip() for text in texts]

    def ours(normalize: bool) -> list[float]:
        rules = ScoringRules(normalize_answers=normalize)
        job = worker_jobs.score_answers
        return [
            _value(
                lambda a=answer: job(item.task, item.params, entry, [a], rules)[0][0]
            )
            for answer in answers
        ]

    found = {
        "library": [
            _value(lambda a=answer: dataset.score_answer(a, entry))
            for answer in answers
        ]
    }
    if cascade is not None:
        found["cascade"] = [
            _value(lambda a=answer: cascade(a, item.right, dataset, entry))
            for answer in answers
        ]
    return found | {"exact": ours(False), "normalized": ours(True)}
