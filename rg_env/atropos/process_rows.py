"""The rows that `process` leaves behind.

A row is the group as the framework writes it (tokens, masks, scores, messages, ...)
with what makes it useful: task, gold answer, extracted answers, outcomes, provenance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.rollouts.row_writer import RowWriter


def take_over(framework_writer: Any, config: ReasoningGymEnvConfig) -> RowWriter | None:
    """Return our writer for the file that the framework has opened, if it has one."""
    if framework_writer is None:
        return None
    framework_writer.close()
    return RowWriter(Path(config.data_path_to_save_groups))
