"""The settings of the environment that are checked without the framework.

Every field is checked when it is set: its range here, names of tasks and parameters
against the installed library when the environment sets up. The framework's own fields
are declared again where it leaves out their range. Its import takes seconds, and who
has mistyped a value is told before.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from rg_env.answers.scoring_rules import MAX_ANSWER_CHARS, AnswerForms
from rg_env.atropos.http_urls import check_url
from rg_env.atropos.setting_checks import (
    CheckedModel,
    check_minus_one,
    check_name,
    check_no_flag,
)
from rg_env.tasks.adaptive import FLOOR
from rg_env.tasks.baselines import RewardBaseline
from rg_env.tasks.level_settings import LevelSetting, check_setting, parse_setting
from rg_env.tasks.shards import from_launcher

# What is above one of these can only be a mistake, and most of it breaks something far
# from here: a protocol, a timer, the memory.

MAX_SEED = 2**63 - 1
"""What the JSON of dump files and checkpoints holds."""

MAX_TEMPERATURE = 10.0
"""Beyond, the model's words are drawn as by lot."""

MAX_TOKENS = 100_000_000
"""No model has such a context."""

MAX_GROUP_SIZE = 4096
MAX_BATCH_SIZE = 2**20
"""Rollouts that are held in memory at once."""

MAX_STEPS = 1_000_000_000
MAX_ITEMS_OF_TASK = 10_000
"""All of them are made at the start."""

MAX_TASKS = 100_000
MAX_SHARDS = 1_000_000
MAX_IN_FLIGHT = 100_000
MAX_BATCHES = 1_000_000
MAX_WORKERS = 1024
"""Each is a process of 300 MB."""

MIN_WORKER_MB = 512
MAX_WORKER_MB = 2**24
"""16 TiB."""

MAX_ANSWER_LIMIT = 100_000_000
MAX_WEIGHT = 1e9
"""Sums of such weights are still exact to what matters."""

SHORTEST_DEADLINE_S = 0.001
"""Below, nothing is ever ready in time."""

A_DAY_S = 24 * 3600.0
A_YEAR_S = 365 * A_DAY_S
LONGEST_NAME = 100
"""W&B takes 128 characters, and we add a date and six letters."""

MAX_TABLE = 10_000
"""Rows of a table in W&B."""

Weight = Annotated[float, BeforeValidator(check_no_flag), Field(gt=0.0, le=MAX_WEIGHT)]

DATA_DUMPS = Path(__file__).resolve().parents[2] / "data_dumps"


