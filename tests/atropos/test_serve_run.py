"""The loop of `serve`, with hooks of the test's own and statuses as plain values."""

import asyncio
from types import SimpleNamespace

import pytest
from atroposlib.envs.base import EvalHandlingEnum

from rg_env.atropos import serve_run
from rg_env.atropos.serve_run import Serving, groups_to_the_end
from rg_env.run.checkpoints import crosses_multiple
from rg_env.run.group_loop import Run, Window
from tests.support.parts import build_env
from tests.support.real_api import EndsError

CONFIG = {
    "total_steps": 3,
    "worker_timeout": -1,
    "min_items_sent_before_logging": 1,
    "eval_limit_ratio": 0.5,
    "group_size": 2,
    "batch_size": 8,
    "max_batches_offpolicy": 3,
    "min_batch_allocation": None,
}


class Hooks(Serving):
    """An environment that notes which of its hooks are called."""

    derived_batch_size = 8

    def __init__(self, **config):
        status = {"current_step": 0, "queue_size": 0, "env_weight": 1.0}
        self._session = SimpleNamespace(status=status, env_id=0)
        self._session.check_registrations = self._noting("check_registrations")
        self.config = SimpleNamespace(**(CONFIG | config))
        self.max_num_workers = 4
        self.server = SimpleNamespace(update_weight=self._noting("update_weight"))
        self.called = []
        self.curr_step = 0
        self.eval_runner = None
        self.items_sent_this_step = -1
        names = "setup setup_wandb register_env get_server_info get_status"
        for name in [*names.split(), "env_step_checks"]:
            setattr(self, name, self._noting(name))
        self._window = Window()
        self._querying = set()
        self._hooked_run = Run(
            lambda: self.get_next_item(), complete=None, score=None, sinks=[]
        )
        self._checkpoints = SimpleNamespace(begin=lambda: None)

    get_next_item = evaluate = None

    def _noting(self, name):
        async def hook(*args):
            self.called.append(name)

        return hook


def served(env):
    asyncio.run(asyncio.wait_for(env._serve(), 10))


def test_each_turn_checks_the_step_until_the_run_is_complete(monkeypatch):
    monkeypatch.setattr(serve_run, "TICK_S", 0.01)
    env = Hooks(total_steps=3)

    async def add_train_workers():
        """Let the trainer take a step at each turn."""
        env.called.append("add_train_workers")
        env._session.status["current_step"] += 1

    env.add_train_workers = add_train_workers
    served(env)
    # One batch past the last step, as the framework counts.
    assert env.called.count("add_train_workers") == 4
    assert env.called[-1] == "env_step_checks"


def test_steps_are_looked_at_while_an_item_is_being_made(monkeypatch):
    monkeypatch.setattr(serve_run, "TICK_S", 0.01)
    env = Hooks(total_steps=10**9)
    env.get_next_item = asyncio.Event().wait
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(env._serve(), 0.1))
    assert env.called.count("env_step_checks") > 1


def test_an_error_of_the_status_ends_the_loop():
    env = Hooks(total_steps=10**9)

    async def gone():
        raise ZeroDivisionError

    env.get_status = env.get_next_item = gone
    with pytest.raises(ZeroDivisionError):
        served(env)


@pytest.mark.parametrize(
    ("interval", "before", "now", "expected"),
    [
        (2, 1, 3, True),
        (25, 25, 49, False),
        (1, 57, 0, False),
        (0, 0, 9, False),
        (-1, 0, 9, False),
    ],
)
def test_no_step_that_asks_for_something_is_missed(interval, before, now, expected):
    assert crosses_multiple(interval, before, now) is expected


@pytest.mark.parametrize(
    ("handling", "in_flight", "may"),
    [
        (EvalHandlingEnum.NONE, 3, True),
        (EvalHandlingEnum.LIMIT_TRAIN, 1, True),
        (EvalHandlingEnum.LIMIT_TRAIN, 2, False),
        (EvalHandlingEnum.STOP_TRAIN, 0, False),
    ],
)
def test_an_evaluation_leaves_as_many_groups_as_the_setting_says(
    handling, in_flight, may
):
    env = Hooks(eval_handling=handling)
    env._window.workers |= set(range(in_flight))
    env._querying |= set(range(in_flight))
    assert env._may_start() is True
    env.eval_runner = SimpleNamespace(done=lambda: False)
    assert env._may_start() is may


async def test_an_evaluation_that_fails_does_not_end_the_run_and_is_logged(logged):
    async def evaluate():
        raise EndsError

    env = build_env(steps_per_eval=2)
    env.evaluate = evaluate
    env.status_dict = {"current_step": 3}
    await env.env_step_checks()
    await asyncio.wait([env.eval_runner])
    await env.close()
    assert any(r.exc_info and r.exc_info[0] is EndsError for r in logged.records)


# -- how many groups may be in flight --------------------------------------------------


def status(queue=0, own=0, step=0, pack=8):
    return {
        "queue_size": queue,
        "self_queue_size": own,
        "max_group_size": pack,
        "current_step": step,
    }


def started(queue=0, querying=0, in_flight=0, own=0, step=0, **changes):
    """Return how many groups are started, of eight that may be in flight."""
    defaults = {"group_size": 8, "batch_size": 64, "total_steps": 10**6}
    env = Hooks(**(defaults | changes))
    env.max_num_workers = 8
    env.derived_batch_size = 64
    env._session.status = status(queue, own, step)
    env._querying |= set(range(querying))
    env._window.workers |= set(range(in_flight))
    while env._may_start():
        env._querying.add(-len(env._querying) - 1)
        env._window.workers.add(-len(env._window.workers) - 1)
    return len(env._window.workers) - in_flight


@pytest.mark.parametrize(("queue", "allowed"), [(17, 7), (24, 0)])
def test_groups_in_flight_and_in_the_queue_stay_within_the_offpolicy_bound(
    queue, allowed
):
    assert started(queue) == allowed


def test_a_bound_of_0_batches_is_no_bound():
    assert started(10**6, max_batches_offpolicy=0) == 8


def test_a_group_that_has_its_replies_leaves_its_place_to_another():
    assert started(querying=8, in_flight=8) == 0
    assert started(querying=5, in_flight=8) == 3


def test_an_instance_with_a_minimum_goes_on_while_others_fill_the_queue():
    assert started(100, own=0, min_batch_allocation=0.25) > 0
    assert started(100, own=100, min_batch_allocation=0.25) == 0


@pytest.mark.parametrize(
    ("queue", "in_flight", "allowed"), [(0, 0, 8), (3, 0, 5), (3, 4, 1), (3, 5, 0)]
)
@pytest.mark.parametrize("minimum", [None, 1.0])
def test_no_more_groups_are_started_than_the_run_needs(
    queue, in_flight, allowed, minimum
):
    groups = started(
        queue,
        in_flight,
        in_flight,
        step=10,
        total_steps=10,
        min_batch_allocation=minimum,
    )
    assert groups == allowed


@pytest.mark.parametrize(
    ("step", "queue", "ends"),
    [(10, 0, False), (11, 0, True), (9, 8, False), (9, 16, True)],
)
def test_the_run_is_complete_when_batches_made_and_queued_pass_its_last_step(
    step, queue, ends
):
    config = SimpleNamespace(total_steps=10, group_size=8, batch_size=64)
    assert (groups_to_the_end(config, status(queue, step=step)) <= 0) is ends
