"""The settings of the environment: their types, ranges and help texts.

Names of tasks and parameters are checked later, against the installed library. The
framework's fields are declared again, because importing it takes seconds. Each base
class of `CheckedSettings` is a group of settings, and its docstring is the title.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rg_env.errors import SettingError, shown
from rg_env.installation import RUNS_WRITE_IN
from rg_env.library.own_tasks import resolve_module
from rg_env.reward.extraction import AnswerFormat
from rg_env.reward.score import ScoringRules
from rg_env.settings.setting_checks import (
    Affects,
    CheckedModel,
    FilePath,
    PositiveOrMinusOne,
    Text,
    Url,
    Weight,
)
from rg_env.stream.adaptive_weights import FLOOR
from rg_env.stream.difficulty import LevelSetting, level_setting
from rg_env.stream.seeds import MAX_SEED
from rg_env.stream.task_selection import PresetName, TaskChoosing
from rg_env.workers.worker_pool import default_pool_size

DATA_DUMPS = RUNS_WRITE_IN / "data_dumps"

MAX_GROUP_SIZE = 4096  # rollouts in memory at once
MANY = 1_000_000_000
A_DAY_S = 24 * 3600.0
MIN_LIMIT_S = 0.001  # nothing finishes in a shorter time

Level = Annotated[LevelSetting, BeforeValidator(level_setting)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Temperature = Annotated[float, Field(ge=0.0, le=10.0)]
Rollouts = Annotated[int, Field(ge=1, le=MAX_GROUP_SIZE)]
Tokens = Annotated[int, Field(ge=2, le=100_000_000)]
Modules = list[Annotated[str, AfterValidator(resolve_module)]]
SomeNames = Annotated[list[str], Field(min_length=1)] | None
Prompts = Annotated[Text | list[Text], Field(min_length=1)]
Efforts = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Lengths = Literal["prompt_and_completion", "completion"]
FolderName = Annotated[str, Field(max_length=100, pattern=r"^[^/.][^/]*$")]
Handling = Literal["STOP_TRAIN", "LIMIT_TRAIN", "NONE"]

# The model of the commands, and the tokenizer of the framework's settings.
DEFAULT_MODEL = "NousResearch/DeepHermes-3-Llama-3-8B-Preview"
DEFAULT_TOKENIZER = "NousResearch/DeepHermes-3-Llama-3-3B-Preview"

PUBLISHED = "published"  # the value of `eval_system_prompt` for the library's prompt

# Variables with the rank and the number of instances; the first pair that is set wins.
# Slurm's step comes before its job, which may have more tasks than environments.
LAUNCHERS = (
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)


def shard_of_launcher() -> tuple[int, int]:
    """Return the rank of this instance and their number; 0 and 1 without a launcher.

    Raises:
        SettingError: The launcher's variables contradict each other.
    """
    for rank_name, count_name in LAUNCHERS:
        rank = os.environ.get(rank_name, "")
        count = os.environ.get(count_name, "")
        if not rank or not count:
            continue
        # With a wrong rank, two instances would sample the same items.
        if not (rank + count).isdecimal() or int(rank) >= int(count):
            raise SettingError(
                f"{rank_name}: {shown(rank)} is not allowed beside {count_name}"
                f" {shown(count)}"
            )
        return int(rank), int(count)
    return 0, 1


class ItemSettings(CheckedModel):
    """Items."""

    affects = Affects.ITEMS

    # The contents of the modules affect the items, and are compared by their digest.
    task_modules: Annotated[Modules, Affects.NOTHING] = Field([])
    """Modules with your own tasks: import names, or paths of .py files"""
    tasks: SomeNames = None
    """Names or patterns of tasks, such as `*_sorting`; None means all"""
    categories: SomeNames = None
    """Categories to use beside `tasks`"""
    exclude_tasks: list[str] = Field([])
    """Names or patterns to leave out"""
    task_weights: dict[str, Weight] = Field({})
    """Weight of each task, above 0; 1.0 by default"""
    task_params: dict[str, dict[str, Any]] = Field({})
    """The library's dataset parameters of each task"""
    task_choice: TaskChoosing = "weighted"
    """Choice of the next task. weighted: at random; adaptive: more often if its groups
    have reward variance; in_turn: one after the other, levels spread evenly"""
    adaptive_floor: Annotated[float, Affects.FEEDBACK] = Field(FLOOR, gt=0.0, le=1.0)
    """With task_choice adaptive, the least share of its weight that a task keeps"""
    seed: int = Field(42, ge=0, le=MAX_SEED)
    """Seed of the training items"""
    shard_index: Count = Field(default_factory=lambda: shard_of_launcher()[0])
    """Number of this instance, from 0; by default that of Slurm or torchrun"""
    num_shards: Count = Field(default_factory=lambda: shard_of_launcher()[1], ge=1)
    """Number of instances that share a stream; by default that of Slurm or torchrun"""


