"""No wrong answer near a right one scores above a half, whatever the rules read.

Right answers to items of every task, by its notation and its scorer, are changed in
each way of `tools/answer_texts/near_changes.py`: another value, a neighbour, a sign,
two values, a denial, a label. `tools/answer_texts/near_misses.py` tells which of them
are wrong.
"""

from itertools import islice

import pytest

from rg_env.library.registry import TASKS
from tools.answer_texts.near_misses import overrated_misses
from tools.answer_texts.sampled_items import sampled_items

pytestmark = pytest.mark.slow

ITEMS = 1
OTHERS = 3

MAX_CHARS = 500
"""Items with a longer right answer are skipped: they take long and show no more."""


def items_of(task):
    sampled = sampled_items(task, 7_000)
    made = list(islice((i for i in sampled if 0 < len(i.right) <= MAX_CHARS), OTHERS))
    assert made
    return made


@pytest.mark.parametrize("task", TASKS)
def test_no_near_miss_scores_above_a_half(task):
    assert overrated_misses(items_of(task), ITEMS) == []
