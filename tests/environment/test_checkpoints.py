"""Checkpoints: what a resumed run continues, and files that are none."""

from pathlib import Path

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.run import checkpoints
from rg_env.run.checkpoints import BadCheckpointError
from rg_env.run.ledger import Ending
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import build_env, empty_api, ready_env
from tests.support.runs import (
    completions_of,
    next_items,
    score_items,
    serve,
    trainer_config,
)

pytestmark = pytest.mark.processes


def checkpointed(env, folder, step=0):
    env.checkpoint_dir = str(folder)
    env.curr_step = step
    return env


async def test_shards_that_register_in_another_order_continue_their_own_items(tmp_path):
    for shard in (0, 1):
        async with ready_env(shard_index=shard, num_shards=2) as env:
            await next_items(env, 1 + shard)
            checkpointed(env, tmp_path, 4).save_checkpoint(4)
    for shard in (1, 0):
        async with ready_env(shard_index=shard, num_shards=2) as env:
            env.wandb_prepend = f"rg_{1 - shard}"
            checkpointed(env, tmp_path, 4).load_checkpoint()
            assert env.iter == 1 + shard


async def test_a_run_resumes_with_its_levels_and_the_item_that_would_have_come(
    tmp_path,
):
    changes = {"complexity_mode": "curriculum", "task_choice": "adaptive", "seed": 5}
    async with ready_env(**changes) as env:
        await score_items(env, 40)
        checkpointed(env, tmp_path).save_checkpoint(3)
        expected = [item[2] for item in await next_items(env, 10)]
    async with ready_env(**changes) as env:
        checkpointed(env, tmp_path, 3).load_checkpoint()
        assert [item[2] for item in await next_items(env, 10)] == expected
        assert max(env.task_complexity_levels.values()) > 0.3


class Own(ReasoningGymEnv):
    """Saves attributes of its own, set before and after ours, and some of ours."""

    def __init__(self, *args, **kwargs):
        self.early = 0
        super().__init__(*args, **kwargs)
        self.items = 0

    def save_checkpoint(self, step, data=None):
        own = {"early": self.early, "items": self.items, "curr_step": 99, "score": 1}
        super().save_checkpoint(step, {"_protected_names": [], **own})


async def test_data_of_a_subclass_comes_back_and_replaces_nothing_of_ours(tmp_path):
    async with ready_env(cls=Own) as env:
        env.early = 7
        env.items = [8]
        checkpointed(env, tmp_path, 4).save_checkpoint(4)
    async with ready_env(cls=Own) as env:
        checkpointed(env, tmp_path, 4).load_checkpoint()
        assert (env.early, env.items, env.curr_step) == (7, [8], 4)
        assert callable(env.score)


async def test_rollouts_in_flight_at_a_kill_are_counted_when_it_goes_on(tmp_path):
    async with ready_env() as env:
        checkpointed(env, tmp_path, 4)._checkpoints.begin()
        env.ledger.query(3)
        env.ledger.settle(Ending.SENT, 1)
        env._checkpoints.release()  # as a kill does
    async with ready_env() as env:
        checkpointed(env, tmp_path, 4).load_checkpoint()
        assert env.ledger.endings == {"sent": 1, "killed": 2}


# -- in a run, against the real API ----------------------------------------------------


async def served_from(api, folder, steps=3):
    """Serve for a trainer that starts at step 4 and saves every few steps."""
    env = build_env(SIMULATED, rollout_server_url=api, total_steps=4 + steps)
    config = trainer_config(
        api, starting_step=4, checkpoint_dir=str(folder), save_checkpoint_interval=2
    )
    await serve(env, config, steps)
    return env


def saved_steps(folder):
    return {path.name for path in Path(folder).rglob("step-*.json")}


async def test_a_run_saves_when_the_trainer_does_and_at_its_end(tmp_path, api_url):
    env = await served_from(api_url, tmp_path, steps=12)
    steps = {int(name[5:-5]) for name in saved_steps(tmp_path)}
    # A fast trainer may pass two of its intervals between two checks of it.
    assert any(step > 4 and step % 2 == 0 for step in steps)
    assert env.curr_step in steps


async def beside_dumps(api, folder, is_killed=False, seed=7):
    """Serve for a trainer that saves nothing."""
    empty_api(api)
    env = build_env(
        SIMULATED,
        rollout_server_url=api,
        total_steps=5,
        data_dumps_dir=str(folder),
        seed=seed,
        ensure_scores_are_not_same=False,
    )

    async def released():
        env._checkpoints.release()

    if is_killed:
        env._checkpoints.end = released
    trainer = trainer_config(api, starting_step=4, save_checkpoint_interval=-1)
    await serve(env, trainer, 1)


async def test_a_run_whose_trainer_saves_nothing_goes_on_beside_its_dumps(
    tmp_path, api_url, logged, monkeypatch
):
    monkeypatch.setattr(checkpoints, "MIN_SAVE_INTERVAL_S", 0.0)
    runs = []
    for is_killed in (False, True, False):
        asked = completions_of(monkeypatch)
        await beside_dumps(api_url, tmp_path, is_killed)
        runs.append({known.index for known in asked})
    first, second, third = runs
    assert first.isdisjoint(second) and first.isdisjoint(third)
    assert logged.text.count("starting anew") == 1
    assert len(saved_steps(tmp_path)) == 1


async def test_a_run_with_another_seed_begins_anew_and_says_so(
    tmp_path, api_url, logged
):
    await beside_dumps(api_url, tmp_path)
    logged.clear()
    await beside_dumps(api_url, tmp_path, seed=8)
    assert "another seed" in logged.text
    assert "continuing from" not in logged.text


async def test_a_refused_checkpoint_ends_the_start_and_is_not_written_over(
    tmp_path, api_url
):
    torn = tmp_path / "env_checkpoints" / "reasoning_gym" / "step-4.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("torn")
    with pytest.raises(BadCheckpointError, match=r"step-4\.json"):
        await served_from(api_url, tmp_path)
    assert torn.read_text() == "torn"


async def test_a_disk_that_refuses_a_checkpoint_does_not_end_the_run(
    tmp_path, api_url, logged
):
    (tmp_path / "file").write_text("")
    env = await served_from(api_url, tmp_path / "file")
    assert env.ledger.endings["sent"] >= 3 * 16
    assert "is not saved" in logged.text
