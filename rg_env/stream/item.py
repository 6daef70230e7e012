"""One item: its question, and the few values from which a worker makes it again.

An item can be pickled, and it is the dataset object that the framework gets. Its JSON
has only the values: the process that scores it makes the entry and compares a digest.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from rg_env.errors import RunError, unexpected
from rg_env.library import worker_jobs
from rg_env.library.datasets import ANSWER_DEADLINE_S, MAKING_DEADLINE_S
from rg_env.library.installed_library import shared_pool
from rg_env.library.own_tasks import own_modules
from rg_env.library.task_check import is_unusable, why_no_entry
from rg_env.reward.extraction import AnswerFormat
from rg_env.reward.prompt import choose_prompt
from rg_env.reward.score import DEFAULT_RULES, ScoringRules
from rg_env.stream.group_scorer import GroupScorer, WorkerSource
from rg_env.stream.seeds import EVALUATION_BIT, MAX_ENTRY_SEED, Split
from rg_env.task_rules.table import solution
from rg_env.workers.call import (
    DeadlineExceededError,
    JobError,
    PoolError,
    WorkerDiedError,
)
from rg_env.workers.worker_pool import WorkerPool, run_blocking

logger = logging.getLogger(__name__)

Message = dict[str, str]
"""One message of a conversation, with role and content, as chat templates take it."""

# Number of items from JSON that a process keeps, with their entries.
CACHE_SIZE = 256

# Largest dataset of an item from JSON: to make the item, the whole dataset is made.
MAX_DATASET_SIZE = 1000

ITEM_FAULTS = (JobError, DeadlineExceededError, WorkerDiedError)
"""Errors of a pool for which the item is to blame."""


class AvoidedQuestionError(PoolError):
    """Every attempt at an item has a question that must not be sampled."""


class LostItemError(RunError):
    """The installed library cannot make the item, or makes a different one."""


def digest_of(entry: Mapping[str, Any]) -> str:
    """Return the digest of an entry, 16 hexadecimal digits."""
    text = f"{entry['question']}\x1f{entry['answer']}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def build_messages(question: str, system_prompt: str) -> tuple[Message, Message]:
    """Return the prompt of an item: the system prompt, then the question as user."""
    return (
        {"role": "system", "content": system_prompt},
        {"role": "user", "content": question},
    )


class _ItemJson(msgspec.Struct, omit_defaults=True):
    """The JSON of an item; no field names code, because anyone may have written it."""

    task: str
    params: dict[str, Any]
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_ENTRY_SEED)]
    level: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    digest: str = ""
    system_prompt: str | None = None
    answer_format: AnswerFormat = "tags"
    size: Annotated[int, msgspec.Meta(ge=1, le=MAX_DATASET_SIZE)] = 1
    published: bool = False
    partial_credit: bool = True


@dataclasses.dataclass(frozen=True, repr=False)
class Item:
    """One item of a task: a question whose answers can be scored.

    An item from a stream has its entry; the entry of another item is made when needed.

    Attributes:
        task: The registered task.
        params: Its dataset parameters that differ from the library's defaults.
        seed: The seed of the entry, in [0, 2**32).
        level: Difficulty in [0, 1], None for the library's defaults.
        index: Its number in the stream, or among the evaluation items of its task.
        size: Size of its dataset, which is more than 1 if the seed is not enough to
            make the entry.
        published: Whether it is of an evaluation of the library's authors.
        digest: The `digest_of` its entry, "" if unknown.
        system_prompt: System prompt in `messages`; None for the built-in one.
        answer_format: How a completion marks its answer: "tags" or "boxed".
        task_modules: Modules of a user's own tasks.
        deadline_s: CPU time of a call that scores its answers.
        rules: How its answers are scored.

    Example:
        >>> item = Item("gcd", seed=7)
        >>> item.score_answer(item.gold, item.entry)
        1.0
    """

    task: str
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    seed: int = 0
    level: float | None = None
    index: int = 0
    _: dataclasses.KW_ONLY
    size: int = 1
    published: bool = False
    digest: str = ""
    system_prompt: str | None = None
    answer_format: AnswerFormat = "tags"
    task_modules: tuple[str, ...] = ()
    deadline_s: float = ANSWER_DEADLINE_S
    rules: ScoringRules = DEFAULT_RULES
    _entry: Mapping[str, Any] | None = dataclasses.field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return a short text: the framework formats every item into its log."""
        return f"<{self.task} {self.split} #{self.index}>"

    @property
    def split(self) -> Split:
        """The split that it belongs to."""
        is_evaluated = self.published or self.seed & EVALUATION_BIT
        return "evaluation" if is_evaluated else "train"

    @property
    def index_and_size(self) -> tuple[int, int]:
        """Its index in its dataset, and the size of the dataset."""
        return (self.index if self.size > 1 else 0), self.size

    @property
    def partial_credit(self) -> bool:
        """Whether a score below 1 counts; if not, it counts as 0."""
        return self.rules.partial_credit

    @property
    def worker_source(self) -> WorkerSource:
        """Task and parameters, by which a worker finds the scorer."""
        return self.task, dict(self.params)

    # -- the entry ---------------------------------------------------------------------

    @property
    def entry(self) -> Mapping[str, Any]:
        """The library's entry: question, answer and metadata.

        Raises:
            LostItemError: The installed library makes a different entry, or none.
            PoolError: No worker could be started, or all were lost.
        """
        if self._entry is not None:
            return self._entry
        return run_blocking(self.get_entry, shared_pool(self.task_modules))

    @property
    def question(self) -> str:
        """The question of the entry; raises as `entry`."""
        return str(self.entry["question"])

    @property
    def messages(self) -> list[Message]:
        """The prompt, a system and a user message; raises as `entry`."""
        prompt = choose_prompt(self.system_prompt, self.answer_format, self.seed)
        return list(build_messages(self.question, prompt))

    @property
    def gold(self) -> str | None:
        """An answer that scores 1.0, None if there is none; raises as `entry`."""
        return solution(self.task, self.entry)

    async def get_entry(self, pool: WorkerPool) -> Mapping[str, Any]:
        """Return the entry, which is made only once; raises like `entry`."""
        if self._entry is not None:
            return self._entry
        try:
            item = await self.with_entry(pool)
        except ITEM_FAULTS as error:
            raise LostItemError(
                f"{self.task}: the item is not made: {error}"
            ) from error
        if self.digest not in ("", item.digest):
            raise LostItemError(
                f"{self.task}: the installed library makes another item of seed"
                f" {self.seed}"
            )
        object.__setattr__(self, "_entry", item._entry)
        return item.entry

    async def with_entry(
        self, pool: WorkerPool, deadline_s: float = MAKING_DEADLINE_S
    ) -> Item:
        """Return the item with an entry, which a worker makes within a CPU time.

        Raises:
            PoolError: The entry is not made, or has a fault (see `is_unusable`).
        """
        entry = await pool.run(
            worker_jobs.make_entry,
            self.task,
            dict(self.params),
            self.seed,
            self.rules.scorer_fixes,
            self.published,
            self.index_and_size,
            deadline_s=deadline_s,
        )
        return dataclasses.replace(self, digest=digest_of(entry), _entry=entry)

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Score one answer in a worker; raises as `GroupScorer.score_group`."""
        if answer is None:
            return 0.0
        pool = shared_pool(self.task_modules)
        scorer = GroupScorer(pool, self.deadline_s, self.rules)
        return scorer.score_blocking(self, entry, answer).value

    # -- its JSON ----------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the item as one line of JSON, about 100 characters long."""
        saved = msgspec.convert(self, _ItemJson, from_attributes=True)
        return msgspec.json.encode(saved).decode()

    @staticmethod
    def from_json(text: str | bytes, task_modules: str | Sequence[str] = ()) -> Item:
        """Return the item that `to_json` has written; its entry is made when needed.

        Args:
            text: The JSON, from anywhere.
            task_modules: Names or paths of modules of a user's own tasks, which run
                outside the sandbox.

        Raises:
            ValueError: The text does not describe an item.
            SettingError: A module cannot be one.
        """
        if not isinstance(text, (str, bytes)):
            raise ValueError(f"this is not an item: {unexpected(text, 'its JSON')}")
        return _from_json(text, own_modules(task_modules))


