"""What the command line starts from, and the checks that come before any work."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from atroposlib.envs.base import EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import APIServerConfig

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError

MODEL = "NousResearch/DeepHermes-3-Llama-3-8B-Preview"

CANNOT_TRAIN = (
    "openai.server_type: {0!r} returns no token ids with log-probabilities, so it"
    " cannot train; `serve` needs 'vllm' or 'sglang' ({0!r} works with `process` and"
    " `evaluate`)"
)


def env_config() -> ReasoningGymEnvConfig:
    """Return the settings that the command line starts from.

    Source: atropos 296a0bc, config_init(); differs: none.
    """
    return ReasoningGymEnvConfig(
        tokenizer_name=MODEL,
        group_size=8,
        use_wandb=True,
        rollout_server_url="http://localhost:8000",
        total_steps=250,
        seed=1918,
        batch_size=1024,
        steps_per_eval=25,
        max_token_length=1024 * 8,
        inference_weight=4.0,
        wandb_name="reasoning_gym_think",
        eval_handling=EvalHandlingEnum.NONE,
        eval_limit_ratio=0.1,
        num_rollouts_per_group_for_logging=4,
        num_rollouts_to_keep=50,
        rollout_save_score_threshold=0.51,
        complexity_mode="random",
        min_batch_allocation=0.1,
    )


def servers() -> list[APIServerConfig]:
    """Return the servers that the command line starts from.

    Source: atropos 296a0bc, config_init(); differs: server_type is one that can train;
    the host's default raised an error at the first item.
    """
    return [
        APIServerConfig(
            model_name=MODEL,
            base_url="http://localhost:9004/v1",
            api_key="x",
            num_max_requests_at_once=128,
            num_requests_for_eval=256,
            server_type="vllm",
        )
    ]


def _check_writable(field: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SettingError(
            f"{field}: no file can be written to {str(folder)!r} ({error.strerror});"
            " name a folder that can be written"
        ) from error


def check_folders(config: ReasoningGymEnvConfig) -> None:
    """Refuse output folders that cannot be written, before anything is generated.

    Raises:
        SettingError: The field and the folder.
    """
    if config.dump_rollouts or config.dump_failed_rollouts:
        _check_writable("env.data_dumps_dir", Path(config.data_dumps_dir))
    if config.data_path_to_save_groups is not None:
        parent = Path(config.data_path_to_save_groups).parent
        _check_writable("env.data_path_to_save_groups", parent)
    if config.data_dir_to_save_evals is not None:
        _check_writable(
            "env.data_dir_to_save_evals", Path(config.data_dir_to_save_evals)
        )


@contextlib.contextmanager
def refusing_bad_tokenizer(name: str, of_servers: Iterable[str]) -> Iterator[None]:
    """Turn a tokenizer that cannot be loaded into one sentence.

    Args:
        name: The environment's tokenizer.
        of_servers: Those of the inference servers' clients.

    Raises:
        SettingError: The name, the reason and the way out.
    """
    try:
        yield
    except (OSError, ValueError, ImportError) as error:
        if isinstance(error, SettingError):
            raise
        reason = (
            str(error).strip().splitlines()[0] if str(error) else type(error).__name__
        )
        others = sorted(set(of_servers) - {name})
        raise SettingError(
            f"env.tokenizer_name: {name!r}"
            + "".join(f" or openai.tokenizer_name: {other!r}" for other in others)
            + f" cannot be loaded ({reason}); name a model of"
            " the Hugging Face hub, or a folder that holds its tokenizer.json and"
            " tokenizer_config.json, which is also the way out without network"
        ) from error


@contextlib.contextmanager
def refusing_no_template(name: str) -> Iterator[None]:
    """Turn a tokenizer that cannot render a conversation into one sentence.

    Raises:
        SettingError: The name, the reason and the way out.
    """
    try:
        yield
    except (ValueError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SettingError(
            f"env.tokenizer_name: {name!r} cannot render a conversation ({reason});"
            " name the tokenizer of a chat model"
        ) from error


def has_wandb_login() -> bool:
    """Say whether W&B can be used without asking a person."""
    import wandb

    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    try:
        return bool(wandb.login(prompt=False, verify=False))
    except wandb.errors.Error:
        return False
