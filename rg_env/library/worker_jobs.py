"""The functions that run in worker processes; they take and return plain values.

Only these functions run the code of reasoning-gym's tasks. The pool calls them by name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.library import datasets, registry, scales
from rg_env.library.own_tasks import loading_call
from rg_env.library.registry import OWN_TASKS, cause_of
from rg_env.reward.score import (
    DEFAULT_RULES,
    Score,
    ScoreFunction,
    ScoreRow,
    ScoringRules,
    as_row,
    checked_scorer,
    score_both_formats,
)
from rg_env.task_rules.rules import Entry
from rg_env.task_rules.table import (
    ANSWER_RUNNING_TASKS,
    rules_of,
    solution,
    source_task,
)

_warm_tasks: set[str] = set()
"""Tasks with a scorer that has run in this process."""


def preload() -> None:
    """Import reasoning-gym and the modules that some scorers import at first use."""
    # Workers whose scorers run answers are often replaced, and would import them again.
    registry.describe()
    for task in ANSWER_RUNNING_TASKS:
        # The check of a task reports its errors. Seed 3 makes quick items.
        with contextlib.suppress(Exception):
            entry = next(datasets.usable_entries(task, {}, range(3, 100)))
            score_answers(task, {}, entry, [entry["answer"]])


PRELOAD = (f"{__name__}:{preload.__name__}",)
"""The `preload` of a pool for these jobs."""


def preload_calls(task_modules: Sequence[str]) -> tuple[str, ...]:
    """Return `PRELOAD` after the call that loads a user's own tasks, if there are any.

    Raises:
        SettingError: See `registered_here`.
    """
    return (*loading_call(task_modules), *PRELOAD)


describe_library = registry.describe
rejected_params = registry.rejected_params
changed_scorers = registry.changed_scorers
own_scale = scales.own_scale
make_entry = datasets.make_entry
dataset_entry = datasets.dataset_entry


def _scorer(task: str, source: str, dataset: Any, rules: ScoringRules) -> ScoreFunction:
    scorer: ScoreFunction = dataset.score_answer
    if source in OWN_TASKS:
        scorer = checked_scorer(scorer)
    return datasets.corrected_scorer(task, scorer) if rules.scorer_fixes else scorer


def _dataset(task: str, params: Any) -> tuple[str, Any]:
    """Return the name of a task and its dataset with the parameters of the item.

    The arguments are a name and parameters, or those of `dataset_from_config`.
    """
    if isinstance(params, bytes):
        return datasets.dataset_from_config(task, params)
    return task, datasets.scoring_dataset(task, params)


def score_answers(
    task: str,
    params: Any,
    entry: Mapping[str, Any],
    answers: Sequence[str],
    rules: ScoringRules = DEFAULT_RULES,
) -> list[ScoreRow]:
    """Return a row for `read_scores` of each answer; `_dataset` explains `params`."""
    name, dataset = _dataset(task, params)
    source = source_task(name, entry)
    scorer = _scorer(name, source, dataset, rules)
    fix = rules_of(source).fix
    runs_programs = rules.scorer_fixes and fix is not None and fix.runs_programs
    score = rules.build_scorer(source, entry, scorer, not runs_programs)

    def row(answer: str) -> ScoreRow:
        try:
            return as_row(score(answer))
        except Exception:
            if source not in OWN_TASKS:
                raise  # our own defect; a user's guard or notation may raise
            return as_row(Score(0.0, "scorer_error", answer))

    rows = {answer: row(answer) for answer in dict.fromkeys(answers)}
    _warm_tasks.add(source)
    return [rows[answer] for answer in answers]


def prepare_scores(
    task: str, params: Any, entry: Mapping[str, Any], rules: ScoringRules
) -> None:
    """Build the dataset of `score_answers`, and run its scorer if it has never run."""
    name, _ = _dataset(task, params)
    gold = entry.get("answer")
    if isinstance(gold, str) and source_task(name, entry) not in _warm_tasks:
        # The check of a task reports its errors.
        with contextlib.suppress(Exception):
            score_answers(task, params, entry, [gold], rules)


def scorer_fault(
    task: str,
    params: Mapping[str, Any],
    entry: Entry,
    answer: str,
    rules: ScoringRules,
) -> str | None:
    """Return the error that a task's scorer raises on an answer, None without one."""
    dataset = datasets.scoring_dataset(task, params)
    try:
        score_both_formats(answer, entry, _scorer(task, task, dataset, rules))
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return cause_of(error)
    return None


def reference_fault(
    task: str, params: Mapping[str, Any], entry: Entry, rules: ScoringRules
) -> str | None:
    """Return the fault in the score of an entry's reference answer, None if 1.0."""
    with datasets.own_task_errors():
        gold = solution(task, entry)
    if gold is None:
        return None
    ((value, outcome, *_),) = score_answers(task, params, entry, [gold], rules)
    if value == 1.0:
        return None
    reason = scorer_fault(task, params, entry, gold, rules) or outcome
    return f"its reference answer scores {value:.2f} ({reason})"


def curriculum_digests(tasks: Sequence[str]) -> dict[str, str]:
    """Return registered task to `scales.curriculum_digest`."""
    return {task: scales.curriculum_digest(task) for task in tasks}