class LevelSettings(CheckedModel):
    """Difficulty, with levels from 0 (easiest) to 1 (hardest)."""

    affects = Affects.ITEMS

    complexity_mode: Level = None
    """Level of the items: None (the library's default parameters), random, curriculum,
    a fixed level, or a range of levels `[low, high]`"""
    task_levels: dict[str, Level] = Field({})
    """The same for single tasks, by name or pattern"""
    curriculum_target_accuracy: Annotated[Share, Affects.FEEDBACK] = 0.7
    """Mean score at which a curriculum holds the levels"""


class SamplingSettings(CheckedModel):
    """Prompt and sampling."""

    affects = Affects.COMPLETIONS

    system_prompt: Prompts | None = None
    """System prompt, or in a file a list, of which an item's seed chooses one; None
    means the built-in one"""
    answer_format: AnswerFormat = "tags"
    """Marks of the answer. tags: `<answer>`; boxed: LaTeX `\\boxed{}`"""
    group_size: Rollouts = 4
    """Rollouts for each item; training needs at least 2"""
    max_token_length: Tokens = 2048
    """Maximum tokens of prompt plus completion"""
    temperature: Temperature = 1.0
    """Sampling temperature in training"""
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    """Nucleus sampling (top-p) in training"""
    tokenizer_name: Text = DEFAULT_TOKENIZER
    """Tokenizer: a name on the hub, or a folder; if not set, the model's"""
    thinking_mode: bool = False
    """Request reasoning (server type openai only)"""
    reasoning_effort: Efforts | None = None
    """Reasoning effort to request (server type openai only)"""
    max_reasoning_tokens: int | None = Field(None, ge=1024, le=32_000)
    """Reasoning tokens to allow (server type openai only)"""
    custom_thinking_prompt: Text | None = None
    """Text to put before the system prompt"""


class RewardSettings(CheckedModel):
    """Scores and rewards."""

    affects = Affects.SCORES

    scorer_fixes: bool = True
    """Correct the library's scorers, and skip items with an incorrect reference
    answer"""
    normalize_answers: bool = True
    """Also score each answer without its formatting; the higher score counts"""
    max_answer_chars: int = Field(ScoringRules.max_answer_chars, ge=1, le=100_000_000)
    """Maximum characters of an answer, but at least four times those of the reference
    answer"""
    partial_credit: bool = True
    """Count scores below 1; if false, they are 0 (but not in `formats` of dumps and in
    `rescore`), and their outcome is `partial`"""
    mask_too_long_completions: bool = True
    """Have the trainer give truncated rollouts an advantage of zero"""
    length_penalty_counts: Lengths = "prompt_and_completion"
    """Length for the length penalty: with or without the prompt"""
    ensure_scores_are_not_same: bool = True
    """Do not send a group with equal scores"""


