"""Writes docs/settings.md: `python -m tools.make_settings_page`.

The lists are made of the fields of `rg_env/settings/environment_settings.py`. A test
compares the two, so run this when a field changes.
"""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path

from rg_env.settings import program_settings
from rg_env.settings.environment_settings import DATA_DUMPS, GROUPS, START
from rg_env.settings.program_settings import LaunchSettings
from rg_env.settings.setting_types import CheckedModel

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "settings.md"

LINKS = {
    "task_modules": "own_tasks.md",
    "tasks": "tasks_and_levels.md#choosing-tasks",
    "complexity_mode": "tasks_and_levels.md#difficulty",
    "answer_format": "answers_and_rewards.md#prompt-and-answer-format",
    "num_shards": "long_runs.md#several-instances",
    "scorer_fixes": "scoring.md",
    "normalize_answers": "answers_and_rewards.md#normalization",
    "eval_preset": "commands.md#published-results",
    "dump_metrics": "metrics_and_logs.md#without-wb",
    "data_dumps_dir": "output_files.md",
    "debug_logging": "metrics_and_logs.md#the-log",
    "server_type": "servers.md#token-ids",
    "extra_body": "servers.md#fields-of-a-request",
}
"""Field to the section that explains it."""

TEXT = """\
# Settings

Settings are given on the command line (`--env.FIELD VALUE`, `--openai.FIELD VALUE`,
`--launch.FIELD VALUE`) or in a YAML file (`--config FILE`) with the sections `env`,
`openai` and `launch` ([example](../examples/serve.yaml)); the command line takes
precedence. `None` is `null` in YAML. All values are checked before anything is started,
and unknown names are refused.

## What the commands start from

After each field stand its default in the commands and, if it differs, in parentheses
that of the class `ReasoningGymEnvConfig`. `process` also sets
`ensure_scores_are_not_same` to false, `include_messages` to true and
`data_path_to_save_groups` to data/reasoning_gym.jsonl, and `evaluate`
`data_dir_to_save_evals` to data/evaluate_DATE_TIME.

{sections}
"""


def _shown(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    return f"`{Path(str(value)).name if value == str(DATA_DUMPS) else value}`"


def _row(group: type[CheckedModel], name: str) -> str:
    info = group.model_fields[name]
    # Those of a launcher are found in its variables; without one they are these.
    default = {"shard_index": 0, "num_shards": 1}.get(
        name, info.get_default(call_default_factory=True)
    )
    is_server = group is program_settings.CheckedServer
    start = (program_settings.START if is_server else START).get(name, default)
    field = f"[`{name}`]({LINKS[name]})" if name in LINKS else f"`{name}`"
    meaning = " ".join((info.description or "").split())
    of_class = "" if is_server or start == default else f" ({_shown(default)})"
    return f"- {field}, {_shown(start)}{of_class}: {meaning}"


def _section(group: type[CheckedModel]) -> str:
    title, _, about = (inspect.getdoc(group) or "").partition("\n\n")
    about = f"{about}\n\n" if about else ""
    rows = "\n".join(_row(group, name) for name in group.model_fields)
    return f"## {title.rstrip('.')}\n\n{about}{rows}"


def page() -> str:
    groups: tuple[type[CheckedModel], ...] = (
        *GROUPS,
        program_settings.CheckedServer,
        LaunchSettings,
    )
    return TEXT.format(sections="\n\n".join(map(_section, groups)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")
