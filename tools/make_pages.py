"""Writes what is made of the code and its data: `python -m tools.make_pages`.

docs/scoring.md is made of the rows in `rg_env/task_rules/` and the installed library,
docs/settings.md of the fields of the settings, docs/trivial_baselines.md of the shipped
baselines and scales, and docs/evaluation_sets.md of the recorded digests.
library_tasks.json says which tasks ought to exist when the library's registry cannot be
read. A test compares them, so run this when a fix, a guard, a field, the baselines, the
digests or reasoning-gym changes.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from rg_env.installation import PROJECT
from rg_env.library import datasets, registry, scales
from rg_env.library.trivial_baselines import BASELINES, GUESSABLE_ABOVE
from rg_env.results.samples import grouped
from rg_env.settings import environment_settings, server_and_launch_settings
from rg_env.settings.environment_settings import DATA_DUMPS, GROUPS
from rg_env.settings.server_and_launch_settings import LaunchSettings
from rg_env.settings.setting_checks import CheckedModel
from rg_env.task_rules.faster_functions import source_digest
from rg_env.task_rules.rules import ScorerFix
from rg_env.task_rules.table import TABLE
from tools import make_baselines as made
from tools.make_digests import RECORDED
from tools.trivial_baselines.learned_guesses import GUESSES
from tools.trivial_baselines.strategies import PHRASES, STRATEGIES

# -- docs/scoring.md ------------------------------------------------------------------

SCORING = """\
# Guards and corrected scorers

Unless `scorer_fixes` is false, the scorers of every version of the library are
corrected (this page was made with {version}). A wrong answer scores at most 0.5.

## Guards ({num_guards})

A guard rejects an answer before a scorer evaluates it as code or computes for hours:

{guards}.

## One rule ({num_ruled} tasks)

Where a question has one right answer, an answer is right if it says the reference and
nothing else: the same numbers (`5.0` is 5), words (in any case, unless case is asked
for) and signs. Words such as "the answer is" and the question's unit may stand beside
it, and the order counts unless the library's scorer ignores it. Any other answer that
the library scores 1.0 scores 0. What the library scores less scores half of that, but
its 0.01 for an answer that it can read stays. There is no partial credit where a copy
of the question, a constant or any text with the reference earned more than 0.25: in the
{num_base_tasks} tasks with the library's base scorer (such as {base_tasks}) and in
{without}.

The rule is also that of {ruled}.

## Corrections of single tasks ({num_fixes})

These tasks have several right answers, a tolerance, or a scorer that refuses right
answers. The faults of the library's scorers are:

{fixes}
"""


def main_point(fix: ScorerFix) -> str:
    """Return the first clause that describes a fault."""
    return re.split(r"; |: (?!`)|, and |, even |, but ", fix.fault)[0].rstrip(".")


def scoring_page() -> str:
    described = registry.describe()
    base_tasks = [task for task in described.tasks if datasets.has_base_scorer(task)]
    rows = sorted(TABLE.items())
    guards = [task for task, row in rows if row.guard]
    fixed = [(task, row.fix) for task, row in rows if row.fix]
    fixes = [(task, fix) for task, fix in fixed if fix.fault]
    gives_parts = {
        task: fix.score("no", {"answer": "5"}, lambda text: 0.8) > 0.0
        for task, fix in fixed
        if not fix.fault and task not in base_tasks
    }
    return SCORING.format(
        version=described.version,
        num_guards=len(guards),
        guards=", ".join(guards),
        num_ruled=len(base_tasks) + len(gives_parts),
        num_base_tasks=len(base_tasks),
        base_tasks=", ".join(base_tasks[::12]),
        without=", ".join(task for task, gives in gives_parts.items() if not gives),
        ruled=", ".join(task for task, gives in gives_parts.items() if gives),
        num_fixes=len(fixes),
        fixes="\n".join(
            f"- {', '.join(task for task, _ in those)}: {fault}"
            for fault, those in grouped(fixes, lambda one: main_point(one[1])).items()
        ),
    )


# -- docs/settings.md -----------------------------------------------------------------

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

SETTINGS = """\
# Settings

Settings are given on the command line (`--env.FIELD VALUE`, `--openai.FIELD VALUE`,
`--launch.FIELD VALUE`), which takes precedence, or in a YAML file (`--config FILE`)
with the sections `env`, `openai` and `launch` ([example](../examples/serve.yaml)). They
are checked before anything is started.

Each field is followed by its default in the commands and, in parentheses, that of the
class `ReasoningGymEnvConfig` if it differs. Fields without one are None (`null` in
YAML) or empty. `process` also sets `ensure_scores_are_not_same` to false,
`include_messages` to true and `data_path_to_save_groups` to data/reasoning_gym.jsonl,
and `evaluate` sets `data_dir_to_save_evals` to data/evaluate_DATE_TIME.

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
    is_server = group is server_and_launch_settings.CheckedServer
    of_commands = server_and_launch_settings if is_server else environment_settings
    start = of_commands.DEFAULTS.get(name, default)
    field = f"[`{name}`]({LINKS[name]})" if name in LINKS else f"`{name}`"
    meaning = " ".join((info.description or "").split())
    if is_server or start == default:
        known = f", {_shown(start)}" if start not in (None, "", [], {}) else ""
    else:
        known = f", {_shown(start)} ({_shown(default)})"
    return f"- {field}{known}: {meaning}"