class EvaluationSettings(CheckedModel):
    """Evaluation.

    `evaluate`, and `serve` every `steps_per_eval` steps, use fixed evaluation items.
    """

    affects = Affects.EVAL_ITEMS

    num_eval_samples_per_task: int = Field(5, ge=1, le=10_000)
    """Items for each task"""
    num_eval_tasks: int | None = Field(None, ge=1, le=100_000)
    """Number of tasks, selected by eval_seed; None means all"""
    eval_seed: int = Field(123, ge=0, le=MAX_SEED)
    """Seed of the items"""
    eval_level: Share | None = None
    """Level of the items; None means the library's default parameters"""
    eval_preset: PresetName | None = None
    """Items of the library's published results, easy or hard"""
    eval_completions: Annotated[Rollouts, Affects.EVAL_COMPLETIONS] = 1
    """Completions for each item"""
    eval_system_prompt: Annotated[Text | None, Affects.EVAL_COMPLETIONS] = None
    """System prompt, or `published` for that of the published results"""
    eval_temperature: Annotated[Temperature, Affects.EVAL_COMPLETIONS] = 0.0
    """Sampling temperature"""
    eval_max_token_length: Annotated[Tokens | None, Affects.EVAL_COMPLETIONS] = None
    """max_token_length in an evaluation; None means the same"""
    steps_per_eval: Annotated[int, Affects.NOTHING] = Field(100, ge=-1, le=MANY)
    """Steps between evaluations; 0 or -1 turns them off"""
    eval_handling: Annotated[Handling, Affects.NOTHING] = "STOP_TRAIN"
    """During an evaluation, stop, limit or continue (NONE) sampling for training"""
    eval_limit_ratio: Annotated[Share, Affects.NOTHING] = 0.5
    """With LIMIT_TRAIN, the share of the usual groups in flight"""
    max_eval_workers: Annotated[int, Affects.NOTHING] = Field(16, ge=1, le=100_000)
    """Maximum completions in flight"""
    data_dir_to_save_evals: Annotated[FilePath | None, Affects.NOTHING] = None
    """Folder for the results"""


class FileSettings(CheckedModel):
    """Files, log and W&B."""

    dump_rollouts: bool = False
    """Save groups in which a rollout scores above rollout_save_score_threshold"""
    dump_failed_rollouts: bool = False
    """Save groups in which every score is 0.0"""
    dump_metrics: bool = True
    """Also write the metrics for W&B to a file"""
    rollout_save_score_threshold: Share = 0.7
    """Score that a rollout must exceed for dump_rollouts"""
    data_dumps_dir: FilePath = str(DATA_DUMPS)
    """Folder of the dump files; by default beside the code"""
    data_path_to_save_groups: FilePath | None = None
    """File for groups, one row each"""
    debug_logging: bool = False
    """Log how each answer was scored, as -v does"""
    suppress_base_env_logs: bool = True
    """Hide the INFO and DEBUG lines of Atropos"""
    use_wandb: bool = True
    """Send metrics to W&B"""
    wandb_name: FolderName | None = None  # it names the checkpoints, too
    """Prefix of the run's name in W&B and at the API"""
    num_rollouts_to_keep: int = Field(32, ge=0, le=10_000)
    """Groups in the W&B table"""
    num_rollouts_per_group_for_logging: int = Field(1, ge=-1, le=MAX_GROUP_SIZE)
    """Rollouts of each group in the W&B table; -1 means all"""
    min_items_sent_before_logging: int = Field(2, ge=-MANY, le=MANY)
    """Groups to send before the next log to W&B"""


class WorkSettings(CheckedModel):
    """Workers and time limits."""

    num_workers: int | None = Field(None, ge=1, le=1024)
    """Worker processes; None means half the cores, from 2 to 8"""
    worker_memory_mb: int | None = Field(2048, ge=512, le=2**24)
    """Address space of a worker, in MiB; None means no limit"""
    scoring_deadline_s: float = Field(5.0, ge=MIN_LIMIT_S, le=A_DAY_S)
    """CPU time for scoring one answer, in seconds"""
    item_deadline_s: float = Field(20.0, ge=MIN_LIMIT_S, le=A_DAY_S)
    """CPU time for making one item, in seconds"""
    give_up_after_s: float = Field(300.0, ge=MIN_LIMIT_S, le=365 * A_DAY_S)
    """Seconds without a server after which process and evaluate stop"""
    max_num_workers: PositiveOrMinusOne = Field(-1, le=100_000)
    """Maximum groups in flight; -1 means max_num_workers_per_node for each server"""
    max_num_workers_per_node: int = Field(8, ge=1, le=100_000)
    """Maximum groups in flight per server"""
    worker_timeout: float = Field(600, ge=-1, le=365 * A_DAY_S)
    """Time limit for a group, in seconds; 0 or -1 means no limit"""


