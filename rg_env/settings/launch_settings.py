"""The settings of `launch`, which starts all programs of a training run."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from rg_env.errors import unexpected
from rg_env.settings.setting_types import CheckedModel, FilePath, Text

TRAINER_WORDS = (
    *("api", "server", "model", "folder", "group_size", "batch_size"),
    *("max_token_length", "total_steps"),
)
"""What a trainer's command line may have in braces."""


def _arguments(text: str) -> str:
    shlex.split(text)  # raises ValueError where a quote is not closed
    return text


def _trainer(text: str) -> str:
    try:
        text.format(**dict.fromkeys(TRAINER_WORDS, ""))
    except (LookupError, ValueError, AttributeError) as error:
        names = ", ".join(f"{{{word}}}" for word in TRAINER_WORDS)
        raise ValueError(unexpected(text, f"only {names} in braces")) from error
    return text


Arguments = Annotated[str, AfterValidator(_arguments)]
Trainer = Annotated[Arguments, Field(pattern=r"\S"), AfterValidator(_trainer)]


class LaunchSettings(CheckedModel):
    """A whole training run.

    `launch` reads these, under `launch` in the settings file.
    """

    model: Text | None = None
    """Model to begin with, a name on the Hugging Face hub or a folder"""
    folder: FilePath = "data/launch"
    """Folder of the run: weights, checkpoints, dump files, logs"""
    policy: FilePath | None = None
    """Folder of the weights that vLLM serves and the trainer writes; None means
    `policy` in the folder of the run"""
    python: FilePath | None = None
    """Python of an environment that has vLLM and what the trainer needs; None means the
    one that runs this command"""
    vllm_args: Arguments = ""
    """More arguments of `vllm serve`"""
    vllm_variables: dict[str, str] = Field({})
    """Environment variables of vLLM, such as CUDA_VISIBLE_DEVICES"""
    trainer: Trainer | None = None
    """Command line of another trainer; {api}, {server}, {model}, {folder},
    {group_size}, {batch_size}, {max_token_length} and {total_steps} are replaced"""
    trainer_args: Arguments = ""
    """More arguments of our trainer, such as --learning-rate"""
    trainer_variables: dict[str, str] = Field({})
    """Environment variables of the trainer"""
