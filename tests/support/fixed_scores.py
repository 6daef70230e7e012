"""What the tests of the scorer fixes share: entries, and the score of an answer.

The entries are made in this process once; no test may change one.
"""

import functools
import itertools

from rg_env.library import datasets
from rg_env.library.worker_jobs import score_answers
from rg_env.reward.score import ScoringRules, as_unit
from rg_env.task_rules.table import TABLE, solution

FIXES = {task: rules.fix for task, rules in TABLE.items() if rules.fix}
"""Task to the fix that is written for it."""

SEEDS = range(7000, 7004)

MAX_GOLD_CHARS = 400
"""The library compares JSON objects slowly; codeio's entries are chosen by this."""

BASE_TASKS = """
    acre aiw arc_1d base_conversion basic_arithmetic bf binary_alternation caesar_cipher
    count_bits count_primes course_schedule gcd isomorphic_strings largest_island lcm
    leg_counting letter_counting list_functions mahjong_puzzle maze modulo_grid
    number_filtering number_sequence ransom_note rotate_matrix rotten_oranges
    simple_equations simple_geometry string_manipulation string_splitting
    string_synthesis syllogism word_sequence_reversal
""".split()  # noqa: SIM905 - as a list it would take a line for each
"""The tasks whose scorer is the base scorer of the library, as test_answer_matching.py
finds them in the installed one."""


def run_score(task, entry, answer, params=None, **rules):
    """Return the score as in a run, with its notation, guard and fix."""
    call = (task, params or {}, entry, [answer])
    ((score, *_),) = score_answers(*call, ScoringRules(**rules))
    return score


def library_score(task, entry):
    scorer = datasets.scoring_dataset(task, {}).score_answer
    return lambda answer: as_unit(scorer(answer, entry))


def fixed_score(task, entry, answer):
    """Return the score of the fix, which may call that of the library."""
    return datasets.fix_of(task).score(answer, entry, library_score(task, entry))


def both_scores(task, entry, answer):
    return library_score(task, entry)(answer), fixed_score(task, entry, answer)


@functools.cache
def entry_of(task, seed):
    """Return the entry of a seed, or of one far from it where that is unusable."""
    return next(datasets.usable_entries(task, {}, itertools.count(seed, 10_000)))


@functools.cache
def entries(task):
    made = [entry_of(task, seed) for seed in SEEDS]
    return [
        e
        for e in made
        if task != "codeio" or len(solution(task, e) or "") < MAX_GOLD_CHARS
    ]


def mean_score(task, made, answer):
    """Return what a way of answering scores on average with the fix."""
    return sum(fixed_score(task, e, answer(e)) for e in made) / len(made)
