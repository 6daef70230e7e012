"""A solver accepts the right answer to a question, and not the one to another."""

import contextlib
from itertools import islice

import pytest

from rg_env.library import datasets
from rg_env.task_rules.table import solution
from tools.gold_solvers import SOLVERS

QUICK = """
    aiw calendar_arithmetic codeio countdown cryptarithm family_relationships
    group_anagrams knight_swap mahjong_puzzle needle_haystack puzzle24 quantum_lock
    shortest_path sokoban syllogism time_intervals tsumego
""".split()  # noqa: SIM905 - as a list it would take a line for each
"""Tasks of every module of solvers whose items are made in milliseconds."""


def entries(task, count):
    return list(islice(datasets.usable_entries(task, {}, range(100)), count))


@pytest.mark.slow
@pytest.mark.parametrize("task", QUICK)
def test_the_right_answer_is_told_from_that_to_another_question(task):
    verdicts = []
    made = entries(task, 6)
    for entry in made:
        question, gold = entry["question"], str(solution(task, entry))
        assert SOLVERS[task](question, gold)
        for other in made:
            if other["answer"] != entry["answer"]:
                with contextlib.suppress(LookupError, TypeError, ValueError):
                    verdicts.append(SOLVERS[task](question, str(other["answer"])))
    assert True not in verdicts


@pytest.mark.parametrize(
    ("task", "seed", "more"),
    [
        ("intermediate_integration", 2, " + x/10**9"),
        ("simple_integration", 1, " + x/10**9"),
        ("time_intervals", 7, "1"),
    ],
)
def test_an_answer_that_is_nearly_right_is_refuted(task, seed, more):
    entry = datasets.make_entry(task, {}, seed)
    verdicts = [
        SOLVERS[task](entry["question"], entry["answer"] + end) for end in ("", more)
    ]
    assert verdicts == [True, False]
