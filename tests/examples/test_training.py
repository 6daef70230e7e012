"""The whole loop: real API, real serve, the small server, and a policy in numpy."""

import contextlib
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from examples.train_small import evaluation, recipe
from examples.train_small.batches import BatchShape, BatchSource
from examples.train_small.plugin import Plugin
from examples.train_small.servers import SmallServer
from examples.train_small.training import Checkpoints, Plan, dealt_anew, train
from examples.vllm_on_cpu import free_port
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER
from tests.examples.answer_policy import AnswerPolicy
from tests.examples.groups_of_rows import group_of

STEPS = 40
GROUPS, GROUP_SIZE = 8, 8
TASK = "letter_counting"


class Loop:
    """Everything that a run needs, in a folder."""

    def __init__(self, folder, running):
        self._folder, self._running = folder, running
        self._plugin = Plugin(Path(sys.executable))
        self.checkpoints = Checkpoints(folder / "checkpoints")
        self.dumps, self.seen = folder / "dumps", []

    def run(self, policy, steps, *, is_shuffled=False):
        """Train from the newest checkpoint up to a step."""
        weights = self._folder / "weights"
        shutil.copytree(TOKENIZER_FOLDER, weights, dirs_exist_ok=True)
        done = self.checkpoints.load(policy)
        policy.save(weights)
        module = "tests.examples.answer_policy"
        server = SmallServer(weights, self._folder / "server.log", module=module)
        self._running.callback(server.kill)
        server.start()
        server.ready()
        api = self._running.enter_context(
            self._plugin.running_api(self._folder / "api.log", free_port())
        )
        source = BatchSource(api)
        source.register(
            BatchShape(GROUP_SIZE, GROUPS, recipe.MAX_TOKENS, steps - done, done)
        )
        settings = self._settings(server, api, weights)
        log = self._folder / "serve.log"
        serve = self._running.enter_context(
            self._plugin.running(log, "serve", "--config", settings)
        )
        source.check = serve.check
        plan = Plan(steps, learning_rate=20.0, is_shuffled=is_shuffled)
        train(policy, source, server, plan, self.checkpoints, tell=self.seen.append)

    def _settings(self, server, api, weights):
        env = recipe.settings_of((TASK,), 5, 20, {}) | {
            "tokenizer_name": str(weights),
            "rollout_server_url": api,
            "group_size": GROUP_SIZE,
            "batch_size": GROUPS * GROUP_SIZE,
            "total_steps": -1,
            "max_num_workers": GROUPS,
            "max_batches_offpolicy": 1,
            "min_batch_allocation": None,
            # A policy that is sure gives equal scores, and batches have to come still.
            "ensure_scores_are_not_same": False,
            "data_dumps_dir": str(self.dumps),
            "dump_rollouts": True,
            "dump_failed_rollouts": True,
            "rollout_save_score_threshold": 0.0,
        }
        openai = {"base_url": f"{server.url}/v1", "model_name": server.model_name}
        path = self._folder / "serve.yaml"
        path.write_text(yaml.safe_dump({"env": env, "openai": openai}))
        return path


@pytest.fixture
def loop(tmp_path):
    with contextlib.ExitStack() as running:
        yield Loop(tmp_path, running)


def mean_reward(steps):
    return np.mean([step.reward for step in steps])


@pytest.mark.processes
@pytest.mark.slow
def test_the_reward_rises_through_the_real_api_and_serve(loop):
    loop.run(AnswerPolicy(), STEPS)
    assert mean_reward(loop.seen[-5:]) > mean_reward(loop.seen[:5]) + 0.1
    # The first batch is of the weights that are trained: nothing but rounding differs.
    assert loop.seen[0].ratios.furthest < 1e-5
    groups = evaluation.AskedGroups(loop.dumps).new()
    assert len(groups) >= STEPS * GROUPS
    assert {group.task for group in groups} == {TASK}


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
