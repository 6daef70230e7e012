"""The functions that run in worker processes, from plain values to plain values.

Only these functions run reasoning-gym's code on data. The pool calls them by name.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from rg_env.errors import SettingError
from rg_env.items import installed_fixes
from rg_env.scoring import score as scores
from rg_env.scoring.score import Score, ScoreFunction, ScoreRow
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.rules import Entry
from rg_env.task_rules.table import EVALUATED, rules_of, solution, source_task
from rg_env.tasks import library, library_levels, own_tasks
from rg_env.tasks.task_modules import preloads

T = TypeVar("T")

DEFAULT_RULES = ScoringRules()

_scored: set[str] = set()
"""Tasks of which this process has scored an answer, and so loaded what that takes."""


def preload() -> None:
    """Load reasoning-gym and what the first calls of some scorers load.

    A worker that replaces another one then has it at once. The scorers that evaluate
    text have their processes replaced after every group.
    """
    library.describe()
    for task in own_tasks.names():
        if rules_of(task).fix is not None:
            library.scorer_digest(task)
    for task in EVALUATED:
        # What is broken is named where the task is checked. Seed 3 makes quick items.
        with contextlib.suppress(Exception):
            entry = next(library.usable_entries(task, {}, range(3, 100)))
            score_answers(task, {}, entry, [entry["answer"]])


PRELOAD = (f"{__name__}:{preload.__name__}",)
"""What a pool for these jobs does before its workers are forked."""


def preload_of(task_modules: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the same with the modules of a user's own tasks."""
    return (*preloads(task_modules or ()), *PRELOAD)


def timed(job: Callable[..., T], *args: Any) -> tuple[float, T]:
    """Run another job; return its time in milliseconds and its result."""
    began = time.perf_counter()
    result = job(*args)
    return 1000 * (time.perf_counter() - began), result


describe_library = library.describe
own_task_names = own_tasks.names
own_scale = library_levels.own_scale
make_entry = library.make_entry
dataset_entry = library.dataset_entry


def check_params(
    params_by_task: Sequence[tuple[str, Mapping[str, Any]]],
) -> tuple[str, str] | None:
    """Return the first task whose parameters are refused, and why; None if all hold."""
    for task, params in params_by_task:
        try:
            library.check_params(task, params, "task_params")
        except SettingError as error:
            return task, error.reason
    return None


def dataset_questions(task: str, config: str) -> list[str | None]:
    """Return the questions of a whole dataset; see `library.dataset_entries`."""
    entries = library.dataset_entries(task, config)
    return [None if entry is None else entry["question"] for entry in entries]


def _score_all(
    task: str,
    dataset: Any,
    entry: Mapping[str, Any],
    answers: Sequence[str],
    rules: ScoringRules,
) -> list[ScoreRow]:
    source = source_task(task, entry)
    scorer, installed = _scorers(task, source, dataset, rules)
    fix = rules_of(source).fix
    is_guarded = scorer == installed or fix is None or not fix.runs_programs
    score = rules.scoring(source, entry, scorer, is_guarded)

    def scored(answer: str) -> Score:
        try:
            return score(answer)
        except Exception:
            if not own_tasks.is_own(source):
                raise  # a defect of ours; a user's guard or notation may raise
            return Score(0.0, "scorer_error", answer)

    rows = {answer: scores.as_row(scored(answer)) for answer in dict.fromkeys(answers)}
    _scored.add(source)
    return [rows[answer] for answer in answers]


def _scorers(
    task: str, source: str, dataset: Any, rules: ScoringRules
) -> tuple[ScoreFunction, ScoreFunction]:
    installed: ScoreFunction = dataset.score_answer
    if own_tasks.is_own(source):
        installed = own_tasks.checked_scorer(installed)
    if rules.scorer_fixes:
        return installed_fixes.corrected(task, installed), installed
    return installed, installed


def _dataset(task: str, params: Any) -> tuple[str, Any]:
    """Return a task, and its dataset configured as for the item that is scored.

    They are given by name and parameters, or by the module and class of the dataset,
    with a colon, and its pickled config.
    """
    if isinstance(params, bytes):
        return _configured(*task.split(":"), params)
    return task, library.scoring_dataset(task, params)


# A call is prepared with the dataset that it scores with, and that may be large.
@functools.lru_cache(maxsize=1)
def _configured(module: str, class_name: str, config: bytes) -> tuple[str, Any]:
    loaded = pickle.loads(config)  # noqa: S301 - made by the pool's owner
    return library.dataset_from_config(module, class_name, loaded)


def score_answers(
    task: str,
    params: Any,
    entry: Mapping[str, Any],
    answers: Sequence[str],
    rules: ScoringRules = DEFAULT_RULES,
) -> list[ScoreRow]:
    """Return rows that `read_rows` reads, one for each answer; see `_dataset`."""
    return _score_all(*_dataset(task, params), entry, answers, rules)


def prepare_scores(
    task: str, params: Any, entry: Mapping[str, Any], rules: ScoringRules
) -> None:
    """Build the dataset of `score_answers`, and load what its scorer loads at first."""
    name, dataset = _dataset(task, params)
    gold = entry.get("answer")
    if isinstance(gold, str) and source_task(name, entry) not in _scored:
        # What it raises is said where the task is checked.
        with contextlib.suppress(Exception):
            _score_all(name, dataset, entry, [gold], rules)


def solution_of(task: str, entry: Entry) -> str | None:
    """Return `solution`; OwnTaskError for what the rules of a user's task raise."""
    with own_tasks.blaming():
        return solution(task, entry)


def reference_fault(
    task: str, params: Mapping[str, Any], gold: str, entry: Entry, rules: ScoringRules
) -> str:
    """Return what is wrong with how a task reads and scores its right answer, or ""."""
    try:
        dataset = library.scoring_dataset(task, params)
        scorer, _ = _scorers(task, task, dataset, rules)
        scores.compare_formats(gold, entry, scorer)
        if own_tasks.is_own(task):

            def value(text: str) -> float:
                return scores.compare_formats(text, entry, scorer).value

            return own_tasks.reading_fault(task, gold, entry, value)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return own_tasks.cause_of(error)
    return ""


def describe_fixes() -> dict[str, bool]:
    """Say of each task that has a fix whether it holds for the installed scorer."""
    each = ((task, installed_fixes.holds(task)) for task in library.describe().tasks)
    return {task: holds for task, holds in each if holds is not None}


def curriculum_digests(tasks: Sequence[str] | None = None) -> dict[str, str]:
    """Return digests by task, by default of all of the library with a curriculum."""
    if tasks is None:
        infos = library.describe().tasks.items()
        own = own_tasks.is_own
        tasks = [task for task, info in infos if info.has_curriculum and not own(task)]
    return {task: library_levels.curriculum_digest(task) for task in tasks}
