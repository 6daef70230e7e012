"""The training loop: steps, hand-overs, checkpoints, the control."""

import numpy as np
import pytest

from examples.train_small.training import Checkpoints, Plan, dealt_anew, train
from tests.examples.answer_policy import AnswerPolicy
from tests.examples.groups_of_rows import group_of


def test_rewards_that_are_dealt_out_anew_are_the_same_ones():
    groups = [group_of([0, 0, 1]), group_of([1, 1, 0.5])]
    dealt = dealt_anew(groups, np.random.default_rng(0))
    scores = [np.concatenate([g.scores for g in some]) for some in (groups, dealt)]
    assert sorted(scores[0]) == sorted(scores[1])
    assert scores[0].tolist() != scores[1].tolist()
    assert [g.tokens for g in dealt] == [g.tokens for g in groups]


class FixedSource:
    """Gives the same batch again and again."""

    def next_batch(self):
        return [group_of([0, 1], seed=1)]


class Server:
    """Counts the weights that it was given."""

    taken = 0

    def hand_over(self, policy):
        self.taken += 1
        return 0.0


def trained(folder, steps, **changes):
    """Train a new policy from what is in a folder; return the steps and the server."""
    checkpoints, server, seen = Checkpoints(folder), Server(), []
    policy = AnswerPolicy()
    checkpoints.load(policy)
    plan = Plan(steps, checkpoint_every=2, **changes)
    train(policy, FixedSource(), server, plan, checkpoints, tell=seen.append)
    return seen, server


def test_every_step_hands_its_weights_over(tmp_path):
    _, server = trained(tmp_path, 3)
    assert server.taken == 3


def test_a_run_goes_on_at_its_newest_checkpoint(tmp_path):
    trained(tmp_path, 4)
    seen, _ = trained(tmp_path, 6)
    assert [step.number for step in seen] == [5, 6]
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-000006"]


def test_steps_after_the_newest_checkpoint_are_done_again(tmp_path):
    class Broken(Server):
        def hand_over(self, policy):
            self.taken += 1
            if self.taken == 4:
                raise KeyboardInterrupt
            return 0.0

    checkpoints = Checkpoints(tmp_path)
    policy = AnswerPolicy()
    checkpoints.load(policy)
    plan = Plan(6, checkpoint_every=2)
    with pytest.raises(KeyboardInterrupt):
        train(policy, FixedSource(), Broken(), plan, checkpoints)
    seen, _ = trained(tmp_path, 6)
    assert [step.number for step in seen] == [3, 4, 5, 6]
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 6


def test_the_learning_rate_rises_to_its_highest_and_falls_to_nothing():
    plan = Plan(100, learning_rate=2.0)
    rates = [plan.learning_rate_of(number) for number in range(1, 101)]
    highest = rates.index(2.0)
    assert rates[: highest + 1] == sorted(rates[: highest + 1])
    assert rates[highest:] == sorted(rates[highest:], reverse=True)
    assert 0 < rates[0] < 0.2
    assert 0 < rates[-1] < 0.1


def test_a_step_is_taken_with_its_learning_rate(tmp_path):
    taken = []

    class Noting(AnswerPolicy):
        def step(self, rows, weights):
            taken.append(self.learning_rate)
            return super().step(rows, weights)

    plan = Plan(4)
    train(Noting(), FixedSource(), Server(), plan, Checkpoints(tmp_path))
    assert taken == [plan.learning_rate_of(number) for number in (1, 2, 3, 4)]
