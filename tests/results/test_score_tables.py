"""The summary of an evaluation: what is counted, and what stands beside the score."""

import pytest

from rg_env.results.samples import Sample
from rg_env.results.score_tables import EvalSummary
from rg_env.results.terminal import rendered

CUT = {"finish_reason": "length"}


def sample(task, score, outcome="right", item=0, **changes):
    category = "games" if task == "maze" else "arithmetic"
    return Sample(task, category, f"{task} {item}", score, outcome, **changes)


def failed(item=0):
    return sample("gcd", None, "request_failed", item)


# -- sums ------------------------------------------------------------------------------


def test_a_failed_request_and_an_item_not_used_are_counted_and_no_wrong_answers():
    unused = [sample("maze", None, "not_used", item) for item in range(2)]
    summary = EvalSummary([sample("gcd", 1.0), failed(1), failed(2), *unused])
    found = summary.overall
    assert (found["by_item"].mean, found["items"]) == (1.0, 1)
    assert (summary.failed_requests, summary.not_used) == (2, {"maze": 2})
    assert (found["failed"], found["not_used"]) == (2, 2)
    assert summary.outcomes == {"right": 1, "request_failed": 2, "not_used": 2}


@pytest.mark.parametrize("samples", [[], [failed()]])
def test_without_a_score_there_is_no_overall_number(samples):
    summary = EvalSummary(samples)
    assert summary.overall is None
    assert "eval/percent_correct" not in summary.metrics()
    assert summary.metrics()["eval/failed_requests"] == len(samples)


def test_the_score_stands_beside_the_shares_answered_right_and_cut_off():
    rows = [
        sample("gcd", 1.0, item=0),
        sample("gcd", 0.5, "partial", item=1),
        sample("gcd", 0.0, "no_answer", item=2),
        sample("gcd", 0.0, "unclosed_answer", 3, row=CUT),
    ]
    summary = EvalSummary(rows)
    found = summary.overall
    assert (found["by_item"].mean, found["answered"].mean) == (0.375, 0.5)
    assert found["right"].mean == 0.25
    assert summary.metrics()["eval/truncated"] == 1


# -- the metrics and the table ---------------------------------------------------------


def test_the_table_shows_all_then_categories_and_tasks_on_request():
    summary = EvalSummary([sample("gcd", 1.0), sample("maze", 0.0), failed(1)])
    table = rendered(summary.table()).splitlines()
    assert [x.split()[0] for x in table if "%" in x][1:] == [
        "all",
        "arithmetic",
        "games",
    ]
    rows = [x.split() for x in rendered(summary.table(with_tasks=True)).splitlines()]
    numbers = ["1", "1", "1.000", "0.21", "to", "1.00", "1.000", "100%"]
    assert ["gcd", *numbers] in rows


def test_the_best_of_several_completions_has_columns_of_its_own():
    once = sample("gcd", 0.5)
    again = sample("gcd", 1.0)
    assert "best of" not in rendered(EvalSummary([once]).table())
    table = rendered(EvalSummary([once, again]).table())
    assert "best of 2" in table and "pass@2" in table and "2 completions" in table
