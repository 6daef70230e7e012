"""Names, signatures and defaults that people use from outside."""

import asyncio
import inspect
import json
import logging
import random
from collections.abc import MutableMapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from atroposlib.envs.base import BaseEnv, BaseEnvConfig, EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import APIServerConfig

import reasoning_gym_environment as entry
from rg_env.installation import TOKENIZER_FOLDER

Env = entry.ReasoningGymEnv

COROUTINES = {
    *("setup", "get_next_item", "collect_trajectories", "score", "evaluate"),
    *("rollout_and_score_eval", "add_rollouts_for_wandb", "create_rollout_table"),
    *("wandb_log", "close", "_save_rollouts_to_jsonl"),
    "_save_failed_rollouts_to_jsonl",
}
ATTRIBUTES = {
    "logger": logging.Logger,
    "task_names": list,
    "test_items_with_scorers": list,
    "rollouts_to_save_buffer": list,
    "failed_rollouts_to_save_buffer": list,
    "processed_item_count": int,
    "failed_processed_item_count": int,
    "save_file_batch_num": int,
    "failed_save_file_batch_num": int,
    "percent_correct_buffer": list,
    "eval_metrics": list,
    "task_complexity_levels": MutableMapping,
    "task_performance_history": dict,
    "task_group_counts": dict,
    "task_curricula": dict,
    "run_uuid": str,
    "datadumps_dir": str,
    "rng": random.Random,
    "iter": int,
}
CURRICULUM_STATS = {
    "curriculum_mode",
    "task_details",
    "total_tasks_tracked",
    "tasks_with_adjustments",
    "target_accuracy",
    "avg_recent_accuracy",
    "avg_complexity",
    "min_complexity",
    "max_complexity",
}

CLASS_DEFAULTS = {
    "tokenizer_name": BaseEnvConfig().tokenizer_name,
    "dump_rollouts": False,
    "dump_failed_rollouts": False,
    "rollout_save_score_threshold": 0.7,
    "debug_logging": False,
    "suppress_base_env_logs": True,
    "seed": 42,
    "mask_too_long_completions": True,
    "num_eval_samples_per_task": 5,
    "eval_seed": 123,
    "complexity_mode": None,
    "curriculum_target_accuracy": 0.7,
}
MODEL = "NousResearch/DeepHermes-3-Llama-3-8B-Preview"
STARTING_POINT = {
    "tokenizer_name": MODEL,
    "group_size": 8,
    "use_wandb": True,
    "rollout_server_url": "http://localhost:8000",
    "total_steps": 250,
    "seed": 1918,
    "batch_size": 1024,
    "steps_per_eval": 25,
    "max_token_length": 8192,
    "inference_weight": 4.0,
    "wandb_name": "reasoning_gym_think",
    "eval_handling": EvalHandlingEnum.NONE,
    "eval_limit_ratio": 0.1,
    "num_rollouts_per_group_for_logging": 4,
    "num_rollouts_to_keep": 50,
    "rollout_save_score_threshold": 0.51,
    "complexity_mode": "random",
    "min_batch_allocation": 0.1,
}
"""Where `config_init()` differs from the class."""

STARTING_SERVER = {
    "model_name": MODEL,
    "base_url": "http://localhost:9004/v1",
    "api_key": "x",
    "num_max_requests_at_once": 128,
    "num_requests_for_eval": 256,
    "server_type": "vllm",
}


@pytest.mark.processes
def test_attributes_and_stats_are_those_of_the_original(tmp_path):
    config = entry.ReasoningGymEnvConfig(
        tokenizer_name=str(TOKENIZER_FOLDER),
        tasks=["chain_sum"],
        num_workers=1,
        use_wandb=False,
        data_dumps_dir=str(tmp_path),
    )

    async def read():
        env = Env(config, Env.config_init()[1])
        try:
            await env.setup()
            found = {name: getattr(env, name) for name in ATTRIBUTES}
            return {**found, "stats": env.get_curriculum_stats()}
        finally:
            await env.close()

    attributes = asyncio.run(read())
    kinds = ATTRIBUTES.items()
    assert [n for n, kind in kinds if not isinstance(attributes[n], kind)] == []
    assert attributes["task_names"] == ["chain_sum"]
    assert set(attributes["stats"]) >= CURRICULUM_STATS
    items = attributes["test_items_with_scorers"]
    assert len(items) == CLASS_DEFAULTS["num_eval_samples_per_task"]
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
    found = entry.BaseEnvConfig, entry.EvalHandlingEnum
    assert found == (BaseEnvConfig, EvalHandlingEnum)


def test_the_hooks_that_are_awaited_are_those_of_the_original():
    names = json.loads((Path(__file__).with_name("original.json")).read_text())
    awaited = inspect.iscoroutinefunction
    found = {n for n in names["parameters"] if awaited(getattr(Env, n, None))}
    assert found == COROUTINES


def test_the_class_defaults_are_the_originals():
    fields = entry.ReasoningGymEnvConfig.model_fields
    found = {name: fields[name].default for name in CLASS_DEFAULTS}
    assert found == CLASS_DEFAULTS
    assert all(type(found[n]) is type(value) for n, value in CLASS_DEFAULTS.items())


def test_config_init_sets_these_values_and_no_others():
    config, _ = Env.config_init()
    assert type(config) is entry.ReasoningGymEnvConfig
    found = {name: getattr(config, name) for name in STARTING_POINT}
    assert found == STARTING_POINT
    assert config.model_fields_set <= set(STARTING_POINT)


def test_config_init_names_one_server_in_a_list():
    _, servers = Env.config_init()
    assert isinstance(servers, list) and len(servers) == 1
    assert type(servers[0]) is APIServerConfig
    assert servers[0].model_dump(include=set(STARTING_SERVER)) == STARTING_SERVER


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
    item = {"question": "2 + 2?", "answer": "4", "metadata": {}}

    class Exact:
        def score_answer(self, answer, entry):
            return float(answer == entry["answer"])

    assert env._score_answer_with_both_formats("4", item, Exact()) == 1.0
    assert env._score_answer_with_both_formats(None, item, Exact()) == 0.0
    assert env.task_names == []
