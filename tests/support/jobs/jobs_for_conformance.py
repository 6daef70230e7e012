"""Jobs that test_conformance.py and others run in worker processes."""

import contextlib
import inspect
import itertools
import random
import re
import sys

from rg_env.library import datasets, registry, worker_jobs
from rg_env.library.datasets import UnusableEntryError
from rg_env.task_rules.table import rules_of


def asked(task, params, seed):
    """Return a seed, or one far from it where its entry is unusable, and the entry."""
    for tried in itertools.count(seed, -10_000 if seed > 2**31 else 10_000):
        with contextlib.suppress(UnusableEntryError):
            return tried, datasets.make_entry(task, params, tried)
    raise AssertionError("counting does not end")


def make_asked_entry(task, params, seed):
    """Make the entry of a seed, or of one far from it where that is unusable."""
    return asked(task, params, seed)[1]


def build_afresh_and_score(task, seed, answers):
    """Make an entry the library's own way, and score answers to it where it was made.

    Nothing has used the dataset before.
    """
    random.seed(seed)
    entry = datasets.build_dataset(task, {}, seed)[0]
    correct = rules_of(task).corrected_metadata
    if correct is not None:
        entry["metadata"].update(correct(entry))
    return entry, worker_jobs.score_answers(task, {}, entry, answers)


def scorers_that_evaluate():
    """Return the tasks whose scorer calls what evaluates a text."""
    registry.describe()
    scorers = {
        task: inspect.getsource(dataset_cls.score_answer)
        for task, (dataset_cls, _) in sys.modules[
            "reasoning_gym.factory"
        ].DATASETS.items()
    }
    evaluates = re.compile(r"\b(eval|exec|sympify|parse_expr)\(")
    return [task for task, source in scorers.items() if evaluates.search(source)]
