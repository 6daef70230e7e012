"""Subclasses that extend every hook with `super()`, or replace it by their own.

The first is run as the commands run it: `serve` against the real API, `process` and
`evaluate`, each with the simulated model.
"""

import asyncio
import contextlib
import contextvars
import inspect
import json
from types import MethodType, SimpleNamespace

import pytest
from atroposlib.envs.base import BaseEnv

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.old_names import UNCALLED
from rg_env.errors import RunError, SettingError
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import (
    RIGHT,
    WRONG,
    Exact,
    build_env,
    empty_api,
    env_config,
    ready_env,
    rollout,
    server_config,
)
from tests.support.runs import (
    evaluated,
    processed,
    rollout_of,
    samples,
    serve,
    trainer_config,
)

pytestmark = pytest.mark.processes

FIRST_STEP = 4
STEPS = 6
GROUPS = 3


running = contextvars.ContextVar("running", default="")


class Extended(ReasoningGymEnv):
    """Notes the calls of its hooks, each with the hook that it is made in, or ""."""

    def __init__(self, *args, **kwargs):
        self.calls = []
        super().__init__(*args, **kwargs)

    def calls_of(self, hook):
        return [call for call in self.calls if call.hook == hook]

    @contextlib.contextmanager
    def noted(self, hook, given):
        call = SimpleNamespace(hook=hook, within=running.get(), given=given.arguments)
        call.result = None
        self.calls.append(call)
        before = running.set(hook)
        try:
            yield call
        finally:
            running.reset(before)


def extended(name):
    """Return an override of a hook that notes the call and does the same."""
    above = getattr(ReasoningGymEnv, name)
    signature = inspect.signature(above)

    async def asynchronous(self, *args, **kwargs):
        with self.noted(name, signature.bind(self, *args, **kwargs)) as call:
            call.result = await getattr(super(Extended, self), name)(*args, **kwargs)
            return call.result

    def synchronous(self, *args, **kwargs):
        with self.noted(name, signature.bind(self, *args, **kwargs)):
            return getattr(super(Extended, self), name)(*args, **kwargs)

    return asynchronous if inspect.iscoroutinefunction(above) else synchronous


# -- the three runs --------------------------------------------------------------------

CALLERS = {
    "load_checkpoint": "register_env",
    "get_next_item": "add_train_workers",
    "collect_trajectories": "handle_env",
    "score": "collect_trajectories",
    "postprocess_histories": "handle_env",
    "handle_send_to_api": "handle_env",
    "add_rollouts_for_wandb": "handle_send_to_api",
    "cleanup": "handle_env",
    "evaluate": "env_step_checks",
    "rollout_and_score_eval": "evaluate",
    "create_rollout_table": "wandb_log",
    "close": "env_manager",
}
"""Each hook to the one from which the framework calls it in `serve`."""

ORDER = (
    *("env_manager", "setup", "setup_wandb", "register_env", "get_server_info"),
    *("get_status", "env_step_checks", "add_train_workers", "get_next_item"),
    *("handle_env", "collect_trajectories", "score", "postprocess_histories"),
    "handle_send_to_api",
)
ONCE = ("env_manager", "setup", "register_env", "get_server_info", "close")
OF_SERVE = {*CALLERS, *ORDER, "wandb_log", "save_checkpoint"}
OF_PROCESS = {
    *("process_manager", "setup", "wandb_log", "create_rollout_table", "close"),
    *("get_next_item", "collect_trajectories", "score", "postprocess_histories"),
    *("handle_send_to_api", "add_rollouts_for_wandb"),
}

for _hook in OF_SERVE | OF_PROCESS:
    setattr(Extended, _hook, extended(_hook))


def check_what_is_handed_on(env):
    """Check that what one hook returns is the very thing that the next is given."""

    def results(hook):
        return {id(call.result) for call in env.calls_of(hook)}

    def given(hook, name):
        return {id(call.given[name]) for call in env.calls_of(hook)}

    collected = [call for call in env.calls_of("collect_trajectories") if call.result]
    groups = {id(call.result[0]) for call in collected}
    items = results("get_next_item")
    assert {id(call.given["item"]) for call in collected} <= items
    assert groups <= results("score")
    assert given("postprocess_histories", "trajectories") <= groups
    assert given("handle_send_to_api", "scored_data") <= results(
        "postprocess_histories"
    )
    assert given("handle_send_to_api", "item") <= items


@pytest.fixture(scope="module")
def served(only_api, tmp_path_factory):
    """An environment that has served, and the counts of its trainer."""
    empty_api(only_api)
    env = build_env(
        SIMULATED,
        cls=Extended,
        rollout_server_url=only_api,
        total_steps=FIRST_STEP + STEPS,
        steps_per_eval=1,
        min_items_sent_before_logging=1,
    )
    config = trainer_config(
        only_api,
        starting_step=FIRST_STEP,
        checkpoint_dir=str(tmp_path_factory.mktemp("served")),
        save_checkpoint_interval=1,
    )
    return env, asyncio.run(serve(env, config, STEPS))


