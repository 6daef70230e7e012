"""Names, signatures and defaults that people use from outside."""

import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from atroposlib.envs.base import BaseEnv, BaseEnvConfig, EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import APIServerConfig

import reasoning_gym_environment as entry
from tests.support.parts import ENTRY_OF_FOUR, Exact, ready_env

Env = entry.ReasoningGymEnv

COROUTINES = """
    setup get_next_item collect_trajectories score evaluate rollout_and_score_eval
    add_rollouts_for_wandb create_rollout_table wandb_log close _save_rollouts_to_jsonl
    _save_failed_rollouts_to_jsonl
"""
ATTRIBUTES = """
Logger: logger
Random: rng
MutableMapping: task_complexity_levels
dict: task_performance_history task_group_counts task_curricula
list: task_names test_items_with_scorers percent_correct_buffer eval_metrics
list: rollouts_to_save_buffer failed_rollouts_to_save_buffer
int: processed_item_count failed_processed_item_count iter
int: save_file_batch_num failed_save_file_batch_num
str: run_uuid datadumps_dir
"""
"""Type to the attributes of the original that have it."""

CURRICULUM_STATS = """
    curriculum_mode task_details total_tasks_tracked tasks_with_adjustments
    target_accuracy avg_recent_accuracy avg_complexity min_complexity max_complexity
"""

ORIGINAL = json.loads(Path(__file__).with_name("original.json").read_text())
"""What `tools/record_original.py` has read from the original."""


def settings(model, names):
    return {n: v for n, v in model.model_dump(mode="json").items() if n in names}


@pytest.mark.processes
async def test_attributes_and_stats_are_those_of_the_original():
    number = ORIGINAL["defaults"]["num_eval_samples_per_task"]
    async with ready_env(tasks=["chain_sum"], num_eval_samples_per_task=number) as env:
        for line in ATTRIBUTES.strip().splitlines():
            kind, names = line.split(":")
            for name in names.split():
                kinds = type(getattr(env, name)).__mro__
                assert kind in [each.__name__ for each in kinds], name
        stats = env.get_curriculum_stats()
        items = env.test_items_with_scorers
    assert env.task_names == ["chain_sum"]
    assert set(stats) >= {*CURRICULUM_STATS.split()}
    assert len(items) == number
    for rg_item, dataset in items:
        assert {"question", "answer", "metadata"} <= set(rg_item)
        assert callable(dataset.score_answer)


def test_the_module_exports_an_environment_of_the_framework():
    names = {"ReasoningGymEnv", "ReasoningGymEnvConfig", "system_prompt"}
    assert names <= {*entry.__all__}
    assert isinstance(entry.system_prompt, str)
    assert issubclass(Env, BaseEnv) and Env.name == "reasoning_gym"
    assert issubclass(entry.ReasoningGymEnvConfig, BaseEnvConfig)
    assert Env.env_config_cls is entry.ReasoningGymEnvConfig
    assert entry.EvalHandlingEnum is EvalHandlingEnum


def test_the_hooks_that_are_awaited_are_those_of_the_original():
    awaited = inspect.iscoroutinefunction
    found = {n for n in ORIGINAL["parameters"] if awaited(getattr(Env, n, None))}
    assert found == {*COROUTINES.split()}


def test_the_class_defaults_are_the_originals():
    defaults = ORIGINAL["defaults"]
    found = settings(entry.ReasoningGymEnvConfig(), defaults)
    assert sorted(map(repr, found.items())) == sorted(map(repr, defaults.items()))


def test_config_init_sets_these_values_and_no_others():
    config, _ = Env.config_init()
    assert type(config) is entry.ReasoningGymEnvConfig
    assert settings(config, ORIGINAL["start"]) == ORIGINAL["start"]
    assert config.model_fields_set <= set(ORIGINAL["start"])


def test_config_init_names_one_server_in_a_list():
    _, servers = Env.config_init()
    assert isinstance(servers, list) and len(servers) == 1
    assert type(servers[0]) is APIServerConfig
    wanted = ORIGINAL["start_server"] | {"server_type": "vllm"}
    assert settings(servers[0], wanted) == wanted


@pytest.mark.parametrize(
    "config", [None, SimpleNamespace(debug_logging=False), MagicMock()]
)
def test_helpers_work_on_an_object_that_was_never_built(config):
    env = Env.__new__(Env)
    if config is not None:
        env.config = config
    package = SimpleNamespace(create_dataset=lambda name, size, seed: [seed + 1])
    assert env._validate_discovered_tasks(["gcd"], package) == ["gcd"]
    assert env._validate_discovered_tasks(["gcd"], None) == []
    assert env._extract_final_answer("<think>3</think><answer> 4 </answer>") == "4"
    assert env._score_answer_with_both_formats("4", ENTRY_OF_FOUR, Exact()) == 1.0
    assert env._score_answer_with_both_formats(None, ENTRY_OF_FOUR, Exact()) == 0.0
    assert env.task_names == []
