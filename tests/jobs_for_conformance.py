"""Jobs that test_conformance.py runs in worker processes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from rg_env.answers.scoring import ScoreRow
from rg_env.items import worker_jobs
from rg_env.tasks import library


def build_entry_afresh(task: str, seed: int) -> dict[str, Any]:
    """Make an entry the library's own way, with a dataset that nothing used before."""
    random.seed(seed)
    entry: dict[str, Any] = library.build_dataset(task, {}, seed)[0]
    return entry


def score_where_made(task: str, seed: int, answers: Sequence[str]) -> list[ScoreRow]:
    """Score answers to an entry that has not left its process."""
    entry = library.make_entry(task, {}, seed)
    return worker_jobs.score_answers(task, {}, entry, answers)
