"""The training loop: hand-overs, steps, batches of another policy, checkpoints."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

from examples.trainer.checkpoints import Checkpoints
from examples.trainer.policy import TrainingError
from examples.trainer.training_loop import EndedError, Plan, train
from tests.examples.groups_of_rows import group_of
from tests.examples.policies import AFTER, BEFORE, DIGITS, AnswerPolicy


def group_for(policy):
    """Return a group as this policy samples it now; the second digit is right."""
    rows = [[*BEFORE, digit, *AFTER] for digit in DIGITS[:2]]
    told = policy.log_probabilities([0, 1])
    is_digit = np.arange(len(rows[0])) == len(BEFORE)
    return dataclasses.replace(
        group_of([0, 1]),
        tokens=rows,
        trained=[np.ones(len(is_digit), bool)] * 2,
        logprobs=[is_digit * value for value in told],
    )


class Source:
    """Batches of the policy; at first some that another one sampled.

    At `ends_at` steps, it raises an error.
    """

    def __init__(self, policy, foreign=0, ends_at=None, error=None):
        self.policy = policy
        self.steps = []
        self._foreign = foreign
        self._ends_at = ends_at
        self._error = error

    def next_batch(self, step):
        if step == self._ends_at:
            raise self._error
        self.steps.append(step)
        group = group_for(self.policy)
        if len(self.steps) > self._foreign:
            return [group]
        off = [row - 1.0 for row in group.logprobs]
        return [dataclasses.replace(group, logprobs=off)]


def trained(folder, steps, checkpoint_every=2, **faults):
    """Train a new policy from what is in a folder.

    Return the steps, the policies that were handed over, and the source.
    """
    policy = AnswerPolicy()
    seen = []
    handed = []
    server = SimpleNamespace(hand_over=handed.append)
    plan = Plan(steps, learning_rate=0.1, checkpoint_every=checkpoint_every)
    source = Source(policy, **faults)
    train(policy, source, server, plan, Checkpoints(folder), tell=seen.append)
    return seen, handed, source


def history_of(folder):
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def kept_in(folder):
    return [path.name for path in folder.glob("step-*")]


def test_weights_are_handed_over_before_the_first_batch_and_after_every_step(tmp_path):
    seen, handed, source = trained(tmp_path, 3)
    assert (len(seen), len(handed), source.steps) == (3, 4, [0, 1, 2])


def test_a_run_goes_on_at_its_newest_checkpoint(tmp_path):
    before, *_ = trained(tmp_path, 4)
    seen, _, source = trained(tmp_path, 6)
    assert [step.number for step in seen] == [5, 6]
    assert seen[0].entropy < before[-1].entropy < before[0].entropy
    assert source.steps == [4, 5]
    assert kept_in(tmp_path) == ["step-000006"]


@pytest.mark.parametrize("error", [EndedError, TrainingError])
def test_what_was_done_is_kept_when_a_training_ends_early(tmp_path, error):
    with pytest.raises(error):
        trained(tmp_path, 6, ends_at=3, error=error)
    assert kept_in(tmp_path) == ["step-000003"]
    seen, *_ = trained(tmp_path, 6)
    assert [step.number for step in seen] == [4, 5, 6]


def test_what_a_kill_lost_is_done_again_from_the_weights_of_the_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, 6, checkpoint_every=3, ends_at=4, error=KeyboardInterrupt)
    seen, *_ = trained(tmp_path, 6, checkpoint_every=3)
    assert [step.number for step in seen] == [4, 5, 6]
    assert [row["number"] for row in history_of(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_a_batch_that_another_policy_sampled_is_left_out_and_said(tmp_path, caplog):
    seen, _, source = trained(tmp_path, 2, foreign=2)
    assert source.steps == [0, 0, 0, 1]
    assert [step.number for step in seen] == [1, 2]
    assert caplog.text.count("another policy has sampled it (KL 0.718)") == 2


def test_a_server_with_other_weights_ends_the_training_and_no_step_is_taken(tmp_path):
    with pytest.raises(TrainingError, match="with other weights than the trainer"):
        trained(tmp_path, 2, foreign=10**6)
    assert history_of(tmp_path) == []
    assert kept_in(tmp_path) == ["step-000000"]
