"""Records: a dumped group explains itself and can be made again."""

import dataclasses
import json

import pytest

from rg_env.rollouts.group_record import (
    SCHEMA_VERSION,
    GroupRecord,
    Provenance,
    RolloutRecord,
    is_worth_keeping,
)
from rg_env.tasks import library

PROVENANCE = Provenance("train", index=17, seed=99, level=None, params={})


def rollout(score=1.0, reward=None):
    return RolloutRecord(
        conversation=[
            {"role": "system", "content": "Think."},
            {"role": "user", "content": "2 + 3?"},
            {"role": "assistant", "content": "<answer>5</answer>"},
        ],
        score=score,
        reward=score if reward is None else reward,
        outcome="right" if score == 1.0 else "wrong",
        answer="5",
        finish_reason="stop",
        prompt_tokens=12,
        completion_tokens=7,
    )


def group(*scores, provenance=PROVENANCE):
    return GroupRecord("gcd", [rollout(score) for score in scores], "5", provenance)


def line(record):
    return record.line({"reasoning_gym": "0.1.25"}, "2026-01-31T12:00:00+00:00")


def test_a_line_has_every_field_in_one_order():
    written = line(group(1.0, 0.0))
    rollouts = written["rollouts"]
    assert [r["score"] for r in rollouts] == [1.0, 0.0]
    assert rollouts[0]["conversation"][-1]["role"] == "assistant"
    assert list(written.items()) == [
        ("schema_version", SCHEMA_VERSION),
        ("item_id", "gcd"),
        ("rollouts", rollouts),
        ("task", "gcd"),
        ("split", "train"),
        ("index", 17),
        ("seed", 99),
        ("level", None),
        ("params", {}),
        ("gold_answer", "5"),
        ("versions", {"reasoning_gym": "0.1.25"}),
        ("time", "2026-01-31T12:00:00+00:00"),
    ]
    assert json.loads(json.dumps(written)) == written


def test_a_group_knows_the_level_that_made_its_item():
    hard = dataclasses.replace(PROVENANCE, level=0.7)
    assert group(1.0, provenance=hard).level == 0.7
    assert group(1.0, provenance=None).level is None


def test_a_rollout_keeps_its_score_beside_what_the_trainer_got():
    record = GroupRecord("gcd", [rollout(1.0, reward=0.25)], "5", PROVENANCE)
    (written,) = line(record)["rollouts"]
    assert (written["score"], written["reward"]) == (1.0, 0.25)
    assert (written["prompt_tokens"], written["completion_tokens"]) == (12, 7)
    assert (written["outcome"], written["answer"]) == ("right", "5")


def test_a_line_says_what_was_taken_off_the_rewards_if_anything_was():
    taken = dataclasses.replace(group(1.0), baseline=0.4)
    assert line(taken)["baseline"] == 0.4
    assert "baseline" not in line(group(1.0))


def test_a_line_makes_its_item_again():
    params = {"min_numbers": 3, "max_numbers": 3}
    entry = library.make_entry("gcd", params, 99)
    record = GroupRecord(
        "gcd",
        [rollout()],
        entry["answer"],
        dataclasses.replace(PROVENANCE, params=params),
    )
    written = json.loads(json.dumps(line(record)))
    again = library.make_entry(written["task"], written["params"], written["seed"])
    assert (again["question"], again["answer"]) == (entry["question"], entry["answer"])


def test_an_item_from_outside_has_no_provenance():
    written = line(group(1.0, provenance=None))
    assert written["task"] == "gcd"
    assert "seed" not in written


def test_the_mean_score_is_over_the_task_s_scores():
    assert group(1.0, 0.5, 0.0).mean_score == 0.5


def test_a_group_failed_if_every_score_is_zero():
    assert group(0.0, 0.0).is_failed
    assert not group(0.0, 0.01).is_failed


@pytest.mark.parametrize(
    ("scores", "threshold", "kept"),
    [
        ([0.0, 0.8], 0.7, True),
        ([0.0, 0.7], 0.7, False),
        ([1.0, 1.0], 0.7, True),
        ([0.0, 1.0], 1.0, True),
        ([0.99, 0.99], 1.0, False),
        ([0.0, 0.0], 0.0, False),
        ([0.0, 0.1], 0.0, True),
    ],
)
def test_a_group_is_kept_for_one_rollout_above_the_threshold(scores, threshold, kept):
    assert is_worth_keeping(scores, threshold) is kept