class CheckedSettings(CheckedModel):
    """What `ReasoningGymEnvConfig` adds to the framework's settings, or narrows."""

    # -- the original's fields ---------------------------------------------------------
    dump_rollouts: bool = Field(
        default=False,
        description="Save groups with a rollout above rollout_save_score_threshold",
    )
    dump_failed_rollouts: bool = Field(
        default=False, description="Save groups in which every score is 0.0"
    )
    rollout_save_score_threshold: float = Field(
        default=0.7,
        ge=0.0,
        le=1.0,
        description="A group is saved if a rollout scores above this; 1.0 means"
        " perfect",
    )
    debug_logging: bool = Field(
        default=False, description="Log extraction and scoring of every rollout"
    )
    suppress_base_env_logs: bool = Field(
        default=True, description="Hide the framework's INFO and DEBUG lines"
    )
    seed: int = Field(
        default=42, ge=0, le=MAX_SEED, description="Decides every training item"
    )
    mask_too_long_completions: bool = Field(
        default=True,
        description="Give truncated rollouts advantage zero in the trainer",
    )
    num_eval_samples_per_task: int = Field(
        default=5,
        ge=1,
        le=MAX_ITEMS_OF_TASK,
        description="Evaluation items of each task",
    )
    eval_seed: int = Field(
        default=123, ge=0, le=MAX_SEED, description="Decides every evaluation item"
    )
    complexity_mode: LevelSetting = Field(
        default=None,
        description="Difficulty: None is the library's defaults; random, curriculum, a"
        " level in 0 to 1, or a range [low, high] of levels",
    )
    curriculum_target_accuracy: float = Field(
        default=0.7, ge=0.0, le=1.0, description="Target of complexity_mode curriculum"
    )

    # -- choice of tasks ---------------------------------------------------------------
    tasks: list[str] | None = Field(
        default=None,
        description="Task names or patterns (*_sorting); None means all",
    )
    categories: list[str] | None = Field(
        default=None, description="Categories whose tasks are added to `tasks`"
    )
    exclude_tasks: list[str] = Field(
        default_factory=list, description="Task names or patterns to leave out"
    )
    task_weights: dict[str, Weight] = Field(
        default_factory=dict, description="Task to weight; 1.0 where not given"
    )
    task_params: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Task to dataset parameters of the library"
    )
    mixture: str | None = Field(
        default=None,
        description="YAML file that describes `composite` in the library's format",
    )
    task_levels: dict[str, LevelSetting] = Field(
        default_factory=dict,
        description="Task or pattern to what complexity_mode would be for it alone",
    )
    task_choice: Literal["weighted", "adaptive"] = Field(
        default="weighted",
        description="weighted draws by task_weights; adaptive more often where groups"
        " carry a signal",
    )
    adaptive_floor: float = Field(
        default=FLOOR,
        gt=0.0,
        le=1.0,
        description="Share of its weight that a task without a signal keeps",
    )
    shard_index: int = Field(
        default_factory=lambda: from_launcher().index,
        ge=0,
        le=MAX_SHARDS,
        description="This instance, from 0, among num_shards; Slurm's or torchrun's"
        " rank where there is one",
    )
    num_shards: int = Field(
        default_factory=lambda: from_launcher().count,
        ge=1,
        le=MAX_SHARDS,
        description="Instances that share one stream of items; Slurm's or torchrun's"
        " number where there is one",
    )
    num_eval_tasks: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TASKS,
        description="Evaluate this many tasks, chosen by eval_seed; None means all",
    )

    # -- prompt and generation ---------------------------------------------------------
    system_prompt: str | None = Field(
        default=None, description="System prompt; None is the built-in one"
    )
    temperature: float = Field(
        default=1.0,
        ge=0.0,
        le=MAX_TEMPERATURE,
        description="Sampling temperature of training rollouts",
    )
    top_p: float = Field(
        default=1.0, gt=0.0, le=1.0, description="Nucleus of training rollouts"
    )
    eval_temperature: float = Field(
        default=0.0,
        ge=0.0,
        le=MAX_TEMPERATURE,
        description="Sampling temperature of evaluation",
    )
    eval_max_token_length: int | None = Field(
        default=None,
        ge=2,
        le=MAX_TOKENS,
        description="Longest prompt plus completion of evaluation, in tokens; None is"
        " as in training",
    )
    length_penalty_counts: Literal["prompt_and_completion", "completion"] = Field(
        default="prompt_and_completion",
        description="What counts as a rollout's length in the length penalty",
    )

    # -- work and patience -------------------------------------------------------------
    num_workers: int | None = Field(
        default=None,
        ge=1,
        le=MAX_WORKERS,
        description="Processes that make and score items; None is half the cores, 2 to"
        " 8",
    )
    worker_memory_mb: int | None = Field(
        default=2048,
        ge=MIN_WORKER_MB,
        le=MAX_WORKER_MB,
        description="Address space of such a process, in MiB; None for no limit",
    )
    scoring_deadline_s: float = Field(
        default=5.0,
        ge=SHORTEST_DEADLINE_S,
        le=A_DAY_S,
        description="Seconds that scoring one answer may take",
    )
    item_deadline_s: float = Field(
        default=20.0,
        ge=SHORTEST_DEADLINE_S,
        le=A_DAY_S,
        description="Seconds that making one item may take",
    )
    scorer_fixes: bool = Field(
        default=True, description="Correct the known faults of the library's scorers"
    )
    answer_forms: AnswerForms = Field(
        default="undressed",
        description="undressed also scores an answer without what is only dress (bold,"
        " a fence, LaTeX, quotes, a period); exact only as it stands",
    )
    reward_baseline: RewardBaseline = Field(
        default="none",
        description="chance pays the trainer only what a score has beyond the measured"
        " mean of the best guess; dumps and metrics keep the score",
    )
    max_answer_chars: int = Field(
        default=MAX_ANSWER_CHARS,
        ge=1,
        le=MAX_ANSWER_LIMIT,
        description="Longer answers are refused",
    )
    give_up_after_s: float = Field(
        default=300.0,
        ge=SHORTEST_DEADLINE_S,
        le=A_YEAR_S,
        description="process and evaluate end with status 1 when the inference server"
        " has not answered for this many seconds",
    )
    data_dumps_dir: str = Field(
        default=str(DATA_DUMPS), description="Folder of the dump files"
    )

    # -- the framework's fields, with the ranges it does not check ---------------------
    group_size: int = Field(
        default=4,
        ge=1,
        le=MAX_GROUP_SIZE,
        description="Rollouts of one item; at least 2 to train, since rewards are"
        " compared within a group",
    )
    max_token_length: int = Field(
        default=2048,
        ge=2,
        le=MAX_TOKENS,
        description="Longest prompt plus completion, in tokens",
    )
    steps_per_eval: int = Field(
        default=100,
        ge=-1,
        le=MAX_STEPS,
        description="Steps between evaluations; 0 or -1 for none",
    )
    max_num_workers: int = Field(
        default=-1,
        ge=-1,
        le=MAX_IN_FLIGHT,
        description="Groups in flight; -1 is 8 for each server",
    )
    max_num_workers_per_node: int = Field(
        default=8,
        ge=1,
        le=MAX_IN_FLIGHT,
        description="Groups in flight for each server",
    )
    max_eval_workers: int = Field(
        default=16, ge=1, le=MAX_IN_FLIGHT, description="Evaluation items in flight"
    )
    inference_weight: float = Field(
        default=1.0,
        # The API divides by the sum of the weights and answers every later status
        # request with 500 if it is 0; the framework's documented -1 is such a weight.
        gt=0.0,
        le=MAX_WEIGHT,
        description="This environment's share of the inference servers; above 0",
    )
    batch_size: int = Field(
        default=-1,
        ge=-1,
        le=MAX_BATCH_SIZE,
        description="Set by the trainer; -1 waits for it",
    )
    total_steps: int = Field(
        default=1000,
        ge=-1,
        le=MAX_STEPS,
        description="Steps of the run; -1 takes the trainer's",
    )
    max_batches_offpolicy: int = Field(
        default=3,
        ge=0,
        le=MAX_BATCHES,
        description="Batches that may wait for the trainer; 0 for no limit",
    )
    eval_limit_ratio: float = Field(
        default=0.5, ge=0.0, le=1.0, description="Share of workers with LIMIT_TRAIN"
    )
    min_batch_allocation: float | None = Field(
        default=None, ge=0.0, le=1.0, description="Least share of a batch, or None"
    )
    num_rollouts_per_group_for_logging: int = Field(
        default=1,
        ge=-1,
        le=MAX_GROUP_SIZE,
        description="Rollouts of a group in the W&B table; -1 all",
    )
    num_rollouts_to_keep: int = Field(
        default=32, ge=0, le=MAX_TABLE, description="Groups in the W&B table"
    )
    min_items_sent_before_logging: int = Field(
        default=2,
        ge=-MAX_STEPS,
        le=MAX_STEPS,
        description="Groups sent before a step is logged to W&B; 0 or less for all",
    )
    worker_timeout: float = Field(
        default=600,
        ge=-1,
        le=A_YEAR_S,
        description="Seconds that a group may take; 0 or -1 for no limit",
    )
    rollout_server_url: str = Field(
        default="http://localhost:8000", description="The Atropos API (`run-api`)"
    )
    wandb_name: str | None = Field(
        default=None,
        max_length=LONGEST_NAME,
        description="What the W&B run's name and the registration begin with",
    )
    reasoning_effort: (
        Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None
    ) = Field(
        default=None,
        description="How long an openai server is asked to reason; None says nothing",
    )
    max_reasoning_tokens: int | None = Field(
        default=None,
        ge=1024,
        le=32_000,
        description="Tokens that an openai server may reason for; None says nothing",
    )

    @field_validator("rollout_server_url")
    @classmethod
    def _is_url(cls, url: str) -> str:
        check_url(url)
        return url

    @field_validator("wandb_name")
    @classmethod
    def _names_a_folder(cls, name: str | None) -> str | None:
        # That of the checkpoints.
        if name is not None and ("/" in name or name in (".", "..")):
            raise ValueError(f"found {name!r}; allowed is a name without /")
        return name

    @field_validator("batch_size", "total_steps", "max_num_workers")
    @classmethod
    def _is_minus_one_or_more(cls, value: int) -> int:
        check_minus_one(value)
        return value

    @field_validator("worker_timeout")
    @classmethod
    def _is_a_time_or_none(cls, value: float) -> float:
        if -1 < value < 0:
            raise ValueError(f"found {value}; allowed is a number above 0, or -1")
        return value

    @field_validator("tasks", "categories")
    @classmethod
    def _names_something(cls, names: list[str] | None) -> list[str] | None:
        if names == []:
            raise ValueError("found an empty list; allowed is a name, or None for all")
        return names

    @field_validator(
        *("tasks", "categories", "exclude_tasks"),
        *("task_weights", "task_levels", "task_params"),
    )
    @classmethod
    def _are_names(cls, names: Any) -> Any:
        for name in names or ():
            check_name(name)
        return names

    @field_validator("complexity_mode", mode="before")
    @classmethod
    def _is_level_setting(cls, setting: object) -> object:
        parsed = parse_setting(setting)
        check_setting(parsed)
        return parsed

    @field_validator("task_levels", mode="before")
    @classmethod
    def _are_level_settings(cls, settings: object) -> object:
        if not isinstance(settings, Mapping):
            return settings
        for name, setting in settings.items():
            try:
                check_setting(setting)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return settings

    @model_validator(mode="after")
    def _shard_exists(self) -> CheckedSettings:
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f"shard_index: found {self.shard_index}; allowed is a number below"
                f" num_shards, which is {self.num_shards}"
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
