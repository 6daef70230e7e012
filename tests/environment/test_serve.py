"""`serve` against the real API, with a stand-in trainer and a simulated model."""

import asyncio

from rg_env.demo.stand_in_trainer import StandInTrainer
from rg_env.settings.program_settings import SIMULATED
from tests.support.faults import listed
from tests.support.parts import GUARD_S, build_env, empty_api, free_port, until
from tests.support.real_api import EndsError
from tests.support.runs import completions_of, serve, trainer_config
from tests.support.spoilt_api import faulty_api

# -- the ledger ------------------------------------------------------------------------


async def test_every_queried_rollout_has_one_outcome_and_every_group_can_be_trained_on(
    api_url, monkeypatch
):
    completions = completions_of(monkeypatch)
    env = build_env(
        SIMULATED,
        rollout_server_url=api_url,
        total_steps=4,
        tasks=None,
        group_size=8,
        max_token_length=8192,
        num_workers=2,
    )
    limits = {"batch_size": 64, "group_size": 8, "max_token_len": 8192}
    counts = await serve(env, trainer_config(api_url, 4, **limits), 4)
    assert (counts.groups, counts.rollouts) == (32, 256)
    assert (counts.invalid_groups, counts.faults) == (0, {})
    ledger = env.metrics.ledger
    assert ledger.outcomes.keys() <= {"sent", "zero_variance", "cancelled"}
    assert (ledger.in_flight, ledger.queried) == (0, sum(ledger.outcomes.values()))
    # A group that is cancelled at the end may not have reached the model yet.
    least = ledger.queried - ledger.outcomes["cancelled"]
    assert least <= len(completions) <= ledger.queried
    assert len(env.task_group_counts) > 20


# -- an API that comes late, or again --------------------------------------------------


async def test_an_api_that_comes_up_late_is_waited_for(api_url, impatient, logged):
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    env = build_env(SIMULATED, rollout_server_url=url, total_steps=2)
    serving = asyncio.create_task(env.env_manager())
    await until(lambda: env._session.retries >= 2, "it has tried twice")
    async with faulty_api(listed(), api_url, port=port):
        trainer = StandInTrainer(trainer_config(api_url, 2))
        await asyncio.wait_for(asyncio.gather(trainer.run(2), serving), GUARD_S)
    assert trainer.counts.groups == 8
    said = [r.getMessage() for r in logged.records if url in r.getMessage()]
    assert len(said) == 2  # one line when it is down, one when it answers again
    assert "run-api" in said[0]


async def test_a_restarted_api_gets_groups_again(api_url, impatient):
    port = free_port()
    async with faulty_api(listed(), api_url, port=port) as door:
        env = build_env(SIMULATED, rollout_server_url=door.url, total_steps=1000)
        serving = asyncio.create_task(env.env_manager())
        first = StandInTrainer(trainer_config(api_url, 4))
        await asyncio.wait_for(first.run(2), GUARD_S)
    empty_api(api_url)
    async with faulty_api(listed(), api_url, port=port):
        trainer = StandInTrainer(trainer_config(api_url, 4))
        counts = await asyncio.wait_for(trainer.run(3), GUARD_S)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert (counts.steps, counts.invalid_groups) == (3, 0)
    assert env.metrics.ledger.in_flight == 0


async def test_an_evaluation_that_fails_does_not_end_the_run_and_is_logged(logged):
    env = build_env(steps_per_eval=2)

    async def evaluate():
        raise EndsError

    env.evaluate = evaluate
    env.status_dict = {"current_step": 3}
    await env.env_step_checks()
    await asyncio.wait([env.eval_runner])
    await asyncio.sleep(0)
    await env.close()
    assert any(r.exc_info and r.exc_info[0] is EndsError for r in logged.records)
