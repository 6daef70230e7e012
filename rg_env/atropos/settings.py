"""The settings of the environment, as they are checked and as `--help` shows them.

Every field is checked when it is set: its range here, names of tasks and parameters
against the installed library when the environment sets up. The framework's own fields
are declared again, with the ranges that it leaves out; so nothing here needs its
import, which takes seconds. Who has mistyped a value is told before.

Each base of `CheckedSettings` is a group of `--help`, its docstring the title. What is
above a range can only be a mistake, and most of it breaks something far from here: a
protocol, a timer, the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rg_env.atropos.setting_types import (
    CheckedModel,
    FilePath,
    Line,
    MinusOneOrMore,
    Text,
    Weight,
    check_url,
    only,
)
from rg_env.scoring.scoring_rules import MAX_ANSWER_CHARS
from rg_env.tasks.adaptive import FLOOR
from rg_env.tasks.baselines import RewardBaseline
from rg_env.tasks.difficulty import LevelSetting, check_setting, parse_setting
from rg_env.tasks.evaluation_specs import PresetName
from rg_env.tasks.selection import TaskChoosing
from rg_env.tasks.shards import from_launcher
from rg_env.tasks.task_modules import checked

DATA_DUMPS = Path(__file__).resolve().parents[2] / "data_dumps"

MAX_SEED = 2**63 - 1
"""What the JSON of dump files and checkpoints holds."""

MAX_GROUP_SIZE = 4096
"""Rollouts that are held in memory at once."""

MANY = 1_000_000_000
SHORTEST_S = 0.001
"""Below, nothing is ever ready in time."""

A_DAY_S = 24 * 3600.0


def _level(setting: object) -> object:
    parsed = parse_setting(setting)
    check_setting(parsed)
    return parsed


def _levels(settings: object) -> object:
    for name, setting in settings.items() if isinstance(settings, Mapping) else ():
        try:
            check_setting(setting)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return settings


Level = Annotated[LevelSetting, BeforeValidator(_level)]
ARE_NAMES = only(
    lambda names: all(name.strip() and name.isprintable() for name in names),
    "names, each on one line",
)
Names = Annotated[list[str], ARE_NAMES]
Modules = Annotated[list[Annotated[str, AfterValidator(checked)]], ARE_NAMES]
SomeNames = Annotated[
    Names | None, only(lambda names: names != [], "a name, or None for all")
]


class ItemSettings(CheckedModel):
    """Which items; the same settings sample the same items."""

    task_modules: Modules = Field(default_factory=list)
    """Modules that register tasks of your own: names, or paths of .py files"""
    tasks: SomeNames = None
    """Task names or patterns (*_sorting); None means all"""
    categories: SomeNames = None
    """Categories whose tasks are added to `tasks`"""
    exclude_tasks: Names = Field(default_factory=list)
    """Task names or patterns to leave out"""
    task_weights: Annotated[dict[str, Weight], ARE_NAMES] = Field(default_factory=dict)
    """Task to weight; 1.0 where not given"""
    task_params: Annotated[dict[str, dict[str, Any]], ARE_NAMES] = Field(
        default_factory=dict
    )
    """Task to dataset parameters of the library"""
    mixture: FilePath | None = None
    """YAML file that describes `composite` in the library's format"""
    task_choice: TaskChoosing = "weighted"
    """weighted draws by task_weights, adaptive prefers tasks whose groups differ,
    in_turn takes one after the other and spreads their levels evenly"""
    adaptive_floor: float = Field(FLOOR, gt=0.0, le=1.0)
    """Share of its weight that a task without a signal keeps"""
    seed: int = Field(42, ge=0, le=MAX_SEED)
    """Decides every training item"""
    shard_index: int = Field(
        default_factory=lambda: from_launcher().index, ge=0, le=1_000_000
    )
    """This instance, from 0, among num_shards; of Slurm or torchrun where one is"""
    num_shards: int = Field(
        default_factory=lambda: from_launcher().count, ge=1, le=1_000_000
    )
    """Instances that share one stream; of Slurm or torchrun where one is"""


class LevelSettings(CheckedModel):
    """How hard: the level of the items, 0 to 1; `tasks` shows what it means."""

    complexity_mode: Level = None
    """None (the library's defaults), random, curriculum, a level, or [low, high]"""
    task_levels: Annotated[
        dict[str, LevelSetting], BeforeValidator(_levels), ARE_NAMES
    ] = Field(default_factory=dict)
    """Task or pattern to what complexity_mode would be for it alone"""
    curriculum_target_accuracy: float = Field(0.7, ge=0.0, le=1.0)
    """Target of complexity_mode curriculum"""