class RunSettings(CheckedModel):
    """The trainer and its API."""

    rollout_server_url: Url = "http://localhost:8000"
    """URL of the Atropos API (`run-api`)"""
    total_steps: PositiveOrMinusOne = Field(1000, le=MANY)
    """Training steps (serve) or groups (process); -1 asks the trainer"""
    batch_size: PositiveOrMinusOne = Field(-1, le=2**20)
    """Rollouts in a batch; the trainer's value takes precedence"""
    max_batches_offpolicy: int = Field(3, ge=0, le=1_000_000)
    """Maximum batches that wait for the trainer; 0 means no limit"""
    min_batch_allocation: Share | None = None
    """Minimum share of each batch from this environment"""
    # The API divides by the sum of the weights and answers every later status request
    # with 500 if it is 0; the framework's documented -1 is such a weight.
    inference_weight: Weight = 1.0
    """Weight of this environment among those that share servers"""
    include_messages: Annotated[bool, Affects.ROWS] = False
    """Also send the messages to the trainer"""


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
    """All settings; `ReasoningGymEnvConfig` adds them to the framework's class."""

    @property
    def worker_count(self) -> int:
        """The number of processes that make and score items."""
        return self.num_workers or default_pool_size()

    @property
    def scoring_rules(self) -> ScoringRules:
        """The settings of scoring, which workers get."""
        return ScoringRules(
            scorer_fixes=self.scorer_fixes,
            max_answer_chars=self.max_answer_chars,
            normalize_answers=self.normalize_answers,
            partial_credit=self.partial_credit,
        )

    @property
    def stream_settings(self) -> dict[str, Any]:
        """The settings that a resumed run must share with the run that it continues."""
        names = affecting(Affects.ITEMS, Affects.EVAL_ITEMS)
        return self.model_dump(mode="json", include=set(names))

    @model_validator(mode="after")
    def _check_combinations(self) -> CheckedSettings:
        if self.shard_index >= self.num_shards:
            raise ValueError(
                f"shard_index: {self.shard_index} is not allowed; expected a number"
                f" below num_shards, which is {self.num_shards}"
            )
        if None not in (self.eval_level, self.eval_preset):
            raise ValueError("eval_level: cannot be combined with eval_preset")
        if None not in (self.max_reasoning_tokens, self.reasoning_effort):
            raise ValueError(
                "max_reasoning_tokens: cannot be combined with reasoning_effort"
            )
        return self


TASK_SELECTION = (
    "tasks",
    "categories",
    "exclude_tasks",
    "task_weights",
    "task_params",
    "task_levels",
)
"""The settings that select tasks, and set their weights, parameters and levels."""
GROUPS = cast(tuple[type[CheckedModel], ...], CheckedSettings.__bases__)


def affecting(*affected: Affects) -> frozenset[str]:
    """Return the settings of the environment that affect any of these.

    Example:
        >>> sorted(affecting(Affects.ROWS))
        ['include_messages']
    """
    return frozenset(
        name
        for group in GROUPS
        for name, info in group.model_fields.items()
        if next((m for m in info.metadata if isinstance(m, Affects)), group.affects)
        in affected
    )


DEFAULTS: dict[str, Any] = {
    "tokenizer_name": DEFAULT_MODEL,
    "group_size": 8,
    "use_wandb": True,
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
"""The commands' defaults that differ from those of the class, as in the original."""
