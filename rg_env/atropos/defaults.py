"""What the commands start from, where it differs from the class.

Source: atropos 296a0bc, config_init(); differs: the server's type is one that can
train; the framework's default raised an error at the first item.
"""

from __future__ import annotations

import typing

if typing.TYPE_CHECKING:
    from atroposlib.envs.server_handling.server_manager import APIServerConfig

    from rg_env.atropos.config import ReasoningGymEnvConfig

MODEL = "NousResearch/DeepHermes-3-Llama-3-8B-Preview"

ENV: dict[str, typing.Any] = {
    "tokenizer_name": MODEL,
    "group_size": 8,
    "use_wandb": True,
    "rollout_server_url": "http://localhost:8000",
    "total_steps": 250,
    "seed": 1918,
    "batch_size": 1024,
    "steps_per_eval": 25,
    "max_token_length": 1024 * 8,
    "inference_weight": 4.0,
    "wandb_name": "reasoning_gym_think",
    "eval_handling": "NONE",
    "eval_limit_ratio": 0.1,
    "num_rollouts_per_group_for_logging": 4,
    "num_rollouts_to_keep": 50,
    "rollout_save_score_threshold": 0.51,
    "complexity_mode": "random",
    "min_batch_allocation": 0.1,
}

SERVER: dict[str, typing.Any] = {
    "model_name": MODEL,
    "base_url": "http://localhost:9004/v1",
    "api_key": "x",
    "num_max_requests_at_once": 128,
    "num_requests_for_eval": 256,
    "server_type": "vllm",
}


def env_config() -> ReasoningGymEnvConfig:
    """Return the settings of the environment that the commands start from."""
    from rg_env.atropos.config import ReasoningGymEnvConfig

    return ReasoningGymEnvConfig(**ENV)


def servers() -> list[APIServerConfig]:
    """Return the inference servers that the commands start from."""
    from atroposlib.envs.server_handling.server_manager import APIServerConfig

    return [APIServerConfig(**SERVER)]
