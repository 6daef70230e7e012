"""Jobs that test_conformance.py and others run in worker processes."""

import inspect
import itertools
import random
import re
import sys

from rg_env.library import datasets, registry, worker_jobs
from rg_env.library.datasets import UnusableEntryError
from rg_env.task_rules.table import rules_of


def asked_seed(task, params, seed):
    """Return a seed, or one far from it where its entry is unusable."""
    for tried in itertools.count(seed, -10_000 if seed > 2**31 else 10_000):
        try:
            datasets.make_entry(task, params, tried)
        except UnusableEntryError:
            continue
        return tried
    raise AssertionError("counting does not end")


def make_asked_entry(task, params, seed):
    """Make the entry of a seed, or of one far from it where that is unusable."""
    return datasets.make_entry(task, params, asked_seed(task, params, seed))


def build_entry_afresh(task, seed):
    """Make an entry the library's own way, with a dataset that nothing used before."""
    random.seed(seed)
    entry = datasets.build_dataset(task, {}, seed)[0]
    correct = rules_of(task).corrected_metadata
    return (
        entry
        if correct is None
        else {**entry, "metadata": {**entry["metadata"], **correct(entry)}}
    )


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


def score_where_made(task, seed, answers):
    """Score answers to an entry that has not left its process."""
    entry = datasets.make_entry(task, {}, seed)
    return worker_jobs.score_answers(task, {}, entry, answers)
