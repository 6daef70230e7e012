"""The checks that come before any work: folders, server type, W&B."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import wandb

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.errors import SettingError

logger = logging.getLogger(__name__)

CANNOT_TRAIN = (
    "openai.server_type: {0!r} returns no token ids with log-probabilities, so it"
    " cannot train; `serve` needs 'vllm' or 'sglang' ({0!r} works with `process` and"
    " `evaluate`)"
)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder, if it is missing, and remove it again: nothing may be written."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for each in missing:
            with contextlib.suppress(OSError):
                each.rmdir()


def _check_writable(field: str, folder: Path) -> None:
    try:
        with _made(folder), tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise SettingError(
            f"{field}: no file can be written to {str(folder)!r} ({error.strerror});"
            " name a folder that can be written"
        ) from error


def check_folders(config: ReasoningGymEnvConfig) -> None:
    """Refuse output folders that cannot be written, before anything is generated.

    A folder that is missing is made when something is written to it.

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


def has_wandb_login() -> bool:
    """Say whether W&B can be used without asking a person."""
    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    try:
        return bool(wandb.login(prompt=False, verify=False))
    except wandb.errors.Error:
        return False


def check_batch(batch_size: int, group_size: int) -> None:
    """Refuse a trainer's batch that no group fits; warn of one that never fills.

    Args:
        batch_size: Rollouts of the trainer's batch, -1 where nobody sets it.
        group_size: Rollouts of a group.

    Raises:
        SettingError: There is no batch size, or it cannot hold a group.
    """
    if batch_size == -1:
        raise SettingError("env.batch_size: neither the trainer nor env sets one")
    if group_size > batch_size:
        raise SettingError(
            f"env.group_size: {group_size} does not fit the trainer's batch of"
            f" {batch_size}"
        )
    if batch_size % group_size:
        logger.warning(
            "the trainer's batch of %d is no multiple of env.group_size %d: the API"
            " makes no batch of such groups alone, and says nothing",
            batch_size,
            group_size,
        )
