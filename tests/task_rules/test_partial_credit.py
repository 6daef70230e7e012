"""What wrong answers score, in every task."""

from __future__ import annotations

import random

import pytest

from rg_env.items import worker_jobs
from rg_env.task_rules.partial_credit import MOST_FOR_A_WRONG_ANSWER, partial_credit
from rg_env.tasks import library
from tools.answer_texts.sampled_items import DEFAULTS, sampled_items
from tools.near_misses import wrong_answers

FIRST_SEED = 16_400_000
OF_THE_LIBRARY = {
    *("polynomial_equations", "sentence_reordering", "time_intervals", "word_sorting"),
}
"""Tasks whose near misses still score what the library gives."""


@pytest.mark.parametrize(
    ("share", "without_solving", "score"),
    [
        *((1.0, 0.0, 0.5), (0.5, 0.0, 0.25), (0.0, 0.0, 0.0)),
        *((0.5, 0.5, 0.0), (0.75, 0.5, 0.25), (0.25, 0.5, 0.0), (1.0, 0.5, 0.5)),
        *((1.0, 1.0, 0.0), (1.5, 0.5, 0.5)),
    ],
)
def test_a_wrong_answer_is_paid_by_what_is_right_beyond_guessing(
    share, without_solving, score
):
    assert partial_credit(share, without_solving) == score


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted({*library.describe().tasks} - OF_THE_LIBRARY))
def test_an_answer_that_is_not_right_earns_half_at_most(task):
    first, second, *_ = sampled_items(task, [DEFAULTS], 3, FIRST_SEED)
    misses = wrong_answers(first, [second.right], random.Random(first.seed))
    texts = [text for _, _, text in misses]
    rows = worker_jobs.score_answers(task, {}, first.entry, texts)
    overpaid = {
        text: value
        for text, (value, *_) in zip(texts, rows, strict=True)
        if MOST_FOR_A_WRONG_ANSWER < value < 1.0
    }
    assert not overpaid
