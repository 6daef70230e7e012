"""The rows that `process` leaves behind.

A row is the group as the framework writes it (tokens, masks, scores, messages, ...)
with what makes it useful: task, gold answer, extracted answers, outcomes, provenance.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.rollouts.row_writer import RowWriter


def missing_folders(config: ReasoningGymEnvConfig) -> list[Path]:
    """Return the folders that the framework will make for rows, inner ones first."""
    if config.data_path_to_save_groups is None:
        return []
    above = Path(config.data_path_to_save_groups).parents
    return [folder for folder in above if not folder.exists()]


def take_over(
    framework_writer: Any, config: ReasoningGymEnvConfig, made: Sequence[Path]
) -> RowWriter | None:
    """Return our writer for the file that the framework has opened, if it has one.

    Args:
        framework_writer: The framework's own, None where no rows are wanted.
        config: Names the file.
        made: Folders that the framework made for it, inner ones first.
    """
    path = config.data_path_to_save_groups
    if framework_writer is None or path is None:
        return None
    framework_writer.close()
    return RowWriter(Path(path), made)