def _section(group: type[CheckedModel]) -> str:
    title, _, about = (inspect.getdoc(group) or "").partition("\n\n")
    about = f"{about}\n\n" if about else ""
    rows = "\n".join(_row(group, name) for name in group.model_fields)
    return f"## {title.rstrip('.')}\n\n{about}{rows}"


def settings_page() -> str:
    groups: tuple[type[CheckedModel], ...] = (
        *GROUPS,
        server_and_launch_settings.CheckedServer,
        LaunchSettings,
    )
    return SETTINGS.format(sections="\n\n".join(map(_section, groups)))


# -- docs/trivial_baselines.md --------------------------------------------------------

NORMAL_95 = 1.96
NOTHING = "-"  # sorts before any digit

TRIVIAL = """\
# Trivial baselines

A trivial baseline is the mean score of answers that are given without solving the item
(with corrected scorers and reasoning-gym {version}). In {num_tasks} of {all_tasks}
tasks, one scores at least {worth}. In the tasks below, one scores more than
{shown_from}, so that scores say little about a model (`screen` and `report` warn).

Each task has the score with the default parameters and, in parentheses, the lowest and
highest on the scale (`-`: less than {worth}), with 95 % intervals.
`rg_env/library/trivial_baselines.json` has all.

{table}

## How they are measured

`python -m tools.make_baselines` tries {num_strategies} strategies that use the form of
a question ({num_learned} learn from similar items), {num_phrases} fixed texts, common
right answers, sums of the numbers, and a forest learned on {learned} items. The best of
{finalists} finalists answers {measured} fresh items, or at least {least}.
"""


def _table_row(
    task: str, row: Sequence[made.Baseline], scale: scales.Scale | None
) -> str:
    def shown(params: Mapping[str, Any]) -> str:
        for one in row:
            if one["params"] == params:
                return f"{one['value']:.2f}±{NORMAL_95 * one['error']:.2f}"
        return NOTHING

    steps = () if scale is None or scale.is_constant else scale.steps
    scores = [shown(step.params) for step in steps] or ["none"]
    return f"{task} {shown({})} ({min(scores)}, {max(scores)})"


def strategies_page() -> str:
    shipped = json.loads(BASELINES.read_text(encoding="utf-8"))
    by_scale, tasks = scales.load_shipped().scales, shipped["tasks"]
    rows = {t: row["baselines"] for t, row in tasks.items() if row["baselines"]}
    best = {t: max(row, key=lambda one: one["value"]) for t, row in rows.items()}
    shown = [t for t in best if best[t]["value"] > GUESSABLE_ABOVE]
    shown.sort(key=lambda task: -best[task]["value"])
    table = []
    for strategy, of in grouped(shown, lambda task: best[task]["strategy"]).items():
        cells = (_table_row(task, rows[task], by_scale.get(task)) for task in of)
        table.append(f"- {strategy}: {'; '.join(cells)}")
    return TRIVIAL.format(
        version=shipped["library_version"],
        num_strategies=len(STRATEGIES),
        num_learned=len(GUESSES),
        num_phrases=len(PHRASES),
        finalists=made.FINALISTS,
        measured=made.MEASURED_ON,
        least=min(one["items"] for row in rows.values() for one in row),
        worth=made.WORTH_SHIPPING,
        shown_from=GUESSABLE_ABOVE,
        learned=made.LEARNED_ON,
        num_tasks=len(rows),
        all_tasks=len(tasks),
        table="\n".join(table),
    )


# -- docs/evaluation_sets.md ----------------------------------------------------------

SETS = """\
# Evaluation sets

`evaluate` prints a digest of its items. Results with the same digest have the same
questions in the same order, and the same version of reasoning-gym; prompts, sampling,
our corrections of scores and their settings may differ. All tasks, with reasoning-gym
{version}:

| Set | Tasks | Items | Digest |
|---|---|---|---|
{rows}

`default` is `evaluate` without settings. Items with an [incorrect reference
answer](reward_audits.md#reference-answers) are left out.
"""


def sets_page() -> str:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    rows = (
        f"| `{name}` | {of['tasks']} | {of['items']:,} | `{of['digest']}` |"
        for name, of in recorded["sets"].items()
    )
    return SETS.format(version=recorded["library_version"], rows="\n".join(rows))


def library_tasks() -> str:
    described = registry.describe()
    tasks = {name: info.category for name, info in described.tasks.items()}
    datasets_of = registry.load_factory().DATASETS
    scorers = {name: source_digest(datasets_of[name][0].score_answer) for name in tasks}
    found = {"library_version": described.version, "tasks": tasks, "scorers": scorers}
    return json.dumps(found, indent=1) + "\n"


FILES: Mapping[Path, Callable[[], str]] = {
    PROJECT / "docs" / "scoring.md": scoring_page,
    PROJECT / "docs" / "settings.md": settings_page,
    PROJECT / "docs" / "trivial_baselines.md": strategies_page,
    PROJECT / "docs" / "evaluation_sets.md": sets_page,
    Path(registry.LIBRARY_TASKS): library_tasks,
}

if __name__ == "__main__":
    for path, text in FILES.items():
        path.write_text(text(), encoding="utf-8")
        print(f"wrote {path.name}")
