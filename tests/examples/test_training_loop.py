"""The training loop: hand-overs, steps, batches of another policy, checkpoints."""

import dataclasses
import json

import numpy as np
import pytest

from examples.trainer.checkpoints import Checkpoints
from examples.trainer.policy import TrainingError
from examples.trainer.training_loop import EndedError, Plan, train
from tests.examples.groups_of_rows import group_of
from tests.examples.policies import AFTER, BEFORE, DIGITS, AnswerPolicy


def group_for(policy, scores=(0, 1)):
    """Return a group as this policy samples it now; the second digit is right."""
    rows = [[*BEFORE, DIGITS[place], *AFTER] for place in range(len(scores))]
    told = policy.log_probabilities(range(len(scores)))
    is_digit = np.arange(len(rows[0])) == len(BEFORE)
    return dataclasses.replace(
        group_of(scores),
        tokens=rows,
        trained=[np.ones(len(is_digit), bool)] * len(rows),
        logprobs=[is_digit * value for value in told],
    )


class Source:
    def __init__(self, policy):
        self.policy = policy
        self.steps = []

    def next_batch(self, step):
        self.steps.append(step)
        return [group_for(self.policy)]


class Server:
    """Counts the weights that it was given; at some number the trainer is killed."""

    def __init__(self, killed_at=None):
        self.taken = 0
        self._killed_at = killed_at

    def hand_over(self, policy):
        self.taken += 1
        if self.taken == self._killed_at:
            raise KeyboardInterrupt


class ForeignSource(Source):
    """Gives batches that another policy has sampled, at first or always."""

    foreign = 10**6

    def next_batch(self, step):
        (group,) = super().next_batch(step)
        if len(self.steps) > self.foreign:
            return [group]
        off = [row - 1.0 for row in group.logprobs]
        return [dataclasses.replace(group, logprobs=off)]


def trained(folder, steps, source_of=Source, server=None, policy=None, **changes):
    """Train a new policy from what is in a folder; return steps, server and source."""
    policy = policy or AnswerPolicy()
    server = server or Server()
    seen = []
    plan = Plan(steps, **{"learning_rate": 0.1, "checkpoint_every": 2, **changes})
    source = source_of(policy)
    train(policy, source, server, plan, Checkpoints(folder), tell=seen.append)
    return seen, server, source


def history_of(folder):
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def kept_in(folder):
    return [path.name for path in folder.glob("step-*")]


def test_weights_are_handed_over_before_the_first_batch_and_after_every_step(tmp_path):
    seen, server, source = trained(tmp_path, 3)
    assert (len(seen), server.taken, source.steps) == (3, 4, [0, 1, 2])


def test_a_run_goes_on_at_its_newest_checkpoint(tmp_path):
    trained(tmp_path, 4)
    seen, _, source = trained(tmp_path, 6)
    assert [step.number for step in seen] == [5, 6]
    assert source.steps == [4, 5]
    assert kept_in(tmp_path) == ["step-000006"]


@pytest.mark.parametrize("error", [EndedError, TrainingError])
def test_what_was_done_is_kept_when_a_training_ends_early(tmp_path, error):
    class EndingSource(Source):
        def next_batch(self, step):
            if step == 3:
                raise error
            return super().next_batch(step)

    with pytest.raises(error):
        trained(tmp_path, 6, EndingSource)
    assert kept_in(tmp_path) == ["step-000003"]
    seen, *_ = trained(tmp_path, 6)
    assert [step.number for step in seen] == [4, 5, 6]


def test_what_a_kill_lost_is_done_again_from_the_weights_of_the_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, 6, server=Server(killed_at=5), checkpoint_every=3)
    seen, *_ = trained(tmp_path, 6, checkpoint_every=3)
    assert [step.number for step in seen] == [4, 5, 6]
    assert [row["number"] for row in history_of(tmp_path)] == [1, 2, 3, 4, 5, 6]


def test_a_batch_that_another_policy_sampled_is_left_out_and_said(tmp_path, caplog):
    class Stale(ForeignSource):
        foreign = 2

    seen, _, source = trained(tmp_path, 2, Stale)
    assert source.steps == [0, 0, 0, 1]
    assert [step.number for step in seen] == [1, 2]
    assert caplog.text.count("another policy has sampled it (KL 0.718)") == 2


def test_a_server_with_other_weights_ends_the_training_and_no_step_is_taken(tmp_path):
    with pytest.raises(TrainingError, match="with other weights than the trainer"):
        trained(tmp_path, 2, ForeignSource)
    assert history_of(tmp_path) == []
    assert kept_in(tmp_path) == ["step-000000"]
