"""`serve` against the real API, with a stand-in trainer and a simulated model."""

import asyncio
import dataclasses
import json

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.demo.api_process import running_api
from rg_env.demo.stand_in_trainer import StandInTrainer
from tests.support.parts import (
    GUARD_S,
    Simulated,
    build_env,
    empty_api,
    free_port,
    until,
)
from tests.support.runs import serve, trainer_config


def served(api, url, steps=4, trainer_changes=None, **changes):
    """Serve for some steps; return the environment and the trainer's counts."""
    env = build_env(url, rollout_server_url=api, total_steps=steps, **changes)
    config = trainer_config(api, steps, **(trainer_changes or {}))
    return env, asyncio.run(serve(env, config, steps))


# -- the ledger ------------------------------------------------------------------------


@dataclasses.dataclass
class Run:
    env: object
    counts: object
    completions: int


@pytest.fixture(scope="module")
def full_run(only_api):
    """120 groups of 8 over all tasks."""
    empty_api(only_api)
    server = Simulated()
    try:
        env, counts = served(
            only_api,
            server.url,
            steps=15,
            trainer_changes={"batch_size": 64, "group_size": 8, "max_token_len": 8192},
            tasks=None,
            group_size=8,
            max_token_length=8192,
            num_workers=2,
        )
        return Run(env, counts, server.completions)
    finally:
        server.stop()


def test_every_group_that_arrives_can_be_trained_on(full_run):
    assert full_run.counts.groups == 120
    assert full_run.counts.rollouts == 960
    assert full_run.counts.invalid_groups == 0
    assert full_run.counts.faults == {}


def test_no_group_is_turned_away_or_lost_on_its_way(full_run):
    outcomes = set(full_run.env.ledger.outcomes)
    assert outcomes <= {"sent", "zero_variance", "cancelled"}


def test_every_queried_rollout_has_exactly_one_outcome(full_run):
    metrics = full_run.env.metrics
    assert metrics.ledger.in_flight == 0
    assert metrics.ledger.queried == sum(metrics.ledger.outcomes.values())


def test_no_query_of_the_server_is_outside_the_ledger(full_run):
    metrics = full_run.env.metrics
    # A group that is cancelled at the end may not have reached the server yet.
    least = metrics.ledger.queried - metrics.ledger.outcomes["cancelled"]
    assert least <= full_run.completions <= metrics.ledger.queried


def test_many_tasks_take_part(full_run):
    assert len(full_run.env.metrics.tasks) > 50


# -- other trainers and servers ------------------------------------------


def test_a_trainer_that_cuts_most_completions_still_gets_whole_groups(
    api_url, simulated
):
    changes = {"max_token_len": 330}
    env, counts = served(api_url, simulated.url, 2, changes)
    assert counts.invalid_groups == 0
    assert env.ledger.outcomes["discarded"] == 0


def test_an_api_that_comes_up_late_is_waited_for(simulated, logged):
    async def run():
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        env = build_env(simulated.url, rollout_server_url=url, total_steps=2)
        serving = asyncio.create_task(env.env_manager())
        await until(lambda: env._api.retries >= 2, "the environment has tried twice")
        async with running_api(port) as api:
            trainer = StandInTrainer(trainer_config(api, 2))
            await asyncio.wait_for(asyncio.gather(trainer.run(2), serving), GUARD_S)
        return trainer.counts, url

    counts, url = asyncio.run(run())
    assert counts.groups == 8
    said = [r.getMessage() for r in logged.records if url in r.getMessage()]
    assert len(said) == 2  # one line when it is down, one when it answers again
    assert "run-api" in said[0]


def test_a_restarted_api_gets_groups_again(simulated):
    async def run():
        port = free_port()
        async with running_api(port) as api:
            env = build_env(simulated.url, rollout_server_url=api, total_steps=1000)
            serving = asyncio.create_task(env.env_manager())
            first = StandInTrainer(trainer_config(api, 4))
            await asyncio.wait_for(first.run(2), GUARD_S)
        async with running_api(port) as api:
            trainer = StandInTrainer(trainer_config(api, 4))
            await asyncio.wait_for(trainer.run(3), GUARD_S)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        return trainer.counts, env.metrics

    counts, metrics = asyncio.run(run())
    assert (counts.steps, counts.invalid_groups) == (3, 0)
    assert metrics.ledger.in_flight == 0


def test_groups_wait_for_a_slow_trainer_without_being_cancelled(api_url, simulated):
    env, counts = served(
        api_url, simulated.url, 3, {"step_time_s": 0.7}, max_batches_offpolicy=1
    )
    assert counts.steps == 3
    # Those in flight at the end are; none for back-pressure.
    assert env.ledger.outcomes["cancelled"] <= 4 * env.max_num_workers


# -- the loop --------------------------------------------------------------------------


class SlowItems(ReasoningGymEnv):
    """Makes items more slowly than the server answers them."""

    async def get_next_item(self):
        await asyncio.sleep(0.05)
        return await super().get_next_item()


def test_steps_are_taken_where_items_are_slower_than_the_server(
    api_url, simulated, tmp_path
):
    changes = {"checkpoint_dir": str(tmp_path), "save_checkpoint_interval": 1}
    served(
        *(api_url, simulated.url, 8, changes),
        cls=SlowItems,
        data_dumps_dir=str(tmp_path),
        min_items_sent_before_logging=1,
    )
    (numbers,) = tmp_path.rglob("*metrics.jsonl")
    logged = {json.loads(x)["step"] for x in numbers.read_text().splitlines()}
    saved = {path.name for path in tmp_path.rglob("step-*.json")}
    # A trainer that takes two batches at once takes two steps at once.
    assert len(logged) > 4 and len(saved) > 4


async def test_an_evaluation_that_fails_does_not_end_the_run_and_is_logged(logged):
    class FailingError(RuntimeError):
        pass

    env = build_env(steps_per_eval=2)

    async def evaluate():
        raise FailingError("no luck")

    env.evaluate = evaluate
    env.status_dict = {"current_step": 3}
    await env.env_step_checks()
    await asyncio.wait([env.eval_runner])
    await asyncio.sleep(0)
    await env.close()
    assert any(r.exc_info and r.exc_info[0] is FailingError for r in logged.records)
