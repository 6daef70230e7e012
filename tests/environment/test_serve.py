"""`serve` against the real API, with a stand-in trainer and a simulated model."""

import asyncio

from rg_env.settings.program_settings import SIMULATED
from tests.support.parts import build_env
from tests.support.real_api import EndsError
from tests.support.runs import completions_of, serve, trainer_config


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