class SamplingSettings(CheckedModel):
    """Prompt and sampling."""

    system_prompt: Text | None = None
    """System prompt; None is the built-in one"""
    group_size: int = Field(4, ge=1, le=MAX_GROUP_SIZE)
    """Rollouts of one item; 2 or more to train: rewards are compared within a group"""
    max_token_length: int = Field(2048, ge=2, le=100_000_000)
    """Longest prompt plus completion, in tokens"""
    temperature: float = Field(1.0, ge=0.0, le=10.0)
    """Sampling temperature of training rollouts"""
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    """Nucleus of training rollouts"""
    tokenizer_name: Line = "NousResearch/DeepHermes-3-Llama-3-3B-Preview"
    """The model's tokenizer: a name of the Hugging Face hub, or a folder"""
    thinking_mode: bool = False
    """Ask the server for reasoning, as some APIs can"""
    reasoning_effort: (
        Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    ) = None
    """How long an openai server is asked to reason; None says nothing"""
    max_reasoning_tokens: int | None = Field(None, ge=1024, le=32_000)
    """Tokens that an openai server may reason for; None says nothing"""
    custom_thinking_prompt: Text | None = None
    """Text before the system prompt"""


class RewardSettings(CheckedModel):
    """Scores and rewards."""

    scorer_fixes: bool = True
    """Correct the known faults of the library's scorers"""
    normalize_answers: bool = True
    """Score answers without formatting as well, and take the higher score"""
    max_answer_chars: int = Field(MAX_ANSWER_CHARS, ge=1, le=100_000_000)
    """Longer answers are rejected"""
    reward_baseline: RewardBaseline = "none"
    """chance gives the trainer what a score has beyond the mean of the best guess"""
    mask_too_long_completions: bool = True
    """Give truncated rollouts advantage zero in the trainer"""
    length_penalty_counts: Literal["prompt_and_completion", "completion"] = (
        "prompt_and_completion"
    )
    """What counts as a rollout's length in the length penalty"""
    ensure_scores_are_not_same: bool = True
    """Send no group whose scores are all equal"""


class EvaluationSettings(CheckedModel):
    """Evaluation: fixed items, of `evaluate` and of `serve` every steps_per_eval."""

    num_eval_samples_per_task: int = Field(5, ge=1, le=10_000)
    """Evaluation items of each task; all are made at the start"""
    num_eval_tasks: int | None = Field(None, ge=1, le=100_000)
    """Evaluate this many tasks, chosen by eval_seed; None means all"""
    eval_seed: int = Field(123, ge=0, le=MAX_SEED)
    """Decides every evaluation item"""
    eval_level: float | None = Field(None, ge=0.0, le=1.0)
    """Level of the evaluation items; None is the library's defaults"""
    eval_preset: PresetName | None = None
    """Evaluate on the items of the library's published evaluation"""
    eval_completions: int = Field(1, ge=1, le=MAX_GROUP_SIZE)
    """Completions of each evaluation item"""
    eval_system_prompt: Text | None = None
    """System prompt of evaluation; `published`: the library's; None: as in training"""
    eval_temperature: float = Field(0.0, ge=0.0, le=10.0)
    """Sampling temperature of evaluation"""
    eval_max_token_length: int | None = Field(None, ge=2, le=100_000_000)
    """Longest prompt plus completion of evaluation, in tokens; None: as in training"""
    steps_per_eval: int = Field(100, ge=-1, le=MANY)
    """Steps between evaluations; 0 or -1 for none"""
    eval_handling: Literal["STOP_TRAIN", "LIMIT_TRAIN", "NONE"] = "STOP_TRAIN"
    """Training during an evaluation"""
    eval_limit_ratio: float = Field(0.5, ge=0.0, le=1.0)
    """Share of workers with LIMIT_TRAIN"""
    max_eval_workers: int = Field(16, ge=1, le=100_000)
    """Completions of an evaluation in flight"""
    data_dir_to_save_evals: FilePath | None = None
    """Folder for the results of an evaluation"""


