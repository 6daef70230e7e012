"""The table of published models: scores, ranks and causes of what lines hold."""

import json

import pytest

from tools import published_models as command

A, B = "acme_alpha_20250101_000000", "acme_beta_20250101_000000"


def line(run, question, saved, library=0.0, ours=0.0, *, task="gcd", **more):
    """Return a line of the file of `rescore`."""
    return {
        "source": f"/zero-shot/hard/{run}/arithmetic/{task}.json",
        "run": run,
        "category": "arithmetic",
        "task": task,
        "question": question,
        "outcome": "right",
        "score": ours,
        "saved_answer": "5",
        "answer": "5",
        "scores": {"saved": saved, "library": library, "ours": ours},
        **more,
    }


def unscored(run, question, saved):
    more = {"score": None, "outcome": "not_used", "scores": {"saved": saved}}
    return line(run, question, saved, **more)


def table(*lines):
    return command.read(json.dumps(each).encode() for each in lines)


@pytest.mark.parametrize(
    ("cause", "saved", "library", "ours", "answer"),
    [
        ("format", 1.0, 0.0, 0.0, None),
        ("newer scorer", 0.5, 0.25, 0.25, "5"),
        ("wrong in full", 1.0, 1.0, 0.5, "5"),
        ("partial credit", 0.75, 0.75, 0.25, "5"),
        ("refused", 0.25, 0.25, 1.0, "5"),
    ],
)
def test_a_difference_belongs_to_one_cause(cause, saved, library, ours, answer):
    found = table(line(A, "?", saved, library, ours, answer=answer))
    (row,) = command.models(found, ["version"]).iter_rows(named=True)
    off = {name: row[name] for name in command.CAUSES if row[name]}
    assert off == {cause: ours - saved}


def test_models_are_compared_on_the_items_that_all_have_with_a_score():
    both = [line(run, question, 0.5, 0.5, 0.5) for run in (A, B) for question in "xy"]
    found = table(*both, unscored(A, "z", 1.0), line(B, "z", 0.25, 1.0, 1.0))
    rows = command.models(found, ["version"]).rows_by_key("model", named=True)
    assert rows["alpha"][0]["all"] == pytest.approx(2 / 3)
    assert rows["alpha"][0]["published"].startswith("0.500")
    assert rows["beta"][0]["ours"].startswith("0.500")
    assert [rows[name][0]["shared"] for name in ("alpha", "beta")] == [2, 2]
    assert command.excluded(found).rows() == [("hard", "not_used", 1, 1.0, "gcd")]


def test_a_pair_is_named_that_ours_ranks_the_other_way_round():
    found = table(
        *(line(A, question, 1.0, 1.0, 0.25) for question in "xy"),
        *(line(B, question, 0.5, 0.5, 0.5) for question in "xy"),
    )
    ranks = command.models(found, ["version"]).select("model", "^rank.*$")
    assert ranks.rows() == [("beta", 2, 1), ("alpha", 1, 2)]
    (row,) = command.exchanged(found).iter_rows(named=True)
    assert (row["model"], row["model 2"], row["wrong in full"]) == (
        "beta",
        "alpha",
        0.75,
    )
    assert row["published"] == "-0.500 (-0.500 to -0.500)"
    assert row["difference"] == "0.750 (0.750 to 0.750)"


def test_tasks_stand_in_the_order_of_their_differences_with_the_known_fault():
    found = table(
        line(A, "x", 0.5, 0.5, 0.25),
        line(A, "x", 1.0, 1.0, 0.0, task="word_ladder"),
        line(A, "x", 0.0, 0.0, 0.5, task="lcm"),
    )
    rows = command.tasks(found).select("task", "fault").rows()
    assert [task for task, _ in rows] == ["word_ladder", "lcm", "gcd"]
    assert "one letter" in rows[0][1]


def test_the_page_has_each_table():
    text = command.page(table(line(A, "?", 1.0, 1.0, 0.5)))
    assert text.count("\n## ") == 5
    assert "| hard | alpha | 1 | 1 | 1.000 |" in " ".join(text.split())
