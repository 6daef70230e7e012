"""The summary of an evaluation: means with intervals; no failure is a wrong answer."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rg_env.reports.evaluation_summary import EvalResult, estimate, summarise

CATEGORIES = {"gcd": "arithmetic", "lcm": "arithmetic", "maze": "games"}


def result(task, score, outcome="right"):
    return EvalResult(task, CATEGORIES[task], score, outcome, {})


def failed(task="gcd"):
    return result(task, None, "failed_request")


# -- intervals -------------------------------------------------------------------------


# Wilson's interval at 95 %, as the textbooks and statistics packages give it.
@pytest.mark.parametrize(
    ("right", "items", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (8, 10, 0.4902, 0.9433),
        (1, 1, 0.2065, 1.0),
        (50, 100, 0.4038, 0.5962),
        (1, 1000, 0.00018, 0.00564),
    ],
)
def test_the_interval_is_wilson_s(right, items, low, high):
    value = estimate([1.0] * right + [0.0] * (items - right))
    assert value.mean == right / items
    assert (value.low, value.high) == pytest.approx((low, high), abs=5e-5)
    assert value.items == items


def test_scores_in_between_count_by_their_mean():
    mixed, halves = estimate([0.25, 0.75]), estimate([0.5, 0.5])
    assert mixed == halves == estimate([0.0, 1.0])


def test_more_items_make_the_interval_narrower():
    few, many = estimate([0.0, 1.0] * 5), estimate([0.0, 1.0] * 50)
    assert many.high - many.low < few.high - few.low


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_the_mean_lies_in_its_interval_and_all_in_the_unit_interval(scores):
    value = estimate(scores)
    assert 0.0 <= value.low <= value.mean <= value.high <= 1.0


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_the_mean_of_equal_scores_lies_in_its_interval(score):
    for items in range(1, 500):
        value = estimate([score] * items)
        assert value.low <= value.mean == score <= value.high


def test_nothing_can_be_estimated_from_no_scores():
    with pytest.raises(ValueError, match="no scores"):
        estimate([])


# -- sums ------------------------------------------------------------------------------


def test_results_are_summed_by_task_and_by_category():
    summary = summarise([result("lcm", 0.0), result("maze", 1.0), result("gcd", 1.0)])
    assert list(summary.by_task) == ["gcd", "lcm", "maze"]
    assert summary.by_category["arithmetic"].mean == 0.5
    assert summary.by_category["games"].items == 1
    assert summary.overall.mean == pytest.approx(2 / 3)


def test_a_failed_request_is_counted_and_is_no_wrong_answer():
    summary = summarise([result("gcd", 1.0), failed(), failed()])
    assert (summary.overall.mean, summary.overall.items) == (1.0, 1)
    assert summary.failed_requests == 2
    assert summary.outcomes == {"right": 1, "failed_request": 2}


def test_a_task_with_failed_requests_alone_has_no_score():
    summary = summarise([result("gcd", 1.0), failed("maze")])
    assert set(summary.by_task) == {"gcd"}
    assert set(summary.by_category) == {"arithmetic"}


@pytest.mark.parametrize("results", [[], [failed()]])
def test_without_a_score_there_is_no_overall_number(results):
    summary = summarise(results)
    assert summary.overall is None
    assert "eval/percent_correct" not in summary.metrics()
    assert summary.metrics()["eval/failed_requests"] == len(results)


def test_the_metrics_are_flat_numbers():
    summary = summarise(
        [result("gcd", 1.0), result("gcd", 0.0, "no_answer"), failed("lcm")]
    )
    metrics = summary.metrics()
    assert metrics["eval/percent_correct"] == metrics["eval/mean_score"] == 0.5
    assert metrics["eval/percent_correct_low"] < 0.5
    assert metrics["eval/percent_correct_high"] > 0.5
    assert metrics["eval/items"] == 2
    assert metrics["eval/task/gcd"] == metrics["eval/category/arithmetic"] == 0.5
    assert metrics["eval/outcome/no_answer"] == 1
    assert metrics["eval/failed_requests"] == 1
    assert json.loads(json.dumps(metrics)) == metrics


# -- the table -------------------------------------------------------------------------


def shown(summary):
    output = io.StringIO()
    Console(file=output, width=100).print(summary.table())
    return output.getvalue()


def test_the_table_shows_tasks_categories_and_the_whole():
    text = shown(summarise([result("gcd", 1.0), result("maze", 0.0), failed()]))
    rows = [line.split("│")[1:5] for line in text.splitlines() if "│" in line]
    cells = {name.strip(): [c.strip() for c in rest] for name, *rest in rows}
    assert cells["gcd"] == ["1", "1.000", "0.21 to 1.00"]
    assert cells["category games"] == ["1", "0.000", "0.00 to 0.79"]
    assert cells["all"][:2] == ["2", "0.500"]
    names = [name for name in cells if name in {"all", "category games", "gcd"}]
    assert names == ["all", "category games", "gcd"]


def test_there_is_a_table_without_a_score():
    assert "Evaluation" in shown(summarise([failed()]))