@functools.lru_cache(CACHE_SIZE)
def _from_json(text: str | bytes, task_modules: tuple[str, ...]) -> Item:
    try:
        saved = msgspec.json.decode(text, type=_ItemJson)
    except ValueError as error:
        raise ValueError(f"this is not an item: {error}") from error
    fields = msgspec.structs.asdict(saved)
    rules = ScoringRules(partial_credit=fields.pop("partial_credit"))
    return Item(**fields, task_modules=task_modules, rules=rules)


# -- items made in workers -------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ItemMaker:
    """Makes items, and counts those that are not used.

    A draw without an item uses up its index, so that later items do not change.

    Attributes:
        deadline_s: CPU time of each attempt.
        left_out: Reason why the items of a task are not used, by task.
        avoided_questions: Questions that no item may have; they may change.
        failures: Number of draws that gave no item, by task.
        events: Number of rejected attempts (`items_unusable`, `evaluations_avoided`),
            and of draws whose last attempt has an avoided question
            (`evaluations_skipped`).

    Example:
        item = await ItemMaker().make_first_usable(pool, attempts)
    """

    deadline_s: float = MAKING_DEADLINE_S
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
    avoided_questions: Collection[str] = ()
    failures: Counter[str] = dataclasses.field(default_factory=Counter)
    events: Counter[str] = dataclasses.field(default_factory=Counter)

    async def make_first_usable(
        self, pool: WorkerPool, attempts: Iterable[Item]
    ) -> Item:
        """Return the first attempt that is not rejected, with its entry.

        Raises:
            PoolError: An entry cannot be made, or every attempt is rejected.
        """
        rejected: Exception = ValueError("there is no attempt")
        for attempt in attempts:
            try:
                item = await attempt.with_entry(pool, self.deadline_s)
            except JobError as error:
                if not is_unusable(error):
                    raise
                rejected = error
                self.events.update(["items_unusable"])
                continue
            if item.question not in self.avoided_questions:
                return item
            rejected = AvoidedQuestionError("its question belongs to the evaluation")
            self.events.update(["evaluations_avoided"])
        raise rejected

    async def make(
        self, pool: WorkerPool, task: str, attempts: Iterable[Item]
    ) -> Item | None:
        """Return the item of a draw, None if it has none.

        The first failure of a task is logged.

        Raises:
            PoolError: The workers were lost, for which the item is not to blame.
        """
        if task in self.left_out:
            return None
        try:
            return await self.make_first_usable(pool, attempts)
        except AvoidedQuestionError:
            self.events.update(["evaluations_skipped"])
        except ITEM_FAULTS as error:
            if task not in self.failures:
                reason = why_no_entry(error)
                logger.warning("an item of task %s is left out: %s", task, reason)
            self.failures.update([task])  # one call, which no thread can interrupt
        return None