def test_serve_works_with_every_hook_extended(served):
    env, counts = served
    assert OF_SERVE - {call.hook for call in env.calls} == set()
    assert (counts.groups, counts.invalid_groups, counts.faults) == (4 * STEPS, 0, {})
    assert env.exit_status == 0
    assert env.ledger.queried == sum(env.ledger.endings.values())
    assert set(env.ledger.endings) <= {"sent", "zero_variance", "cancelled"}
    check_what_is_handed_on(env)


def test_serve_calls_every_hook_where_and_when_the_framework_does(served):
    env, _ = served
    for hook, caller in CALLERS.items():
        assert {call.within for call in env.calls_of(hook)} == {caller}, hook
    hooks = [call.hook for call in env.calls]
    indices = list(map(hooks.index, ORDER))
    assert indices == sorted(indices)
    assert set(map(hooks.count, ONCE)) == {1}


async def test_process_works_with_every_hook_extended(tmp_path):
    env, rows = await processed(tmp_path, GROUPS, cls=Extended)
    assert OF_PROCESS - {call.hook for call in env.calls} == set()
    assert len(rows) == GROUPS
    assert env.ledger.endings["written"] == 4 * GROUPS
    assert len(env.calls_of("wandb_log")) == GROUPS
    check_what_is_handed_on(env)
    for call in env.calls_of("handle_send_to_api"):
        assert call.given["do_send_to_api"] is False
        assert call.given["abort_on_any_max_length_exceeded"] is False


# -- without super(), as subclasses of the original are written ------------------------


def with_own(*parents, **members):
    """Return a subclass with members of its own."""
    return type("Own", parents or (ReasoningGymEnv,), members)


OWN_ENTRY = {"question": "1 + 1?", "answer": "2", "metadata": {}}


async def own_item(self):
    message = {"role": "user", "content": OWN_ENTRY["question"]}
    return (frozenset(message.items()),), OWN_ENTRY, Exact()


def group_of(scores):
    """Return a group as atropos 296a0bc returns it from `score`."""
    return {
        "tokens": [[1, 2] for _ in scores],
        "masks": [[-100, 2] for _ in scores],
        "scores": scores,
        "overrides": [{} for _ in scores],
        "inference_logprobs": [[1.0, -0.5] for _ in scores],
    }


async def own_group(self, item):
    self.rollouts_to_save_buffer.append({"item_id": "own", "rollouts": []})
    self.processed_item_count += 1
    return group_of([1.0, 0.25, 0.0, 0.0]), []


async def own_scores(self, rollout_group_data):
    return group_of([0.75 for _ in rollout_group_data])


@pytest.mark.parametrize(
    ("hook", "own", "column", "value"),
    [
        ("get_next_item", own_item, "question", "1 + 1?"),
        ("collect_trajectories", own_group, "scores", [1.0, 0.25, 0.0, 0.0]),
        ("score", own_scores, "scores", [0.75] * 4),
    ],
)
async def test_process_writes_what_a_hook_of_its_own_returns(
    hook, own, column, value, tmp_path
):
    env, rows = await processed(tmp_path, GROUPS, cls=with_own(**{hook: own}))
    assert [row[column] for row in rows] == [value] * GROUPS
    # As in the original: one for each that the hook has added itself.
    assert env.processed_item_count == (GROUPS if own is own_group else 0)


async def half(self, test_data_tuple):
    score = await ReasoningGymEnv.rollout_and_score_eval(self, test_data_tuple)
    return score / 2


async def a_quarter(self, test_data_tuple):
    rg_item, dataset_obj = test_data_tuple
    assert rg_item["question"] and callable(dataset_obj.score_answer)
    return 0.25


async def best_of_two(self, test_data_tuple):
    await self.score([rollout_of(((), *test_data_tuple), WRONG)] * 2)
    return 0.5


@pytest.mark.parametrize("own", [half, a_quarter, best_of_two])
async def test_an_evaluation_is_of_the_scores_that_the_hook_returns(own, tmp_path):
    returned = []

    async def noted(self, test_data_tuple):
        returned.append(await own(self, test_data_tuple))
        return returned[-1]

    await evaluated(tmp_path, cls=with_own(rollout_and_score_eval=noted))
    rows = samples(tmp_path)
    assert sorted(row["score"] for row in rows) == sorted(returned) != []
    assert all(("messages" in row) is (own is not a_quarter) for row in rows)


async def test_an_item_that_a_hook_evaluates_is_not_counted_in_the_run(tmp_path):
    async def evaluates(self, trajectories):
        await self.rollout_and_score_eval((OWN_ENTRY, Exact()))
        return trajectories

    env, _ = await processed(
        tmp_path, GROUPS, cls=with_own(postprocess_histories=evaluates)
    )
    assert env.ledger.endings["written"] == 4 * GROUPS
    assert env.ledger.queried == env.ledger.endings.total() == 4 * env.metrics.groups


