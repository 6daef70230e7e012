"""One item, and its form as JSON.

The JSON contains what is needed to make the item again: task, parameters, seed and
level. The process that scores it makes the entry again and compares a digest.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from rg_env.errors import RunError, SettingError
from rg_env.items.entry_maker import first_usable
from rg_env.items.group_scorer import shared_pool
from rg_env.scoring.prompt import SYSTEM_PROMPT, Message, build_messages
from rg_env.task_rules.table import solution
from rg_env.tasks.item_stream import ItemSpec
from rg_env.tasks.sampler import MAX_ENTRY_SEED
from rg_env.tasks.task_modules import checked
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, WorkerDiedError
from rg_env.workers.worker_pool import WorkerPool, run_blocking

MAKING_DEADLINE_S = 20.0
"""CPU time that making one item may take."""

MOST_KEPT = 256
"""Items from JSON that a process keeps, with their entries."""

NOT_MADE = (JobError, DeadlineExceededError, WorkerDiedError)
"""Errors of a pool for which the item is to blame."""


class LostItemError(RunError):
    """The installed library cannot make the item, or makes a different one."""


class _Saved(msgspec.Struct, omit_defaults=True):
    """What of an item is in its JSON.

    Nothing here may name code: the JSON comes from anywhere.
    """

    task: str
    params: dict[str, Any]
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_ENTRY_SEED)]
    level: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    index: Annotated[int, msgspec.Meta(ge=0)] = 0
    digest: str = ""
    system_prompt: str | None = None


def own_modules(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return modules of a user's own tasks, or the only one, as workers import them."""
    try:
        return tuple(map(checked, [names] if isinstance(names, str) else names))
    except ValueError as error:
        raise SettingError(f"task_modules: {error}") from error


def digest_of(entry: Mapping[str, Any]) -> str:
    """Return the digest of an entry, 16 hexadecimal digits."""
    text = f"{entry['question']}\x1f{entry['answer']}"
    return hashlib.blake2b(
        text.encode(errors="surrogatepass"), digest_size=8
    ).hexdigest()


@dataclasses.dataclass(frozen=True)
class Item(ItemSpec):
    """One item of a task: a question, and what scores the answers to it.

    Items from `Tasks` contain their entry. The entry of an item that was read from JSON
    is made in a worker when it is first needed. For task, params, seed, level and index
    see `ItemSpec`.

    Attributes:
        digest: See `digest_of`; "" where nobody knows.
        system_prompt: System prompt in `messages`; None for the built-in one.
        task_modules: Modules of a user's own tasks; they are not in the JSON.
    """

    digest: str = ""
    system_prompt: str | None = None
    task_modules: tuple[str, ...] = ()
    _entry: Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    @property
    def entry(self) -> Mapping[str, Any]:
        """The library's entry: question, answer and metadata.

        Raises:
            LostItemError: The installed library makes another one, or none.
            PoolError: No worker could be started, or all were lost.
        """
        if self._entry is not None:
            return self._entry
        return run_blocking(self.made, shared_pool(self.task_modules))

    @property
    def question(self) -> str:
        """What is asked; raises as `entry`."""
        return str(self.entry["question"])

    @property
    def messages(self) -> list[Message]:
        """The prompt, a system and a user message; raises as `entry`."""
        prompt = SYSTEM_PROMPT if self.system_prompt is None else self.system_prompt
        return list(build_messages(self.question, prompt))

    @property
    def gold(self) -> str | None:
        """An answer that scores 1.0, None where there is none; raises as `entry`."""
        return solution(self.task, self.entry)

    async def made(self, pool: WorkerPool) -> Mapping[str, Any]:
        """Make the entry, store it and return it; raises like `entry`."""
        if self._entry is not None:
            return self._entry
        try:
            _, entry = await first_usable(pool, [self], deadline_s=MAKING_DEADLINE_S)
        except NOT_MADE as error:
            raise LostItemError(
                f"{self.task}: the item is not made: {error}"
            ) from error
        if self.digest not in ("", digest_of(entry)):
            raise LostItemError(
                f"{self.task}: the installed library makes another item of seed"
                f" {self.seed}"
            )
        object.__setattr__(self, "_entry", entry)
        return entry

    def to_json(self) -> str:
        """Return the item as one line of JSON, some 100 characters long."""
        saved = msgspec.convert(self, _Saved, from_attributes=True)
        return msgspec.json.encode(saved).decode()

    @staticmethod
    def from_json(text: str | bytes, task_modules: str | Sequence[str] = ()) -> Item:
        """Return the item that `to_json` has written; its entry is made later.

        The newest items are cached, so an item is made only once even if the
        completions of its group arrive one by one.

        Args:
            text: The JSON, from anywhere.
            task_modules: Names or paths of modules of a user's own tasks. They run
                outside the sandbox, so nothing in the JSON may name them.

        Raises:
            ValueError: The text does not describe an item.
            SettingError: A module is none.
        """
        names = [task_modules] if isinstance(task_modules, str) else task_modules
        return _from_json(text, tuple(names))


@functools.lru_cache(MOST_KEPT)
def _from_json(text: str | bytes, task_modules: tuple[str, ...]) -> Item:
    try:
        saved = msgspec.json.decode(text, type=_Saved)
    except ValueError as error:
        raise ValueError(f"this is no item: {error}") from error
    modules = own_modules(task_modules)
    return Item(**msgspec.structs.asdict(saved), task_modules=modules)
