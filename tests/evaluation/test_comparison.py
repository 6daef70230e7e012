"""Results are compared by the items that both have; the rest is counted."""

from __future__ import annotations

import pytest

from rg_env.evaluation.comparison import WHOLE, Comparison, paired
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.summary import result_of


def sample(score, question="q", task="t", category="c", outcome="right", **more):
    return Sample(task, category, question, score, outcome, **more)


def result(scores, task="t"):
    """Return one sample for each item from question to score."""
    return [sample(score, question, task) for question, score in scores.items()]


def test_truncated_completions_are_unknown_where_no_file_says_why_one_ended():
    cut = sample(0.0, is_truncated=True, row={"finish_reason": "length"})
    assert result_of([sample(0.0)]).truncated is None
    assert result_of([sample(0.0), cut]).truncated == 1


def test_differences_are_of_the_items_that_both_have():
    found = paired(
        result({"a": 0.0, "b": 0.5, "c": 1.0, "d": None}),
        result({"b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}),
    )
    assert found.by_item.mean == pytest.approx(0.25)
    assert found.by_item.samples == 2
    assert (found.only_first, found.only_second) == (1, 2)


def test_equal_questions_of_two_tasks_are_two_items():
    found = paired(result({"a": 1.0}, "t"), result({"a": 0.0}, "u"))
    assert (found.by_item, found.only_first, found.only_second) == (None, 1, 1)


def test_several_completions_of_an_item_count_as_their_mean():
    first = [sample(1.0), sample(0.0), sample(1.0, "r")]
    found = paired(first, [sample(1.0), sample(1.0, "r")])
    assert found.by_item.mean == pytest.approx(0.25)


def test_a_paired_interval_is_narrower_than_the_results_have_alone():
    first = {str(n): float(n % 2) for n in range(50)}
    second = {**first, "0": 1.0, "2": 1.0}
    found = paired(result(first), result(second)).by_item
    alone = result_of(result(first)).by_item
    assert found.high - found.low < (alone.high - alone.low) / 2


def test_a_difference_of_tasks_that_disagree_is_unsure_by_task():
    items = [(str(n), f"t{n % 4}") for n in range(40)]
    first = [sample(0.0, item, task) for item, task in items]
    second = [sample(float(task in ("t0", "t1")), item, task) for item, task in items]
    found = paired(first, second)
    spans = [each.high - each.low for each in (found.by_item, found.by_task)]
    assert spans[1] > 2 * spans[0]
    assert paired(result({"a": 1.0}), result({"a": 0.0})).by_task is None


def test_results_are_paired_with_the_first_or_all_with_each_other():
    results = {name: result({"a": 1.0}) for name in "xyz"}
    assert Comparison(results).pairs == [(0, 1), (0, 2)]
    assert Comparison(results, all_pairs=True).pairs == [(0, 1), (0, 2), (1, 2)]


def test_each_category_and_task_has_its_own_numbers():
    results = {
        "x": [sample(1.0, task="t", category="c"), sample(0.0, task="u", category="d")],
        "y": [sample(0.0, task="t", category="c")],
    }
    found = Comparison(results)
    assert found.parts("task") == [("task", "t"), ("task", "u")]
    assert found.measured["category", "d"][1] is None
    assert found.paired["task", "t"][0].by_item.mean == -1.0
    assert found.paired[WHOLE][0].only_first == 1
    numbers = found.numbers()
    assert numbers["results"][0]["category"]["c"]["by_item"]["mean"] == 1.0
    assert numbers["differences"][0]["less"] == "x"
    assert numbers["differences"][0]["all"]["by_item"]["mean"] == -1.0
