"""The held-out score, the groups that were asked, and the table of both."""

import json

import pytest

from examples.train_small import curve, evaluation
from rg_env.errors import RunError

STEP = {"number": 1, "reward": 0.5}
SCORE = {"mean": 0.5, "low": 0.4, "high": 0.6, "samples": 100, "clusters": 100}


def sample(question, score, task="gcd", outcome="right"):
    return {"task": task, "question": question, "score": score, "outcome": outcome}


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_question_that_is_held_out_twice_counts_once(tmp_path):
    rows = [sample("a", 1.0), sample("b", 0.0), sample("b", 0.0)]
    write_lines(tmp_path / "samples.jsonl", rows)
    score = evaluation.held_out_scores(tmp_path, ())["gcd"]
    assert (score.mean, score.samples) == (0.5, 2)


def test_a_question_that_training_saw_with_other_capitals_does_not_count(tmp_path):
    rows = [sample("Spell: Anna", 1.0), sample("b", 0.0), sample("c", 0.0)]
    write_lines(tmp_path / "samples.jsonl", rows)
    gold = tmp_path / "gold.jsonl"
    said = [{"content": "Spell: anna"}, {"content": "anna"}]
    write_lines(gold, [{"task": "gcd", "messages": said}])
    known = evaluation.gold_keys(gold)
    assert len(evaluation.held_out_keys(tmp_path) & known) == 1
    score = evaluation.held_out_scores(tmp_path, known)["gcd"]
    assert (score.mean, score.samples) == (0.0, 2)


def test_an_item_that_was_not_answered_is_no_score(tmp_path):
    write_lines(tmp_path / "samples.jsonl", [sample("q", None, outcome="no_reply")])
    with pytest.raises(RunError, match="no_reply"):
        evaluation.held_out_scores(tmp_path, ())


@pytest.mark.parametrize(("low", "is_beyond"), [(0.59, "no"), (0.61, "yes")])
def test_a_rise_counts_only_beyond_both_intervals(low, is_beyond, tmp_path):
    folder = tmp_path / "seed-0" / "grpo-gcd"
    write_lines(folder / "checkpoints" / "history.jsonl", [STEP])
    after = {**SCORE, "mean": 0.7, "low": low, "high": 0.8}
    result = {
        "seed": 0,
        "run": "grpo",
        "tasks": ["gcd"],
        "steps": 1,
        "held_out_questions": 9,
        "left_out_questions": 1,
        "before": {"gcd": SCORE},
        "after": {"gcd": after},
        "sampled": [(0.0, "gcd", None, 0.5, True), (60.0, "gcd", None, 1.0, False)],
    }
    write_lines(folder / "result.json", [result])
    (line,) = [
        row for row in curve.table(curve.read(tmp_path)).split("\n") if "+" in row
    ]
    assert line.endswith(f"| +0.200 | {is_beyond} |")