async def test_items_that_a_subclass_assigns_are_those_that_are_evaluated(tmp_path):
    class Own(ReasoningGymEnv):
        async def setup(self):
            await super().setup()
            self.test_items_with_scorers = [(OWN_ENTRY, Exact())]

    await evaluated(tmp_path, cls=Own)
    (row,) = samples(tmp_path)
    assert row["question"] == "1 + 1?" and row["messages"][1]["content"] == "1 + 1?"


# -- helpers of the original -----------------------------------------------------------


def lenient(self, text):
    return "4" if "4" in text else None


def a_half(self, model_answer, rg_item, dataset_obj):
    ours = ReasoningGymEnv._score_answer_with_both_formats
    return ours(self, model_answer, rg_item, dataset_obj) / 2


HELPERS = {
    "_extract_final_answer": (lenient, [1.0, 1.0, 0.0]),
    "_score_answer_with_both_formats": (a_half, [0.0, 0.5, 0.0]),
}
"""Helper to one that replaces it, and the scores of three answers then."""


@pytest.mark.parametrize("place", ["subclass", "mixin", "mixin behind", "instance"])
@pytest.mark.parametrize("name", HELPERS)
async def test_a_scoring_helper_that_was_replaced_is_the_one_that_counts(name, place):
    own, scores = HELPERS[name]
    mixin = with_own(BaseEnv, **{name: own})
    classes = {
        "subclass": with_own(**{name: own}),
        "mixin": with_own(mixin, ReasoningGymEnv),
        "mixin behind": with_own(ReasoningGymEnv, mixin),
        "instance": ReasoningGymEnv,
    }
    env = build_env(cls=classes[place])
    if place == "instance":
        setattr(env, name, MethodType(own, env))
    group = await env.score([rollout(text) for text in ("4", RIGHT, WRONG)])
    assert group["scores"] == scores
    env.config.partial_credit = False
    group = await env.score([rollout(text) for text in ("4", RIGHT, "<answer>")])
    assert (group and group["scores"]) == (None if 0.5 in scores else scores)


async def test_a_replaced_helper_may_have_the_workers_score():
    cls = with_own(_score_answer_with_both_formats=a_half)
    async with ready_env(cls=cls) as env:
        item = await env.get_next_item()
        texts = [f"<answer>{item[1]['answer']}</answer>", ""]
        group = await env.score([rollout_of(item, text) for text in texts])
    assert group["scores"] == [0.5, 0.0]


async def test_the_tasks_of_an_own_list_are_those_that_are_sampled():
    cls = with_own(_get_task_names=lambda self: ["gcd"])
    async with ready_env(cls=cls, tasks=None) as env:
        assert env.task_names == ["gcd"]
    with pytest.raises(SettingError, match=r"env\.tasks: Own\._get_task_names chooses"):
        await build_env(cls=cls).setup()
    cls._get_task_names = lambda self: []
    with pytest.raises(SettingError, match="_get_task_names names no task"):
        await build_env(cls=cls, tasks=None).setup()


@pytest.mark.parametrize("name", UNCALLED)
def test_a_helper_that_is_never_called_is_refused(name):
    with pytest.raises(SettingError, match=f"Own.{name} is never called"):
        build_env(cls=with_own(**{name: lambda self: None}))


async def test_a_helper_that_is_never_called_is_refused_on_an_instance_too():
    env = build_env()
    env._get_complexity_params_for_task = lambda *how: {}
    with pytest.raises(SettingError, match="is never called"):
        await env.setup()


async def test_a_helper_that_forgets_its_score_gives_none():
    env = build_env()
    env._score_answer_with_both_formats = lambda *how: None
    with pytest.raises(TypeError, match="NoneType"):
        await env.score([rollout(RIGHT)])


async def test_own_curriculum_stats_are_logged(tmp_path):
    cls = with_own(get_curriculum_stats=lambda self: {"mine": 7})
    async with ready_env(
        cls=cls, complexity_mode="curriculum", data_dumps_dir=str(tmp_path)
    ) as env:
        env._kind = "serve"
        await env.wandb_log({})
    (path,) = tmp_path.rglob("*metrics.jsonl")
    assert json.loads(path.read_text())["curriculum/mine"] == 7


# -- by hand ---------------------------------------------------------------------------


async def test_what_has_no_server_or_no_file_says_so():
    env = ReasoningGymEnv(env_config(), [server_config()], testing=True)
    assert not env._servers.is_down  # else the log names a server without a URL
    env.test_items_with_scorers = [(OWN_ENTRY, Exact())]
    with pytest.raises(RunError, match="testing=True there is no inference server"):
        await env.evaluate()
    with pytest.raises(SettingError, match="data_path_to_save_groups: `process` needs"):
        await build_env().process_manager()
