"""Counts of rescored samples, and what a terminal is shown of hostile ones."""

from __future__ import annotations

import pytest

from rg_env.cli.standard_streams import rendered
from rg_env.evaluation.rescore_table import RescoreTally


def row(saved, ours, *changes, task="gcd", question="q", **more):
    scores = {"saved": saved, "library": 0.0, "fixes": 0.0, "ours": ours}
    return {
        "task": task,
        "question": question,
        "score": ours,
        "scores": scores,
        "changes": list(changes),
        "outcome": "right",
        "answer": "4",
        "saved_answer": "4",
        "gold_answer": "4",
        "source": "file",
        "place": "1",
        **more,
    }


def tally_of(*rows, examples=1):
    tally = RescoreTally(examples)
    for each in rows:
        tally.add(each)
    return tally


def test_a_task_has_its_items_means_and_changes_by_cause():
    tally = tally_of(
        row(0.0, 1.0, "normalization"),
        row(1.0, 1.0),
        row(1.0, 0.0, "guard", "fix", question="r"),
        row(1.0, 1.0, task="lcm"),
    )
    found = tally.by_task["gcd"].numbers()
    assert (found["items"], found["completions"], found["changed"]) == (2, 3, 2)
    assert found["mean"]["saved"] == pytest.approx(2 / 3)
    assert found["causes"] == {"normalization": 1, "guard": 1, "fix": 1}
    assert tally.all.numbers()["items"] == 3


def test_completions_without_a_score_are_in_no_mean_and_named_with_the_reason():
    lost = {"outcome": "unmatched", "reason": "another question"}
    tally = tally_of(row(1.0, 1.0), row(0.0, None, **lost), row(0.0, None, **lost))
    assert tally.all.mean("saved") == 1.0
    assert tally.all.numbers()["without_score"] == {"unmatched": 2}
    total = "without a score, and so not in the means: 2 of 3 completions"
    said = "no score: 2 of gcd, unmatched: another question (the first: file 1)"
    assert tally.lines() == [total, said]


def test_reasons_that_differ_from_row_to_row_do_not_fill_the_screen():
    lost = [row(None, None, reason=f"seed {n}", outcome="x") for n in range(50)]
    lines = tally_of(*lost).lines()
    assert lines[-1] == "no score: 40 of gcd, for 40 other reasons"
    assert len(lines) == 12


def test_without_saved_scores_their_mean_is_unknown():
    tally = tally_of(row(None, 1.0))
    assert tally.all.mean("saved") is None
    assert "- " in rendered(tally.table())


def test_as_many_examples_of_each_cause_are_kept_as_are_wanted():
    tally = tally_of(*[row(0.0, 1.0, "fix")] * 5, row(0.0, 1.0, "guard"), examples=2)
    kept = {cause: len(rows) for cause, rows in tally.examples.items() if rows}
    assert kept == {"fix": 2, "guard": 1}


def test_hostile_texts_neither_steer_the_terminal_nor_mark_up_the_table():
    text = "\x1b[2J[red]\n\u202e" + "x" * 100_000
    hostile = {"answer": text, "gold_answer": text, "source": text, "task": text[:30]}
    said = tally_of(
        row(0.0, 1.0, "fix", **hostile), row(0.0, None, **hostile, reason=text)
    )
    shown = rendered(said.table()) + "\n".join(said.lines())
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(shown) < 5_000
    assert "[red]" in shown
