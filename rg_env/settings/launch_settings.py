"""The settings of `launch`, which starts all programs of a training run."""

from __future__ import annotations

import shlex
from typing import Annotated

from pydantic import AfterValidator, Field

from rg_env.errors import shown, unexpected
from rg_env.settings.setting_types import CheckedModel, FilePath, Line

TRAINER_WORDS = (
    *("api", "server", "model", "folder", "group_size", "batch_size"),
    *("max_token_length", "total_steps"),
)
"""What a trainer's command line may have in braces."""


def _command_line(text: str) -> str:
    """Return a command line as it is.

    Raises:
        ValueError: A quote is not closed.
    """
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{shown(text)}: {str(error).lower()}") from error
    return text


def _trainer(text: str) -> str:
    """Return a trainer's command line as it is.

    Raises:
        ValueError: It is empty, or has something unknown in braces.
    """
    try:
        text.format(**dict.fromkeys(TRAINER_WORDS, ""))
    except (LookupError, ValueError, AttributeError) as error:
        names = ", ".join(f"{{{word}}}" for word in TRAINER_WORDS)
        raise ValueError(unexpected(text, f"only {names} in braces")) from error
    if not shlex.split(text):
        raise ValueError("the command line is empty")
    return text


CommandLine = Annotated[Line, AfterValidator(_command_line)]
Arguments = Annotated[str, AfterValidator(_command_line)]
Variables = dict[str, str]


class LaunchSettings(CheckedModel):
    """A whole training run.

    `launch` reads these, under `launch` in the settings file.
    """

    model: Line | None = None
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
    vllm_variables: Variables = Field(default_factory=dict)
    """Environment variables of vLLM, such as CUDA_VISIBLE_DEVICES"""
    trainer: Annotated[CommandLine, AfterValidator(_trainer)] | None = None
    """Command line of another trainer; {api}, {server}, {model}, {folder},
    {group_size}, {batch_size}, {max_token_length} and {total_steps} are replaced"""
    trainer_args: Arguments = ""
    """More arguments of our trainer, such as --learning-rate"""
    trainer_variables: Variables = Field(default_factory=dict)
    """Environment variables of the trainer"""
