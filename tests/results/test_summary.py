"""The summary of an evaluation: what is counted, and what stands beside the score."""

import io

import pytest
from rich.console import Console

from rg_env.results.estimates import row_of, table_of
from rg_env.results.samples import Sample
from rg_env.results.summary import EvalSummary, rescored_numbers, rescored_table
from rg_env.results.terminal import rendered

CUT = {"finish_reason": "length"}
CATEGORIES = {"gcd": "arithmetic", "lcm": "arithmetic", "maze": "games"}


def sample(task, score, outcome="right", item=0, **changes):
    category = CATEGORIES.get(task, "arithmetic")
    return Sample(task, category, f"{task} {item}", score, outcome, **changes)


def failed(task="gcd", item=0):
    return sample(task, None, "request_failed", item)


def unused(task="maze"):
    return Sample(task, CATEGORIES[task], "", None, "not_used")


# -- sums ------------------------------------------------------------------------------


def test_a_failed_request_and_an_item_not_used_are_counted_and_no_wrong_answers():
    others = [failed(item=1), failed(item=2), unused(), unused()]
    summary = EvalSummary([sample("gcd", 1.0), *others])
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


def test_the_score_stands_beside_the_share_answered_and_the_score_of_those():
    rows = [
        sample("gcd", 1.0, item=0),
        sample("gcd", 0.5, "partial", item=1),
        sample("gcd", 0.0, "no_answer", item=2),
        sample("gcd", 0.0, "unclosed_answer", 3, row=CUT),
    ]
    found = EvalSummary(rows).overall
    assert (found["by_item"].mean, found["answered"]) == (0.375, 0.5)
    assert (found["score_of_answered"].mean, found["right"].mean) == (0.75, 0.25)
    assert found["truncated"] == 1


# -- the metrics and the table ---------------------------------------------------------


def shown(summary, **how):
    output = io.StringIO()
    Console(file=output, width=120).print(summary.table(**how))
    return output.getvalue()


def test_the_table_shows_all_then_categories_and_tasks_on_request():
    summary = EvalSummary([sample("gcd", 1.0), sample("maze", 0.0), failed(item=1)])
    names = [line.split()[0] for line in shown(summary).splitlines() if "%" in line]
    assert names[1:] == ["all", "arithmetic", "games"]
    row = next(x for x in shown(summary, with_tasks=True).splitlines() if " gcd " in x)
    assert row.split()[:4] == ["gcd", "1", "1", "1.000"]
    assert row.split()[4:] == ["0.21", "to", "1.00", "1.000", "100%"]


def test_the_best_of_several_completions_has_columns_of_its_own():
    once, again = sample("gcd", 0.5), sample("gcd", 1.0)
    assert "best of" not in shown(EvalSummary([once]))
    table = shown(EvalSummary([once, again]))
    assert "best of 2" in table and "pass@2" in table and "2 completions" in table


# -- completions that were scored again ------------------------------------------------


def again(saved, ours, task="gcd", item=0, outcome="right"):
    scores = {"saved": saved, "library": 0.0, "fixes": 0.0, "ours": ours}
    return sample(task, ours, outcome, item, row={"scores": scores})


def test_a_task_has_its_items_means_and_how_many_scores_changed():
    rows = [again(0.0, 1.0), again(1.0, 1.0), again(1.0, 0.0, item=1)]
    rows += [again(None, 1.0, "lcm"), again(0.0, None, outcome="unmatched")]
    found = rescored_numbers(table_of(map(row_of, rows)))
    gcd, lcm = found["tasks"]["gcd"], found["tasks"]["lcm"]
    assert (gcd["items"], gcd["completions"], gcd["changed"]) == (2, 3, 2)
    assert gcd["mean"]["saved"] == pytest.approx(2 / 3)
    assert gcd["without_score"] == found["all"]["without_score"] == {"unmatched": 1}
    assert (lcm["changed"], lcm["mean"]["saved"]) == (0, None)
    assert (found["all"]["items"], found["all"]["changed"]) == (3, 2)
    lines = [line.split() for line in rendered(rescored_table(found)).splitlines()]
    assert ["gcd", "2", "3", "0.667", "0.000", "0.667", "2", "1"] in lines
    assert ["lcm", "1", "1", "-", "0.000", "1.000", "0", "0"] in lines