class FileSettings(CheckedModel):
    """Files, log and W&B: what is kept, and what is said."""

    dump_rollouts: bool = False
    """Save groups with a rollout above rollout_save_score_threshold"""
    dump_failed_rollouts: bool = False
    """Save groups in which every score is 0.0"""
    dump_metrics: bool = True
    """Save the numbers of every step, as W&B gets them"""
    rollout_save_score_threshold: float = Field(0.7, ge=0.0, le=1.0)
    """A group is saved if a rollout scores above this; 1.0 means perfect"""
    data_dumps_dir: FilePath = str(DATA_DUMPS)
    """Folder of the dump files"""
    data_path_to_save_groups: FilePath | None = None
    """File for the groups, one row each"""
    debug_logging: bool = False
    """Log extraction and scoring of every rollout, as -v does"""
    suppress_base_env_logs: bool = True
    """Hide the framework's INFO and DEBUG lines"""
    use_wandb: bool = True
    """Send metrics to W&B"""
    wandb_name: (
        Annotated[
            Line,
            Field(max_length=100),
            # It names the folder of the checkpoints.
            only(lambda name: "/" not in name and name not in (".", ".."), "no path"),
        ]
        | None
    ) = None
    """What the W&B run's name and the registration begin with"""
    num_rollouts_to_keep: int = Field(32, ge=0, le=10_000)
    """Groups in the W&B table"""
    num_rollouts_per_group_for_logging: int = Field(1, ge=-1, le=MAX_GROUP_SIZE)
    """Rollouts of a group in the W&B table; -1 all"""
    min_items_sent_before_logging: int = Field(2, ge=-MANY, le=MANY)
    """Groups sent before a step is logged to W&B; 0 or less for all"""


class WorkSettings(CheckedModel):
    """Workers and patience: the processes that make and score items, and waiting."""

    num_workers: int | None = Field(None, ge=1, le=1024)
    """Processes that make and score items, 300 MB each; None: half the cores, 2 to 8"""
    worker_memory_mb: int | None = Field(2048, ge=512, le=2**24)
    """Address space of such a process, in MiB; None for no limit"""
    scoring_deadline_s: float = Field(5.0, ge=SHORTEST_S, le=A_DAY_S)
    """Seconds that scoring one answer may take"""
    item_deadline_s: float = Field(20.0, ge=SHORTEST_S, le=A_DAY_S)
    """Seconds that making one item may take"""
    give_up_after_s: float = Field(300.0, ge=SHORTEST_S, le=365 * A_DAY_S)
    """process and evaluate end with status 1 after so many seconds without a server"""
    max_num_workers: MinusOneOrMore = Field(-1, le=100_000)
    """Groups in flight; -1 is max_num_workers_per_node for each server"""
    max_num_workers_per_node: int = Field(8, ge=1, le=100_000)
    """Groups in flight for each server"""
    worker_timeout: Annotated[
        float, only(lambda value: not -1 < value < 0, "a number above 0, 0 or -1")
    ] = Field(600, ge=-1, le=365 * A_DAY_S)
    """Seconds that a group may take; 0 or -1 for no limit"""


class RunSettings(CheckedModel):
    """The trainer and its API."""

    rollout_server_url: Annotated[str, AfterValidator(check_url)] = (
        "http://localhost:8000"
    )
    """The Atropos API (`run-api`)"""
    total_steps: MinusOneOrMore = Field(1000, le=MANY)
    """Steps of the run, groups of `process`; -1 takes the trainer's"""
    batch_size: MinusOneOrMore = Field(-1, le=2**20)
    """Set by the trainer; -1 waits for it"""
    max_batches_offpolicy: int = Field(3, ge=0, le=1_000_000)
    """Batches that may wait for the trainer; 0 for no limit"""
    min_batch_allocation: float | None = Field(None, ge=0.0, le=1.0)
    """Least share of a batch, or None"""
    # The API divides by the sum of the weights and answers every later status request
    # with 500 if it is 0; the framework's documented -1 is such a weight.
    inference_weight: Weight = 1.0
    """This environment's share of the inference servers; above 0"""
    include_messages: bool = False
    """Send the messages to the trainer, too"""


class CheckedSettings(
    ItemSettings,
    LevelSettings,
    SamplingSettings,
    RewardSettings,
    EvaluationSettings,
    FileSettings,
    WorkSettings,
    RunSettings,
):
    """All of them; `ReasoningGymEnvConfig` is these in the framework's own class."""

    @model_validator(mode="after")
    def _shard_exists(self) -> CheckedSettings:
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f"shard_index: found {self.shard_index}; allowed is a number below"
                f" num_shards, which is {self.num_shards}"
            )
        return self

    @model_validator(mode="after")
    def _evaluates_one_way(self) -> CheckedSettings:
        if self.eval_preset is not None and self.eval_level is not None:
            raise ValueError(
                "eval_level: found beside eval_preset, which has parameters of its own;"
                " keep one of them"
            )
        return self

    @model_validator(mode="after")
    def _reasons_one_way(self) -> CheckedSettings:
        if self.reasoning_effort is not None and self.max_reasoning_tokens is not None:
            raise ValueError(
                "max_reasoning_tokens: found beside reasoning_effort, which would win;"
                " keep one of them"
            )
        return self


START_MODEL = "NousResearch/DeepHermes-3-Llama-3-8B-Preview"

START: dict[str, Any] = {
    "tokenizer_name": START_MODEL,
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
"""What the commands start from, where it differs.

Source: atropos 296a0bc, config_init(); differs: none.
"""
