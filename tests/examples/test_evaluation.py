"""The held-out score, the groups that were asked, and the table of both."""

import json

import pytest

from examples.train_small import curve, evaluation
from rg_env.errors import RunFailed

STEP = {"number": 1, "reward": 0.5, "ratios": {"mean": 1.0}}
SCORE = {"mean": 0.5, "low": 0.4, "high": 0.6, "items": 100}


def sample(question, score, task="gcd", outcome="right"):
    return {"task": task, "question": question, "score": score, "outcome": outcome}


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def group_row(time, question, rewards):
    rollouts = [
        {
            "conversation": [
                {"role": "user", "content": question},
                {"role": "assistant", "content": "x"},
            ],
            "score": reward,
            "reward": reward,
        }
        for reward in rewards
    ]
    return {"time": time, "task": "gcd", "level": None, "rollouts": rollouts}


def test_the_held_out_score_of_a_task_has_an_interval_around_it(tmp_path):
    rows = [sample(f"q{i}", float(i < 3)) for i in range(4)]
    write_lines(tmp_path / "samples.jsonl", rows)
    score = evaluation.held_out_scores(tmp_path)["gcd"]
    assert score.mean == 0.75
    assert score.low < 0.75 < score.high


def test_a_question_that_is_held_out_twice_counts_once(tmp_path):
    rows = [sample("a", 1.0), sample("b", 0.0), sample("b", 0.0)]
    write_lines(tmp_path / "samples.jsonl", rows)
    score = evaluation.held_out_scores(tmp_path)["gcd"]
    assert (score.mean, score.items) == (0.5, 2)


def test_a_question_whose_answer_was_shown_does_not_count(tmp_path):
    rows = [sample("a", 1.0), sample("b", 0.0), sample("c", 0.0)]
    write_lines(tmp_path / "samples.jsonl", rows)
    score = evaluation.held_out_scores(tmp_path, {"a"})["gcd"]
    assert (score.mean, score.items) == (0.0, 2)


def test_held_out_scores_of_a_run_are_told_once_each_and_when_they_are_whole(tmp_path):
    write_lines(tmp_path / "during" / "samples.jsonl", [sample("of an earlier", 0.5)])
    scores = evaluation.RunningScores(tmp_path / "during", set())
    for number, mean in enumerate([0.0, 1.0], 1):
        folder = tmp_path / f"during_{number}"
        write_lines(folder / "samples.jsonl", [sample("a", mean)])
        assert scores.new() is None
        (folder / "metrics.json").touch()
        assert scores.new()["gcd"].mean == mean
        assert scores.new() is None


def test_an_item_that_was_not_answered_is_no_score(tmp_path):
    write_lines(tmp_path / "samples.jsonl", [sample("q", None, outcome="no_reply")])
    with pytest.raises(RunFailed, match="no_reply"):
        evaluation.held_out_scores(tmp_path)


def test_groups_are_read_once_each_in_the_order_of_their_time(tmp_path):
    asked = evaluation.AskedGroups(tmp_path)
    part = tmp_path / "env_rollouts_0.jsonl.part"
    write_lines(part, [group_row("2026-01-01T00:00:02", "b", [0, 1])])
    failed = tmp_path / "env_FAILED_rollouts_0.jsonl"
    write_lines(failed, [group_row("2026-01-01T00:00:01", "a", [0, 0])])
    found = asked.new()
    assert [group.question for group in found] == ["a", "b"]
    assert [group.has_signal for group in found] == [False, True]
    # A file that is full is renamed; what it held is not told again.
    whole = part.rename(tmp_path / "env_rollouts_0.jsonl")
    assert asked.new() == []
    with whole.open("a") as lines:
        lines.write(json.dumps(group_row("2026-01-01T00:00:03", "c", [1, 1])) + "\n")
    assert [group.question for group in asked.new()] == ["c"]


def test_a_pause_between_two_starts_does_not_count_as_time_of_a_run():
    times = ["2026-01-01T00:00:01", "2026-01-01T00:00:03", "2026-01-02T00:00:03"]
    groups = [
        evaluation.AskedGroup(time, "gcd", "q", None, 0.5, has_signal=True)
        for time in times
    ]
    assert [seconds for seconds, *_ in evaluation.asked_rows(groups)] == [0, 2, 2]


def test_a_line_that_is_not_whole_yet_is_read_later(tmp_path):
    asked = evaluation.AskedGroups(tmp_path)
    line = json.dumps(group_row("2026-01-01T00:00:00", "a", [0, 1]))
    path = tmp_path / "env_rollouts_0.jsonl.part"
    path.write_text(line[:20])
    assert asked.new() == []
    path.write_text(line + "\n")
    assert [group.question for group in asked.new()] == ["a"]


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
        "held_out_that_were_asked": 0,
        "held_out_questions": 9,
        "before": {"gcd": SCORE},
        "after": {"gcd": after},
        "asked": [(0.0, "gcd", None, 0.5, True), (60.0, "gcd", None, 1.0, False)],
    }
    write_lines(folder / "result.json", [result])
    (line,) = [
        row for row in curve.table(curve.read(tmp_path)).split("\n") if "+" in row
    ]
    assert line.endswith(f"| +0.200 | {is_beyond} |")
